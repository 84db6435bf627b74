"""What people do to a pull request of the bot without a commit of their own, and how far a program's commit counts."""

from __future__ import annotations

import os

from tests.bot.conftest import FIXED, MODULE, World
from tests.bot.githost import git
from tests.bot.github_forge import Fault
from tests.bot.test_reconcile import world_module

OTHER = b"""\
import os

import torch.distributed as dist


def save(path):
    if not os.path.exists(path):
        os.makedirs(path)


dist.init_process_group("nccl")
save("out")
"""


def commit_as(world: World, *, author: str, committer: str) -> str:
    """A commit on top of the bot's branch, by these addresses, that changes a file."""
    blob = git(world.git, "hash-object", "-w", "--stdin", data=FIXED + b"\n\n")
    tree = git(world.git, "mktree", data=f"100644 blob {blob}\tmodel.py\n".encode())
    rows = (f"tree {tree}", f"parent {world.tip()}", f"author A <{author}> 1 +0000", f"committer C <{committer}> 1 +0000", "")
    made = git(world.git, "hash-object", "-t", "commit", "-w", "--stdin", data="\n".join([*rows, "formatted\n"]).encode())
    git(world.git, "update-ref", "refs/heads/ddpfix/safe", made)
    return made


def test_a_pull_request_that_goes_elsewhere_now_is_left_alone(world: World) -> None:
    world.run()
    tip = world.tip()
    git(world.git, "branch", "release", "main")
    world.repo.pulls[1]["base"] = "release"
    world.commit({"other.py": world_module("Other")})
    for _ in range(2):
        outcome = world.safe()
        assert outcome.action == "left-to-human"
        assert "it goes to the branch release now" in outcome.why
    assert world.tip() == tip
    assert len(world.notes()) == 1
    assert "ignored-authors" not in world.notes()[0]
    assert world.safe(reopen=True).action == "updated"
    assert world.repo.pulls[1]["base"] == "main"
    assert world.safe().action == "unchanged"


def test_a_commit_that_somebody_took_off_is_not_put_back(world: World) -> None:
    world.commit({"other.py": OTHER})
    world.run()
    assert git(world.git, "rev-list", "--count", "main..ddpfix/safe") == "3"
    git(world.git, "update-ref", "refs/heads/ddpfix/safe", "ddpfix/safe~1")
    cut = world.tip()
    outcome = world.safe()
    assert outcome.action == "left-to-human"
    assert "taken off" in outcome.why
    assert world.tip() == cut
    assert world.safe(reopen=True).action == "updated"
    assert git(world.git, "rev-list", "--count", "main..ddpfix/safe") == "3"


def test_the_words_of_somebody_who_opened_it_by_hand_stand(world: World) -> None:
    world.forge.faults += [Fault("POST", r"/pulls$", 403, message="Resource not accessible by integration")]
    world.safe()
    number = world.forge.open_by_hand(world.slug, "ddpfix/safe", "My own title")
    before = len(world.forge.writes(world.slug))
    assert world.safe().action == "left-to-human"
    assert world.forge.writes(world.slug)[before:] == []
    assert world.pull(number)["title"] == "My own title"
    assert world.safe(reopen=True).action == "updated"
    assert "DDP101" in world.pull(number)["body"]


def test_what_a_person_amends_of_an_ignored_program_is_the_persons(world: World) -> None:
    program = "tidy@programs.example"
    world.commit({".github/ddpfix.toml": f'ignored-authors = ["{program}"]\n'.encode()})
    world.run()
    amended = commit_as(world, author=program, committer="ada@example.test")
    world.commit({"other.py": world_module("Other")})
    assert world.safe().action == "left-to-human"
    assert world.tip() == amended


def test_what_an_ignored_program_commits_through_the_forge_is_its_own(world: World) -> None:
    program = "tidy@programs.example"
    world.commit({".github/ddpfix.toml": f'ignored-authors = ["{program}"]\n'.encode()})
    world.run()
    commit_as(world, author=program, committer="noreply@github.com")
    world.commit({"other.py": world_module("Other")})
    assert world.safe().action == "updated"


def test_a_base_that_somebody_merged_in_is_theirs(world: World) -> None:
    world.run()
    world.commit({"README.md": b"news\n"})
    tree, mine = git(world.git, "rev-parse", "main^{tree}"), ("-c", "user.email=ada@example.test", "-c", "user.name=Ada")
    merge = git(world.git, *mine, "commit-tree", tree, "-p", "ddpfix/safe", "-p", "main", "-m", "Merge main")
    git(world.git, "update-ref", "refs/heads/ddpfix/safe", merge)
    assert world.safe().action == "left-to-human"
    assert world.tip() == merge


FORGE = ("-c", "user.email=noreply@github.com", "-c", "user.name=GitHub")


def merged(world: World, second: str, tree: str = "") -> str:
    """What "Update branch" makes: a merge into the bot's branch that the forge commits, with that tree or git's own."""
    tree = tree or git(world.git, "merge-tree", "--write-tree", "ddpfix/safe", second).split()[0]
    by = ("-c", "author.name=Ada", "-c", "author.email=ada@example.test")
    commit = ("commit-tree", tree, "-p", "ddpfix/safe", "-p", second, "-m", "Merge branch 'main' into ddpfix/safe")
    names = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL")
    kept = {name: os.environ.pop(name) for name in names}
    try:
        made = git(world.git, *FORGE, *by, *commit)
    finally:
        os.environ.update(kept)
    git(world.git, "update-ref", "refs/heads/ddpfix/safe", made)
    return made


