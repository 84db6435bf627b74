"""What the YAML files of a program say: those that its commands name, or those near by that no command gives to another."""

from __future__ import annotations

import re
from posixpath import basename, dirname

from codemods.analysis.job_files.documented_starts import script_names
from codemods.files.text_entries import Table, tables
from codemods.files.text_file import SHELL_KINDS, YAML_KINDS, TextFile
from codemods.store.project import Project

_TEXTS = (*SHELL_KINDS, ".md", ".rst", ".txt")
_GIVEN = re.compile(r"[\w./-]+\.ya?ml\b")
_SCRIPT = re.compile(r"[\w./-]+\.py\b")
_MOST = 60


def set_values(project: Project, program: str, key: str) -> tuple[str, ...]:
    """The values of a key in the settings of a program, "" for none; nothing where no file of its settings has the key."""
    found = (e for t in _tables(project, program) for e in t.entries if e.key == key)
    return tuple("" if e.kind == "null" else e.value or e.kind for e in found)


def keys_below(project: Project, program: str, key: str) -> frozenset[str] | None:
    """The keys below a key, in all settings of a program; None where one of them has something else there, or none has it."""
    found: set[str] = set()
    seen = False
    for table in _tables(project, program):
        entry = table.entry(key)
        if entry is not None and entry.kind not in ("mapping", "null"):
            return None
        seen |= entry is not None
        if any(use[-1:] == (key,) for use in table.uses):
            found |= table.keys
    return frozenset(found) if seen else None


def _tables(project: Project, program: str) -> list[Table]:
    files = (project.module(path) for path in _settings(project, program))
    return [t for f in files if isinstance(f, TextFile) for t in tables(f)]


def _settings(project: Project, program: str) -> tuple[str, ...]:
    def build() -> tuple[str, ...]:
        named = _named(project)
        own = {name for script in script_names(program) for name in named.get(script, ())}
        paths = [p for p in project.files if p.endswith(YAML_KINDS)]
        found = tuple(sorted(p for p in paths if basename(p) in own))
        if not found:
            others = {name for names in named.values() for name in names}
            near = f"{dirname(program)}/".lstrip("/")
            found = tuple(sorted(p for p in paths if p.startswith(near) and basename(p) not in others))
        return found if len(found) <= _MOST else ()

    return project.keep(("settings of a program", program), build)


def _named(project: Project) -> dict[str, set[str]]:
    """Script -> the YAML files that commands name beside it, by their last names."""

    def build() -> dict[str, set[str]]:
        out: dict[str, set[str]] = {}
        for path in {p for word in (b".yaml", b".yml") for p in project.files_containing(word, kinds=_TEXTS)}:
            text = (project.read(path) or b"").decode("utf-8", "replace").replace("\\\n", " ")
            for line in text.split("\n"):
                given = {basename(name) for name in _GIVEN.findall(line)}
                for script in _SCRIPT.findall(line) if given else ():
                    out.setdefault(basename(script), set()).update(given)
        return out

    return project.keep("settings that commands name", build)
