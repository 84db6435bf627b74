"""Scripts whose name a command puts together: `torchrun cmd/train_$task.py` starts each file that the name fits."""

from __future__ import annotations

import re

from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_VARIABLE = lazy(r"\$(?:\{\w+\}|\w+)")
_WORD = lazy(r"[A-Za-z]{3}")
_FOLDER_OF_A_VARIABLE = lazy(r"^(?:\.{1,2}/|[^/]*\$[^/]*/)+")


def files_like(project: Project, written: str) -> tuple[str, ...]:
    """The Python files that the path of a script may be, with its variables; none where no word of the name is written out."""
    if not written:
        return ()
    plain = _FOLDER_OF_A_VARIABLE.sub("", written)
    stem = plain.rpartition("/")[2].removesuffix(".py")
    if "$" in _VARIABLE.sub("", plain) or _WORD.search(_VARIABLE.sub(" ", stem)) is None:
        return ()
    fixed = [re.escape(part) for part in _VARIABLE.split(plain)]
    wanted = re.compile(rf"(?:.*/)?{r'[^/]*'.join(fixed)}")
    return tuple(p for p in sorted(project.python_files) if wanted.fullmatch(p))
