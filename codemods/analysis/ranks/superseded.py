"""Files that a newer one has taken the place of: `train_bak.py` beside `train.py`, which no program and no text names."""

from __future__ import annotations

import re

from codemods.analysis.ranks.unused import ELSEWHERE
from codemods.late_pattern import late
from codemods.project import Project

_COPY = late(r"^(?P<plain>.*\w)(?:[-_. ](?:bak|backup|old|orig|copy)\d*|(?: -)? copy)(?: ?\(\d+\))?$", re.IGNORECASE)
_KINDS = tuple(dict.fromkeys((".py", ".ipynb", *ELSEWHERE, ".json", ".md", ".txt", ".rst")))


def is_superseded(project: Project, path: str) -> bool:
    """True for a copy that is kept beside the file itself: nobody runs it, and its noise is heard by nobody."""
    folder, _, name = path.rpartition("/")
    stem = name.removesuffix(".py")
    found = _COPY.search(stem) if name.endswith(".py") else None
    if found is None or "/".join(filter(None, (folder, f"{found['plain']}.py"))) not in project.files:
        return False
    return project.keep(("superseded", path), lambda: _is_named_by_nobody(project, path, stem))


def _is_named_by_nobody(project: Project, path: str, stem: str) -> bool:
    word = re.compile(rb"(?<!\w)" + re.escape(stem.encode()) + rb"(?!\w)")
    named = (p for p in project.files_containing(stem.encode(), kinds=_KINDS) if p != path)
    return not any(word.search(project.read_text(p) or b"") for p in named)
