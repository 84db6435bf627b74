"""The core on made-up codemods: conflicts, groups, rounds, ids. Each rule reads what to do from the name of a call."""

from __future__ import annotations

import ast
import pickle
from collections.abc import Callable, Iterator
from typing import ClassVar

import pytest

from codemods.api.codemod import DdpCodemod
from codemods.api.findings import (
    AddDecorator,
    Applicability,
    DropKeyword,
    Edit,
    Finding,
    InsertAfter,
    NeedImport,
    RemoveStatement,
    ReplaceExpression,
    SetKeyword,
    WrapInGuard,
)
from codemods.engine.clashes import clash
from codemods.engine.find import find_in
from codemods.engine.fix_source import FixResult, fix_project, fix_source, safe, with_unsafe, without_conflicts
from codemods.files.source import SourceModule, Unreadable
from codemods.store.project import Project
from tests.places import PATH, call, module_of, statement

Make = Callable[[SourceModule, ast.Call], list[Edit]]


class Rule(DdpCodemod):
    """Finds calls of `word` and does to each what `make` says."""

    TRIGGERS = ((b"(",),)
    word: ClassVar[str]
    level: ClassVar[Applicability] = Applicability.SAFE
    group: ClassVar[str] = ""
    make: ClassVar[Make]

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        for found in module.calls_named(self.word):
            edits = type(self).make(module, found)
            if edits:
                yield self.finding(module, found, f"{self.word} found", level=self.level, edits=edits, group=self.group)
            else:
                yield self.finding(module, found, f"{self.word} found", reason="nothing to do")


def rule(number: str, word: str, make: Make, level: Applicability = Applicability.SAFE, group: str = "") -> Rule:
    told = {"code": number, "word": word, "make": staticmethod(make), "level": level, "group": group}
    made = type(f"Rule{number}", (Rule,), told)
    instance = made()
    assert isinstance(instance, Rule)
    return instance


def renamed(to: str) -> Make:
    return lambda m, c: [ReplaceExpression(m.path, m.span(c.func), to)]


def keyword(name: str, value: str = "1") -> Make:
    def make(module: SourceModule, found: ast.Call) -> list[Edit]:
        have = {k.arg for k in found.keywords}
        return [] if name in have else [SetKeyword(module.path, module.span(found), name, value)]

    return make


def guarded(module: SourceModule, found: ast.Call) -> list[Edit]:
    at = module.span(module.statement_of(found))
    return [WrapInGuard(module.path, at, "r", at)] if not isinstance(module.parent(module.statement_of(found)), ast.If) else []


def fixed(source: str, *rules: Rule, unsafe: bool = False) -> FixResult:
    return fix_source(source, rules, path=PATH, accept=with_unsafe if unsafe else safe)


def text(result: FixResult) -> str:
    return result.changed[PATH].decode()


def fixed_files(files: dict[str, str], *rules: Rule, accept: Callable[[Finding], bool] = safe) -> FixResult:
    project = Project.of({p: s.encode() for p, s in files.items()})
    return fix_project(project, lambda _p, paths: dict.fromkeys(paths, rules), files, accept)


# Rounds


def test_one_round_and_nothing_left() -> None:
    result = fixed("a(1)\nb(2)\n", rule("X1", "a", renamed("z")))
    assert text(result) == "z(1)\nb(2)\n"
    assert [f.code for f in result.fixed] == ["X1"] and result.left == () and result.withdrawn == ()


def test_a_chain_is_followed_to_its_end() -> None:
    result = fixed("a(1)\n", rule("X1", "a", renamed("b")), rule("X2", "b", renamed("c")), rule("X3", "c", renamed("d")))
    assert text(result) == "d(1)\n"
    assert [f.code for f in result.fixed] == ["X1", "X2", "X3"]


def test_a_circle_ends_and_the_rest_is_told() -> None:
    result = fixed("a(1)\n", rule("X1", "a", renamed("b")), rule("X2", "b", renamed("a")))
    assert len(result.fixed) == 8
    assert [f.code for f in result.left] == ["X1"]


def test_nothing_to_do_changes_nothing() -> None:
    result = fixed("a(1)\n", rule("X1", "zz", renamed("b")))
    assert (dict(result.changed), result.fixed, result.left) == ({}, (), ())


def test_what_is_left_stands_where_it_is_now() -> None:
    insert = rule("X1", "a", lambda m, c: [InsertAfter(m.path, m.span(m.statement_of(c)), "n()"), *renamed("z")(m, c)])
    told = rule("X2", "b", lambda m, c: [])
    result = fixed("a()\nb()\n", insert, told)
    assert text(result) == "z()\nn()\nb()\n"
    assert [(f.code, f.span.line) for f in result.left] == [("X2", 3)]


