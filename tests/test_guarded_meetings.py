"""No guard goes round what every rank has to reach, whichever codemod asks for it."""

from __future__ import annotations

import ast

import pytest

from codemods.analysis.ranks.guarded_meetings import meeting_under
from codemods.api.findings import Applicability, Finding, Fix, ReplaceExpression, Span, WrapInGuard
from codemods.store.project import Project

CODE = """\
import torch.distributed as dist


def step(model, x, asked):
    print("a"); dist.barrier()
    if asked:
        {line}
    print("b")
"""


def _finding(edit: WrapInGuard | ReplaceExpression) -> Finding:
    return Finding("DDP203", "unguarded-print", "a.py", edit.span, "m", "step", fix=Fix(Applicability.SAFE, (edit,)))


@pytest.mark.parametrize(
    ("line", "meets"),
    [("model(x).backward()", True), ("dist.all_reduce(x)", True), ("print(x)", False), ("run = lambda: x.item()", False)],
)
def test_a_guard_round_a_statement_or_in_its_test(line: str, meets: bool) -> None:
    project = Project.of({"a.py": CODE.format(line=line).encode()})
    module = project.module("a.py")
    assert module is not None
    held = next(iter(module.nodes(ast.If)))
    guard = WrapInGuard("a.py", module.span(held), "dist.get_rank() == 0", module.span(held))
    joined = ReplaceExpression("a.py", module.span(held.test), "asked and dist.get_rank() == 0")
    assert (meeting_under(project, module, _finding(guard)) is not None) is meets
    assert (meeting_under(project, module, _finding(joined)) is not None) is meets


def test_a_statement_that_shares_its_line() -> None:
    project = Project.of({"a.py": CODE.format(line="pass").encode()})
    module = project.module("a.py")
    assert module is not None
    span = Span(5, 4, 5, 14)
    assert meeting_under(project, module, _finding(WrapInGuard("a.py", span, "rank == 0", span))) is None
