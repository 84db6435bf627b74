"""The last screen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ddpfix.results import Failure
from ddpfix.summary import closing_screen
from tests.summary.made import MODEL, STEP, context, in_memory

COMMITS = (("a" * 40, "Reduce epoch metrics over the ranks (DDP101)"), ("b" * 40, "Add DDPFIX_SUMMARY.md"))
TOLD = MODEL.replace("        self.log(", "        if batch.has_loss:\n            self.log(")


def test_branch_commits_fixes_rest_and_commands() -> None:
    fixed = in_memory({"model.py": MODEL, "told.py": TOLD, "step.py": STEP})
    assert closing_screen(fixed, context(commits=COMMITS, switched=True)).splitlines() == [
        "Branch ddpfix/fixes (checked out), on top of 0123456789:",
        "  aaaaaaaaaa  Reduce epoch metrics over the ranks (DDP101)",
        "  bbbbbbbbbb  Add DDPFIX_SUMMARY.md",
        "",
        "1 fix in 1 file:",
        "  DDP101 unsynced-metric    1  An epoch-level metric is logged from each rank's own share of the data.",
        "",
        "Left as unsafe: 1 finding in 1 file (DDP101 1), made with --unsafe-fixes:",
        "  step.py:9 DDP101: 'val/loss' is logged at epoch level without being reduced over the ranks: what is shown is",
        "    rank 0's own number, and EarlyStopping(monitor=…) at step.py:12 decides on each rank by that rank's number",
        "    a monitor reads this key, so it should be; sync_dist also reduces the value at every training step, which",
        "    costs a barrier and an all-reduce each time: an epoch value of its own call (on_step=False, …",
        "Reported, not fixed: 1 finding in 1 file (DDP101 1). `ddpfix check` says why.",
        "",
        "Look at:    git log -p 0123456789..ddpfix/fixes",
        "Read:       DDPFIX_SUMMARY.md",
        "Merge:      git switch main && git merge ddpfix/fixes~1   (without the summary)",
        "Take back:  ddpfix undo",
    ]


def test_without_the_switch_the_commands_start_where_the_user_is() -> None:
    screen = closing_screen(in_memory({"model.py": MODEL}), context(commits=COMMITS))
    assert "Branch ddpfix/fixes (not checked out)" in screen
    assert "Read:       DDPFIX_SUMMARY.md   (git show ddpfix/fixes:DDPFIX_SUMMARY.md)" in screen
    assert "Merge:      git merge ddpfix/fixes~1" in screen
    assert "git switch" not in screen


def test_without_a_summary_commit_the_whole_branch_is_merged() -> None:
    given = context(commits=COMMITS[:1], switched=True, home=None, summary_commit=False)
    screen = closing_screen(in_memory({"model.py": MODEL}), given)
    assert "git switch - && git merge ddpfix/fixes\n" in screen
    assert "DDPFIX_SUMMARY" not in screen


def test_in_place() -> None:
    given = context(branch=None, base=None, notes=("the originals are kept",), identity_note=None)
    screen = closing_screen(in_memory({"model.py": MODEL}), given)
    assert screen.startswith("1 file changed in place; nothing was committed.\n  note: the originals are kept\n")
    assert screen.endswith("Take back:  ddpfix undo\n")
    assert "git" not in screen


def test_nothing_distributed_is_said_with_the_number_of_files() -> None:
    fixed = in_memory({"a.py": "print(1)\n", "b.py": "print(2)\n"})
    fixed = replace(fixed, report=replace(fixed.report, parsed=0))
    assert closing_screen(fixed, context()) == (
        "Nothing distributed here: 2 Python files seen, none with a word of distributed training.\n"
    )


def test_nothing_to_fix_tells_what_is_left_and_what_could_not_be_read() -> None:
    fixed = in_memory({"told.py": TOLD}, failed=[Failure("old.py", "it looks like Python 2")])
    assert closing_screen(fixed, context()).splitlines() == [
        "Nothing to fix in 1 Python file.",
        "Reported, not fixed: 1 finding in 1 file (DDP101 1). `ddpfix check` says why.",
        "Could not be read:",
        "  old.py: it looks like Python 2",
    ]


def test_what_needs_an_answer_is_named_with_what_it_assumes() -> None:
    fixed = in_memory({"step.py": STEP})
    first, second, place, _, why, *_ = closing_screen(fixed, context()).splitlines()
    assert first == "No safe fix in 1 Python file; 1 that needs your answer."
    assert second == "Left as unsafe: 1 finding in 1 file (DDP101 1), made with --unsafe-fixes:"
    assert place.startswith("  step.py:9 DDP101: ") and why.startswith("    a monitor reads this key")
    twice = replace(fixed, left=(*fixed.left, replace(fixed.left[0], id="two")))
    assert closing_screen(twice, context()).startswith("No safe fix in 1 Python file; 2 that need your answer.\n")


def test_of_many_that_need_an_answer_the_first_are_named() -> None:
    fixed = in_memory({"step.py": STEP})
    many = replace(fixed, left=tuple(replace(fixed.left[0], id=str(n)) for n in range(12)))
    lines = closing_screen(many, context()).splitlines()
    assert sum(line.startswith("  step.py:9 ") for line in lines) == 5 and "  and 7 more findings" in lines


def test_whose_name_stands_in_the_commits_is_told() -> None:
    note = "git has no user.name and user.email here, so the commits are by ddpfix <ddpfix@users.noreply.invalid>"
    assert f"  note: {note}\n" in closing_screen(in_memory({"model.py": MODEL}), context(commits=COMMITS, identity_note=note))


@pytest.mark.parametrize("count", [1, 50])
def test_it_is_one_screen(count: int) -> None:
    files = {f"pkg{n}/a_file_with_a_long_name_{n}.py": text for n in range(count) for text in (MODEL, TOLD)}
    failed = [Failure(f"bad{n}.py", "line 1: " + "x" * 300) for n in range(count)]
    commits = tuple((f"{n:040d}", "A subject " * 30) for n in range(count))
    fixed = in_memory(files, failed=failed)
    made = in_memory({"m.py": MODEL})
    fixed = replace(made, left=fixed.left, report=fixed.report, withdrawn=tuple((f, "why " * 99) for f in made.fixed * count))
    lines = closing_screen(fixed, context(commits=commits, notes=tuple("a note" for _ in range(count)))).splitlines()
    assert len(lines) <= 40
    assert all(len(line) <= 130 for line in lines)
