"""Hooks of a BasePredictionWriter that Lightning leaves out: its `write_interval` asks for the other one.

`write_interval="batch"` calls `write_on_batch_end` alone, "epoch" calls `write_on_epoch_end`, "batch_and_epoch" both.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import class_facts
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.handed_arguments import argument
from codemods.analysis.ranks.uses import constructions
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.record import record
from codemods.store.project import Project

_NAME = "write_interval"
_SETTINGS = (".yaml", ".yml", ".json", ".toml", ".ipynb")
_LEFT_OUT_BY = {"write_on_batch_end": "epoch", "write_on_epoch_end": "batch"}


@record
class _Parameter:
    """By which parameter of the constructor the interval comes. default: what it is without; None where it must be given."""

    name: str
    names: tuple[str, ...]
    default: ast.expr | None


_OF_LIGHTNING = _Parameter(_NAME, (_NAME,), ast.Constant("batch"))


def is_left_out_by_interval(project: Project, module: SourceModule, owner: ast.ClassDef, function: FunctionNode) -> bool:
    """True where each writer that the project makes is given the other interval, and so is one that names none."""
    other = _LEFT_OUT_BY.get(function.name)
    if other is None:
        return False
    facts = class_facts(project, module, owner)
    if facts.opaque or len(facts.lineage) != 1 or not any(last(name) == "BasePredictionWriter" for name in facts.external):
        return False  # a class between them may give an interval of its own
    given = list(_intervals(project, module, owner))
    return bool(given) and all(isinstance(value, ast.Constant) and value.value == other for value in given)


def _intervals(project: Project, module: SourceModule, owner: ast.ClassDef) -> Iterator[ast.expr | None]:
    """What the writers get, the default of the constructor among it; None for what is not seen."""
    init = next((s for s in owner.body if isinstance(s, ast.FunctionDef) and s.name == "__init__"), None)
    handed = _handed_up(init) if init is not None else None
    if isinstance(handed, ast.Constant):
        yield handed
        return
    parameter = _parameter(init, handed) if init is not None else _OF_LIGHTNING
    used = constructions(project, module, owner)
    if parameter is None or used is None or used.more or used.handed_on or not used.calls or _may_be_made_by_name(project, owner):
        yield None
        return
    if parameter.default is not None:
        yield parameter.default
    for site in used.outside_tests().calls:
        value = argument(site.call, list(parameter.names), parameter.name)
        spread = any(isinstance(a, ast.Starred) for a in site.call.args) or any(k.arg is None for k in site.call.keywords)
        if value is not None or spread or parameter.default is None:
            yield value


def _may_be_made_by_name(project: Project, owner: ast.ClassDef) -> bool:
    """True where a setting or a notebook has the name of the class, or a decorator enters it somewhere."""
    return bool(owner.decorator_list or project.files_containing(owner.name.encode(), kinds=_SETTINGS))


def _handed_up(init: ast.FunctionDef) -> ast.expr | None:
    """What a constructor gives `super().__init__` for the interval, in the one call of it."""
    calls = [n for n in walk(init) if isinstance(n, ast.Call) and _is_above(n.func)]
    return argument(calls[0], [_NAME], _NAME) if len(calls) == 1 else None


def _is_above(function: ast.expr) -> bool:
    if not isinstance(function, ast.Attribute) or function.attr != "__init__":
        return False
    return isinstance(function.value, ast.Call) and dotted(function.value.func) == "super"


def _parameter(init: ast.FunctionDef, handed: ast.expr | None) -> _Parameter | None:
    """The parameter that a constructor hands up as it is."""
    if not isinstance(handed, ast.Name):
        return None
    if any(isinstance(n, ast.Name) and n.id == handed.id and isinstance(n.ctx, ast.Store) for n in walk(init)):
        return None
    plain = init.args.args
    given = dict(zip([a.arg for a in plain[len(plain) - len(init.args.defaults) :]], init.args.defaults, strict=True))
    given |= {a.arg: d for a, d in zip(init.args.kwonlyargs, init.args.kw_defaults, strict=True) if d is not None}
    names = tuple(a.arg for a in plain[1:])
    if handed.id not in (*names, *(a.arg for a in init.args.kwonlyargs)):
        return None
    return _Parameter(handed.id, names, given.get(handed.id))