def test_update_branch_does_not_freeze_the_bot(world: World) -> None:
    world.safe()
    world.commit({"README.md": b"news\n"})
    merge = merged(world, "main")
    assert world.safe().action in ("unchanged", "updated")
    assert world.notes() == []
    world.commit({"other.py": world_module("Other")})
    merged(world, "main")
    world.commit({"more.py": world_module("More"), "model.py": b"# news\n" + MODULE})
    merged(world, "main")  # a second time, with one file changed on both sides
    assert world.safe().action == "updated"
    assert git(world.git, "diff", "--name-only", "main", "ddpfix/safe").split() == ["model.py", "more.py", "other.py"]
    assert world.safe().action == "unchanged"
    assert merge


def test_a_merge_by_the_forge_that_holds_somebodys_change_is_somebodys(world: World) -> None:
    world.safe()
    world.commit({"README.md": b"news\n"})
    mine = git(world.git, "rev-parse", "main^{tree}")  # somebody resolved it another way on the forge's page
    merge = merged(world, "main", mine)
    assert world.safe().action == "left-to-human"
    assert world.tip() == merge


def test_a_merge_of_another_branch_by_the_forge_is_somebodys(world: World) -> None:
    world.safe()
    git(world.git, "branch", "topic", "main")
    world.commit({"mine.py": b"x = 1\n"}, branch="topic")
    merge = merged(world, "topic")
    assert world.safe().action == "left-to-human"
    assert world.tip() == merge


def test_a_branch_that_a_person_deleted_does_not_come_back(world: World) -> None:
    world.run()
    git(world.git, "update-ref", "-d", "refs/heads/ddpfix/safe")
    world.commit({"other.py": world_module("Other")})
    assert world.safe().action == "closed-by-human"  # GitHub closes it then
    assert world.tip() == ""


def test_a_label_that_is_not_taken_does_not_undo_the_pull_request(world: World) -> None:
    world.forge.faults += [Fault("POST", r"/labels$", 403, message="Resource not accessible by integration")]
    outcome = world.safe(labels=("bot",))
    assert outcome.action == "created"
    assert "without labels" in outcome.why


def test_lost_answers_of_every_other_write(world: World) -> None:
    world.forge.faults += [Fault("POST", r"/labels$", lost=True)]
    assert world.safe(labels=("bot",)).action == "created"
    assert world.pull()["labels"] == ["bot"]
    world.commit({"mine.py": b"x = 1\n"}, branch="ddpfix/safe")
    world.forge.faults += [Fault("POST", r"/comments$", lost=True)]
    assert world.safe().action == "left-to-human"
    assert len(world.notes()) == 1
    assert world.forge.faults == []


def test_a_branch_in_the_way_of_all_others_is_named(world: World) -> None:
    git(world.git, "branch", "ddpfix", "main")
    (outcome,) = world.run()
    assert outcome.action == "refused"
    assert "--branch-prefix" in outcome.why
    assert world.safe(prefix="mend").action == "created"


def test_old_topics_make_room_for_new_ones_and_are_tidied_after_a_crash(world: World) -> None:
    world.commit({"other.py": OTHER, ".github/ddpfix.toml": b"max-open = 1\n"})
    world.run()
    assert world.actions(topics=("DDP101",)) == {"DDP101": "created", "safe": "superseded"}
    # as if it had died between closing and deleting
    git(world.git, "update-ref", "refs/heads/ddpfix/safe", "refs/pull/1/head")
    assert world.actions(topics=("DDP101",)) == {"DDP101": "unchanged", "safe": "deleted"}
    assert world.tip() == ""


def test_an_old_topic_stays_while_nothing_is_in_its_place(world: World) -> None:
    world.run()
    assert world.actions(topics=("DDP101",), per_hour=0) == {"DDP101": "deferred"}
    assert world.pull()["state"] == "open"


def test_a_repository_that_was_renamed_is_followed_on_the_same_host_only(world: World) -> None:
    world.forge.moved["acme/its-old-name"] = f"{world.forge.api}/repos/{world.slug}"
    bot = world.bot(topics=("safe",))
    (outcome,) = bot.repository("acme/its-old-name")
    assert (outcome.slug, outcome.action) == (world.slug, "created")
    (skipped,) = world.bot(blocked=("acme/its-old-name",)).repository("acme/its-old-name")
    assert skipped.action == "skipped"
    world.forge.moved["acme/its-old-name"] = world.forge.api.replace("127.0.0.1", "localhost")
    (lost,) = bot.repository("acme/its-old-name")
    assert lost.action == "failed"
    assert "another host" in lost.why


def test_a_file_of_some_megabytes_never_comes_into_memory(world: World) -> None:
    import sys

    from ddpfix import engine

    world.commit({"weights.py": b"x = 1\n" + b"# filler\n" * (engine.LARGEST // 9 + 1)})
    assert world.safe().action == "created"
    assert sys.getsizeof(world.pull()["body"]) < 30_000


def test_what_is_asked_of_one_repository_does_not_stop_the_next(world: World) -> None:
    bot = world.bot(topics=("safe",))
    read = bot.forge.repository

    def broken(slug: str) -> object:
        if slug == "acme/broken":
            raise KeyError("clone_url")
        return read(slug)

    bot.forge.repository = broken  # type: ignore[method-assign,assignment]
    told = bot.run(["acme/broken", world.slug])
    assert [o.action for o in told] == ["failed", "created"]
    assert "a defect of ddpfix" in told[0].why
