"""What the bot does to a repository, seen from outside: branches, pull requests, comments, and what it leaves alone."""

from __future__ import annotations

from tests.bot.conftest import FIXED, World
from tests.bot.githost import git


def test_fixes_come_as_a_pull_request(world: World) -> None:
    assert world.actions() == {"safe": "created", "unsafe": "nothing"}
    pull = world.pull()
    assert pull["title"] == "ddpfix: 1 safe fix in 1 file"
    assert not pull["draft"]
    assert world.file("model.py") == FIXED
    for words in ("DDP101", "- `model.py:9`: ", "/ddpfix rebuild", "enabled = false"):
        assert words in pull["body"]
    assert git(world.git, "log", "-1", "--format=%an <%ae>|%cn", "ddpfix/safe").startswith("mender[bot] <4711+")
    trailers = git(world.git, "log", "-1", "--format=%(trailers:only)", "ddpfix/safe")
    assert "ddpfix-rules: DDP101" in trailers
    assert "ddpfix-run: " in trailers


def test_a_second_run_writes_nothing(world: World) -> None:
    world.run()
    before = len(world.forge.writes(world.slug))
    assert world.actions() == {"safe": "unchanged", "unsafe": "nothing"}
    assert world.forge.writes(world.slug)[before:] == []


def test_new_code_on_the_base_moves_the_branch(world: World) -> None:
    world.run()
    world.commit({"other.py": world_module("Other")})
    assert world.safe().action == "updated"
    assert len(world.repo.pulls) == 1
    assert world.pull()["title"] == "ddpfix: 2 safe fixes in 2 files"
    assert git(world.git, "rev-list", "--count", "main..ddpfix/safe") == "1"
    assert world.safe().action == "unchanged"


def test_the_same_change_on_a_base_that_moved_elsewhere_follows_it(world: World) -> None:
    world.run()
    world.commit({"README.md": b"news\n"})
    assert world.safe().action == "updated"
    assert git(world.git, "merge-base", "main", "ddpfix/safe") == world.tip("main")


def test_somebody_elses_commit_is_never_overwritten(world: World) -> None:
    world.run()
    mine = world.commit({"mine.py": b"x = 1\n"}, branch="ddpfix/safe", message="mine too")
    world.commit({"other.py": world_module("Other")})
    for _ in range(2):
        outcome = world.safe()
        assert outcome.action == "left-to-human"
        assert "ada@example.test" in outcome.why
    assert world.tip() == mine
    assert len(world.notes()) == 1
    assert "/ddpfix rebuild" in world.notes()[0]
    assert world.safe(reopen=True).action == "updated"
    assert world.file("model.py") == FIXED
    assert "mine.py" not in git(world.git, "ls-tree", "--name-only", "ddpfix/safe").split()


def test_a_commit_of_ours_that_somebody_amended_is_somebody_elses(world: World) -> None:
    world.run()
    tree, message = git(world.git, "rev-parse", "main^{tree}"), git(world.git, "log", "-1", "--format=%B", "ddpfix/safe")
    amended = git(world.git, "commit-tree", tree, "-p", "main", "-m", message)  # Ada is the committer now
    git(world.git, "update-ref", "refs/heads/ddpfix/safe", amended)
    assert world.safe().action == "left-to-human"
    assert world.tip() == amended


def test_commits_of_an_ignored_author_do_not_count(world: World) -> None:
    world.commit({".github/ddpfix.toml": b'ignored-authors = ["ada@example.test"]\n'})
    world.run()
    world.commit({"model.py": FIXED + b"\n\n"}, branch="ddpfix/safe", message="formatted")
    world.commit({"other.py": world_module("Other")})
    assert world.safe().action == "updated"
    assert world.file("model.py") == FIXED


def test_closed_by_a_person_means_not_wanted(world: World) -> None:
    world.run()
    world.forge.close_pull(world.slug, 1)
    before = len(world.forge.writes(world.slug))
    outcome = world.safe()
    assert outcome.action == "closed-by-human"
    assert "/ddpfix rebuild" in outcome.why
    assert world.forge.writes(world.slug)[before:] == []
    assert world.safe(reopen=True).action == "created"
    assert world.repo.pulls[2]["state"] == "open"


def test_nothing_left_to_fix_closes_our_own_pull_request_with_the_reason(world: World) -> None:
    world.run()
    world.commit({"model.py": FIXED})
    outcome = world.safe()
    assert outcome.action == "closed"
    assert world.pull()["state"] == "closed"
    assert "nothing left" in world.notes()[0]
    assert world.tip() == ""
    assert world.safe().action == "nothing"
    # nobody has said no: what comes up later is offered again
    world.commit({"other.py": world_module("Other")})
    assert world.safe().action == "created"


def test_after_a_merge_the_branch_is_tidied_and_new_findings_are_a_new_pull_request(world: World) -> None:
    world.run()
    world.forge.merge(world.slug, 1)
    assert world.safe().action == "deleted"
    assert world.tip() == ""
    world.commit({"other.py": world_module("Other")})
    assert world.safe().action == "created"
    assert world.file("other.py").count(b"sync_dist=True") == 1


