"""Where a program puts a value of its own into a variable that a launcher hands to each process: its rank, and where all meet."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.conditions import is_main_block
from codemods.analysis.names import end_of
from codemods.analysis.positions import above
from codemods.analysis.ranks.counted_among import environment
from codemods.files.source import SourceModule, once_a_module, walk_scope
from codemods.runtime.record import record

VARIABLES = frozenset({"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_PORT", "MASTER_ADDR"})
_LEAVES = (ast.Return, ast.Continue, ast.Break)
_BLOCKS = (ast.If, ast.For, ast.While, ast.Try, ast.Match)


@record
class VariableSet:
    """statement: what sets it. value: what it is given. target: `os.environ["RANK"]`, of an assignment to it alone."""

    statement: ast.stmt
    variable: str
    value: ast.expr
    target: ast.Subscript | None = None


@once_a_module
def variables_set(module: SourceModule) -> tuple[VariableSet, ...]:
    """Every place that sets one, whatever was there: `setdefault` is none, and `os.putenv` changes nothing that Python reads."""
    if not module.holds(b"environ"):
        return ()
    return tuple(sorted((*_by_item(module), *_by_update(module)), key=lambda s: (s.statement.lineno, s.value.lineno)))


def _by_item(module: SourceModule) -> Iterator[VariableSet]:
    for node in module.nodes(ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Subscript) and (variable := environment(module, target)) in VARIABLES:
                yield VariableSet(node, variable, node.value, target if len(node.targets) == 1 else None)


def _by_update(module: SourceModule) -> Iterator[VariableSet]:
    """`os.environ.update({"RANK": "0"})`, `os.environ.update(RANK="0")`, `os.environ |= {"RANK": "0"}`."""
    for call in module.calls_named("update"):
        if isinstance(call.func, ast.Attribute) and end_of(call.func.value) == "environ":
            statement = module.statement_of(call)
            yield from (VariableSet(statement, k.arg, k.value) for k in call.keywords if k.arg in VARIABLES)
            for given in call.args:
                yield from _of_dict(statement, given)
    for node in module.nodes(ast.AugAssign):
        if isinstance(node.op, ast.BitOr) and end_of(node.target) == "environ":
            yield from _of_dict(node, node.value)


def _of_dict(statement: ast.stmt, given: ast.expr) -> Iterator[VariableSet]:
    if isinstance(given, ast.Call) and end_of(given.func) == "dict":
        yield from (VariableSet(statement, k.arg, k.value) for k in given.keywords if k.arg in VARIABLES)
    if isinstance(given, ast.Dict):
        for key, value in zip(given.keys, given.values, strict=True):
            if isinstance(key, ast.Constant) and key.value in VARIABLES:
                yield VariableSet(statement, str(key.value), value)


def is_under_a_test(module: SourceModule, node: ast.AST) -> bool:
    """True under any test but that of a script's own name, and under a `try`."""
    return any(isinstance(up, (ast.If, ast.Try)) and not is_main_block(up) for up in module.ancestors(node))


def is_sure_to_come(module: SourceModule, node: ast.AST, *, asked: tuple[str, ...] = ()) -> bool:
    """True where a run of the function, or of the script, comes there whatever any test says.

    asked: words of tests that count as passed.
    """
    below = node
    for up in module.ancestors(node):
        passed = isinstance(up, ast.If) and (is_main_block(up) or _is_asked(module, up, below, asked))
        if isinstance(up, (*_BLOCKS, ast.ExceptHandler)) and not passed and not _is_body_of_try(up, below):
            return False
        if isinstance(below, ast.stmt) and any(_may_leave(s) for s in above(module, below)):
            return False
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            return True
        if isinstance(up, (ast.ClassDef, ast.IfExp, ast.BoolOp)):
            return False
        below = up
    return True


def _is_asked(module: SourceModule, test: ast.If, below: ast.AST, asked: tuple[str, ...]) -> bool:
    return below in test.body and any(word in module.text_of(test.test) for word in asked)


def _is_body_of_try(up: ast.AST, below: ast.AST) -> bool:
    return isinstance(up, ast.Try) and below in up.body


def _may_leave(statement: ast.stmt) -> bool:
    """True where a run may end, or go elsewhere, in a statement above."""
    if not isinstance(statement, (*_BLOCKS, ast.With)):
        return False
    return any(isinstance(n, _LEAVES) or (isinstance(n, ast.Call) and end_of(n.func) == "exit") for n in walk_scope(statement))
