"""Files that a newer one has taken the place of, and which no program and no text names.

`train_bak.py` beside `train.py`, and what lies in a folder `legacy`, `deprecated` or `old_scripts`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from codemods.analysis.job_files.documented_starts import script_names, starts
from codemods.analysis.ranks.unused import ELSEWHERE
from codemods.files.text_file import SHELL_KINDS
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_COPY = lazy(r"^(?P<plain>.*\w)(?:[-_. ](?:bak|backup|old|orig|copy)\d*|(?: -)? copy)(?: ?\(\d+\))?$", re.IGNORECASE)
_ASIDE = lazy(
    r"(?:^|/)(?:(?:legacy|deprecated|obsolete|archived?|backups?|_?old(?:er)?|_?unused|trash)"
    r"(?:[-_ ]?(?:code|files?|models?|notebooks?|py|python|runs?|scripts?|src|stuff|versions?))?|"
    r"(?:code|files?|models?|notebooks?|py|runs?|scripts?|src|versions?)[-_](?:legacy|deprecated|archived?|backups?|old|unused))/",
    re.IGNORECASE,
)
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
    """True where no code outside the folder names the file, and no command starts it: what notes say of it runs nothing.

    A job file outside that never names the folder means a file of this name that has gone: it moved in here.
    """
    names = script_names(path)
    of_it = (s for s in starts(project) if s.script in names and s.path in ("", path))
    if any(not _means_another_place(project, s.job, folder) for s in of_it):
        return False
    stem = path.rpartition("/")[2].removesuffix(".py")
    named = _naming(project, path, stem, kinds=_CODE)
    return all(p.startswith(folder) or _means_another_place(project, p, folder) for p in named)


def _means_another_place(project: Project, job: str, folder: str) -> bool:
    """True for a job file that lies outside of a folder and does not name it."""
    name = folder.rstrip("/").rpartition("/")[2]
    return job.endswith(SHELL_KINDS) and not job.startswith(folder) and name.encode() not in (project.read(job) or b"")


def _is_named_by_nobody(project: Project, path: str, stem: str) -> bool:
    return not any(True for _ in _naming(project, path, stem, kinds=_KINDS))


def _naming(project: Project, path: str, stem: str, *, kinds: tuple[str, ...]) -> Iterator[str]:
    word = re.compile(rb"(?<!\w)" + re.escape(stem.encode()) + rb"(?!\w)")
    holding = (p for p in project.files_containing(stem.encode(), kinds=kinds) if p != path)
    return (p for p in holding if word.search(project.read_text(p) or b""))
