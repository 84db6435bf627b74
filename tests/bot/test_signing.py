"""Commits that the forge makes, and signs: where a rule asks for verified ones."""

from __future__ import annotations

from ddpfix.bot.client import Pace
from ddpfix.bot.gitlab import GitLab
from ddpfix.bot.login import FixedToken
from ddpfix.bot.repositories import Bot, BotOptions
from tests.bot.conftest import FILES, FIXED, IDENTITY, MODULE, STATE, World
from tests.bot.githost import git
from tests.bot.test_gitlab import TOKEN, Lab, gitlab, lab

__all__ = ["gitlab", "lab"]


def committers(world: World) -> list[str]:
    return git(world.git, "log", "--format=%cn %ae", "main..ddpfix/safe").splitlines()


def branches(world: World) -> list[str]:
    return git(world.git, "for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads").splitlines()


def test_the_forge_makes_the_commits_and_they_count_as_our_own(world: World) -> None:
    world.commit({"hook.py": MODULE.replace(b"Model", b"Other")})
    assert world.safe(signed=True).action == "created"
    assert committers(world) == [f"GitHub {IDENTITY[1]}"] and world.file("model.py") == FIXED
    assert "ddpfix-run: " in git(world.git, "log", "-1", "--format=%B", "ddpfix/safe")
    assert branches(world) == ["ddpfix/safe", "main"], "nothing is left beside"
    before = len(world.forge.log)
    assert world.safe(signed=True).action == "unchanged"
    assert world.forge.writes(world.slug) == [w for w in world.forge.writes(world.slug) if w in world.forge.log[:before]]
    world.commit({"late.py": MODULE.replace(b"Model", b"Late")})
    assert world.safe(signed=True).action == "updated"
    assert committers(world) == [f"GitHub {IDENTITY[1]}"]
    assert git(world.git, "merge-base", "main", "ddpfix/safe") == world.tip("main")
    mine = world.commit({"mine.py": b"x = 1\n"}, branch="ddpfix/safe")
    assert world.safe(signed=True).action == "left-to-human" and world.tip() == mine


def test_a_repository_can_ask_for_it(world: World) -> None:
    world.commit({".github/ddpfix.toml": b"signed = true\n"})
    assert world.safe().action == "created" and committers(world) == [f"GitHub {IDENTITY[1]}"]


def test_what_the_forge_would_make_of_it_is_held_against_what_was_wanted(world: World) -> None:
    git(world.git, "update-ref", "refs/heads/main", executable(world))
    outcome = world.safe(signed=True)
    assert outcome.action == "refused" and "the forge made other files" in outcome.why
    assert branches(world) == ["main"] and not world.repo.pulls
    assert world.safe().action == "created", "without signatures it can be had"


def executable(world: World) -> str:
    """main with a model that can be run."""
    tree = git(world.git, "ls-tree", "main").replace("100644 blob", "100755 blob", 1) + "\n"
    made = git(world.git, "mktree", data=tree.encode())
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.test")
    return git(world.git, *who, "commit-tree", made, "-p", "main", "-m", "can be run")


def test_commits_by_another_address_would_be_a_strangers(world: World) -> None:
    bot = world.bot(signed=True, topics=("safe",))
    bot.forge._identity = ("ddpfix", "ddpfix@users.noreply.invalid")  # type: ignore[attr-defined]
    (outcome,) = bot.repository(world.slug)
    assert outcome.action == "refused" and IDENTITY[1] in outcome.why and "--author" in outcome.why
    assert branches(world) == ["main"]


def test_a_branch_beside_that_a_killed_run_left_is_taken_over(world: World) -> None:
    world.commit({"x.py": b"x = 1\n"}, branch="main")
    git(world.git, "update-ref", "refs/heads/ddpfix-signing/safe", "main~1")
    assert world.safe(signed=True).action == "created"
    assert branches(world) == ["ddpfix/safe", "main"]


def test_gitlab_makes_them_too(lab: Lab) -> None:
    forge = GitLab(FixedToken(TOKEN), clock=lab.clock, api_url=lab.forge.api, pace=Pace(gap=0.0), identity=IDENTITY)
    outcome = Bot(forge, BotOptions(topics=("safe",), signed=True), lab.clock, STATE).repository(lab.project.slug)[0]
    assert outcome.action == "created", outcome.why
    assert git(lab.git, "log", "-1", "--format=%cn", "ddpfix/safe") == "ddpfix-bot"
    assert git(lab.git, "cat-file", "blob", "ddpfix/safe:model.py").encode() + b"\n" == FIXED
    assert git(lab.git, "diff", "--name-only", "main", "ddpfix/safe") == "model.py" and "model.py" in FILES
