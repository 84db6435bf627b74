"""What `ddpfix tune` makes of each job, as a table; times stand in it only where somebody measured them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from ddpfix.summary.markdown import code, fence, prose, table


@dataclass(frozen=True, slots=True)
class Measured:
    """A run of some steps. seconds: for one optimizer step, None where it did not get that far, with `ended`.

    collectives: those that Python issues for a step (the gradients' own are not among them), None where none could be counted.
    """

    seconds: float | None
    ended: str
    collectives: float | None = None


@dataclass(frozen=True, slots=True)
class Configuration:
    """A job in one configuration. name: as it is, standard, fast. load: batch x accumulation x processes."""

    job: str
    name: str
    load: str
    logging: str
    workers: str
    measured: Measured | None = None


@dataclass(frozen=True, slots=True)
class TuningTable:
    """rows: the configurations of each job. notes: sentences below. command: what was measured, "" where nothing was."""

    rows: tuple[Configuration, ...]
    notes: tuple[str, ...] = ()
    command: str = ""
    steps: int = 0
    where: str = ""


HEADS = ("job", "configuration", "batch x accumulation x processes", "logging", "workers")
MEASURED = ("time a step", "speed-up", "collectives a step")


def cells(tuning: TuningTable) -> list[tuple[str, ...]]:
    """The table as texts, heads first; with the columns of what was measured only where something was."""
    measured = any(row.measured for row in tuning.rows)
    out: list[tuple[str, ...]] = [(*HEADS, *MEASURED) if measured else HEADS]
    for row in tuning.rows:
        first = next((r.measured for r in tuning.rows if r.job == row.job and r.measured), None)
        more = _measured(row.measured, first) if measured else ()
        out.append((row.job, row.name, row.load, row.logging, row.workers, *more))
    return out


def _measured(now: Measured | None, first: Measured | None) -> tuple[str, str, str]:
    if now is None:
        return "not measured", "", ""
    if now.seconds is None:
        return now.ended, "", ""
    faster = f"{first.seconds / now.seconds:.2f}" if first and first.seconds and now.seconds else ""
    collectives = "" if now.collectives is None else f"{now.collectives:.1f}"
    return f"{now.seconds * 1000:.0f} ms", faster, collectives


def section(tuning: TuningTable) -> list[str]:
    """The section of the summary."""
    heads, *rows = cells(tuning)
    out = ["## Configurations", "", *table(heads, [(code(r[0]), *map(prose, r[1:])) for r in rows]), ""]
    if tuning.command:
        out += [f"Measured over {tuning.steps} optimizer steps, the first two left out, {tuning.where}, as", ""]
        out += [*fence([f"ddpfix tune --measure {shlex.quote(tuning.command)}"], "sh"), ""]
    else:
        out += ["Nothing was measured: `ddpfix tune --measure COMMAND` puts times here.", ""]
    out += [f"- {prose(text)}" for text in tuning.notes]
    return [*out, ""] if tuning.notes else out


def as_text(tuning: TuningTable) -> str:
    """The table for a terminal."""
    rows = cells(tuning)
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([*lines, *_below(tuning.notes)]) + "\n"


def _below(notes: Sequence[str]) -> list[str]:
    return ["", *(f"- {text}" for text in notes)] if notes else []
