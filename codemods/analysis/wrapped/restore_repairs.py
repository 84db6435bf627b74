"""A block in which rank 0 restores what training goes on from, made one for every rank; prints stay on rank 0."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.output.effects import only_output_of
from codemods.analysis.ranks.rank_branches import known_split
from codemods.analysis.ranks.rank_guards import Guard
from codemods.analysis.short_texts import shorter
from codemods.analysis.whole_body import is_idle
from codemods.analysis.wrapped.training_state import is_load
from codemods.api.findings import Edit, ReplaceExpression, SetKeyword, Unwrap, WrapInGuard
from codemods.files.source import SourceModule, walk
from codemods.runtime.record import record
from codemods.store.project import Project

_RESTORES = frozenset({"load_state_dict", "load_state"})
_SAYS = frozenset({"info", "warning", "debug", "error", "log"})


@record
class Repair:
    """edits, or why there are none."""

    edits: tuple[Edit, ...] = ()
    refused: str = ""


@record
class _Parted:
    """A test taken apart: what asks for the rank, and the text of the rest ("" where nothing is left)."""

    rank: str
    rest: str


def on_every_rank(project: Project, module: SourceModule, guard: Guard | None) -> Repair:
    """The edits that let every rank restore what one restores under `guard`."""
    if guard is None or guard.kind == "decorator":
        return Repair(refused="let every rank restore it: take the rank test off the way that leads here")
    test = guard.node
    if guard.kind not in ("if", "exit") or not isinstance(test, ast.If) or not is_idle(test.orelse) or not module.is_whole(test):
        return Repair(refused="let every rank restore it, with map_location: the test has another arm, or shares its line")
    parted = _parted(project, module, test.test, ast.And if guard.kind == "if" else ast.Or)
    if parted is None:
        return Repair(refused="let every rank restore it, with map_location: the rank is not a plain part of the test")
    block = test.body if guard.kind == "if" else _behind(module, test)
    odd = next((s for s in block if not _is_known(project, module, s)), None)
    if odd is not None:
        text = f"`{shorter(module, odd)}` in line {odd.lineno}"
        return Repair(refused=f"let every rank restore it, with map_location; part it from {text}, which may be rank 0's alone")
    printed = [s for s in block if _is_output(project, module, s)]
    if guard.kind == "exit" and (printed or not parted.rest):
        return Repair(refused="let every rank restore it: take the rank out of the early exit")
    edits: list[Edit] = [
        Unwrap(module.path, module.span(test)) if not parted.rest
        else ReplaceExpression(module.path, module.span(test.test), parted.rest)
    ]  # fmt: skip
    edits += [WrapInGuard(module.path, module.span(s), parted.rank, module.span(s)) for s in printed]
    edits += [SetKeyword(module.path, module.span(c), "map_location", '"cpu"') for c in _loads_anywhere(module, block)]
    return Repair(tuple(edits))


def _parted(project: Project, module: SourceModule, test: ast.expr, operator: type[ast.And | ast.Or]) -> _Parted | None:
    if not isinstance(test, ast.BoolOp):
        return _Parted(module.text_of(test), "") if known_split(module, test, project) is not None else None
    if not isinstance(test.op, operator):
        return None
    ranked = [v for v in test.values if known_split(module, v, project) is not None]
    rest = [module.text_of(v) for v in test.values if v not in ranked]
    if len(ranked) != 1:
        return None
    word = " and " if operator is ast.And else " or "
    return _Parted(module.text_of(ranked[0]), word.join(rest))


def _behind(module: SourceModule, test: ast.If) -> list[ast.stmt]:
    up = module.parent(test)
    body: list[ast.stmt] = getattr(up, "body", [])
    below = body[body.index(test) + 1 :] if test in body else []
    return below[:-1] if below and isinstance(below[-1], ast.Return) and below[-1].value is None else below


def _is_known(project: Project, module: SourceModule, statement: ast.stmt) -> bool:
    """True for what any rank may do: read, restore, count, say so."""
    if isinstance(statement, (ast.Pass, ast.Delete)):
        return True
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        called = last(dotted(statement.value.func))
        return called in _RESTORES or _is_output(project, module, statement) or _says_once(statement.value)
    if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
        return all(is_load(c) or _only_reads(c) for c in walk(statement.value) if isinstance(c, ast.Call))
    if isinstance(statement, ast.If):
        inner = [*statement.body, *statement.orelse]
        return all(_is_known(project, module, s) and not _is_output(project, module, s) for s in inner)
    return False


def _only_reads(call: ast.Call) -> bool:
    return last(dotted(call.func)) in ("get", "int", "float", "join", "str", "exists", "isfile", "len")


def _is_output(project: Project, module: SourceModule, statement: ast.stmt) -> bool:
    """True for what is said to a person; a guard over it, which goes, is no reason to take it for less."""
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return False
    func = statement.value.func
    logged = isinstance(func, ast.Attribute) and func.attr in _SAYS and "log" in dotted(func.value).lower()
    if logged or dotted(func) == "print":
        return True
    return only_output_of(project, module, statement) is not None


def _says_once(call: ast.Call) -> bool:
    """`accelerator.print(...)`: it asks for the rank itself."""
    return last(dotted(call.func)) == "print" and "accelerator" in dotted(call.func).lower()


def _loads_anywhere(module: SourceModule, block: list[ast.stmt]) -> Iterator[ast.Call]:
    """`torch.load(...)` without a place to load to: each rank would fill the device that the file was written from."""
    for node in (n for statement in block for n in walk(statement)):
        if isinstance(node, ast.Call) and qualified(module, node.func) == "torch.load" and len(node.args) < 2:
            if not any(k.arg in ("map_location", None) for k in node.keywords):
                yield node
