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
        named = [*_given(texts[script], found[1])] if found[1].isidentifier() else []
        return f"{script}:{_line(texts[script], named[0].start(1) if len(named) == 1 else found.start(1))}"
    given = list(_assigned(texts, found[1]))
    return given[0] if len(given) == 1 else ""


def has_two_devices(project: Project, script: str) -> bool:
    """True where the script's only Trainer is given two, as a number or by a name that it gives that number once."""
    text = (project.read(script) or b"").decode("utf-8", "replace")
    handed = _HANDED.findall(text)
    values = [found[1] for found in _given(text, handed[0])] if len(handed) == 1 else []
    return handed == ["2"] or values == ["2"]


def _given(text: str, name: str) -> Iterator[re.Match[str]]:
    return re.finditer(rf"^[ \t]*{re.escape(name)}[ \t]*=[ \t]*([^\s#]+)", text, re.M)


def _assigned(texts: dict[str, str], name: str) -> Iterator[str]:
    """Where a setting such as `cfg.train.devices` is given a value."""
    wanted = re.compile(rf"^[ \t]*({re.escape(name)})[ \t]*=(?!=)", re.M)
    for path, text in texts.items():
        yield from (f"{path}:{_line(text, match.start(1))}" for match in wanted.finditer(text))


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1
