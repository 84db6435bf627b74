"""Which of the changed places a command comes to, and which options it lacks for the others."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping, Sequence

from codemods.files.source import SourceModule
from codemods.runtime.record import record
from codemods.store.project import Project
from ddpfix.summary.changed_places import changed_statements
from ddpfix.summary.markdown import numbers
from ddpfix.summary.needed_options import NOWHERE, NeededOption
from ddpfix.summary.ways import Way


@record
class Place:
    """A changed place. line: 0 where the whole file is meant. statement: what is run there, None where that is not known."""

    path: str
    line: int
    statement: tuple[SourceModule, ast.stmt] | None = None


@record
class Run:
    """reached: places that the command is shown to come to. lacking: others, with the options that are missing, and with what no
    option answers.
    """

    reached: frozenset[Place]
    lacking: Mapping[Place, tuple[NeededOption, ...]]

    def needs(self, seen: set[Place]) -> tuple[str, ...]:
        """`main.py:79, 83 needs --resume`, of the places that are not seen; one for each set of options in a file.

        A place that needs what no option gives is not told of: a test in the code says nothing to who starts the program.
        """
        by_options: dict[tuple[str, tuple[NeededOption, ...]], list[int]] = {}
        for place, options in self.lacking.items():
            if place not in seen and all(option.shown for option in options):
                by_options.setdefault((place.path, options), []).append(place.line)
        return tuple(f"{path}:{numbers(lines)} needs {asked(options)}" for (path, options), lines in by_options.items())


def at(places: Collection[Place]) -> str:
    """`main.py:79, 83; model.py:5`; "" where whole files are meant."""
    by_path: dict[str, list[int]] = {}
    for place in sorted(places, key=lambda p: (p.path, p.line)):
        by_path.setdefault(place.path, []).append(place.line)
    return "; ".join(f"{path}:{numbers(lines)}" for path, lines in by_path.items() if all(lines))


def said_once(needs: Sequence[NeededOption]) -> list[NeededOption]:
    """Without `another --mode`, where `--mode test` is there."""
    to_give = {word for need in needs for word in need.words[:1]}
    return [need for need in needs if need.words or not need.shown or need.text.rpartition(" ")[2] not in to_give]


def asked(needs: Sequence[NeededOption]) -> str:
    """`--mode test --resume`."""
    return " ".join(need.text for need in said_once(needs))


def changed_places(
    project: Project, read: Callable[[str], bytes | None], changed: Mapping[str, bytes]
) -> dict[str, tuple[Place, ...]]:
    """By the path of each changed file. project: with the new text; read: the old one."""
    out: dict[str, tuple[Place, ...]] = {}
    for path, after in changed.items():
        found = changed_statements(project, path, read(path), after)
        out[path] = tuple(Place(path, s.lineno, (module, s)) for module, s in found) or (Place(path, 0),)
    return out


def come_to(way: Way, places: Sequence[Place], first: tuple[NeededOption, ...] = ()) -> Run:
    """What a command runs that gives the program these options. first: what it lacks for there to be several processes."""
    lacking: dict[Place, tuple[NeededOption, ...]] = {}
    for place in places:
        found = (*first, *(way.lacks(*place.statement) if place.statement is not None else ()))
        if found:
            lacking[place] = tuple(dict.fromkeys(found))
    reached = frozenset(places) - frozenset(lacking)
    return Run(reached, {place: needs for place, needs in lacking.items() if NOWHERE not in needs})
