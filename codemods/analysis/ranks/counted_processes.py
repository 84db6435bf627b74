"""Tests of how many processes a program starts: `if args.gpus <= 1:`, where Lightning's Trainer is handed `gpus=args.gpus`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_file
from codemods.analysis.names import dotted, family, last, qualified
from codemods.files.source import SourceModule
from codemods.store.project import Project

_LIGHTNING = ("devices", "gpus")
_ONE_OR_LESS = ((ast.Eq, 1), (ast.LtE, 1), (ast.Lt, 2))
_MORE = ((ast.NotEq, 1), (ast.Gt, 1), (ast.GtE, 2))


def asks_for_one(project: Project, module: SourceModule, test: ast.expr, wanted: bool) -> bool:
    """True where the test, coming out as `wanted`, says that the program starts one process."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(value := test.comparators[0], ast.Constant):
        return False
    counted, told = _counted(test.left), _ONE_OR_LESS if wanted else _MORE
    if counted is None or not any(isinstance(test.ops[0], op) and value.value == number for op, number in told):
        return False
    if isinstance(counted, ast.Attribute):
        return counted.attr in project.keep("numbers of processes", lambda: _settings(project))
    home = module.function_of(test)
    given = (v for call, v in _starts(module) if module.function_of(call) is home)
    return any(isinstance(v, ast.Name) and v.id == counted.id for v in given)


def _counted(node: ast.expr) -> ast.Attribute | ast.Name | None:
    """`args.gpus`, also in `len(args.gpus)`."""
    if isinstance(node, ast.Call) and dotted(node.func) in ("len", "int") and len(node.args) == 1:
        node = node.args[0]
    return node if isinstance(node, (ast.Attribute, ast.Name)) and dotted(node) else None


def _settings(project: Project) -> frozenset[str]:
    """The settings that the project starts its processes by."""
    found: set[str] = set()
    for word in (b"Trainer(", b"spawn("):
        for path in project.files_containing(word):
            module = project.module(path) if not is_test_file(path) else None
            values = (_counted(v) for _, v in _starts(module)) if module is not None else iter(())
            found.update(v.attr for v in values if isinstance(v, ast.Attribute))
    return frozenset(found)


def _starts(module: SourceModule) -> Iterator[tuple[ast.Call, ast.expr]]:
    """The calls that start processes, each with their number."""
    for call in module.calls_named("Trainer", "spawn"):
        name = last(dotted(call.func))
        if name == "Trainer" and family(qualified(module, call.func)) != "lightning":
            continue
        wanted = _LIGHTNING if name == "Trainer" else ("nprocs",)
        given = next((k.value for k in call.keywords if k.arg in wanted), None)
        if given is not None:
            yield call, _counted(given) or given