class Swayed(Rule):
    """Finds calls of `b`, at a level that hangs on whether some file of the project calls `z`."""

    code = "X2"
    levels: ClassVar[tuple[Applicability | None, Applicability | None]]

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        level = self.levels[bool(project.files_calling("z"))]
        for found in module.calls_named("b") if level is not None else ():
            assert level is not None
            edits = [] if level is Applicability.DISPLAY else keyword("k")(module, found)
            yield self.finding(module, found, "b found", level=level, edits=edits, reason=f"as {level.value}")


SAFE, UNSAFE, DISPLAY = Applicability.SAFE, Applicability.UNSAFE, Applicability.DISPLAY


@pytest.mark.parametrize(
    "levels", [(UNSAFE, SAFE), (DISPLAY, SAFE), (DISPLAY, UNSAFE), (UNSAFE, DISPLAY), (None, SAFE), (None, DISPLAY)]
)
def test_what_a_fix_wrote_elsewhere_changes_no_finding(levels: tuple[Applicability | None, Applicability | None]) -> None:
    swayed = type("Swayed", (Swayed,), {"levels": levels})()
    result = fixed_files({"one.py": "a()\n", "two.py": "b()\n"}, rule("X1", "a", renamed("z")), swayed)
    assert dict(result.changed) == {"one.py": b"z()\n"}
    shown = [(f.applicability, f.reason) for f in result.left]
    assert shown == ([(levels[0], f"as {levels[0].value}")] if levels[0] else [])
    assert shown == [(f.applicability, f.reason) for f in result.first if f.code == "X2"]


def test_what_was_to_be_fixed_and_no_longer_can_be_is_told_as_it_stands() -> None:
    swayed = type("Swayed", (Swayed,), {"levels": (UNSAFE, DISPLAY), "group": ""})()
    rules = [rule("X1", "a", renamed("z")), rule("X0", "b", guarded), swayed]
    result = fixed_files({"one.py": "a()\n", "two.py": "b()\n"}, *rules, accept=with_unsafe)
    assert all(f.reason != "as unsafe" for f in result.left)


def test_a_second_run_finds_nothing() -> None:
    rules = [rule("X1", "a", keyword("k")), rule("X2", "b", guarded)]
    once = fixed("a(b(1))\nb(a(2))\n", *rules)
    again = fix_source(once.changed[PATH], rules, path=PATH)
    assert not again.changed and not again.fixed


def test_a_file_that_cannot_be_read() -> None:
    with pytest.raises(Unreadable):
        fixed("def (:\n", rule("X1", "a", renamed("b")))


def test_bytes_in_bytes_out() -> None:
    data = "# coding: latin-1\r\na('\xe9')\r\n".encode("latin-1")
    result = fix_source(data, [rule("X1", "a", keyword("k"))], path=PATH)
    assert result.changed[PATH] == data.replace(b"'\xe9'", b"'\xe9', k=1")


# Levels


def test_unsafe_is_made_on_request_only() -> None:
    unsafe = rule("X1", "a", renamed("b"), Applicability.UNSAFE)
    assert not fixed("a()\n", unsafe).changed
    assert [f.code for f in fixed("a()\n", unsafe).left] == ["X1"]
    assert text(fixed("a()\n", unsafe, unsafe=True)) == "b()\n"


def test_display_is_never_made() -> None:
    display = rule("X1", "a", renamed("b"), Applicability.DISPLAY)
    assert not fixed("a()\n", display, unsafe=True).changed


# Conflicts


def test_the_safer_wins_and_the_other_is_tried_in_the_next_round() -> None:
    careful = rule("X2", "a", renamed("b"))
    bold = rule("X1", "a", lambda m, c: [ReplaceExpression(m.path, m.span(c), "gone")], Applicability.UNSAFE)
    result = fixed("a(1)\n", careful, bold, unsafe=True)
    assert text(result) == "b(1)\n"
    assert [f.code for f in result.fixed] == ["X2"]


def test_of_equals_the_lower_code_wins_and_the_other_follows() -> None:
    first, second = rule("X1", "a", keyword("k", "1")), rule("X2", "a", keyword("k", "2"))
    assert text(fixed("a()\n", second, first)) == "a(k=1)\n"
    outer = rule("X1", "out", guarded)
    inner = rule("X2", "a", guarded)
    assert text(fixed("out()\na()\n", outer, inner)) == "if r:\n    out()\n    a()\n"


def test_edits_of_nested_calls_are_no_conflict() -> None:
    result = fixed("a(b(a(1)))\n", rule("X1", "a", keyword("k")), rule("X2", "b", keyword("j")))
    assert text(result) == "a(b(a(1, k=1), j=1), k=1)\n"
    assert len(result.fixed) == 3


