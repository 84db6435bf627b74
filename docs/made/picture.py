"""The picture of the ranks on the page of a codemod: two lanes that run down, as in a summary.

Where the finding of the page's own example has lanes, it is these. For the others it is what a proof saw on two processes, before
and after.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence

from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Finding
from ddpfix.summary.markdown import plural
from ddpfix.summary.rank_flow import drawn, flow_of
from ddpfix.testing import findings_of
from tests.proofs.expectation import Proof, Run

WIDTH = 84  # of the words beside the lanes
_BLOCK = re.compile(r"^```(python|yaml|bash)\n(.*?)^```$", re.M | re.S)
_FILES = {"python": "module.py", "yaml": "config.yaml", "bash": "run.sh"}
_BESIDE = re.compile(r"# (requirements\.txt|run\.sh): (.+)\n")  # what another file of the example says


def told_of(codemod: DdpCodemod) -> list[Finding]:
    """What the codemod finds in the example of its page."""
    found = _BLOCK.search(codemod.sections()["Example"])
    assert found is not None
    language, source = found.groups()
    beside = _BESIDE.match(source)
    return findings_of(type(codemod), source, {beside[1]: beside[2]} if beside else {}, path=_FILES[language])


def lanes(findings: Sequence[Finding], proofs: Sequence[Proof]) -> list[str]:
    """The lines of the picture; none where neither the example nor a proof tells of two ranks."""
    flow = next((flow for finding in findings if (flow := flow_of(finding)) is not None), None)
    if flow is not None:
        return drawn(flow)
    for proof in sorted(proofs, key=_shows_less):
        after = proof.after or (proof.repaired.run if proof.repaired else None)
        if proof.before and after:
            return [*_run(proof.before, "before"), "", *_run(after, "after")]
    return []


def _shows_less(proof: Proof) -> int:
    """First a program whose ranks go two ways, then one that goes wrong on both alike, last one that only fails."""
    if proof.before and (proof.before.differ or proof.before.outcome == "hang"):
        return 0
    return 2 if proof.before and proof.before.outcome == "error" else 1


def _run(run: Run, when: str) -> Iterator[str]:
    """How the two ranks of a proof get on, and how they end."""
    yield f"rank 0 | rank 1   {when}"
    yield "│   │"
    for mark, words in _seen(run):
        yield from _stop(mark, "│   │", words)
    if run.outcome == "hang":
        yield from _stop("■╌╌╌┆", "     ", f"hangs: a rank waits at {run.stands_at[0]}" if run.stands_at else "hangs")
    elif run.outcome == "error":
        yield from _stop("✕   ✕", "     ", f"fails: {run.error}" if run.error else "fails")
    else:
        yield "▼   ▼   the run ends"


def _seen(run: Run) -> Iterator[tuple[str, str]]:
    """What both ranks have, and what each has for itself."""
    if run.differ:
        yield "●   ○", f"each rank has its own: {', '.join(run.differ)}"
    if run.agree:
        yield "●   ●", f"the same on both: {', '.join(run.agree)}"
    for key, value in run.values.items():
        yield "●   ●", f"{key} is {value}"
    for text, count in run.printed.items():
        words = text.replace("`", "")
        mark = "●   ●" if count > 1 else "●   │" if count else "│   │"
        yield mark, f"in {plural(count, 'line')}: {words}" if count else f"not printed: {words}"
    for call, calls in run.collectives.items():
        most = " or more" if calls.most is None else "" if calls.most == calls.least else f" to {calls.most}"
        yield "◆───◆", f"{call}: {calls.least}{most} calls"


def _stop(mark: str, below: str, words: str) -> Iterator[str]:
    for number, row in enumerate(textwrap.wrap(words, WIDTH, break_on_hyphens=False)):
        yield f"{below if number else mark}   {row}"
