"""Files that a newer one has taken the place of, and which no program and no text names.

`train_bak.py` beside `train.py`, and what lies in a folder `legacy` or `deprecated`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from codemods.analysis.job_files.documented_starts import script_names, starts
from codemods.analysis.ranks.unused import ELSEWHERE
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_COPY = lazy(r"^(?P<plain>.*\w)(?:[-_. ](?:bak|backup|old|orig|copy)\d*|(?: -)? copy)(?: ?\(\d+\))?$", re.IGNORECASE)
_ASIDE = lazy(r"(?:^|/)(?:legacy|deprecated|obsolete|archived?|backups?|_?old|_?unused|trash)/", re.IGNORECASE)
_KINDS = tuple(dict.fromkeys((".py", ".ipynb", *ELSEWHERE, ".json", ".md", ".txt", ".rst")))
_CODE = tuple(kind for kind in _KINDS if kind not in (".md", ".txt", ".rst"))


def is_superseded(project: Project, path: str) -> bool:
    """True for a copy that is kept beside the file itself: nobody runs it, and its noise is heard by nobody."""
    if (aside := _ASIDE.search(path)) is not None:
        return project.keep(("superseded", path), lambda: _is_left_inside(project, path, path[: aside.end()]))
    folder, _, name = path.rpartition("/")
    stem = name.removesuffix(".py")
    found = _COPY.search(stem) if name.endswith(".py") else None
    if found is None or "/".join(filter(None, (folder, f"{found['plain']}.py"))) not in project.files:
        return False
    return project.keep(("superseded", path), lambda: _is_named_by_nobody(project, path, stem))


def _is_left_inside(project: Project, path: str, folder: str) -> bool:
    """True where no code outside the folder names the file, and no command starts it: what notes say of it runs nothing."""
    if any(s.script in script_names(path) for s in starts(project)):
        return False
    stem = path.rpartition("/")[2].removesuffix(".py")
    named = _naming(project, path, stem, kinds=_CODE)
    return all(p.startswith(folder) for p in named)


def _is_named_by_nobody(project: Project, path: str, stem: str) -> bool:
    return not any(True for _ in _naming(project, path, stem, kinds=_KINDS))


def _naming(project: Project, path: str, stem: str, *, kinds: tuple[str, ...]) -> Iterator[str]:
    word = re.compile(rb"(?<!\w)" + re.escape(stem.encode()) + rb"(?!\w)")
    holding = (p for p in project.files_containing(stem.encode(), kinds=kinds) if p != path)
    return (p for p in holding if word.search(project.read_text(p) or b""))
