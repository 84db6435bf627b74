"""Samplers whose every process draws a list of its own, by no seed: the shares that they cut are no parts of one whole."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_of
from codemods.analysis.class_index import class_facts, find_class
from codemods.analysis.names import dotted, qualified
from codemods.files.source import SourceModule, walk
from codemods.store.project import Project

_DRAWS = frozenset(
    {"random.choices", "random.sample", "numpy.random.choice", "numpy.random.permutation", "numpy.random.randint",
     "torch.randperm", "torch.randint", "torch.multinomial"}
)  # fmt: skip
_SEEDS = (b"seed(", b"seed_everything", b"seed_all", b"set_rng_state", b"setstate(")


def draws_its_own_list(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True for an object of a project class that goes through a part of what this process alone has drawn."""
    if any(project.files_containing(word) for word in _SEEDS):
        return False
    site = find_class(project, module, dotted(call.func)) if dotted(call.func) else None
    found = class_facts(project, site.module, site.node).method("__iter__") if site is not None else None
    if found is None:
        return False
    home, method = found[0].module, found[1]
    parts = [whole for node in walk(method) if (whole := _cut(node)) is not None]
    return bool(parts) and all(_is_drawn(home, whole) for whole in parts)


def _cut(node: ast.AST) -> ast.Name | None:
    """`rows` of `rows[first::step]`, and of `range(first, len(rows), step)`."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice) and node.slice.step is not None:
        return node.value if isinstance(node.value, ast.Name) else None
    if isinstance(node, ast.Call) and dotted(node.func) == "range" and len(node.args) == 3:
        end = node.args[1]
        if isinstance(end, ast.Call) and dotted(end.func) == "len" and end.args and isinstance(end.args[0], ast.Name):
            return end.args[0]
    return None


def _is_drawn(module: SourceModule, whole: ast.Name) -> bool:
    values = [b.value for b in bindings_of(module, whole)]
    return bool(values) and all(isinstance(v, ast.Call) and _draws(module, v) for v in values)


def _draws(module: SourceModule, call: ast.Call) -> bool:
    func = call.func
    if isinstance(func, ast.Attribute) and func.attr in ("tolist", "numpy") and isinstance(func.value, ast.Call):
        call = func.value
    return qualified(module, call.func) in _DRAWS and not any(k.arg == "generator" for k in call.keywords)
