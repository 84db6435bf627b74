"""Names that a file has from a package which is no part of the project: `from trl import Trainer` is no class of a file here."""

from __future__ import annotations

from codemods.analysis.class_index import ClassSite
from codemods.files.source import SourceModule
from codemods.store.project import Project

_SETS_UP = ("setup.py", "pyproject.toml", "setup.cfg")


def is_of_another_package(project: Project, module: SourceModule, name: str) -> bool:
    """True where each import of the dotted name's root leads to a package whose name no folder or file of the project has."""
    found = module.imports.get(name.partition(".")[0], ())
    roots = {item.dotted.partition(".")[0] for item in found}
    return bool(roots) and all(root and not _may_be_here(project, root) for root in roots)


def is_one_of_several(project: Project, module: SourceModule, name: str, site: ClassSite) -> bool:
    """True for a name that branches import from different files (`if pocket: from b import Net`), of which one has the class."""
    found = module.imports.get(name, ()) if len(module.imports.get(name, ())) > 1 else ()
    resolved = (project.resolve(item.dotted, module.path) for item in found)
    return any(r is not None and r.path == site.module.path and r.rest == (site.name,) for r in resolved)


def _may_be_here(project: Project, root: str) -> bool:
    """True where a folder or file is called so, or a set-up names it: the project may be installed under it."""
    return project.keep(("name of a part", root), lambda: _find(project, root))


def _find(project: Project, root: str) -> bool:
    if any(f"/{root}/" in f"/{p}" or f"/{p}".endswith((f"/{root}.py", f"/{root}.ipynb")) for p in project.files):
        return True
    word = root.encode()
    return any(word in (project.read(p) or b"") and _names_itself(project.read(p) or b"", word) for p in project.files
               if p.endswith(_SETS_UP))  # fmt: skip


def _names_itself(data: bytes, word: bytes) -> bool:
    """True for `name="word"` and `package_dir={"word": …}`; what is required is another's."""
    spelled = [b'"' + word + b'"', b"'" + word + b"'"]
    lines = (line for line in data.splitlines() if any(s in line for s in spelled))
    return any(line.lstrip().startswith((b"name", b"package")) for line in lines)
