"""Why the safe fixes of a codemod may be made at these places: what holds everywhere, and what was seen here."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

from codemods.api.findings import Applicability, Evidence, Finding
from ddpfix.summary.places import codemod_of

SAFE = "safe"  # the kind of evidence that says why a fix is safe at its place
SEVERAL = "several"  # the kind that only shows that processes are meant
LONGEST = 200  # characters
MOST_FACTS = 3
FLAGS = "flags"  # the topic whose checks stand in a table of their own

Facts = dict[str, list[Evidence]]
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z`])")


def everywhere(key: str) -> str:
    """The first sentence of the codemod's section on safety, where it holds of each of its fixes: `Safe: …`; else "".

    `Safe where …` lists the cases of the codemod, of which a place is one: that is told by what was seen there.
    """
    codemod = codemod_of(key)
    safety = codemod.sections().get("Safety", "") if codemod else ""
    first = _SENTENCE.split(" ".join(textwrap.dedent(safety).split("\n\n")[0].split()))[0]
    return first if first.startswith("Safe: ") and len(first) <= LONGEST else ""


def seen(findings: Sequence[Finding]) -> tuple[Facts, Facts]:
    """(what makes the fixes safe here, what else was read): each text once with its places."""
    safe: Facts = {}
    others: Facts = {}
    for finding in findings:
        for evidence in finding.evidence:
            text = " ".join(evidence.text.split())
            if evidence.kind == SAFE:
                if finding.applicability is Applicability.SAFE:
                    safe.setdefault(text, []).append(evidence)
            elif evidence.kind != SEVERAL:
                others.setdefault(text, []).append(evidence)
    return safe, others


def in_words(key: str, findings: Sequence[Finding]) -> str:
    """Why the safe ones of these fixes may be made, as a sentence without places: for a commit message. "" where none is safe."""
    if not any(f.applicability is Applicability.SAFE for f in findings):
        return ""
    always, (safe, _) = everywhere(key), seen(findings)
    return joined(always, "; ".join(list(safe)[:MOST_FACTS]))


def joined(always: str, here: str) -> str:
    """What holds everywhere and what was seen here, as one sentence."""
    if always and here:
        return f"{always.removesuffix('.')}; {here}."
    return always or (f"Safe here: {here}." if here else "")
