"""Objects that YAML files describe by `_target_` (Hydra) or `class_path` (Lightning CLI): which classes, with which arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from posixpath import basename, dirname
from typing import TYPE_CHECKING

from codemods.analysis.class_index import ClassSite, find_class
from codemods.analysis.distribution import is_test_file
from codemods.files.text_file import TEXT_KINDS, TextFile
from codemods.runtime.record import record
from codemods.store.project import Project

if TYPE_CHECKING:
    import yaml

MOST_FILES = 40  # composing a file takes milliseconds, a large configuration has hundreds
_CLASS_KEYS = ("_target_", "class_path")


@record
class Target:
    """One mapping that names a class. name: as written; key: the key it stands under, for a whole file its folder's name."""

    name: str
    key: str
    path: str
    line: int
    node: yaml.MappingNode


def targets_of_class(project: Project, site: ClassSite) -> tuple[Target, ...]:
    """The mappings that describe an object of the project class."""

    def search() -> tuple[Target, ...]:
        pattern = re.compile(rb"(?:_target_|class_path)[\"']?:[ \t]*[\"']?[\w.]*\b" + re.escape(site.name.encode()) + rb"\b")
        found = (t for t in _targets(project, site.name.encode(), pattern) if _means(project, t.name, site))
        return tuple(found)

    return project.keep(("targets of class", site.module.path, site.node.lineno), search)


def targets_under(project: Project, key: str) -> tuple[Target, ...]:
    """The mappings that describe the object under a key (`net:`), or in a folder of that name (`configs/net/*.yaml`)."""

    def search() -> tuple[Target, ...]:
        pattern = re.compile(rb"_target_|class_path")
        everywhere = project.files_containing(b"_target_", kinds=TEXT_KINDS)
        paths = [p for p in everywhere if basename(dirname(p)) == key or f"{key}:".encode() in (project.read(p) or b"")]
        return tuple(t for t in _in_files(project, paths, pattern) if t.key == key)

    return project.keep(("targets under", key), search)


def argument(target: Target, name: str) -> yaml.Node | None:
    """What the description gives for an argument, None where it gives nothing."""
    values = {k.value: v for k, v in target.node.value if k.id == "scalar"}
    inner = values.get("init_args")
    if inner is not None and inner.id == "mapping" and "class_path" in values:
        values = {k.value: v for k, v in inner.value if k.id == "scalar"}
    return values.get(name)


def name_of(node: yaml.Node) -> str:
    """The class that a nested mapping names, "" where it names none."""
    if node.id != "mapping":
        return ""
    return next((v.value for k, v in node.value if k.id == v.id == "scalar" and k.value in _CLASS_KEYS), "")


def class_at(project: Project, name: str) -> ClassSite | None:
    """The class of a dotted name, as an import at the root of the project finds it; below `src/`, too."""
    for start in ("config.yaml", "src/config.yaml"):
        found = project.resolve(name, start)
        module = project.module(found.path) if found is not None and len(found.rest) == 1 else None
        if module is not None and found is not None and (site := find_class(project, module, found.rest[0])) is not None:
            return site
    return None


def _means(project: Project, name: str, site: ClassSite) -> bool:
    found = class_at(project, name)
    return found is not None and found.node is site.node


def _targets(project: Project, word: bytes, pattern: re.Pattern[bytes]) -> Iterator[Target]:
    yield from _in_files(project, project.files_containing(word, kinds=TEXT_KINDS), pattern)


def _in_files(project: Project, paths: tuple[str, ...] | list[str], pattern: re.Pattern[bytes]) -> Iterator[Target]:
    read = [p for p in paths if not is_test_file(p) and pattern.search(project.read(p) or b"")]
    for path in read[:MOST_FILES]:
        file = project.module(path)
        if isinstance(file, TextFile):
            for root in file.documents:
                yield from _below(path, basename(dirname(path)), root)


def _below(path: str, key: str, node: yaml.Node, depth: int = 0) -> Iterator[Target]:
    if depth > 12:
        return
    if node.id == "mapping":
        if name := name_of(node):
            yield Target(name, key, path, node.start_mark.line + 1, node)
        for k, v in node.value:
            yield from _below(path, str(k.value) if k.id == "scalar" else "", v, depth + 1)
    elif node.id == "sequence":
        for v in node.value:
            yield from _below(path, key, v, depth + 1)
