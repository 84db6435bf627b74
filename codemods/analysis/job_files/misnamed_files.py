"""Scripts and configurations that a launcher's command names and no folder of the repository has, while a near name is there.

Where the command is started from does not matter: no folder at all has such a path. `train_semi_city.py` stands for a file that
was renamed to `train_semi.py`, `configs/ds.json` for `config/ds.json`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from posixpath import basename, dirname, splitext

from codemods.analysis.job_files.launches import Launch
from codemods.files.shell_words import Word
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_START = lazy(r"(?:\$\{?\w+\}?/|\.{1,2}/)+")
_PLAIN = lazy(r"[\w.-]+(?:/[\w.-]+)*$")
_OPTIONS = lazy(r"--?(?:\w+[-_])?(?:config|cfg|deepspeed|ds_config|config[-_](?:file|path))$")
_KINDS = (".json", ".yaml", ".yml")
_PLACEHOLDER = lazy(r"your|path[_-]?to|xxx|example|placeholder|<|\.\.\.|^script\.py$|^main\.py$", 2)
_FETCHED = rb"(?m)^[^\n]*\b(?:wget|curl|cp|mv|ln|download|git clone|cat|sed)\b[^\n]*"
_FEWEST = 4  # letters that two names share


@record
class Misnamed:
    """word: of the command. near: the file that is there."""

    word: Word
    near: str


def misnamed_files(project: Project, launch: Launch) -> Iterator[Misnamed]:
    """The script, and what options of the script name as their configuration."""
    words = launch.started
    if words and not launch.has("no_python", "m", "module", "run_path") and _text(words[0]).endswith(".py"):
        if near := _near(project, launch.file.path, _text(words[0])):
            yield Misnamed(words[0], near)
    for option, value in pairwise(words):
        if _OPTIONS.match(_text(option)) and _text(value).endswith(_KINDS):
            if near := _near(project, launch.file.path, _text(value)):
                yield Misnamed(value, near)


def _text(word: Word) -> str:
    return word.value if word.value is not None else word.raw.strip("\"'")


def _near(project: Project, named_in: str, path: str) -> str:
    """The one file of the repository that may be meant, "" where the path is there, or may come from elsewhere."""
    tail = _START.sub("", path, count=1)
    if path.startswith("/") or not _PLAIN.match(tail) or "$" in tail or _PLACEHOLDER.search(tail):
        return ""
    if any(p == tail or p.endswith(f"/{tail}") for p in project.files):
        return ""
    folder, name = dirname(tail), basename(tail)
    found = [p for p in project.files if _is_near(p, folder, name)]
    if len(found) != 1 or not _go_together(dirname(named_in), found[0], folder) or _comes_from_elsewhere(project, name):
        return ""
    return found[0]


def _is_near(path: str, folder: str, name: str) -> bool:
    """The same name in a folder of nearly the same name, or a name that goes on in the same folder."""
    there, (stem, kind) = dirname(path), splitext(basename(path))
    if basename(path) == name and folder:
        other = basename(there)
        return dirname(folder) in ("", dirname(there)[-len(dirname(folder)) :]) and _one_goes_on(other, basename(folder), "")
    wanted, wanted_kind = splitext(name)
    if kind != wanted_kind or kind != ".py" or (folder and there != folder and not there.endswith(f"/{folder}")):
        return False
    return _one_goes_on(stem, wanted, "_-.")


def _one_goes_on(one: str, other: str, between: str) -> bool:
    short, long = sorted((one, other), key=len)
    if len(short) < _FEWEST or not long.startswith(short) or short == long:
        return False
    return long[len(short)] in between if between else long[len(short) :] in ("s", "es", "uration", "urations", "_files")


def _go_together(one: str, found: str, folder: str) -> bool:
    """True where the job file stands in the folder from which the path counts, or that in the job file's: one project."""
    other = dirname(found)
    for _ in folder.split("/") if folder else ():
        other = dirname(other)
    return not one or not other or f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")


def _comes_from_elsewhere(project: Project, name: str) -> bool:
    """True where a text fetches or makes such a file, git leaves it out, or parts of the tree are other repositories."""
    if ".gitmodules" in project.files:
        return True
    word = re.escape(name.encode())
    kinds = (".md", ".rst", ".txt", ".sh", "Makefile", "Dockerfile", ".gitignore", ".py", ".slurm", ".sbatch")
    for path in project.files_containing(name.encode(), kinds=kinds):
        data = project.read(path) or b""
        if path.endswith((".gitignore", ".py")) or re.search(_FETCHED + word, data):
            return True
    return False
