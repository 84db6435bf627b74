"""Fixes chosen one by one: only what was accepted is made, and what an accepted fix brings up goes with it."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

import pytest

from codemods.api.findings import Applicability, Edit, InsertAfter
from codemods.engine.find import find_all
from codemods.engine.fix_source import Chosen, FixResult, fix_project, fix_source, safe
from codemods.engine.user_edits import EditedLines
from codemods.files.source import SourceModule
from codemods.store.project import Project
from tests.places import PATH
from tests.test_fix_source import Rule, keyword, renamed, rule

UNSAFE = Applicability.UNSAFE


def found(source: str, *rules: Rule) -> dict[str, str]:
    """`code line` -> id, of what is found in a file."""
    project = Project.of({PATH: source.encode()})
    return {f"{f.code} {f.span.line}": f.id for f in find_all(project, {PATH: rules})}


def fixed(
    source: str,
    rules: Sequence[Rule],
    accept: Sequence[str],
    *,
    reject: Sequence[str] = (),
    edited: Mapping[str, Sequence[EditedLines]] | None = None,
) -> FixResult:
    ids = found(source, *rules)
    by_id = {ids[k]: rows for k, rows in (edited or {}).items()}
    chosen = Chosen(frozenset(ids[k] for k in accept), frozenset(ids[k] for k in reject), by_id)
    project = Project.of({PATH: source.encode()})
    return fix_project(project, lambda _p, paths: dict.fromkeys(paths, rules), [PATH], chosen, by_id)


def text(result: FixResult, otherwise: str = "") -> str:
    return result.changed[PATH].decode() if PATH in result.changed else otherwise


def test_only_what_is_accepted_is_fixed() -> None:
    rules = [rule("R1", "f", keyword("k"))]
    assert text(fixed("f(1)\nf(2)\nf(3)\n", rules, ["R1 2"])) == "f(1)\nf(2, k=1)\nf(3)\n"


def test_one_of_two_that_read_the_same() -> None:
    rules = [rule("R1", "f", keyword("k"))]
    assert text(fixed("f(1)\nf(1)\n", rules, ["R1 2"])) == "f(1)\nf(1, k=1)\n"
    assert text(fixed("f(1)\nf(1)\n", rules, ["R1 1"])) == "f(1, k=1)\nf(1)\n"


def test_accepting_an_unsafe_fix_is_the_consent_it_needs() -> None:
    rules = [rule("R1", "f", keyword("k"), level=UNSAFE)]
    assert text(fixed("f()\n", rules, ["R1 1"])) == "f(k=1)\n"
    assert not fix_source("f()\n", rules, path=PATH, accept=safe).changed


def test_what_has_no_fix_cannot_be_accepted() -> None:
    result = fixed("f(k=1)\n", [rule("R1", "f", keyword("k"))], ["R1 1"])
    assert not result.changed and not result.withdrawn


def brings(word: str, level: Applicability = Applicability.SAFE) -> list[Rule]:
    """R1 calls `word` behind an `f()`; R2 finds it only then."""

    def make(module: SourceModule, call: ast.Call) -> list[Edit]:
        there = any(isinstance(n.func, ast.Name) and n.func.id == word for n in module.nodes(ast.Call))
        return [] if there else [InsertAfter(module.path, module.span(module.statement_of(call)), f"{word}()")]

    return [rule("R1", "f", make), rule("R2", word, keyword("k"), level=level)]


def test_what_an_accepted_fix_brings_up_is_accepted_with_it() -> None:
    assert text(fixed("f()\n", brings("g"), ["R1 1"])) == "f()\ng(k=1)\n"


def test_what_is_less_sure_than_its_cause_waits_for_a_word_of_its_own() -> None:
    result = fixed("f()\n", brings("g", UNSAFE), ["R1 1"])
    assert text(result) == "f()\ng()\n"
    assert [(f.code, f.applicability) for f in result.left if f.fix] == [("R2", UNSAFE)]


def test_what_nobody_caused_is_not_accepted() -> None:
    rules = [*brings("g"), rule("R3", "h", keyword("k"))]
    assert text(fixed("f()\nh()\n", rules, ["R1 1"])) == "f()\ng(k=1)\nh()\n"


@pytest.mark.parametrize(("accept", "outer"), [(["R2 1"], ""), (["R1 1", "R2 1"], ", k=1")])
def test_a_finding_that_reads_differently_after_another_fix_keeps_its_decision(accept: list[str], outer: str) -> None:
    # R2 replaces what stands inside of R1's anchor, so R1's text, and with it its id, is another in the next round
    rules = [rule("R1", "f", keyword("k"), level=UNSAFE), rule("R2", "g", renamed("h"))]
    assert text(fixed("f(g(1))\n", rules, accept)) == f"f(h(1){outer})\n"


def test_a_rejected_finding_that_reads_differently_stays_rejected() -> None:
    rules = [rule("R1", "f", keyword("k")), rule("R2", "g", renamed("h"))]
    assert text(fixed("f(g(1))\n", rules, ["R2 1"], reject=["R1 1"])) == "f(h(1))\n"


def test_a_group_is_taken_whole_or_not_at_all() -> None:
    rules = [rule("R1", "f", keyword("k"), group="g")]
    result = fixed("f(1)\nf(2)\n", rules, ["R1 1"])
    assert not result.changed
    assert [why for _, why in result.withdrawn] == [f"it belongs together with {PATH}:2, which is not fixed"]
    assert text(fixed("f(1)\nf(2)\n", rules, ["R1 1", "R1 2"])) == "f(1, k=1)\nf(2, k=1)\n"


def test_all_accepted_is_what_the_level_accepts() -> None:
    rules = [rule("R1", "f", keyword("k")), *brings("g")[1:], rule("R4", "q", renamed("r"))]
    source = "f(q(1))\ng()\nq(2)\n"
    assert text(fixed(source, rules, list(found(source, *rules)))) == fix_source(source, rules, path=PATH).changed[PATH].decode()


# Lines that a person wrote in the place of a fix


def hand(line: int, before: str, after: str) -> dict[str, Sequence[EditedLines]]:
    return {"R1 " + str(line): [EditedLines(PATH, line, before, after)]}


def test_a_persons_lines_take_the_place_of_the_fix() -> None:
    rules = [rule("R1", "f", keyword("k"))]
    result = fixed("f(1)\nx = 1\n", rules, ["R1 1"], edited=hand(1, "f(1)\n", "f(1, mine=2)  # so\n"))
    assert text(result) == "f(1, mine=2)  # so\nx = 1\n"


def test_a_persons_lines_are_not_fixed_again() -> None:
    rules = [rule("R1", "f", keyword("k"))]
    result = fixed("def a():\n    f(1)\n", rules, ["R1 2"], edited=hand(2, "    f(1)\n", "    f(2)\n"))
    assert text(result) == "def a():\n    f(2)\n"


def test_a_persons_lines_and_other_fixes_in_one_file() -> None:
    rules = [rule("R1", "f", keyword("k"))]
    source = "f(1)\nf(2)\nf(3)\n"
    result = fixed(source, rules, ["R1 1", "R1 2", "R1 3"], edited=hand(2, "f(2)\n", "if x:\n    f(2)\n"))
    assert text(result) == "f(1, k=1)\nif x:\n    f(2)\nf(3, k=1)\n"


def test_a_persons_lines_that_would_not_compile_are_told() -> None:
    rules = [rule("R1", "f", keyword("k"))]
    result = fixed("f(1)\nf(2)\n", rules, ["R1 1", "R1 2"], edited=hand(1, "f(1)\n", "f(1\n"))
    assert text(result) == "f(1)\nf(2, k=1)\n"
    assert ["would not compile" in why for _, why in result.withdrawn] == [True]


def test_a_persons_lines_whose_place_is_gone_are_told() -> None:
    rules = [rule("R1", "f", keyword("k"))]
    result = fixed("f(1)\n", rules, ["R1 1"], edited=hand(1, "f(9)\n", "g()\n"))
    assert not result.changed
    assert [why for _, why in result.withdrawn] == [f"the lines that were edited by hand ({PATH}:1) are not there any more"]


def test_lines_that_moved_are_found_where_they_are_now() -> None:
    rules = [rule("R1", "f", keyword("k"))]
    moved = {"R1 3": [EditedLines(PATH, 1, "f(1)\n", "g(1)\n")]}
    assert text(fixed("x = 1\ny = 2\nf(1)\n", rules, ["R1 3"], edited=moved)) == "x = 1\ny = 2\ng(1)\n"


def test_lines_of_which_nobody_can_say_which_were_meant_are_told() -> None:
    rules = [rule("R1", "f", keyword("k"))]
    moved = {"R1 3": [EditedLines(PATH, 1, "f(1)\n", "g(1)\n")]}
    result = fixed("x = 1\nf(1)\nf(1)\n", rules, ["R1 3"], edited=moved)
    assert not result.changed and "there several times" in result.withdrawn[0][1]


def test_an_import_that_two_edited_fixes_bring_comes_once() -> None:
    rules = [rule("R1", "f", keyword("k"))]
    both = [EditedLines(PATH, 1, "import a\n", "import a\nimport b\n")]
    edited = {
        "R1 2": [*both, EditedLines(PATH, 2, "f(1)\n", "b.f(1)\n")],
        "R1 3": [*both, EditedLines(PATH, 3, "f(2)\n", "b.f(2)\n")],
    }
    assert text(fixed("import a\nf(1)\nf(2)\n", rules, ["R1 2", "R1 3"], edited=edited)) == "import a\nimport b\nb.f(1)\nb.f(2)\n"


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_a_persons_lines_keep_the_line_ends(end: str) -> None:
    rules = [rule("R1", "f", keyword("k"))]
    result = fixed(f"f(1){end}x = 1{end}", rules, ["R1 1"], edited=hand(1, f"f(1){end}", f"f(2){end}f(3){end}"))
    assert result.changed[PATH].decode() == f"f(2){end}f(3){end}x = 1{end}"


def test_first_and_origins_say_what_was_there() -> None:
    rules = [rule("R1", "f", keyword("k"), level=UNSAFE), rule("R2", "g", renamed("h"))]
    result = fixed("f(g(1))\n", rules, ["R2 1"])
    (left,) = [f for f in result.left if f.code == "R1"]
    first = {f.code: f.id for f in result.first}
    assert left.id != first["R1"] == result.origins[left.id]
    assert set(first) == {"R1", "R2"}
