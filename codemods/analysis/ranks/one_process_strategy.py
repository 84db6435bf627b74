"""Is a Trainer asked for DataParallel (`dp`)? One process drives all its devices then, and there are no ranks."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from codemods.analysis.bindings import bindings_of, only_value
from codemods.analysis.job_files.documented_starts import starts_of
from codemods.files.source import SourceModule
from codemods.store.project import Project

_NAME = "dp"
_FOR_SEVERAL: dict[tuple[type[ast.cmpop], object], bool] = {
    (ast.Gt, 1): True, (ast.GtE, 2): True, (ast.LtE, 1): False, (ast.Lt, 2): False,
}  # fmt: skip


def is_of_one_process(project: Project, module: SourceModule, value: ast.expr) -> bool:
    """True for `dp`, for a name that is bound to nothing else, and for an option that is left at it by each command."""
    if isinstance(value, ast.Name):
        bound = bindings_of(module, value)
        return bool(bound) and all(b.value is not None and not b.part and _is_dp(b.value) for b in bound)
    return _is_left_at_it(project, module, value.attr) if isinstance(value, ast.Attribute) else _is_dp(value)


def is_of_one_process_for_several(module: SourceModule, value: ast.expr, given: Mapping[str, ast.expr]) -> bool:
    """True for `"dp" if count > 1 else None`, where the Trainer is given `count` devices: the other arm has one of them."""
    value = _made(module, value)
    devices = given.get("devices", given.get("gpus"))
    if not isinstance(value, ast.IfExp) or devices is None or (asked := _several(module, value.test)) is None:
        return False
    counted, holds = asked
    several, one = (value.body, value.orelse) if holds else (value.orelse, value.body)
    left_to_it = isinstance(one, ast.Constant) and one.value in (None, "auto", _NAME)
    return _is_dp(several) and left_to_it and all(_is_count(d, counted) for d in _arms(module, devices))


def _several(module: SourceModule, test: ast.expr) -> tuple[str, bool] | None:
    """(what is counted, whether the test holds for several) of `count > 1`, `count >= 2` and the opposites of them."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(limit := test.comparators[0], ast.Constant):
        return None
    holds = _FOR_SEVERAL.get((type(test.ops[0]), limit.value))
    return None if holds is None else (ast.unparse(_made(module, test.left)), holds)


def _is_count(devices: ast.expr, counted: str) -> bool:
    return (isinstance(devices, ast.Constant) and devices.value in (1, "1")) or ast.unparse(devices) == counted


def _arms(module: SourceModule, value: ast.expr) -> Iterator[ast.expr]:
    """What an expression may be: both arms of `a if test else b`."""
    value = _made(module, value)
    if isinstance(value, ast.IfExp):
        yield from _arms(module, value.body)
        yield from _arms(module, value.orelse)
    else:
        yield value


def _made(module: SourceModule, value: ast.expr) -> ast.expr:
    """What a name is bound to, once; the expression itself else."""
    made = only_value(bindings_of(module, value)) if isinstance(value, ast.Name) else None
    return value if made is None else made


def _is_dp(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value == _NAME


def _is_left_at_it(project: Project, module: SourceModule, option: str) -> bool:
    """True where the option is `dp` by default, and the commands that start the script (there are some) give no other."""
    made = [c for c in module.calls_named("add_argument") if c.args and _option(c.args[0]) == option]
    defaults = [next((k.value for k in c.keywords if k.arg == "default"), None) for c in made]
    if not defaults or not all(d is not None and _is_dp(d) for d in defaults):
        return False
    commands = starts_of(project, module.path)
    return bool(commands) and not any(s.several or s.more or option in s.flags for s in commands or ())


def _option(node: ast.expr) -> str:
    text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
    return text.lstrip("-").replace("-", "_")
