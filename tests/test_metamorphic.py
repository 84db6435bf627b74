"""The same program in another spelling has the same findings, and a fix may be taken or left without harm.

Each program of `example_programs` is written in the ways of `rewritings`; codes and levels stay, but for what stands in EXCEPTIONS.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter

import pytest

from codemods.codemod import DdpCodemod
from codemods.findings import Applicability, Finding
from codemods.fix_source import Chosen, find_in, fix_project
from codemods.project import Project
from ddpfix.catalog import all_codemods
from ddpfix.testing import MAIN, gate_open
from tests.example_programs import programs
from tests.rewritings import REWRITINGS

CODEMODS = [c for c in all_codemods() if "```python" in c.sections()["Example"]]
each_codemod = pytest.mark.parametrize("codemod", CODEMODS, ids=lambda c: f"{c.code}-{c.rule_name()}")

# (code, rewriting) -> why the finding may change with it. What holds by now has to go.
EXCEPTIONS: dict[tuple[str, str], str] = {}


def found(codemod: DdpCodemod, source: str) -> list[Finding]:
    project = Project.of({MAIN: source.encode()})
    module = project.module(MAIN)
    assert module is not None, f"the rewriting broke the program:\n{source}"
    if not gate_open(codemod, module) or not codemod.is_worth_parsing(MAIN, project):
        return []
    return find_in(module, project, [codemod])


def seen(codemod: DdpCodemod, source: str) -> Counter[tuple[str, str]]:
    """Codes and levels."""
    return Counter((f.code, f.applicability.value) for f in found(codemod, source))


def parted(codemod: DdpCodemod, rewriting: str) -> list[str]:
    """The rewritten programs whose findings are others."""
    out = []
    for program in programs(type(codemod)):
        new = REWRITINGS[rewriting](program)
        if new is not None and new != program and seen(codemod, new) != seen(codemod, program):
            out.append(new)
    return out


@each_codemod
def test_another_spelling_has_the_same_findings(codemod: DdpCodemod) -> None:
    for name in REWRITINGS:
        changed = parted(codemod, name)
        if (codemod.code, name) in EXCEPTIONS:
            assert changed, f"{codemod.code} holds under {name} by now: take it out of EXCEPTIONS"
        else:
            assert not changed, f"{name}:\n{changed[0]}"


def test_exceptions_are_of_codemods_and_rewritings_that_exist() -> None:
    assert {code for code, _ in EXCEPTIONS} <= {c.code for c in CODEMODS}
    assert {name for _, name in EXCEPTIONS} <= set(REWRITINGS)
    assert all(EXCEPTIONS.values())
