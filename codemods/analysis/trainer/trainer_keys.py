"""A key of a Trainer's configuration that code reads or sets as well: where, and what stands in the way of its new name there."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_file
from codemods.analysis.names import dotted
from codemods.analysis.trainer.lightning_trainers import key_of
from codemods.analysis.trainer.trainer_tables import HOLDERS, named_from_outside
from codemods.api.findings import Edit, ReplaceExpression
from codemods.data.lightning_arguments import OLD
from codemods.files.source import SourceModule
from codemods.runtime.record import record
from codemods.store.project import Project

_NAMES = frozenset({*OLD, "gpus", "accelerator"})


@record
class KeyPlace:
    """One place. node: the attribute, or the text of the key; stored: the value that it is given there."""

    module: SourceModule
    node: ast.expr
    stored: ast.expr | None

    @property
    def at(self) -> str:
        return f"{self.module.path}:{self.node.lineno}"

    def renamed(self, new: str) -> list[Edit]:
        text = self.module.text_of(self.node)
        if isinstance(self.node, ast.Attribute):
            code = f"{text.removesuffix(self.node.attr)}{new}"
        else:
            code = f"{text[0]}{new}{text[-1]}"
        return [ReplaceExpression(self.module.path, self.module.span(self.node), code)]


def keys_named(module: SourceModule) -> Iterator[tuple[str, str]]:
    """(key of the mapping, name of an old argument) that the file names."""
    for node in module.nodes(ast.Attribute):
        if node.attr in _NAMES and (key := _key_of(node.value)):
            yield key, node.attr
    for text in module.nodes(ast.Constant):
        if text.value in _NAMES and isinstance(text.value, str):
            up = module.parent(text)
            held = up.value if isinstance(up, ast.Subscript) else None
            if isinstance(up, ast.Call) and isinstance(up.func, ast.Attribute) and up.func.attr in ("get", "pop"):
                held = up.func.value
            if held is not None and (key := _key_of(held)):
                yield key, text.value


def key_places(module: SourceModule, key: str, name: str) -> list[KeyPlace]:
    """`config.trainer.gpus`, `config.trainer["gpus"]`, `config.trainer.get("gpus")` of one file, in order."""
    found = [KeyPlace(module, node, _stored(module, whole)) for node, whole in _named(module, key, name)]
    return sorted(found, key=lambda p: (p.node.lineno, p.node.col_offset))


def _named(module: SourceModule, key: str, name: str) -> Iterator[tuple[ast.expr, ast.expr]]:
    for node in module.nodes(ast.Attribute):
        if node.attr == name and _key_of(node.value) == key:
            yield node, node
    for part in module.nodes(ast.Subscript):
        if isinstance(part.slice, ast.Constant) and part.slice.value == name and _key_of(part.value) == key:
            yield part.slice, part
    for call in module.calls_named("get", "pop"):
        first = call.args[0] if call.args else None
        if isinstance(call.func, ast.Attribute) and _key_of(call.func.value) == key:
            if isinstance(first, ast.Constant) and first.value == name:
                yield first, call


def _key_of(node: ast.expr) -> str:
    key = key_of(node)
    return "" if dotted(node) in {f"{holder}.{key}" for holder in HOLDERS} else key


def _stored(module: SourceModule, whole: ast.expr) -> ast.expr | None:
    up = module.parent(whole)
    return up.value if isinstance(up, ast.Assign) and whole in up.targets else None


def why_not_renamed(project: Project, key: str, name: str, *, positive: bool) -> str:
    """What keeps the code from the new name, "" where nothing does. positive: the new one takes no 0, as `devices` does."""
    for path in project.files_containing(name.encode()):
        data = project.read(path) or b""
        spoken = [] if is_test_file(path) else list(named_from_outside(key, name).finditer(data))
        module = project.module(path) if spoken else None
        if module is None:
            continue
        line = data.count(b"\n", 0, spoken[0].start()) + 1
        places = key_places(module, key, name)
        if len(places) != len(spoken):
            return f"{path}:{line} names {key}.{name}: change both"
        if any(isinstance(up, ast.JoinedStr) for p in places for up in module.ancestors(p.node)):
            return f"{path}:{line} reads {key}.{name} in an f-string: change both"
        for place in places if positive else ():
            stored = place.stored.value if isinstance(place.stored, ast.Constant) else None
            if place.stored is not None and (not isinstance(stored, int) or stored < 1):
                return f"{place.at} sets {key}.{name}, which takes no 0 under its new name: change both"
    return ""
