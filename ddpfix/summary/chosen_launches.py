"""The fewest commands that come to all of the changed places."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from codemods.files.text_file import PYTHON_KINDS
from codemods.runtime.record import record, replace
from ddpfix.summary.context import Launch
from ddpfix.summary.needed_options import NeededOption
from ddpfix.summary.run_places import Place, Run, at, said_once


@record
class Candidate:
    """order: the best first. run: the changed places that it comes to, and what it lacks for the others. given: its options;
    stage: the sub-command, where it has one.
    """

    order: tuple[object, ...]
    run: Run
    launch: Launch
    script: str
    given: frozenset[str] = frozenset()
    stage: str = ""


def chosen(candidates: Sequence[Candidate], places: Collection[Place]) -> tuple[Launch, ...]:
    """The best first; each is shown to come to a changed place that no other does. What it lacks for others is said.

    places: all that were changed.
    """
    found = sorted(candidates, key=lambda c: c.order)
    out = _without_spare(_first_to_come(found))
    seen = {place for candidate in out for place in candidate.run.reached}
    for candidate in sorted(found, key=lambda c: _wanted(c.run, seen)):
        for needs, there in _by_needs(candidate.run, seen) if candidate not in out else ():
            if not seen.issuperset(there) and (completed := _completed(candidate, needs)) is not None:
                reached = candidate.run.reached | there
                rest = {place: lacks for place, lacks in candidate.run.lacking.items() if place not in reached}
                out.append(replace(completed, run=Run(reached, rest)))
                seen |= reached
    return tuple(_told(_without_spare(out), places, found))


def _by_needs(run: Run, seen: set[Place]) -> Iterator[tuple[tuple[NeededOption, ...], frozenset[Place]]]:
    """The places that it comes to with the same options in addition."""
    wanted = {place: needs for place, needs in run.lacking.items() if place not in seen}
    for needs in dict.fromkeys(wanted.values()):
        yield needs, frozenset(place for place, lacking in wanted.items() if lacking == needs)


def _told(found: Sequence[Candidate], places: Collection[Place], every: Sequence[Candidate]) -> Iterator[Launch]:
    """Of several commands, and where one does not come to all, it is said which lines each comes to, and what the others need.

    every: those that are not shown too, which may lack less for a line.
    """
    lacked = {place: needs for candidate in reversed(every) for place, needs in candidate.run.lacking.items()}
    left = set(places) - {place for candidate in found for place in candidate.run.reached}
    is_all = len(found) == 1 and not left
    for candidate in found:
        mine = {place: needs for place, needs in candidate.run.lacking.items() if place in left}
        left -= mine.keys()
        comes_to = () if is_all else (at(candidate.run.reached),)
        programs = tuple(sorted({place.path for place in (*candidate.run.reached, *mine)}))
        others = {place: needs for place, needs in lacked.items() if place in left and place.path in programs}
        left -= others.keys()
        mine |= others
        needs = Run(frozenset(), mine).needs(set())
        yield replace(candidate.launch, comes_to="".join(comes_to), needs=needs, programs=programs)


def _wanted(run: Run, seen: set[Place]) -> int:
    """How many options it lacks."""
    return sum(len(needs) for place, needs in run.lacking.items() if place not in seen)


def _first_to_come(found: Sequence[Candidate]) -> list[Candidate]:
    out: list[Candidate] = []
    seen: set[Place] = set()
    for candidate in found:
        new = candidate.run.reached - seen
        is_shown = any(candidate.script == other.script for other in out)
        if new and not (is_shown and all(_is_of_a_job_file(place) for place in new)):
            out.append(candidate)
        seen |= new
    return out


def _is_of_a_job_file(place: Place) -> bool:
    """Several job files that start one program are changed alike."""
    return not place.path.endswith(PYTHON_KINDS)


def _without_spare(found: list[Candidate]) -> list[Candidate]:
    """Without those whose places the later ones come to as well."""
    out = list(found)
    for candidate in reversed(found):
        others = {place for other in out if other is not candidate for place in other.run.reached}
        if candidate.run.reached <= others:
            out.remove(candidate)
    return out


def _completed(candidate: Candidate, needs: tuple[NeededOption, ...]) -> Candidate | None:
    """The command with the options that it lacks; None where their values are not known, or it has others."""
    launch = candidate.launch
    command, notes = launch.command, []
    for need in said_once(needs) if command else ():
        if not need.shown or not need.words or need.words[0] in candidate.given:
            return None
        option, *value = need.words
        if option:
            command = f"{command} {' '.join(need.words)}"
            notes.append(" ".join(need.words))
        elif candidate.stage:
            command = command.replace(f" {candidate.stage} ", f" {value[0]} ", 1)
            notes.append(f"{value[0]} in place of {candidate.stage}")
    if command == launch.command:
        return None
    short = ", ".join(filter(None, (launch.short, *notes)))
    return replace(candidate, launch=replace(launch, command=command, short=short))
