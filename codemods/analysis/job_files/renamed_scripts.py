"""Scripts that a launcher's command still names as they were called before: `train_big_patch.py`, where `train_patch.py` is."""

from __future__ import annotations

from collections.abc import Iterator
from posixpath import basename, dirname, join, normpath

from codemods.analysis.job_files.documented_starts import Start, is_program, script_names, starts
from codemods.analysis.job_files.named_files import leaves_its_folder, moved_to
from codemods.analysis.job_files.script_texts import script_text
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_WORDS = lazy(r"[a-z0-9]+")
_FETCHES = lazy(r"\bgit clone\b|\bwget\b|\bcurl\b|\bsubmodule\b")  # the script may come with another repository
_FEWEST = 2  # words that both names have: `train.py` is anybody's


def is_named_as_before(project: Project, path: str) -> bool:
    """True for a program that no command names, where one launches a script that is not there and can be no other one."""
    return path in project.keep("renamed scripts", lambda: frozenset(_renamed(project)))


def _renamed(project: Project) -> Iterator[str]:
    missing = {(s.job, s.written): s for s in starts(project) if s.several and s.launched and s.written and not s.path}
    there = frozenset(map(basename, project.python_files))
    gone = [s for s in missing.values() if s.script not in there]
    if not gone or ".gitmodules" in project.files:
        return
    named = {s.script for s in starts(project)}
    unnamed = [p for p in project.python_files if named.isdisjoint(script_names(p)) and is_program(project, p)]
    for start in gone:
        meant = [p for p in unnamed if _is_near(start, p)]
        if len(meant) == 1 and _stays(project, start):
            yield meant[0]


def _is_near(start: Start, path: str) -> bool:
    """True where one name has all words of the other, in the folder that the command names, from the root or from its text."""
    folder = dirname(start.written)
    if dirname(path) not in (normpath(folder) if folder not in ("", ".") else "", _below(dirname(start.job), folder)):
        return False
    old, new = (frozenset(_WORDS.findall(basename(name).removesuffix(".py").lower())) for name in (start.script, path))
    return len(old & new) >= _FEWEST and (old <= new or new <= old)


def _below(folder: str, written: str) -> str:
    found = normpath(join(folder, written))
    return "" if found == "." else found


def _stays(project: Project, start: Start) -> bool:
    """True for a command that runs where its text stands, which gets no other repository."""
    text = script_text(project, start.job)
    above = "\n".join(text.split("\n")[: max(0, start.line - 1)])
    return not leaves_its_folder(above) and not moved_to(above) and _FETCHES.search(above) is None
