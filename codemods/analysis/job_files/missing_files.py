"""Files that a command names and the repository does not have."""

from __future__ import annotations

from posixpath import basename, dirname, join, normpath

from codemods.files.text_file import JSON_KINDS, YAML_KINDS
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_PLAIN = lazy(r"(?:\.\.?/)*[\w.-]+(?:/[\w.-]+)*$")
_PLACEHOLDER = lazy(r"your|path[_-]?to|xxx|example|my_|placeholder", 2)


def is_missing(project: Project, near: str, path: str) -> bool:
    """True for a relative path of a YAML or JSON file that no folder of the repository has, and that no text says to make."""
    if not path.endswith((*YAML_KINDS, *JSON_KINDS)) or not _PLAIN.match(path) or _PLACEHOLDER.search(path):
        return False
    name = basename(path)
    if normpath(join(dirname(near), path)) in project.files or any(basename(p) == name for p in project.files):
        return False
    kinds = (".md", ".rst", ".txt", ".sh", ".py", "Makefile")
    return not any(b"accelerate config" in (project.read(p) or b"") for p in project.files_containing(name.encode(), kinds=kinds))


def only_configuration(project: Project) -> str:
    """The one file of the repository that is a configuration of `accelerate launch`; "" where there are none or several."""
    found = project.files_containing(b"compute_environment", kinds=(*YAML_KINDS, *JSON_KINDS))
    return found[0] if len(found) == 1 else ""
