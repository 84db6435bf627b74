"""Uses of a value that end with an error where it is None, and that nothing keeps the ranks without it from."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator

from codemods.analysis.names import dotted
from codemods.analysis.output.rank_values import is_of_rank_zero, under_such_a_name
from codemods.analysis.positions import above
from codemods.analysis.ranks.leaving import leaves
from codemods.analysis.ranks.several_processes import is_of_one_process
from codemods.files.source import SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_OF_NONE = frozenset(dir(None))
_COUNTED = frozenset({"len", "iter", "next", "sum", "min", "max", "sorted", "enumerate", "zip", "float", "int"})
# Words of a test that may stand for the rank; of a flag, what only one process does.
_SPEAKS = lazy(r"(?i)rank|main|master|zero|chief|root|primary|leader|None|has")
_RANKED = lazy(r"(?i)rank|main|master|zero|chief|primary|leader|is_root|is_first|(?:gpu|device)\w*\s*==")
_OF_ONE = lazy(r"(?i)log|write|save|print|verb|tb|tensorboard|wandb|track|report|writer|enabled|active")
_SETTINGS = frozenset({"args", "opt", "opts", "cfg", "config", "conf", "hparams", "flags", "FLAGS", "hp", "configs", "options"})


def needs_value(module: SourceModule, node: ast.expr) -> bool:
    """True where a value of None would raise: `x.name`, `x[i]`, `x()`, `for … in x`, `a, b = x`, `len(x)`, `*x`."""
    up = module.parent(node)
    if isinstance(up, ast.Attribute):
        return up.attr not in _OF_NONE
    if isinstance(up, (ast.Subscript, ast.Starred)):
        return up.value is node
    if isinstance(up, ast.Call):
        counted = dotted(up.func) in _COUNTED and any(a is node for a in up.args)
        return up.func is node or (counted and (dotted(up.func) not in ("min", "max") or len(up.args) == 1))
    if isinstance(up, (ast.For, ast.AsyncFor, ast.comprehension)):
        return up.iter is node
    if isinstance(up, ast.Assign):
        return up.value is node and any(isinstance(t, (ast.Tuple, ast.List)) for t in up.targets)
    if isinstance(up, ast.BinOp):
        return isinstance(up.op, (ast.Mult, ast.Add, ast.Sub, ast.Div)) and not isinstance(up.left, (ast.Constant, ast.JoinedStr))
    return False


def is_kept_from(
    project: Project, module: SourceModule, node: ast.expr, name: str, apart: Collection[int] = ()
) -> bool:
    """True where a test round the use, or an exit above it, may stand for the rank, and in a `try`.

    apart: the tests (by id) that are known for what they ask of the rank.
    """
    if is_of_one_process(module, node) or under_such_a_name(project, module, module.statement_of(node)):
        return True
    return any(not _is_of_all(project, module, test, name) for test in _tests_over(module, node, name) if id(test) not in apart)


def _tests_over(module: SourceModule, node: ast.AST, name: str) -> Iterator[ast.expr | None]:
    """The tests between a place and the top of its function, but for those that raise; None for what cannot be judged."""
    below = node
    for up in module.ancestors(node):
        if isinstance(up, (ast.If, ast.While, ast.IfExp)) and below is not up.test:
            yield up.test
        elif isinstance(up, ast.BoolOp):
            yield from up.values[: next((i for i, v in enumerate(up.values) if v is below), 0)]
        elif isinstance(up, ast.comprehension) and below is not up.iter:
            yield from up.ifs
        elif isinstance(up, (ast.Lambda, ast.ExceptHandler, ast.Match)) or _is_tried(up, below):
            yield None
        for statement in above(module, below):
            if isinstance(statement, ast.If) and (leaves(statement.body) or leaves(statement.orelse)):
                raises = isinstance(statement.body[-1], ast.Raise) and not statement.orelse
                if not raises or name.rpartition(".")[2] in module.text_of(statement.test):
                    yield statement.test
            elif isinstance(statement, ast.Assert) and _may_end_others(module.text_of(statement.test), name):
                yield statement.test
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return
        below = up


def _may_end_others(asserted: str, name: str) -> bool:
    """True for an `assert` of the rank, or of the value itself; one of anything else lets every rank go on, or ends them all."""
    return name.rpartition(".")[2] in asserted or _RANKED.search(asserted) is not None


def _is_of_all(project: Project, module: SourceModule, test: ast.expr | None, name: str) -> bool:
    """True for a test that has nothing to do with the rank: of a count, a phase, a setting that nobody changes."""
    if test is None:
        return False
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _is_of_all(project, module, test.operand, name)
    if isinstance(test, ast.BoolOp):
        return all(_is_of_all(project, module, value, name) for value in test.values)
    text = module.text_of(test)
    if "__name__" in text or isinstance(test, ast.Constant):
        return True
    if _SPEAKS.search(text) or name.rpartition(".")[2] in text:
        return False
    named = [n for n in walk(test) if isinstance(n, (ast.Name, ast.Attribute))]
    if any(is_of_rank_zero(project, module, n) for n in named):
        return False
    if isinstance(test, (ast.Name, ast.Attribute, ast.Subscript)):
        return not _OF_ONE.search(text) and _is_setting(project, _setting_of(test))
    return isinstance(test, ast.Compare) or (isinstance(test, ast.Call) and dotted(test.func) in ("isinstance", "len"))


def _is_tried(up: ast.AST, below: ast.AST) -> bool:
    return isinstance(up, (ast.Try, ast.TryStar)) and bool(up.handlers) and any(s is below for s in up.body)


def _setting_of(test: ast.Name | ast.Attribute | ast.Subscript) -> str:
    """`args.resume` of itself and of `args["resume"]`; "" of what is asked for by another key."""
    if not isinstance(test, ast.Subscript):
        return dotted(test)
    held, key = dotted(test.value), test.slice
    return f"{held}.{key.value}" if held and isinstance(key, ast.Constant) and isinstance(key.value, str) else ""


def _is_setting(project: Project, name: str) -> bool:
    """True for `args.resume`, or `args["resume"]`, that no statement of the project sets."""
    root, _, rest = name.partition(".")
    if root not in _SETTINGS or not rest:
        return False
    word = name.rpartition(".")[2].encode()
    put = re.compile(rb"(?:\.|\[[\"'])" + re.escape(word) + rb"(?:[\"']\])?\s*=[^=]")
    return not any(put.search(project.read(path) or b"") for path in project.files_containing(word))
