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
    r"(?:^|/)(?:(?:legacy|deprecated|obsolete|archived?|backups?|_?old(?:er)?|_?unused|trash|attic|outdated|retired)"
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
    return path.endswith(".py") and is_copy_beside(project, path)


def is_copy_beside(project: Project, path: str) -> bool:
    """True for `train copy.py` or `run_old.sh` beside the file itself, where no text and no code names it."""
    folder, _, name = path.rpartition("/")
    kind = next((kind for kind in (".py", *SHELL_KINDS[:-1]) if name.endswith(kind)), "")
    stem = name.removesuffix(kind)
    found = _COPY.search(stem) if kind else None
    if found is None or "/".join(filter(None, (folder, f"{found['plain']}{kind}"))) not in project.files:
        return False
    return project.keep(("superseded", path), lambda: _is_named_by_nobody(project, path, stem))


def _is_left_inside(project: Project, path: str, folder: str) -> bool:
    """True where no code outside the folder names the file, and no command starts it: what notes say of it runs nothing.

    A job file outside that never names the folder means a file of this name that has gone: it moved in here. One that was put
    away with the file is itself run by nobody, unless somebody outside names it; what the folder's own notes tell people holds.
    """
    names = script_names(path)
    jobs = {s.job for s in starts(project) if s.script in names and s.path in ("", path)}
    if any(not _means_another_place(project, job, folder) and not _is_put_away(project, job, folder) for job in jobs):
        return False
    stem = path.rpartition("/")[2].removesuffix(".py")
    named = _naming(project, path, stem, kinds=_CODE)
    return all(p.startswith(folder) or _means_another_place(project, p, folder) for p in named)


def _means_another_place(project: Project, job: str, folder: str) -> bool:
    """True for a job file that lies outside of a folder and does not name it."""
    name = folder.rstrip("/").rpartition("/")[2]
    return job.endswith(SHELL_KINDS) and not job.startswith(folder) and name.encode() not in (project.read(job) or b"")


def _is_put_away(project: Project, job: str, folder: str) -> bool:
    """True for a job file in the folder which no text and no code outside of it names, but for one of the same name there.

    Where all of the code lies in the folder, it is what the repository has.
    """
    if not job.startswith(folder) or not job.endswith(SHELL_KINDS):
        return False
    if all(p.startswith(folder) for p in project.python_files):
        return False
    name = job.rpartition("/")[2]
    outside = [p for p in _naming(project, job, name, kinds=_KINDS) if not p.startswith(folder)]
    if not any(p.rpartition("/")[2] == name for p in project.files if not p.startswith(folder)):
        return not outside
    here = folder.rstrip("/").rpartition("/")[2].encode()
    return not any(here in (project.read(p) or b"") for p in outside)


def _is_named_by_nobody(project: Project, path: str, stem: str) -> bool:
    return not any(True for _ in _naming(project, path, stem, kinds=_KINDS))


def _naming(project: Project, path: str, stem: str, *, kinds: tuple[str, ...]) -> Iterator[str]:
    word = re.compile(rb"(?<!\w)" + re.escape(stem.encode()) + rb"(?!\w)")
    holding = (p for p in project.files_containing(stem.encode(), kinds=kinds) if p != path)
    return (p for p in holding if word.search(project.read_text(p) or b""))
