"""The factor that the lengths of a prepared schedule lack, as edits and in words."""

from __future__ import annotations

import ast
from collections.abc import Callable

from codemods.analysis.accelerators import made_by
from codemods.analysis.bindings import bindings_of
from codemods.analysis.names import dotted, last
from codemods.analysis.schedules import Counted, Length, Schedule
from codemods.api.findings import Edit, ReplaceExpression
from codemods.files.source import SourceModule
from codemods.store.project import Project


def counts_micro_batches(module: SourceModule, length: Length) -> bool:
    """True for `steps * gradient_accumulation_steps` beside `with accelerator.accumulate(...)`."""
    return without_accumulation(length) is not None and module.holds(b".accumulate(")


def without_accumulation(length: Length) -> ast.expr | None:
    """The other factor of a product with the accumulation steps."""
    node = length.node
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
        return None
    sides = [s for s in (node.left, node.right) if "accumulation" not in last(dotted(s))]
    return sides[0] if len(sides) == 1 else None


def _itself(length: Length) -> ast.expr:
    return length.node


def names_of(found: list[Length]) -> str:
    return "` and `".join(n.name for n in found)


def where(found: list[Length], *, counted: bool = False) -> str:
    if all(n.counted is not Counted.EITHER for n in found if not n.is_warm_up):
        return ""
    return " where the steps are counted from the loader" if counted else " where the number of steps is given"


def assumed(edits: list[Edit], short: list[Length]) -> str:
    if edits:
        return "assumes that the numbers are meant as steps of the optimizer, as those of the training loop"
    if any(n.counted is Counted.EITHER for n in short):
        return "multiply a number of steps that is given by `accelerator.num_processes`, and leave one that the loader gives"
    return "multiply the lengths by `accelerator.num_processes`"


def multiplied(
    project: Project,
    module: SourceModule,
    schedule: Schedule,
    short: list[Length],
    counted: Callable[[Length], ast.expr | None] = _itself,
) -> list[Edit]:
    """The factor behind each length, or behind what of it counts, where the Accelerator is there by then."""
    assert isinstance(schedule.prepared.func, ast.Attribute)
    holder = schedule.prepared.func.value
    if any(n.counted is Counted.EITHER for n in short) or not isinstance(holder, ast.Name):
        return []
    if module.function_of(schedule.made) is not module.function_of(schedule.prepared):
        return []
    made = made_by(project, module, holder)
    first = [b for b in bindings_of(module, holder) if b.parameter or getattr(b.node, "lineno", 0) < schedule.made.lineno]
    if not made or not first:
        return []
    edits: list[Edit] = []
    for length in short:
        node = counted(length) or length.node
        text = module.text_of(node)
        plain = isinstance(node, (ast.Name, ast.Attribute, ast.Constant, ast.Call))
        product = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)
        if "\n" in text:
            return []
        text = text if plain or product else f"({text})"
        edits.append(ReplaceExpression(module.path, module.span(length.node), f"{text} * {holder.id}.num_processes"))
    return edits
