"""What one run showed, cut down to what is told: plain values that go into JSON and back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ddpfix.prove import compare
from ddpfix.prove.on_cpu import failed_at
from ddpfix.prove.ranks import Ended, RankEnd
from ddpfix.prove.traces import Call, Place, Round, Trace, with_text

GROUPS = {"new_group", "split_group"}


@dataclass(frozen=True, slots=True)
class Wrong:
    """What makes a run not right. cause: what the traces show of why; its numbers may be others in each run."""

    what: str
    cause: str = ""

    def __str__(self) -> str:
        return f"{self.what} ({self.cause})" if self.cause else self.what


@dataclass(frozen=True, slots=True)
class Seen:
    """A run, as it is told. ended: one line. stood: of each rank, where it stood or failed. wrong: what makes it not right.

    order: where the collectives first differ, a line a rank. collectives: how many each rank issued. observed: False where a
    run that ended well showed nothing that ranks could disagree on.
    """

    outcome: str
    ended: str
    seconds: float
    steps: int
    status: tuple[int | None, ...]
    stood: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    collectives: tuple[int, ...] = ()
    weights: str = ""
    metrics: str = ""
    unused: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    wrong: tuple[Wrong, ...] = ()
    error: str = ""
    samples: tuple[str, ...] = ()
    observed: bool = True

    @property
    def right(self) -> bool:
        return not self.wrong


def look(ended: Ended, cwd: Path) -> Seen:
    """What a run of the program in `cwd` showed."""
    weights = compare.weights_that_differ(ended.traces)
    metrics = compare.metrics_that_differ(ended.traces)
    divergence = compare.first_divergence(ended.traces)
    groups = any(c.op in GROUPS for t in ended.traces for c in t.calls)
    order = _order(divergence, cwd) if divergence and not (groups and ended.outcome == "completes") else ()
    wrong = []
    if ended.outcome != "completes":
        wrong.append(Wrong(_ended(ended)))
    elif order:
        wrong.append(Wrong("the ranks do not issue the same collectives"))
    if weights:
        wrong.append(Wrong("the ranks end with other weights", compare.why_weights_differ(ended.traces)))
    # one for each: a metric that the fixes repair must not make those that are left look new
    wrong += [Wrong(f"the logged metric {d.name} differs between the ranks") for d in metrics]
    rounds = compare.epochs(ended.traces[0]) if ended.traces else ()
    if any(compare.same_order(r) for r in rounds):
        wrong.append(Wrong("each epoch has the samples in the same order"))
    return Seen(
        outcome=ended.outcome,
        ended=_ended(ended),
        seconds=round(ended.seconds, 1),
        steps=ended.steps(),
        status=tuple(r.status for r in ended.ranks),
        stood=tuple(map(partial(_stood, cwd=cwd), ended.ranks, ended.traces)) if ended.outcome != "completes" else (),
        order=order,
        collectives=tuple(len(t.calls) for t in ended.traces),
        weights=_weights(ended, weights),
        metrics=_metrics(ended, metrics),
        unused=tuple(text for u in compare.unused_parameters(ended.traces) for text in _unused(u)),
        notes=_notes(ended),
        wrong=tuple(wrong),
        error=_error(ended) if ended.outcome == "error" else "",
        samples=tuple(_samples(r, cwd) for r in rounds),
        observed=ended.outcome != "completes" or any(t.calls or t.metrics for t in ended.traces) or _compared(ended),
    )


def _ended(ended: Ended) -> str:
    stopped = {t.stopped for t in ended.traces}
    if ended.outcome == "completes":
        return f"stopped after {max(stopped)} steps" if stopped != {0} and stopped else "completes"
    if ended.outcome == "error":
        failed = next(r for r in ended.ranks if r.status and not r.waited)
        how = f"exit status {failed.status}" if (failed.status or 0) > 0 else f"killed by signal {-(failed.status or 0)}"
        return f"rank {failed.rank} fails, {how}"
    if ended.outcome == "hang" and all(r.status is not None for r in ended.ranks):
        return "hangs: the ranks wait in different places, which gloo ends with an error"
    words = {"hang": "hangs", "timeout": "not done in time", "memory": "took more memory than allowed"}
    return words[ended.outcome]


def _stood(rank: RankEnd, trace: Trace, cwd: Path) -> str:
    if rank.stood_at:
        after = " (where gloo gave up)" if rank.waited else ""
        return f"rank {rank.rank} at {_line(rank.stood_at)}{after}"
    if rank.status == 0:
        return f"rank {rank.rank} had ended"
    if rank.status and (at := failed_at(rank, trace, cwd)):
        return f"rank {rank.rank} failed at {_line(at)}"
    return f"rank {rank.rank}: " + ("killed where it was" if rank.status is None else f"exit status {rank.status}")


def _line(place: Place) -> str:
    return f"{place}" + (f" `{place.text}`" if place.text else "")


def _order(divergence: compare.Divergence, cwd: Path) -> tuple[str, ...]:
    first = f"collective {divergence.number}:"
    return (first, *(f"rank {rank} {_call(call, cwd)}" for rank, call in divergence.calls.items()))


def _call(call: Call | None, cwd: Path) -> str:
    if call is None:
        return "issues none"
    via = f" by {call.via}" if call.via and call.at else ""
    at = f" at {_line(with_text(call.at, cwd))}" if call.at else f" in {call.via or 'a library'}"
    return f"{call.op}{f' of {call.what}' if call.what else ''}{at}{via}"


def _compared(ended: Ended) -> bool:
    """True where every rank has weights to compare."""
    return all(t.weights for t in ended.traces)


def _weights(ended: Ended, differing: tuple[compare.Disagreement, ...]) -> str:
    if not _compared(ended):
        return "not seen: no wrapped model reached its end"
    if not differing:
        return "agree"
    names = ", ".join(d.name for d in differing[:4])
    return f"differ in {len(differing)}: {names}" + (", …" if len(differing) > 4 else "")


def _metrics(ended: Ended, differing: tuple[compare.Disagreement, ...]) -> str:
    if not any(t.metrics for t in ended.traces):
        return "none were seen"
    if not differing:
        return "agree: " + ", ".join(sorted({n for t in ended.traces for n in t.metrics})[:8])
    return "\n".join(f"{d.name} differs: {_by_rank(d.values)}" for d in differing[:8])


def _samples(rounds: tuple[Round, ...], cwd: Path) -> str:
    at = rounds[-1].at
    where = f" at {_line(with_text(at, cwd))}" if at else ""
    order = "the same order" if compare.same_order(rounds) else "another order"
    return f"{order} in each of {len(rounds)} epochs{where}"


def _by_rank(values: Mapping[int, float | str | None]) -> str:
    return ", ".join(f"rank {r} {v:.6g}" if isinstance(v, float) else f"rank {r} {v or 'none'}" for r, v in values.items())


def _unused(unused: compare.UnusedParameters) -> list[str]:
    out = []
    if unused.never:
        out.append("no gradient ever: " + _short(unused.never))
    if unused.sometimes:
        out.append("no gradient in some steps or on some ranks: " + _short(unused.sometimes))
    return out


def _short(names: tuple[str, ...]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def _notes(ended: Ended) -> tuple[str, ...]:
    notes = dict.fromkeys(n for t in ended.traces for n in t.notes)
    if not all(t.started for t in ended.traces):
        notes["a rank ran untraced: its Python did not load what PYTHONPATH names"] = None
    return tuple(notes)


_NOISE = re.compile(r"^\s*(\[rank\d+\]:)?\s*(\[W|warn|terminate called)|Exception ignored")


def _error(ended: Ended) -> str:
    """The exception of the rank that failed first by itself, else what its traceback ends with."""
    failed, trace = next((r, t) for r, t in zip(ended.ranks, ended.traces, strict=True) if r.status and not r.waited)
    if trace.failed:
        return str(trace.failed).partition("\n")[0][:300]
    lines = [t.strip() for t in failed.stderr.splitlines() if t.strip() and not _NOISE.search(t)]
    said = [t for t in lines if re.match(r"(\[rank\d+\]:\s*)?[\w.]+(Error|Exception|Interrupt|Warning)\b", t)]
    return (said or lines or [""])[-1][:300]
