"""A setting that decides whether a model is wrapped at all, and that is not asked where `model.module` stands."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_of
from codemods.analysis.names import dotted
from codemods.analysis.output.effect_kinds import names_rank
from codemods.analysis.wrapped.holders import Wrapped
from codemods.analysis.wrapped.wrapper_tests import asks_for_wrapper
from codemods.files.source import FunctionNode, SourceModule, walk


def left_bare_by(module: SourceModule, node: ast.Attribute, found: Wrapped) -> str:
    """The test over the wrap, without which the model is bare at `node`; "" where the program may never run without it.

    `if finetune: net = DDP(net)`, where the function also has code for the other value (`if not finetune:`).
    """
    function, wrap = module.function_of(node), found.wrap
    if found.always or found.module is not module or function is None or module.function_of(wrap) is not function:
        return ""
    statement = module.statement_of(wrap)
    up = module.parent(statement)
    if not isinstance(up, ast.If) or up.orelse or statement not in up.body or node.lineno <= (up.end_lineno or 0):
        return ""
    flag, text = _flag(up.test), module.text_of(up.test)
    if flag is None or asks_for_wrapper(text) or names_rank(text) or not _is_set_from_outside(module, flag):
        return ""
    if any(dotted(flag) in _names(test) for test in _tests_over(module, node)):
        return ""
    others = [t for t in _tests_in(module, function) if t is not up and dotted(flag) in _names(t.test)]
    meant = any(_is_for_the_other(t, up.test) for t in others)
    return text if meant and not any(_asserts(n, dotted(flag)) for n in module.nodes(ast.Assert)) else ""


def _flag(test: ast.expr) -> ast.expr | None:
    """`finetune`, `cfg.finetune`, `not cfg.finetune`."""
    inner = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else test
    return inner if isinstance(inner, (ast.Name, ast.Attribute)) and dotted(inner) else None


def _is_set_from_outside(module: SourceModule, flag: ast.expr) -> bool:
    """True for a parameter that nobody gives another value, and for a field of one."""
    root = flag
    while isinstance(root, ast.Attribute):
        root = root.value
    bound = bindings_of(module, root) if isinstance(root, ast.Name) and root.id not in ("self", "cls") else []
    return len(bound) == 1 and bound[0].parameter


def _is_for_the_other(test: ast.If, wanted: ast.expr) -> bool:
    """True for what stands in the arm of the value under which nothing is wrapped."""
    if _flag(test.test) is None:
        return False
    same = isinstance(test.test, ast.UnaryOp) == isinstance(wanted, ast.UnaryOp)
    return bool(test.orelse) if same else True


def _tests_in(module: SourceModule, function: FunctionNode) -> Iterator[ast.If]:
    return (t for t in module.nodes(ast.If) if module.function_of(t) is function)


def _tests_over(module: SourceModule, node: ast.AST) -> Iterator[ast.expr]:
    """The tests round a place, and those of exits in the blocks round it."""
    below: ast.AST = node
    for up in module.ancestors(node):
        if isinstance(up, (ast.If, ast.IfExp, ast.While)):
            yield up.test
        if isinstance(up, ast.BoolOp):
            yield up
        block = getattr(up, "body", None)
        for above in block if isinstance(block, list) and any(s is below for s in block) else ():
            if above is below:
                break
            if isinstance(above, ast.If) and isinstance(above.body[-1], (ast.Return, ast.Raise, ast.Continue, ast.Break)):
                yield above.test
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return
        below = up


def _names(node: ast.expr) -> set[str]:
    return {dotted(n) for n in walk(node) if isinstance(n, (ast.Name, ast.Attribute))}


def _asserts(node: ast.Assert, flag: str) -> bool:
    return flag in _names(node.test)
