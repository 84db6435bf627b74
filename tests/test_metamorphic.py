"""The same program in another spelling has the same findings, and a fix may be taken or left without harm.

Each program of `example_programs` is written in the ways of `rewritings`; codes and levels stay, but for what stands in
EXCEPTIONS.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from functools import cache

import pytest

from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Finding
from codemods.engine.find import find_in
from codemods.engine.fix_source import Chosen, FixResult, fix_project
from codemods.store.project import Project
from ddpfix.catalog import all_codemods
from ddpfix.testing import MAIN, gate_open
from tests.example_programs import programs
from tests.rewritings import REWRITINGS

CODEMODS = [c for c in all_codemods() if "```python" in c.sections()["Example"]]
each_codemod = pytest.mark.parametrize("codemod", CODEMODS, ids=lambda c: f"{c.code}-{c.rule_name()}")

# Rewriting -> why findings change with it, and the codes of which. What holds by now has to go.
_NOT_HELD: dict[str, tuple[str, str]] = {
    "in_the_only_case": (
        "`match … case _` round the whole body is read as a branch by the analyses of these",
        "DDP001 DDP002 DDP004 DDP201 DDP303 DDP401 DDP405 DDP407 DDP605 DDP804",
    ),
    "methods_under_local_names": (
        "the bytes `self.log(` and the like are asked for before the file is parsed",
        "DDP103 DDP108 DDP109",
    ),
    "other_aliases": (
        "`Name(` is looked for in the bytes of the whole project (`is_worth_parsing`), or the name itself in a test of the text",
        "DDP109 DDP205 DDP213 DDP403 DDP306 DDP405 DDP406 DDP409 DDP410 DDP411 DDP414 DDP606",
    ),
    "in_try_finally": (
        "what a `try` holds may be left by an exception, which these count as another way",
        "DDP201 DDP303 DDP401 DDP405 DDP407 DDP708 DDP804",
    ),
    "in_a_context": (
        "a `with` round the whole body is taken for a block that its object may skip",
        "DDP201 DDP303 DDP401 DDP405 DDP407 DDP804",
    ),
    "under_true": (
        "`if True` is taken for a test of the program",
        "DDP201 DDP303 DDP311 DDP401 DDP405 DDP407 DDP804",
    ),
    "annotated": (
        "the `forward` is read for plain assignments only",
        "DDP311",
    ),
    "imported_inside": (
        "a fix that needs an import plans it beside those at the head of the file",
        "DDP202 DDP207 DDP211 DDP213 DDP306 DDP401 DDP405 DDP501 DDP714 DDP806 DDP904",
    ),
    "pass_between": (
        "a `pass` between two lines parts the run that one guard would take: two findings for one",
        "DDP203",
    ),
    "from_names_by_their_module": (
        "the name itself is what shows several processes, or an import of its module is a place that has moved, too",
        "DDP204 DDP803",
    ),
    "inverted": (
        "the work stands in the `else` of the turned test, and the repair is written for the plain arm only",
        "DDP207 DDP210 DDP213 DDP301 DDP303 DDP308 DDP704",
    ),
    "in_two_steps": (
        "the rank is asked for in the statement that binds the name, and not followed through a second one",
        "DDP207",
    ),
    "renamed_rank": (
        "a name of no meaning is not offered as the test that a fix writes, nor asked whether it holds the rank",
        "DDP207 DDP312",
    ),
    "matched": (
        "the repair is written for an `if`",
        "DDP210 DDP308 DDP704",
    ),
    "not_the_rank": (
        "`not rank` may ask for a missing rank, too",
        "DDP301",
    ),
    "doubly_negated": (
        "`not not x` is not taken apart",
        "DDP213 DDP303",
    ),
    "semicolons_between": (
        "the place of a fix has to be a line of its own",
        "DDP306 DDP413 DDP507",
    ),
    "test_on_lines_of_its_own": (
        "the site `if not …exists(` is looked for in one line of bytes",
        "DDP307",
    ),
    "backslash": (
        "the site `if not …exists(` is looked for in one line of bytes",
        "DDP307",
    ),
    "one_line_ifs": (
        "the site is looked for where a line begins, and the fix needs a line of its own",
        "DDP709",
    ),
    "renamed_object": (
        "the word `self.` is asked for in the bytes before the file is parsed",
        "DDP407",
    ),
}
EXCEPTIONS = {(code, name): reason for name, (reason, codes) in _NOT_HELD.items() for code in codes.split()}
# Codes whose fix takes statements out with the comments that stand on them.
TAKES_COMMENTS = frozenset({"DDP107", "DDP601", "DDP607"})


def found(codemod: DdpCodemod, source: str) -> list[Finding]:
    project = Project.of({MAIN: source.encode()})
    module = project.module(MAIN)
    assert module is not None, f"the rewriting broke the program:\n{source}"
    if not gate_open(codemod, module, project) or not codemod.is_worth_parsing(MAIN, project):
        return []
    return find_in(module, project, [codemod])


@cache
def seen(codemod: DdpCodemod, source: str) -> Counter[tuple[str, str]]:
    """Codes and levels; those of a program are asked for again beside each rewriting of it."""
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


# Any choice of the fixes


def _commented(program: str) -> str:
    """The program with a comment of its own behind each line of a simple statement."""
    lines = program.splitlines()
    for node in ast.walk(ast.parse(program)):
        if isinstance(node, (ast.Expr, ast.Assign, ast.Return)) and node.lineno == node.end_lineno:
            if lines[node.lineno - 1].isascii() and lines[node.lineno - 1].rstrip().endswith((")", "]")) and "#" not in program:
                lines[node.lineno - 1] += f"  # note {node.lineno}"
    return "\n".join(lines) + "\n"


def _comments(text: str) -> Counter[str]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return Counter(t.string for t in tokens if t.type == tokenize.COMMENT)


def _fixed(codemod: DdpCodemod, text: str, chosen: frozenset[str]) -> FixResult:
    return fix_project(Project.of({MAIN: text.encode()}), lambda _p, paths: {p: [codemod] for p in paths}, [MAIN], Chosen(chosen))


@each_codemod
def test_any_choice_of_the_fixes(codemod: DdpCodemod) -> None:
    """It can be read, leaves nothing of what was chosen to fix, and keeps every comment but those of statements that go."""
    for program in programs(type(codemod)):
        text = _commented(program)
        ids = [f.id for f in found(codemod, text) if f.fix is not None]
        for chosen in {frozenset(ids), *(frozenset({one}) for one in ids), frozenset(ids[::2])} - {frozenset()}:
            result = _fixed(codemod, text, chosen)
            new = result.changed[MAIN].decode() if MAIN in result.changed else text
            ast.parse(new)
            assert not result.withdrawn, result.withdrawn
            assert not _fixed(codemod, new, chosen & {f.id for f in found(codemod, new)}).changed
            if codemod.code not in TAKES_COMMENTS:
                assert not _comments(text) - _comments(new), f"comments are lost:\n{new}"