def test_a_topic_that_is_no_longer_asked_for_closes_with_a_link_to_its_successor(world: World) -> None:
    world.run()
    assert world.actions(topics=("DDP101",)) == {"DDP101": "created", "safe": "superseded"}
    assert world.repo.pulls[1]["state"] == "closed"
    assert f"{world.slug}/pull/2" in world.notes(1)[0]
    assert world.repo.pulls[2]["title"] == "ddpfix: DDP101 unsynced-metric, 1 fix in 1 file"
    assert world.tip("ddpfix/safe") == ""
    assert world.actions(topics=("DDP101",)) == {"DDP101": "unchanged"}


def test_a_pull_request_a_person_opened_under_the_prefix_is_not_superseded(world: World) -> None:
    git(world.git, "update-ref", "refs/heads/ddpfix/fixes", world.commit({"mine.py": b"x = 1\n"}))
    git(world.git, "update-ref", "refs/heads/main", "main~1")
    number = world.forge.open_by_hand(world.slug, "ddpfix/fixes")
    assert world.actions() == {"safe": "created", "unsafe": "nothing"}
    assert world.repo.pulls[number]["state"] == "open"


def test_safe_is_ready_and_unsafe_is_a_draft(world: World) -> None:
    world.commit({"hook.py": UNSAFE})
    assert world.actions() == {"safe": "created", "unsafe": "created"}
    assert [(p["branch"], p["draft"]) for p in world.repo.pulls.values()] == [("ddpfix/safe", False), ("ddpfix/unsafe", True)]
    assert "- Not checked, at `hook.py` " in world.repo.pulls[2]["body"]
    assert world.actions() == {"safe": "unchanged", "unsafe": "unchanged"}


def test_no_more_than_two_are_open(world: World) -> None:
    world.commit({"hook.py": UNSAFE, ".github/ddpfix.toml": b"max-open = 1\n"})
    assert world.actions() == {"safe": "created", "unsafe": "deferred"}
    assert world.tip("ddpfix/unsafe") == ""


def test_no_more_than_so_many_within_an_hour(world: World) -> None:
    bot = world.bot(per_hour=0)
    outcome = bot.repository(world.slug)[0]
    assert outcome.action == "deferred"
    assert world.repo.pulls == {}


def test_labels_are_put_on_a_new_one(world: World) -> None:
    world.commit({".github/ddpfix.toml": b'labels = ["distributed"]\ndraft = true\n'})
    world.run(labels=("bot",))
    assert world.pull()["labels"] == ["bot", "distributed"]
    assert world.pull()["draft"]


def test_a_title_that_a_person_changed_stands(world: World) -> None:
    world.run()
    world.repo.pulls[1]["title"] = "Better words"
    assert world.safe().action == "unchanged"
    assert world.pull()["title"] == "Better words"


def test_a_body_that_a_person_changed_is_written_again_without_a_push(world: World) -> None:
    world.run()
    tip = world.tip()
    text = world.pull()["body"]
    world.repo.pulls[1]["body"] = text.replace("/ddpfix rerun", "/ddpfix dance")
    assert world.safe().action == "updated"
    assert world.tip() == tip
    # what the bot said is said again, what the person wrote stands above it
    above, _, rest = world.pull()["body"].partition("\n\n")
    assert "/ddpfix dance" in above
    assert rest == text
    assert world.safe().action == "unchanged"


def test_a_persons_words_survive_every_later_run(world: World) -> None:
    world.safe()
    text = world.pull()["body"]
    inside = text.replace("\n---\n", "\nAsked Grace, she is fine with it.\n\n---\n")
    world.repo.pulls[1]["body"] = f"Part of our plan, see above.\n\n{inside}\nPS: after the release."
    for module in ("other", "more"):
        world.commit({f"{module}.py": world_module(module.title())})
        assert world.safe().action == "updated"
        body = world.pull()["body"]
        assert body.startswith("Part of our plan, see above.\n\nAsked Grace, she is fine with it.\n\n")
        assert body.endswith("\n\nPS: after the release.\n")
        assert f"{module}.py" in body
        assert body.count("Asked Grace") == 1
    assert world.safe().action == "unchanged"


def test_a_dry_run_says_what_it_would_do_and_writes_nothing(world: World) -> None:
    assert world.actions(dry_run=True) == {"safe": "would be: create", "unsafe": "nothing"}
    assert world.forge.writes(world.slug) == []


def test_the_body_fits_however_much_there_is_to_say(world: World) -> None:
    many = {f"m{i:03}.py": world_module(f"Model{i}") for i in range(150)}
    world.commit(many)
    assert world.safe().action == "created"
    body = world.pull()["body"]
    assert len(body) <= 30_000
    assert body.count("<details>") == body.count("</details>")
    assert body.count("\n```") % 2 == 0
    assert body.rstrip().endswith("-->")


def world_module(name: str) -> bytes:
    from tests.bot.conftest import MODULE

    return MODULE.replace(b"class Model", f"class {name}".encode())


UNSAFE = b"""\
import os
import torch


def main():
    if int(os.environ["RANK"]) == 0:
        os.remove("weights.pt")
    model = torch.load("weights.pt")


torch.distributed.init_process_group("nccl")
main()
"""
