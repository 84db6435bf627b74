"""What is found in one call of the Trainer, or in one mapping for it, as few reports: an edit that cures nothing alone is none.

Where another argument, that only a person can replace, is an error on every version on which this one is, the call fails after
the edit as before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from codemods.analysis.version_pins import Version
from codemods.api.findings import Applicability, Finding
from codemods.runtime.record import record, replace


@record
class Told:
    """argument: its name, for people. gone: the first version on which it is an error."""

    argument: str
    gone: Version
    finding: Finding


def together(found: Iterable[Told]) -> Iterator[Finding]:
    """The findings of one call: what would cure nothing alone is named by the one that has to be fixed by hand."""
    every = list(found)
    by_hand = [t for t in every if t.finding.applicability is Applicability.DISPLAY]
    first = min(by_hand, key=lambda t: t.gone, default=None)
    if first is None:
        yield from (t.finding for t in every)
        return
    alone = [t for t in every if t not in by_hand and t.gone >= first.gone and not _is_of_a_group(t.finding)]
    for told in every:
        if told is first and alone:
            also = ", ".join(f"{t.argument} from {'.'.join(map(str, t.gone))} on" for t in alone)
            word = "is" if len(alone) == 1 else "are"
            yield replace(told.finding, message=f"{told.finding.message}, and so {word} {also}")
        elif told not in alone:
            yield told.finding


def _is_of_a_group(found: Finding) -> bool:
    """True for an edit that has to be made together with others elsewhere."""
    return found.fix is not None and bool(found.fix.group)
