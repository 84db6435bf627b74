"""Folders that Python looks in for an import since a file of the project puts them on `sys.path`, or since they are installed.

`tools/_init_paths.py` adds `../lib`, and `tools/train.py`, which imports it, finds `lib/models` as `models`.
"""

from __future__ import annotations

import ast
import os
import warnings
from collections.abc import Collection, Iterator
from posixpath import basename, dirname, join, normpath
from typing import TYPE_CHECKING

from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import field, record
from codemods.store.file_facts import file_fact
from codemods.store.import_targets import folders_above

if TYPE_CHECKING:
    from codemods.store.project import Project

INSTALLED_BY = ("setup.py", "pyproject.toml", "setup.cfg")
TEXTS = (".sh", ".md")
_PYTHONPATH = lazy(rb"PYTHONPATH=([^\s#;&]+)")
ADDERS = frozenset({"append", "insert", "extend"})
DEEPEST = 5  # names behind names


@file_fact
def folders_added(path: str, data: bytes) -> tuple[str, ...]:
    """What the file puts on `sys.path`, as far as it is written: `../lib` of `join(here, "..", "lib")`."""
    del path
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    written = _Written.of(tree)
    found = (text for value in written.added() for text in written.texts(value))
    return tuple(dict.fromkeys(text for text in found if text.strip("./")))


@file_fact
def folders_of_commands(path: str, data: bytes) -> tuple[str, ...]:
    """What a script or a page gives as `PYTHONPATH`: `$PWD/lib` as `lib`."""
    del path
    parts = (part for found in _PYTHONPATH.findall(data) for part in found.decode("utf-8", "replace").strip("'\"").split(":"))
    texts = ("/".join(p for p in part.split("/") if not p.startswith("$")) for part in parts if not part.startswith("/"))
    return tuple(dict.fromkeys(text for text in texts if text.strip("./")))


def added_root(project: Project, held: Collection[str], importer: str) -> str | None:
    """Of the folders in which a name lies, the one where an import of `importer` finds it; None where two may be meant.

    held: folders, none of them the root. What is said nearer to the importer goes before what is said elsewhere.
    """
    by_place = {root: [_near(f"{root}/.py", importer)] for root in held if _is_installed(project, root)}
    for root in held:
        by_place.setdefault(root, []).extend(_near(path, importer) for path in _adding(project, root))
    places = {root: max(near) for root, near in by_place.items() if near}
    best = [root for root, near in places.items() if near == max(places.values())]
    return best[0] if len(best) == 1 else None


def _is_installed(project: Project, root: str) -> bool:
    above = dirname(root) if basename(root) == "src" else root
    return any(project.has_file(join(above, name)) for name in INSTALLED_BY)


def _adding(project: Project, root: str) -> Iterator[str]:
    """The files that put this folder where Python looks."""
    name = basename(root)
    for word, fact, kinds in ((b"sys.path", folders_added, (".py",)), (b"PYTHONPATH=", folders_of_commands, TEXTS)):
        for path in project.files_containing(word, kinds=kinds):
            if project.fact(_mentions, path, name):  # most need not be parsed
                texts = project.fact(fact, path)
                if any(as_folder(text, above) == root for text in texts for above in folders_above(path)):
                    yield path


@file_fact
def _mentions(path: str, data: bytes, name: str) -> bool:
    del path
    return os.fsencode(name) in data


def _near(path: str, importer: str) -> int:
    """How many folders two files have in common."""
    both = zip(path.split("/"), importer.split("/"), strict=False)
    return next((i for i, (one, other) in enumerate(both) if one != other), min(path.count("/"), importer.count("/")))


def as_folder(text: str, above: str) -> str:
    """The folder of the project that `text` may mean in a folder: steps up are left to who tries the folders above."""
    parts = [part for part in text.split("/") if part not in ("", ".")]
    while parts and parts[0] == "..":
        parts.pop(0)
    return normpath(join(above, *parts)) if parts else ""


