"""The same program laid out over several files, or in a class, has the same findings.

Each program of `example_programs` is laid out in the ways of `layouts`; codes and levels stay, but for what stands in EXCEPTIONS.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from codemods.api.codemod import DdpCodemod
from codemods.engine.find import find_in
from codemods.store.project import Project
from ddpfix.catalog import all_codemods
from ddpfix.testing import gate_open
from tests.example_programs import programs
from tests.layouts import LAYOUTS, MAIN, Files, laid_out

CODEMODS = [c for c in all_codemods() if "```python" in c.sections()["Example"]]

# Layout -> why findings change with it, and the codes of which. What holds by now has to go.
_NOT_HELD: dict[str, tuple[tuple[str, str], ...]] = {
    "helpers_in_a_file": (
        ("the words of what a helper does are asked for in the bytes of the caller's file", "DDP202"),
        ("no test for rank 0 is at hand in the helper's file", "DDP211"),
        ("the loader that an object is called with is followed in its own file", "DDP605"),
        ("the file of a `finally` that calls a clean-up function of another file speaks of no processes then", "DDP305"),
    ),
    "helpers_in_a_package": (
        ("as in a file", "DDP202 DDP211 DDP305 DDP605"),
    ),
    "helpers_by_their_module": (
        ("as in a file", "DDP202 DDP211 DDP305 DDP605"),
    ),
    "started_from_another_file": (
        ("the import that the fix needs would stand in the other file", "DDP304 DDP703"),
    ),
    "run_by_a_function_of_another_file": (
        ("the import that the fix needs would stand in the other file", "DDP304"),
    ),
    "heirs_of_a_base_in_another_file": (
        ("no import of the file shows which `rank_zero_only` to use", "DDP201"),
        ("the bytes of a file, and of those that import it, are asked for a word of several processes", "DDP202 DDP204 DDP305"),
    ),
    "by_helpers_of_the_project": (
        ("right: the helper asks whether there is a group", "DDP306"),
        ("a guard may keep a single process away from the helper", "DDP301"),
        ("a parameter called `rank` is none without torch's own group in the file", "DDP303"),
        ("the answer of the project's own function is not compared with the local rank", "DDP207"),
    ),
    "by_names_of_the_project": (
        ("as by its module", "DDP207 DDP301 DDP303 DDP306"),
    ),
}  # fmt: skip
EXCEPTIONS = {
    (code, name): reason for name, reasons in _NOT_HELD.items() for reason, codes in reasons for code in codes.split()
}


@cache
def alone(codemod: DdpCodemod, program: str) -> Counter[tuple[str, str]]:
    return seen(codemod, {MAIN: program})


def seen(codemod: DdpCodemod, files: Files) -> Counter[tuple[str, str]]:
    """Codes and levels of the findings in all files."""
    project = Project.of({path: text.encode() for path, text in files.items()})
    found: Counter[tuple[str, str]] = Counter()
    for path in files:
        module = project.module(path)
        assert module is not None, f"the layout broke the program:\n{files[path]}"
        if gate_open(codemod, module, project) and codemod.is_worth_parsing(path, project):
            found.update((f.code, f.applicability.value) for f in find_in(module, project, [codemod]))
    return found


def parted(codemod: DdpCodemod, name: str) -> list[Files]:
    """The layouts whose findings are others."""
    out = []
    for program in programs(type(codemod)):
        files = laid_out(program, name)
        if files is not None and seen(codemod, files) != alone(codemod, program):
            out.append(files)
    return out


def test_exceptions_are_of_codemods_and_layouts_that_exist() -> None:
    assert {code for code, _ in EXCEPTIONS} <= {c.code for c in CODEMODS}
    assert _NOT_HELD.keys() <= LAYOUTS.keys()


@pytest.mark.parametrize("codemod", CODEMODS, ids=lambda c: f"{c.code}-{c.rule_name()}")
def test_another_layout_has_the_same_findings(codemod: DdpCodemod) -> None:
    for name in LAYOUTS:
        changed = parted(codemod, name)
        if (codemod.code, name) in EXCEPTIONS:
            assert changed, f"{codemod.code} holds in {name} by now: take it out of EXCEPTIONS"
        else:
            assert not changed, "\n".join((name, *(f"# {path}\n{text}" for path, text in changed[0].items())))
