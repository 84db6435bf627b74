"""What is a path put together from, and is it the same in every run? Texts, and options that no run gives a value of its own."""

from __future__ import annotations

import ast
import re

from codemods.analysis.bindings import bindings_of
from codemods.analysis.names import dotted, end_of
from codemods.files.source import SourceModule
from codemods.files.text_file import DOCUMENT_KINDS, PYTHON_KINDS, SHELL_KINDS, YAML_KINDS
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_DEPTH = 12
_OPTION = "\0"  # in front of the name of an option, which stands in no path
_JOINS = frozenset(
    {"join", "abspath", "realpath", "expanduser", "normpath", "getcwd", "cwd", "dirname", "Path", "replace", "as_posix",
     "resolve", "str", "absolute", "format", "basename", "to_absolute_path"}
)  # fmt: skip
# What gives a folder another name in each run, or empties it before one, in a script or a setting.
_OWN = lazy(rb"\$\(|\bdate\b|`[ ]*\w+[ ]+\+|SLURM|JOB_?ID|RANDOM|uuid|mktemp|\$\$|\brm[ ]+-\w*r|now:|oc\.env|hydra:", re.I)


def texts_of(module: SourceModule, node: ast.expr) -> list[str] | None:
    """The texts and options of a path, in order; None where something else is in it, that a run may change."""
    return _texts(module, node, _DEPTH)


def option_in(text: str) -> str:
    """The option that one of the texts stands for; "" for a text."""
    return text[1:] if text.startswith(_OPTION) else ""


def same_in_every_run(project: Project, option: str, seen: frozenset[str] = frozenset()) -> bool:
    """True for an option that is declared, and that no program, script or setting is seen to give a value of one run."""
    if option in seen:
        return True
    scripts = project.files_containing(option.encode(), kinds=(*SHELL_KINDS, *YAML_KINDS, *DOCUMENT_KINDS))
    if any(_OWN.search(line) for p in scripts for line in _lines_to_ask(project.read(p) or b"", p, option)):
        return False
    declared = any(p.endswith(YAML_KINDS) and _is_set_in(project.read(p) or b"", option) for p in scripts)
    if declared and project.files_containing(b"hydra.main") and not project.files_containing(b"to_absolute_path"):
        return False  # Hydra makes a folder for each run, and goes there
    for path in project.files_containing(option.encode()):
        module = project.module(path) if path.endswith(PYTHON_KINDS) else None
        if module is None:
            continue
        values, declares = _given(module, option)
        declared = declared or declares
        if not all(_is_fixed(project, module, value, seen | {option}) for value in values):
            return False
    return declared


def _lines_to_ask(data: bytes, path: str, option: str) -> list[bytes]:
    """The lines that may say what an option is given: all of a script, of other texts those that name it."""
    lines = data.splitlines()
    return lines if path.endswith(SHELL_KINDS) else [line for line in lines if option.encode() in line]


def _is_set_in(data: bytes, option: str) -> bool:
    return re.search(rb"^[ ]*" + re.escape(option).encode() + rb"[ ]*:", data, re.M) is not None


def _given(module: SourceModule, option: str) -> tuple[list[ast.expr], bool]:
    """(what the option is given in a file, its default among that; is it declared there?)"""
    names = {f"--{option}", f"--{option.replace('_', '-')}"}
    declarations = [
        c for c in module.calls_named("add_argument")
        if any(isinstance(a, ast.Constant) and a.value in names for a in c.args)
    ]  # fmt: skip
    values = [k.value for c in declarations for k in c.keywords if k.arg == "default"]
    for assign in module.nodes(ast.Assign):
        if any(_is_of(target, option) for target in assign.targets):
            values.append(assign.value)
    return values, bool(declarations)


def _is_of(target: ast.expr, option: str) -> bool:
    if isinstance(target, ast.Subscript):
        return isinstance(target.slice, ast.Constant) and target.slice.value == option
    return isinstance(target, ast.Attribute) and target.attr == option and dotted(target.value) != "self"


def _is_fixed(project: Project, module: SourceModule, value: ast.expr, seen: frozenset[str]) -> bool:
    if isinstance(value, ast.Constant):
        return True
    texts = texts_of(module, value)
    return texts is not None and all(same_in_every_run(project, o, seen) for t in texts if (o := option_in(t)))


def _texts(module: SourceModule, node: ast.expr, depth: int) -> list[str] | None:
    if depth < 0:
        return None
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        parts = [v.value if isinstance(v, ast.FormattedValue) else v for v in node.values]
        return _all(module, parts, depth)
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Div)):
        return _all(module, [node.left, node.right], depth)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        given = node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
        return _all(module, [node.left, *given], depth)
    if isinstance(node, ast.Call) and end_of(node.func) in _JOINS and not node.keywords:
        held = node.func.value if isinstance(node.func, ast.Attribute) else None
        package = isinstance(held, (ast.Name, ast.Attribute)) and dotted(held).partition(".")[0] in module.imports
        return _all(module, [*([held] if held is not None and not package else []), *node.args], depth)
    if isinstance(node, ast.Name):
        return _named(module, node, depth)
    if isinstance(node, ast.Attribute):
        root = dotted(node).partition(".")[0]
        return [_OPTION + node.attr] if root not in ("", "self") and root not in module.imports else None
    return None


def _all(module: SourceModule, nodes: list[ast.expr], depth: int) -> list[str] | None:
    found: list[str] = []
    for node in nodes:
        texts = _texts(module, node, depth - 1)
        if texts is None:
            return None
        found += texts
    return found


def _named(module: SourceModule, name: ast.Name, depth: int) -> list[str] | None:
    if name.id == "__file__":
        return [""]
    bound = [b for b in bindings_of(module, name) if not _stands_below(b.node, name)]
    if not bound or any(b.value is None or b.part or b.parameter for b in bound):
        return None
    nearest = max(bound, key=lambda b: getattr(b.node, "lineno", 0))
    if any(_texts(module, b.value, depth - 1) is None for b in bound if b.value is not None):
        return None
    return _texts(module, nearest.value, depth - 1) if nearest.value is not None else None


def _stands_below(node: ast.AST, name: ast.Name) -> bool:
    return getattr(node, "lineno", 0) > name.lineno
