"""The repair for a test of a rank's own number: its answer is reduced over the ranks, and all of them act on it."""

from __future__ import annotations

import ast
import re

from codemods.analysis.bindings import bindings_of
from codemods.analysis.guards.entry_points import group_name
from codemods.analysis.names import dotted
from codemods.api.findings import Edit, InsertBefore, ReplaceExpression
from codemods.data.rank_variance import NOT_A_NUMBER
from codemods.files.source import SourceModule, walk

ADVICE = "reduce the decision over the ranks first (an all_reduce with MAX of 0 or 1), and let every rank act on it"


def reduced_test(module: SourceModule, node: ast.stmt, anchor: ast.stmt, test: ast.expr | None) -> tuple[list[Edit], str]:
    """The edits, and what they assume; none and the advice where the test cannot be taken as it is.

    node: the exit that the test leads to; anchor: the statement of the test.
    """
    name = group_name(module, anchor)
    value = _tensor(module, test) if test is not None else ""
    plain = isinstance(anchor, ast.If) and not anchor.orelse and module.is_whole(anchor)
    if test is None or not name or not value or not plain or isinstance(node, ast.Return):
        return [], ADVICE
    flag = "skip" if isinstance(node, ast.Continue) else "stop"
    if re.search(rf"\b{flag}\b", module.text):
        flag = f"{flag}_on_any_rank"
    written = " ".join(module.text_of(test).split())
    step = _indent(module, anchor)
    code = (
        f"{flag} = torch.tensor(float({written}), device={value}.device)\n"
        f"if {name}.is_initialized():\n{step}{name}.all_reduce({flag}, op={name}.ReduceOp.MAX)"
    )
    if not any(i.dotted == "torch" for i in module.imports.get("torch", ())):
        return [], "reduce the decision over the ranks first: torch is not imported under its own name"
    edits: list[Edit] = [
        InsertBefore(module.path, module.span(anchor), code),
        ReplaceExpression(module.path, module.span(test), f"{flag}.item() > 0"),
    ]
    return edits, f"assumes that every rank comes here equally often, and that `{value}` is a tensor on the rank's device"


def _tensor(module: SourceModule, test: ast.expr) -> str:
    """The name of the tensor that `torch.isnan(loss)`, `loss.isnan().any()` or `math.isnan(loss.item())` asks; "" for others."""
    for node in walk(test):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in NOT_A_NUMBER:
            continue
        asked = node.args[0] if node.args else node.func.value
        if dotted(node.func.value) in ("math", "np", "numpy"):
            return _tensor_of(module, asked)
        return asked.id if isinstance(asked, ast.Name) else ""
    return ""


def _tensor_of(module: SourceModule, number: ast.expr) -> str:
    """`loss` of `loss.item()`, and of a name that is given nothing else in the function."""
    if isinstance(number, ast.Name):
        given = {_of_item(b.value) if b.value is not None and not b.part else "" for b in bindings_of(module, number)}
        return given.pop() if len(given) == 1 else ""
    return _of_item(number)


def _of_item(number: ast.expr) -> str:
    if not isinstance(number, ast.Call) or not isinstance(number.func, ast.Attribute) or number.func.attr != "item":
        return ""
    held = dotted(number.func.value)
    if not held and isinstance(number.func.value, ast.Call):
        inner = number.func.value
        held = dotted(inner.func.value) if isinstance(inner.func, ast.Attribute) and inner.func.attr in _SAME_DEVICE else ""
    return held if held.isidentifier() else ""


_SAME_DEVICE = frozenset({"detach", "mean", "sum", "float"})


def _indent(module: SourceModule, anchor: ast.stmt) -> str:
    assert isinstance(anchor, ast.If)
    head = module.lines[anchor.lineno - 1][: anchor.col_offset]
    step: str = module.lines[anchor.body[0].lineno - 1][: anchor.body[0].col_offset].removeprefix(head)
    return step if step and not step.strip() else "    "
