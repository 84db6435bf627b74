"""Which of the changed places a command comes to, and which options it lacks for the others."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence

from codemods.files.source import SourceModule
from codemods.runtime.record import record
from codemods.store.project import Project
from ddpfix.summary.changed_places import changed_statements
from ddpfix.summary.needed_options import NOWHERE, NeededOption, Way


@record
class Place:
    """A changed place. line: 0 where the whole file is meant. statement: what is run there, None where that is not known."""

    path: str
    line: int
    statement: tuple[SourceModule, ast.stmt] | None = None


@record
class Run:
    """reached: places that nothing known leads the command past. lacking: others, with the options that are missing."""

    reached: frozenset[Place]
    lacking: Mapping[Place, tuple[NeededOption, ...]]

    def needs(self, seen: set[Place]) -> tuple[str, ...]:
        """`main.py:79 needs --resume`, of the places that are not seen; one for each set of options."""
        by_options: dict[str, list[Place]] = {}
        for place, options in self.lacking.items():
            if place not in seen:
                by_options.setdefault(" ".join(o.text for o in options), []).append(place)
        return tuple(f"{min(p.path for p in at)}:{min(p.line for p in at)} needs {text}" for text, at in by_options.items())


def changed_places(
    project: Project, read: Callable[[str], bytes | None], changed: Mapping[str, bytes]
) -> dict[str, tuple[Place, ...]]:
    """By the path of each changed file. project: with the new text; read: the old one."""
    out: dict[str, tuple[Place, ...]] = {}
    for path, after in changed.items():
        found = changed_statements(project, path, read(path), after)
        out[path] = tuple(Place(path, s.lineno, (module, s)) for module, s in found) or (Place(path, 0),)
    return out


def come_to(way: Way, places: Sequence[Place], start: tuple[SourceModule, ast.Call] | None) -> Run:
    """What a command runs that gives the program these options. start: where the program itself starts its processes."""
    first = way.lacks(*start) if start is not None else ()
    lacking: dict[Place, tuple[NeededOption, ...]] = {}
    for place in places:
        found = (*first, *(way.lacks(*place.statement) if place.statement is not None else ()))
        if found:
            lacking[place] = tuple(dict.fromkeys(found))
    reached = frozenset(places) - frozenset(lacking)
    return Run(reached, {place: needs for place, needs in lacking.items() if NOWHERE not in needs})
