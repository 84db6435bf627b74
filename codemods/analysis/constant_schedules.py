"""Is the schedule of a project a constant one wherever the project says? Then nobody reads its lengths."""

from __future__ import annotations

import ast
import re

from codemods.analysis.branches import branches_round
from codemods.analysis.distribution import is_test_file
from codemods.analysis.literals import held_against
from codemods.analysis.names import dotted, last
from codemods.analysis.schedules import Length, Schedule
from codemods.files.source import SourceModule
from codemods.store.project import Project

_CONSTANT, _WARMED = "constant", "constant_with_warmup"
_CONFIGS = (".yaml", ".yml", ".json")
_SCRIPTS = (".sh", ".bash", ".md", ".slurm", ".sbatch")


def read_lengths(project: Project, schedule: Schedule, known: list[Length]) -> list[Length]:
    """Those of the lengths that the kind of schedule reads: a constant one reads none, one with a warm-up the warm-up alone."""
    if schedule.kind != "get_scheduler":
        return known
    call = schedule.made
    node = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "name"), None)
    kinds = _tested(schedule.module, call, node) or _kinds(project, schedule.module, node)
    if not kinds or not kinds <= {_CONSTANT, _WARMED}:
        return known
    return [n for n in known if n.is_warm_up and _is_read(project, schedule.module, n.node)] if _WARMED in kinds else []


def _tested(module: SourceModule, call: ast.Call, node: ast.expr | None) -> set[str]:
    """The kinds that a test over the call leaves of an expression: `if args.kind == "constant":`."""
    for branch in branches_round(module, call) if node is not None and dotted(node) else ():
        held = held_against(branch.test)
        if held is not None and dotted(held[0]) == dotted(node) and held[2] is branch.holds:
            return {value for value in held[1] if isinstance(value, str)}
    return set()


def _kinds(project: Project, module: SourceModule, node: ast.expr | None) -> set[str]:
    """The kinds that configurations, scripts and defaults ask for; none where only a default says one: users choose."""
    if isinstance(node, ast.Constant):
        return {str(node.value)}
    name = last(dotted(node)) if node is not None else ""
    return _said(project, module, name) if name and _in_texts(project, name) else set()


def _said(project: Project, module: SourceModule, name: str) -> set[str]:
    default = _default(module, name)
    return {*_in_texts(project, name), *([default] if default else [])}


def _default(module: SourceModule, name: str) -> str:
    """The default of `parser.add_argument("--name", default="...")`, and of a field of a class, in the file."""
    for call in module.calls_named("add_argument"):
        options = [a.value for a in call.args if isinstance(a, ast.Constant)]
        if f"--{name}" in options:
            given = next((k.value for k in call.keywords if k.arg == "default"), None)
            return str(given.value) if isinstance(given, ast.Constant) and given.value is not None else ""
    return ""


def _in_texts(project: Project, name: str) -> set[str]:
    key = re.escape(name)
    in_config = re.compile(rf"^\s*[\"']?{key}[\"']?\s*:\s*[\"']?([\w-]+)", re.M)
    in_script = re.compile(rf"--{key}[= ]\s*[\"']?([\w-]+)")
    out: set[str] = set()
    for kinds, pattern in ((_CONFIGS, in_config), (_SCRIPTS, in_script)):
        for path in project.files_containing(name.encode(), kinds=kinds):
            if not is_test_file(path):
                out |= set(pattern.findall((project.read(path) or b"").decode("utf-8", "replace")))
    return out


def _is_read(project: Project, module: SourceModule, node: ast.expr) -> bool:
    """False for a warm-up of no steps, wherever the project says how many."""
    names = {last(dotted(n)) for n in ast.walk(node) if isinstance(n, (ast.Name, ast.Attribute))}
    said = {v for name in names if "warmup" in name for v in _said(project, module, name)}
    return not said or bool(said - {"0"})
