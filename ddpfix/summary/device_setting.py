"""Where a program that starts its processes itself takes their number from, as `config.py:12`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from codemods.analysis.loading.same_program import whole_program
from codemods.store.project import Project

_HANDED = re.compile(r"\bTrainer\((?:[^()]|\([^()]*\))*?\b(?:devices|gpus)\s*=\s*([\w.\"']+)")
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.\w+)+$")


def device_setting(project: Project, script: str) -> str:
    """The one line that gives the number of the script's only Trainer; "" where it is not one."""
    texts = {path: (project.read(path) or b"").decode("utf-8", "replace") for path in sorted(whole_program(project, script))}
    handed = list(_HANDED.finditer(texts[script]))
    if len(handed) != 1:
        return ""
    (found,) = handed
    if not _DOTTED.match(found[1]):
        return f"{script}:{_line(texts[script], found.start(1))}"
    given = list(_assigned(texts, found[1]))
    return given[0] if len(given) == 1 else ""


def _assigned(texts: dict[str, str], name: str) -> Iterator[str]:
    """Where a setting such as `cfg.train.devices` is given a value."""
    wanted = re.compile(rf"^[ \t]*({re.escape(name)})[ \t]*=(?!=)", re.M)
    for path, text in texts.items():
        yield from (f"{path}:{_line(text, match.start(1))}" for match in wanted.finditer(text))


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1