def test_a_statement_that_goes_takes_its_edits_along() -> None:
    remove = rule("X1", "a", lambda m, c: [RemoveStatement(m.path, m.span(m.statement_of(c)))])
    result = fixed("x = a(b(1))\ny = 2\n", remove, rule("X2", "b", keyword("k")))
    assert text(result) == "y = 2\n"
    assert [f.code for f in result.fixed] == ["X1"] and not result.left


def test_under_a_new_decorator_no_guard_is_put() -> None:
    def unless_decorated(make: Make) -> Make:
        return lambda m, c: [] if m.functions[0].decorator_list else make(m, c)

    decorate = rule("X1", "a", unless_decorated(lambda m, c: [AddDecorator(m.path, m.span(m.functions[0]), "d")]))
    inside = rule("X2", "b", unless_decorated(guarded))
    assert text(fixed("def f():\n    a()\n    b()\n", decorate, inside)) == "@d\ndef f():\n    a()\n    b()\n"


def test_two_that_want_the_same_edit_share_it() -> None:
    def with_import(module: SourceModule, found: ast.Call) -> list[Edit]:
        at = module.span(module.tree.body[0])
        return [NeedImport(module.path, at, "import z"), *renamed("z.f")(module, found)]

    result = fixed("import y\na()\nb()\n", rule("X1", "a", with_import), rule("X2", "b", with_import))
    assert text(result) == "import y\nimport z\nz.f()\nz.f()\n"


def test_what_clashes() -> None:
    module = module_of("def f():\n    a(b(1), k=2)\n    c()\n")
    a, b = call(module, "a("), call(module, "b(")
    sa, sc, whole = statement(module, "a("), statement(module, "c("), statement(module, "def")
    pairs: list[tuple[Edit, Edit, bool]] = [
        (SetKeyword(PATH, a, "k", "1"), SetKeyword(PATH, a, "k", "1"), False),
        (SetKeyword(PATH, a, "k", "1"), SetKeyword(PATH, a, "k", "2"), True),
        (SetKeyword(PATH, a, "k", "1"), DropKeyword(PATH, a, "k"), True),
        (SetKeyword(PATH, a, "k", "1"), DropKeyword(PATH, a, "j"), False),
        (SetKeyword(PATH, a, "k", "1"), SetKeyword(PATH, b, "k", "2"), False),
        (SetKeyword(PATH, b, "k", "1"), ReplaceExpression(PATH, a, "x"), True),
        (SetKeyword(PATH, a, "k", "1"), ReplaceExpression(PATH, b, "x"), False),
        (WrapInGuard(PATH, sa, "r", sa), WrapInGuard(PATH, sa, "r", sc), True),
        (WrapInGuard(PATH, sa, "r", sa), WrapInGuard(PATH, sc, "r", sc), False),
        (WrapInGuard(PATH, sa, "r", sc), SetKeyword(PATH, a, "k", "1"), False),
        (WrapInGuard(PATH, sa, "r", sc), AddDecorator(PATH, whole, "d"), True),
        (SetKeyword(PATH, a, "k", "1"), AddDecorator(PATH, whole, "d"), False),
        (InsertAfter(PATH, sa, "x"), RemoveStatement(PATH, sa), True),
        (InsertAfter(PATH, sa, "x"), RemoveStatement(PATH, whole), True),
        (InsertAfter(PATH, sa, "x"), RemoveStatement(PATH, sc), False),
    ]
    for one, two, expected in pairs:
        assert clash(one, two) is expected and clash(two, one) is expected, (one, two)


# Withdrawn


def test_an_edit_that_cannot_be_made_is_told_and_the_others_are_made() -> None:
    bad = rule("X1", "a", lambda m, c: [SetKeyword(m.path, m.span(c), "k", "1 +")])
    result = fixed("a()\nb()\n", bad, rule("X2", "b", keyword("j")))
    assert text(result) == "a()\nb(j=1)\n"
    assert [(f.code, bool(reason)) for f, reason in result.withdrawn] == [("X1", True)]
    assert "X1" in [f.code for f in result.left]


def test_edits_that_only_together_do_not_compile() -> None:
    def beside(code: str) -> Make:
        return lambda m, c: [InsertAfter(m.path, m.span(m.functions[0].body[0]), code)] if code not in m.text else []

    result = fixed("def f():\n    a()\n    b()\n", rule("X1", "a", beside("x = 1")), rule("X2", "b", beside("global x")))
    assert text(result) == "def f():\n    a()\n    x = 1\n    b()\n"
    assert [f.code for f, _ in result.withdrawn] == ["X2"]


def test_an_output_that_does_not_compile_is_withdrawn() -> None:
    bad = rule("X1", "a", lambda m, c: [InsertAfter(m.path, m.span(m.statement_of(c)), "break")])
    result = fixed("a()\n", bad)
    assert not result.changed
    assert "would not compile" in result.withdrawn[0][1]