@record
class _Written:
    """What one file gives its names, and the calls in it."""

    values: dict[str, list[ast.expr]] = field(default_factory=dict)
    calls: tuple[ast.Call, ...] = ()
    onto: tuple[ast.expr, ...] = ()  # what is given to `sys.path` itself, or added to it
    parameters: dict[str, tuple[str, int]] = field(default_factory=dict)  # name -> its function and place

    @classmethod
    def of(cls, tree: ast.Module) -> _Written:
        values: dict[str, list[ast.expr]] = {}
        parameters: dict[str, tuple[str, int]] = {}
        calls, onto = [], []
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign):
                onto += [node.value for target in node.targets if _is_path(target)]
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        values.setdefault(target.id, []).append(node.value)
            elif isinstance(node, ast.For) and isinstance(node.target, ast.Name):
                values.setdefault(node.target.id, []).append(node.iter)
            elif isinstance(node, ast.FunctionDef):
                parameters |= {a.arg: (node.name, i) for i, a in enumerate(node.args.args)}
            elif isinstance(node, ast.AugAssign) and _is_path(node.target):
                onto.append(node.value)
            elif isinstance(node, ast.Call):
                calls.append(node)
        return cls(values, tuple(calls), tuple(onto), parameters)

    def added(self) -> Iterator[ast.expr]:
        yield from self.onto
        for call in self.calls:
            function = call.func
            if isinstance(function, ast.Attribute) and call.args and function.attr in ADDERS and _is_path(function.value):
                yield call.args[-1]

    def texts(self, value: ast.expr, depth: int = 0) -> list[str]:
        """The texts that a value may be, each without what is not written; none where it is an absolute path."""
        if depth > DEEPEST:
            return []
        if isinstance(value, (ast.List, ast.Tuple)):
            return [text for item in value.elts for text in self.texts(item, depth + 1)]
        if isinstance(value, ast.Constant):
            return [value.value] if isinstance(value.value, str) and not value.value.startswith(("/", "~")) else []
        if isinstance(value, ast.Name):
            return self._of_name(value.id, depth + 1)
        return self._joined(list(_parts(value)), depth + 1)

    def _of_name(self, name: str, depth: int) -> list[str]:
        given = self.values.get(name, [])
        if not given and name in self.parameters:
            function, place = self.parameters[name]
            given = [c.args[place] for c in self.calls if isinstance(c.func, ast.Name) and c.func.id == function
                     and len(c.args) > place]  # fmt: skip
        return [text for value in given for text in self.texts(value, depth)]

    def _joined(self, parts: list[ast.expr], depth: int) -> list[str]:
        found = [""]
        for part in parts:
            texts = [str(part.value)] if isinstance(part, ast.Constant) else self.texts(part, depth)
            found = [f"{before}/{text}" for before in found for text in texts or ("",)]
        return found[:20]


def _parts(value: ast.expr) -> Iterator[ast.expr]:
    """What a path is put together of: the arguments of a call, both sides of `/` and `+`, the values of an f-string."""
    if isinstance(value, ast.Call):
        if isinstance(value.func, ast.Attribute) and not _is_module(value.func.value):
            yield value.func.value  # `here.joinpath("lib")`
        yield from value.args
    elif isinstance(value, ast.BinOp):
        yield from (value.left, value.right)
    elif isinstance(value, ast.JoinedStr):
        yield from (v.value if isinstance(v, ast.FormattedValue) else v for v in value.values)
    elif isinstance(value, ast.Attribute):
        yield value.value  # `here.parent`


def _is_path(value: ast.expr) -> bool:
    value = value.value if isinstance(value, ast.Subscript) else value  # `sys.path[0:0] = [...]`
    return isinstance(value, ast.Attribute) and ast.unparse(value) == "sys.path"


def _is_module(value: ast.expr) -> bool:
    return ast.unparse(value) in ("os", "os.path", "osp", "path", "pathlib", "sys")
