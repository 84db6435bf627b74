"""How the analyses read a place: which processes come there, by which tests, and which tests they take for none of ranks."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.names import dotted
from codemods.analysis.ranks.rank_guards import guards_over, split_of
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.analysis.ranks.several_processes import several_processes
from codemods.analysis.ranks.shown_runs import start_at, started_alone
from codemods.analysis.ranks.start_kinds import Start
from codemods.api.findings import Span
from codemods.files.source import SourceModule, walk
from codemods.files.text_file import TextFile
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project
from ddpfix.told_elsewhere import lines_round

_SPEAKS = lazy(
    r"(?i)(?:^|_)(?:rank|is_master|master_proc\w*|primary|chief|is_main|main_proc\w*|"
    r"(?:gpu|gpu_id|local|proc_id|worker_id|master)$)(?:_|\d|$)"
)
_MOST = 3  # tests of the function that are named
_LONGEST = 80
_STARTS = {
    Start.ONE: "Only programs come here that run as one process",
    Start.OPEN: "Programs come here that would run as several processes; no text of the repository launches them so",
    Start.JOINS: "Programs come here that join a launcher's processes; no text of the repository launches them",
    Start.PRESUMED: "Programs come here that are taken for several processes, though no text launches any",
    Start.LIKELY: "Programs come here that run as several processes where their settings or their command say so",
    Start.SEVERAL: "Programs of several processes come here",
}


def facts(project: Project, module: SourceModule, line: int) -> tuple[str, ...]:
    """What is known of the line before any codemod is asked, in sentences."""
    if isinstance(module, TextFile) or (statement := statement_at(module, line)) is None:
        return ()
    return (*_processes(project, module, line), *_ranks(project, module, statement), *_unread_tests(project, module, line))


def statement_at(module: SourceModule, line: int) -> ast.stmt | None:
    """The innermost statement that holds the line."""
    holding = [
        n for n in ast.walk(module.tree) if isinstance(n, ast.stmt) and n.lineno <= line <= (n.end_lineno or n.lineno)
    ]  # fmt: skip
    return max(holding, key=lambda n: (n.lineno, -(n.end_lineno or 0)), default=None)


def _processes(project: Project, module: SourceModule, line: int) -> Iterator[str]:
    span = Span(line, 0, line, 0)
    start = start_at(project, module, span)
    if started_alone(project, module, span):
        yield "The repository's texts start the programs that come here as one process."
    else:
        yield f"{'No program of the project is seen to come here' if start is None else _STARTS[start]}."


def _ranks(project: Project, module: SourceModule, statement: ast.stmt) -> Iterator[str]:
    ranks = ranks_reaching(project, module, statement)
    guards = [g for g in guards_over(module, statement, project=project) if g.ranks.some]
    by = ", by " + " and ".join(f"line {g.line}" for g in guards[:_MOST]) if guards else ", by the calls of its function"
    yield f"Who comes here: {ranks.value}{by if ranks.some else ''}."


def _unread_tests(project: Project, module: SourceModule, line: int) -> Iterator[str]:
    """Tests of the function with a word of ranks that are not read as tests of ranks."""
    first, end = lines_round(module, line)
    holders: list[ast.If | ast.IfExp | ast.While] = [*module.nodes(ast.If), *module.nodes(ast.IfExp), *module.nodes(ast.While)]
    tests = [n.test for n in holders if first <= n.lineno <= end]
    unread = [t for t in tests if _speaks(t) and split_of(module, t, project) is None and several_processes(module, t) is None]
    for test in sorted(unread, key=lambda t: (abs(t.lineno - line), t.lineno))[:_MOST]:
        text = " ".join(ast.unparse(test).split())
        shown = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
        yield f"Line {test.lineno}: `{shown}` is not read as a test of ranks: what stands under it counts as run by all."


def _speaks(test: ast.expr) -> bool:
    return any(_SPEAKS.search(dotted(n).rpartition(".")[2]) for n in walk(test) if isinstance(n, (ast.Name, ast.Attribute)))