def test_edits_that_change_nothing_are_withdrawn() -> None:
    same = rule("X1", "a", lambda m, c: [SetKeyword(m.path, m.span(c), "k", "1")])
    result = fixed("a(k=1)\n", same)
    assert not result.changed and not result.fixed
    assert result.withdrawn[0][1] == "its edits change nothing"


# Groups


def test_a_group_over_two_files_is_made_whole() -> None:
    both = rule("X1", "a", renamed("b"), group="g")
    result = fixed_files({"p.py": "a()\n", "q.py": "a()\n"}, both)
    assert dict(result.changed) == {"p.py": b"b()\n", "q.py": b"b()\n"}


def test_a_group_with_an_edit_that_cannot_be_made_is_not_made_at_all() -> None:
    def make(module: SourceModule, found: ast.Call) -> list[Edit]:
        return renamed("b" if module.path == "p.py" else "b +")(module, found)

    result = fixed_files({"p.py": "a()\nc()\n", "q.py": "a()\n"}, rule("X1", "a", make, group="g"), rule("X2", "c", renamed("d")))
    assert dict(result.changed) == {"p.py": b"a()\nd()\n"}
    assert sorted(f.path for f, _ in result.withdrawn) == ["p.py", "q.py"]


def test_a_group_of_which_one_is_not_accepted_is_not_made_and_told() -> None:
    files = {"p.py": "a()\n", "q.py": "a()\n"}
    result = fixed_files(files, rule("X1", "a", renamed("b"), group="g"), accept=lambda f: safe(f) and f.path == "p.py")
    assert not result.changed
    assert [(f.path, why) for f, why in result.withdrawn] == [("p.py", "it belongs together with q.py:1, which is not fixed")]


def test_a_group_that_loses_a_conflict_in_one_file_waits_in_both() -> None:
    group = rule("X2", "a", keyword("k", "2"), group="g")
    rival = rule("X1", "a", lambda m, c: keyword("k", "1")(m, c) if m.path == "p.py" else [])
    result = fixed_files({"p.py": "a()\n", "q.py": "a()\n"}, rival, group)
    assert result.changed["p.py"] == b"a(k=1)\n"
    assert result.changed["q.py"] == b"a(k=2)\n"  # in the second round the group is q.py alone
    first, _ = without_conflicts(
        [*find_in(module_of("a()\n"), Project.of({}), [rival, group])], safe
    )
    assert [f.code for f in first] == ["X2"]


def test_one_finding_may_change_two_files() -> None:
    def make(module: SourceModule, found: ast.Call) -> list[Edit]:
        other = SourceModule("q.py", b"z()\n")
        return [*renamed("b")(module, found), SetKeyword("q.py", other.span(other.nodes(ast.Call)[0]), "k", "1")]

    result = fixed_files({"p.py": "a()\n", "q.py": "z()\n"}, rule("X1", "a", make))
    assert dict(result.changed) == {"p.py": b"b()\n", "q.py": b"z(k=1)\n"}


def test_an_edit_in_a_file_that_is_not_there_is_told() -> None:
    make: Make = lambda m, c: [*renamed("b")(m, c), SetKeyword("gone.py", m.span(c), "k", "1")]  # noqa: E731
    result = fixed_files({"p.py": "a()\n"}, rule("X1", "a", make))
    assert not result.changed and "gone.py cannot be read" in result.withdrawn[0][1]


# Ids


def ids(source: str, path: str = PATH) -> list[str]:
    module = SourceModule(path, source.encode())
    return [f.id for f in find_in(module, Project.of({}), [rule("X1", "a", renamed("b"))])]


def test_ids_survive_edits_elsewhere_and_a_new_layout() -> None:
    before = ids("def f():\n    a(1, 2)\n")
    assert ids("import x\n\n\ndef f():\n  y = 1\n  a(1,\n    2)\n") == before


def test_ids_tell_apart_what_reads_the_same() -> None:
    same = ids("a(1)\na(1)\ndef f():\n    a(1)\na(2)\n")
    assert len(set(same)) == 4
    assert same[0] != ids("a(1)\n", "other.py")[0]
    assert all(len(i) == 12 for i in same)


def test_what_reads_the_same_keeps_its_id_when_a_neighbour_is_fixed() -> None:
    source = "a(1)\na(1)\na(1)\n"
    first, second, third = ids(source)
    result = fix_source(source, [rule("X1", "a", renamed("b"))], path=PATH, accept=lambda f: f.id == second)
    assert text(result) == "a(1)\nb(1)\na(1)\n"
    assert [f.id for f in result.fixed] == [second]
    # of two that read the same the first keeps its number; the fixed one's is not given again
    assert [f.id for f in result.left] == [first, third]


def test_findings_travel() -> None:
    found = find_in(module_of("a(1)\n"), Project.of({}), [rule("X1", "a", renamed("b"))])
    assert pickle.loads(pickle.dumps(found)) == found
