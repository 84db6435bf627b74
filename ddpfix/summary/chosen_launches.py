"""The fewest commands that come to all of the changed places."""

from __future__ import annotations

from collections.abc import Sequence

from codemods.files.text_file import PYTHON_KINDS
from codemods.runtime.record import record, replace
from ddpfix.summary.context import Launch
from ddpfix.summary.needed_options import NeededOption
from ddpfix.summary.run_places import Place, Run


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


def chosen(candidates: Sequence[Candidate]) -> tuple[Launch, ...]:
    """The best first; each comes to a changed place that no other does, or says what it lacks for it."""
    found = sorted(candidates, key=lambda c: c.order)
    out = _without_spare(_first_to_come(found))
    seen = {place for candidate in out for place in candidate.run.reached}
    more: list[Candidate] = []
    for candidate in sorted(found, key=lambda c: _wanted(c.run, seen)):
        missed = {place: needs for place, needs in candidate.run.lacking.items() if place not in seen}
        if not missed:  # another command comes there as it is
            continue
        seen |= missed.keys()
        needs = next(iter(missed.values())) if len(set(missed.values())) == 1 else ()
        if candidate not in out and (completed := _completed(candidate, needs)) is not None:
            more.append(completed)
            continue
        told = replace(candidate, launch=replace(candidate.launch, needs=Run(frozenset(), missed).needs(set())))
        out = [c for c in out if c is not candidate]
        more.append(told)
    return tuple(candidate.launch for candidate in (*out, *more))


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
    for need in needs if command else ():
        if not need.words or need.words[0] in candidate.given:
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
