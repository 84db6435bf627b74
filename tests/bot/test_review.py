"""`ddpfix bot review`: suggestions on the lines of somebody's pull request, one comment, no push."""

from __future__ import annotations

import re

from ddpfix.bot.events import Job
from ddpfix.bot.forge import right_side
from ddpfix.bot.outcome import Outcome
from ddpfix.bot.worker import do
from tests.bot.conftest import FIXED, MODULE, World
from tests.bot.githost import git
from tests.bot.github_forge import Fault
from tests.bot.test_commands import WRITER

START = MODULE.replace(b'        self.log("val/loss", loss)\n', b"        return loss\n")
TWO = MODULE + b'        self.log("val/twice", 2 * loss)\n'


def pull_request(world: World, after: dict[str, bytes], before: dict[str, bytes] | None = None) -> int:
    """A person's pull request: the base as `before`, the head with `after` on top."""
    world.commit(before or {"model.py": START})
    git(world.git, "update-ref", "refs/heads/mine", world.tip("main"))
    world.commit(after, branch="mine")
    return world.forge.open_by_hand(world.slug, "mine")


def review(world: World, number: int = 1) -> Outcome:
    return do(world.bot(), Job(world.slug, number))[0]


def suggestions(world: World) -> list[str]:
    return [c["body"] for r in world.repo.reviews for c in r["comments"]]


def test_a_fix_comes_as_a_suggestion_on_the_changed_line(world: World) -> None:
    pull_request(world, {"model.py": MODULE})
    head = world.tip("mine")
    assert review(world).action == "reviewed"
    (comment,) = world.repo.reviews[0]["comments"]
    assert (comment["path"], comment["line"], comment["side"]) == ("model.py", 9, "RIGHT")
    assert '```suggestion\n        self.log("val/loss", loss, sync_dist=True)\n```' in comment["body"]
    assert "DDP101" in comment["body"]
    assert "`model.py:9`" in world.notes()[0]
    assert world.tip("mine") == head


def test_the_suggestion_makes_the_fix(world: World) -> None:
    pull_request(world, {"model.py": MODULE})
    review(world)
    (comment,) = world.repo.reviews[0]["comments"]
    block = re.search(r"```suggestion\n(.*?)\n```", comment["body"], re.S)
    assert block
    lines = MODULE.decode().split("\n")
    lines[comment.get("start_line", comment["line"]) - 1 : comment["line"]] = block[1].split("\n")
    assert "\n".join(lines).encode() == FIXED


def test_a_second_review_writes_nothing_and_a_new_push_only_what_is_new(world: World) -> None:
    pull_request(world, {"model.py": MODULE})
    review(world)
    before = len(world.forge.writes(world.slug))
    assert review(world).action == "unchanged"
    assert world.forge.writes(world.slug)[before:] == []
    world.commit({"model.py": TWO}, branch="mine")
    assert review(world).action == "reviewed"
    assert len(suggestions(world)) == 2
    assert len(world.notes()) == 1
    assert "2 remarks" in world.notes()[0]


def test_lines_that_the_pull_request_leaves_alone_are_not_spoken_of(world: World) -> None:
    pull_request(world, {"model.py": b"# a comment\n" + MODULE}, before={"model.py": MODULE})
    assert review(world).why == "nothing to say"
    assert world.repo.reviews == []
    assert world.notes() == []


def test_the_comment_says_so_when_nothing_is_left(world: World) -> None:
    pull_request(world, {"model.py": MODULE})
    review(world)
    world.commit({"model.py": FIXED}, branch="mine")
    review(world)
    assert len(world.notes()) == 1
    assert "nothing is left to say" in world.notes()[0]


def test_a_fix_that_needs_further_lines_is_told_and_not_suggested(world: World) -> None:
    pull_request(world, {"log.py": WRITER}, before={"log.py": b"import lightning.pytorch as pl\n"})
    review(world)
    assert "DDP201" in world.notes()[0]
    for body in suggestions(world):
        assert "DDP201" not in body or "rank_zero" in body


def test_no_more_than_twenty_suggestions_in_one_call(world: World) -> None:
    many = MODULE + b"".join(b'        self.log("val/%d", %d * loss)\n' % (n, n) for n in range(2, 28))
    pull_request(world, {"model.py": many})
    review(world)
    assert [len(r["comments"]) for r in world.repo.reviews] == [20]
    assert "27 remarks" in world.notes()[0]


def test_a_lost_answer_puts_no_suggestion_twice(world: World) -> None:
    pull_request(world, {"model.py": MODULE})
    world.forge.faults.append(Fault("POST", r"/reviews$", lost=True))
    assert review(world).action == "reviewed"
    assert len(suggestions(world)) == 1


def test_a_pull_request_from_a_fork_is_reviewed_and_its_own_are_not(world: World) -> None:
    world.safe()
    assert review(world, 1).why == "it is one of its own"
    git(world.git, "update-ref", "refs/heads/mine", world.commit({"other.py": MODULE}))
    git(world.git, "update-ref", "refs/heads/main", "main~1")
    number = world.forge.open_by_hand(world.slug, "mine", source="eve/fork")
    assert review(world, number).action == "reviewed"
    assert len(suggestions(world)) == 1


def test_closed_and_opted_out_are_left_alone(world: World) -> None:
    pull_request(world, {"model.py": MODULE}, before={"model.py": START, ".github/ddpfix.toml": b"enabled = false\n"})
    assert review(world).why == "its settings turn the bot off"
    world.forge.close_pull(world.slug, 1)
    assert review(world).why == "it is closed"
    assert world.repo.reviews == []


def test_the_new_side_of_a_patch_is_read_by_its_hunks() -> None:
    patch = "@@ -1,2 +1,3 @@ def f():\n a\n+b\n c\n@@ -9 +10 @@\n-x\n+y\n\\ No newline at end of file"
    file = right_side(patch)
    assert sorted(file.changed) == [2, 10]
    assert file.in_one_hunk(1, 3)
    assert not file.in_one_hunk(3, 10)
    assert right_side("").hunks == ()
