"""Names in a registry (`"warmup": "src.callbacks.Warmup"`) of which settings choose: a key that none has is never used."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.distribution import is_own_test
from codemods.analysis.names import dotted
from codemods.files.source import SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_CHOOSING = (".yaml", ".yml", ".json", ".toml", ".cfg", ".ini", ".gin", ".sh", ".md", ".rst", ".txt", ".ipynb", "Makefile")
_COMMENT = lazy(rb"(?m)(?:^|(?<=\s))#.*$")
_SETTINGS = lazy(r"config|cfg|hparams|hydra|options|args", re.IGNORECASE)
_MARKED = (".yaml", ".yml", ".toml", ".cfg", ".ini", ".gin", ".sh")  # where `#` begins a comment


def names_by_unused_keys(project: Project, path: str, name: str) -> bool:
    """True where every string of a file that may be the class's name is the value of a key that no setting has."""
    module = project.module(path)
    if module is None:
        return False
    mentions = [c for c in module.nodes(ast.Constant) if isinstance(c.value, str) and re.search(rf"(?:^|[.:]){name}$", c.value)]
    return bool(mentions) and all(is_by_unused_key(project, module, c) for c in mentions)


def is_by_unused_key(project: Project, module: SourceModule, value: ast.expr) -> bool:
    """True for the value of a registry's key that no setting has, where settings have other keys of it."""
    held = module.parent(value)
    if not isinstance(held, ast.Dict) or not isinstance(module.parent(held), (ast.Assign, ast.AnnAssign)):
        return False
    if module.function_of(held) is not None:
        return False
    key = next((k for k, v in zip(held.keys, held.values, strict=True) if v is value), None)
    keys = [k.value for k in held.keys if isinstance(k, ast.Constant) and isinstance(k.value, str)]
    if not isinstance(key, ast.Constant) or not isinstance(key.value, str) or len(keys) != len(held.keys):
        return False
    if is_chosen(project, key.value):
        return False
    return any(_is_set(project, k) for k in keys if k != key.value)


def is_chosen(project: Project, key: str) -> bool:
    """True where a setting, a command or a text of Python holds the key, or Python asks the settings for it."""
    return project.keep(("chosen key", key), lambda: _is_set(project, key) or _is_named(project, key))


def _is_set(project: Project, key: str) -> bool:
    """True where a setting or a command holds the word, outside of comments."""
    word = re.compile(rb"(?<![\w-])" + re.escape(key.encode()) + rb"(?![\w-])")

    def ask() -> bool:
        for path in project.files_containing(key.encode(), kinds=_CHOOSING):
            text = project.read_text(path) or b""
            if word.search(_COMMENT.sub(b"", text) if path.endswith(_MARKED) else text):
                return True
        return False

    return project.keep(("set key", key), ask)


def _is_named(project: Project, key: str) -> bool:
    """True where Python holds the key as a text, but as a key of a registry, and where it asks the settings for it."""
    for path in project.files_containing(key.encode()):
        module = project.module(path) if not is_own_test(project, path) else None
        if module is not None and any(not _only_asks(module, c) for c in _texts(module, key)):
            return True
    return False


def _texts(module: SourceModule, key: str) -> Iterator[ast.Constant]:
    for node in module.nodes(ast.Constant):
        if isinstance(node.value, str) and re.search(rf"(?<![\w.-]){re.escape(key)}(?![\w.-])", node.value):
            if not isinstance(module.parent(node), ast.Expr):  # a docstring
                yield node


def _only_asks(module: SourceModule, node: ast.Constant) -> bool:
    """True for a key of a dict, and for `config.callbacks.get("warmup")`, `config["warmup"]`, `"warmup" in config`."""
    up = module.parent(node)
    if isinstance(up, ast.Dict):
        return any(k is node for k in up.keys)
    asked: ast.AST | None = None
    if isinstance(up, ast.Call) and isinstance(up.func, ast.Attribute) and up.func.attr == "get" and up.args[:1] == [node]:
        asked = up.func.value
    elif isinstance(up, ast.Subscript) and isinstance(up.ctx, ast.Load):
        asked = up.value
    elif isinstance(up, ast.Compare) and up.left is node and isinstance(up.ops[0], (ast.In, ast.NotIn)):
        asked = up.comparators[0]
    return asked is not None and any(_SETTINGS.search(dotted(n)) for n in walk(asked) if isinstance(n, (ast.Name, ast.Attribute)))
