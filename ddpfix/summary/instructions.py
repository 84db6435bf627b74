"""How to test the change on two processes."""

from __future__ import annotations

from collections.abc import Sequence

from codemods.files.text_file import NOTEBOOK
from ddpfix.results import Fixed
from ddpfix.summary.context import Context
from ddpfix.summary.markdown import code, plural
from ddpfix.summary.places import by_code, codemod_of, origin_of
from ddpfix.summary.shown_commands import shown_commands

_ALIKE = "On one node the old code and the new do the same."


def how_to_test(codes: Sequence[str], fixed: Fixed, context: Context) -> list[str]:
    """Commands for two processes, and notebooks to run."""
    out = ["## How to test", ""]
    if all(origin_of(key) == "project" for key in codes):
        out += ["Only names were changed: one process is enough, and the tests of the repository.", ""]
        return out
    several = [key for key in codes if _nodes(key, fixed) > 1]
    if len(several) == len(codes):
        return [*out, f"It takes two nodes. {_ALIKE}", ""]
    if several:
        out += [f"{', '.join(several)} can only be tested on two nodes. {_ALIKE}", ""]
    notebooks = sorted(path for path in fixed.before if path.endswith(NOTEBOOK))
    if len(notebooks) < len(fixed.before) or not notebooks:
        out += shown_commands(fixed, context)
    if notebooks:
        more = f" and {plural(len(notebooks) - 1, 'more notebook')}" if len(notebooks) > 1 else ""
        out += [f"{code(notebooks[0])}{more}: restart the kernel and run all cells on two processes.", ""]
    return out


def _nodes(key: str, fixed: Fixed) -> int:
    codemod = codemod_of(key)
    return codemod.nodes(by_code(fixed.fixed)[key]) if codemod is not None else 1
