"""What many places share is told once: a doubt that one line elsewhere would settle for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from codemods.api.findings import Evidence, Finding
from codemods.runtime.record import replace

SHOWN = 3  # other places that the message names; the evidence names all


def told_once(findings: Iterable[Finding]) -> list[Finding]:
    """The findings; of those with the same doubt only the first, which names the places of the others and what is new there."""
    found = list(findings)
    sharing: dict[tuple[str, str], list[Finding]] = {}
    for finding in found:
        if finding.doubt is not None and finding.fix is None:
            sharing.setdefault((finding.code, finding.doubt.key), []).append(finding)
    together = {id(group[0]): _as_one(group) for group in sharing.values() if len(group) > 1}
    folded = {id(f) for group in sharing.values() for f in group[1:]}
    return [together.get(id(f), f) for f in found if id(f) not in folded]


def _as_one(group: Sequence[Finding]) -> Finding:
    first, rest = group[0], group[1:]
    said = set(first.doubt.parts if first.doubt else ())
    new: list[str] = []
    alike: list[str] = []  # the places of which nothing more is said
    evidence = list(first.evidence)
    for finding in rest:
        parts = finding.doubt.parts if finding.doubt else ()
        more_here = [f"{_place(finding)}: {part}" for part in parts if part not in said]
        new += more_here
        alike += [] if more_here else [_place(finding)]
        said |= set(parts)
        evidence.append(Evidence("static", "; ".join(parts), finding.path, finding.span.line))
    shown = ", ".join(alike[:SHOWN])
    more = f" and {len(alike) - SHOWN} more" if len(alike) > SHOWN else ""
    message = "; ".join([first.message, *new, *([f"the same doubt at {shown}{more}"] if alike else [])])
    return replace(first, message=message, evidence=tuple(evidence))


def _place(finding: Finding) -> str:
    return finding.place
