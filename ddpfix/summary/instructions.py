"""How to test the change on two processes."""

from __future__ import annotations

from collections.abc import Sequence

from codemods.files.text_file import NOTEBOOK
from ddpfix.results import Fixed
from ddpfix.summary.context import Context
from ddpfix.summary.markdown import code, plural
from ddpfix.summary.places import origin_of
from ddpfix.summary.shown_commands import shown_commands


def how_to_test(codes: Sequence[str], fixed: Fixed, context: Context) -> list[str]:
    """Commands for two processes, and notebooks to run."""
    out = ["## How to test", ""]
    if all(origin_of(key) == "project" for key in codes):
        out += ["Names were changed and nothing else: one process is enough, and the tests of the repository.", ""]
        return out
    notebooks = sorted(path for path in fixed.before if path.endswith(NOTEBOOK))
    if len(notebooks) < len(fixed.before) or not notebooks:
        out += shown_commands(fixed, context)
    if notebooks:
        more = f" and {plural(len(notebooks) - 1, 'more notebook')}" if len(notebooks) > 1 else ""
        out += [f"{code(notebooks[0])}{more}: restart the kernel, let the launcher start two processes, and run all cells.", ""]
    return out
