"""The line replacements that formats show: as few lines as change, and the same text."""

from __future__ import annotations

import random

from ddpfix.narrow_edits import Replacement, narrowed


def test_lines_behind_a_long_loop_replace_its_last_line_alone() -> None:
    lines = ["for x in data:\n", *[f"    step({i})\n" for i in range(50)]]
    new = "".join(lines) + "if dist.is_initialized():\n    dist.destroy_process_group()\n"
    assert narrowed(lines, [(1, 51, new)]) == [
        (51, 51, "    step(49)\nif dist.is_initialized():\n    dist.destroy_process_group()\n")
    ]


def test_a_line_above_the_first_takes_the_first_along() -> None:
    assert narrowed(["a\n", "b\n"], [(1, 2, "new\na\nb\n")]) == [(1, 1, "new\na\n")]


def test_changes_far_apart_become_two_and_near_ones_stay_one() -> None:
    lines = [f"{i}\n" for i in range(12)]
    far = lines.copy()
    far[1], far[9] = "x\n", "y\n"
    assert narrowed(lines, [(1, 12, "".join(far))]) == [(2, 2, "x\n"), (10, 10, "y\n")]
    near = lines.copy()
    near[1], near[4] = "x\n", "y\n"
    assert narrowed(lines, [(1, 12, "".join(near))]) == [(2, 5, "x\n2\n3\ny\n")]


def test_the_text_that_comes_out_is_the_same() -> None:
    chance = random.Random(3)
    for _ in range(300):
        lines = [chance.choice("abcd") + "\n" for _ in range(chance.randint(3, 20))]
        top = chance.randint(1, len(lines))
        bottom = chance.randint(top, len(lines))
        wanted = list(lines[top - 1 : bottom])
        for _ in range(chance.randint(1, 4)):
            wanted.insert(chance.randint(0, len(wanted)), chance.choice("abcdxyz") + "\n")
        made = (top, bottom, "".join(wanted))
        assert _with(lines, narrowed(lines, [made])) == _with(lines, [made])


def _with(lines: list[str], made: list[Replacement]) -> str:
    out = list(lines)
    for top, bottom, new in reversed(made):
        out[top - 1 : bottom] = [new]
    return "".join(out)
