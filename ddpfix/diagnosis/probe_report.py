"""What a probe says on the screen, behind the program's own output."""

from __future__ import annotations

from collections.abc import Iterator

from codemods.api.evidence import Observed
from ddpfix.diagnosis.probe import FRAMEWORKS, Probe, short


def lines(found: Probe, out: str) -> Iterator[str]:
    """The report, a line each; `out` is the evidence file. The last line says how it ended."""
    for note in found.notes:
        yield f"  {note}"
    for seen in found.evidence.observed:
        yield from _model(seen)
    for name in found.idle:
        yield f"{name}: wrapped, but no backward pass led to its parameters"
    yield _last(found, out)


def _model(seen: Observed) -> Iterator[str]:
    at = f", {seen.places[-1][0]}:{seen.places[-1][1]}" if seen.places else ""
    yield f"{seen.model} ({FRAMEWORKS.get(seen.framework, seen.framework)}{at}), {seen.steps} steps:"
    counts = dict(seen.counts)
    if seen.never:
        yield f"  no path to the loss in any step: {short(seen.never, 12)}"
    by_count: dict[int, list[str]] = {}
    for name in seen.sometimes:
        by_count.setdefault(counts.get(name, 0), []).append(name)
    for times, names in sorted(by_count.items(), reverse=True):
        yield f"  no path to the loss in {times} of {seen.steps} steps: {short(names, 12)}"
    if not seen.never and not seen.sometimes:
        yield "  every parameter had a path to the loss in each step"
    if seen.outputs:
        yield "  returned, but not used by the loss: " + ", ".join(seen.outputs[:12])
    if seen.reentrant:
        yield "  a reentrant checkpoint hides a part of the graph: there the gradients were looked at"
    missed = ", ".join(f"{chance:.1%} for one in {round(1 / p)} steps" for p, chance in seen.missed)
    yield f"  chance of having missed a branch: {missed}"


def _last(found: Probe, out: str) -> str:
    if not found.started:
        return "ddpfix: nothing was seen: the program's Python did not load what PYTHONPATH names (python -I, -E or -S?)"
    rows = found.evidence.observed
    steps = max((o.steps for o in rows), default=0)
    how = f"stopped by ddpfix after {steps} steps" if found.stopped else "the program ended by itself"
    if found.crashed:
        how = f"the program failed (status {found.exit_status})"
    if not rows:
        return f"ddpfix: {how}; no backward pass of a wrapped model was seen, so no evidence was written. {_todo(found)}"
    unused = sum(len(o.parameters) for o in rows)
    verdict = f"{unused} parameters were left out" if unused else "no parameter was left out"
    return f"ddpfix: {how}; {verdict}; written to {out}: `ddpfix apply --evidence {out}` uses it"


def _todo(found: Probe) -> str:
    if found.idle or found.crashed:
        return ""
    return "If the program wraps its model only under torchrun, give that: -- torchrun train.py"
