"""The pages of the codemods: what `ddpfix explain` says, with the picture of the ranks, and levels and proofs in a table."""

from __future__ import annotations

from collections.abc import Sequence

from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Finding
from ddpfix import explain
from ddpfix.catalog import all_codemods
from ddpfix.summary.markdown import code, fence, table
from docs.made import picture
from tests.proofs import expectation, harness
from tests.proofs.expectation import Proof, Run
from tests.proofs.page import described

LEVELS = {"safe": "safe", "unsafe": "unsafe", "display": "reported"}
SAW = "What programs of this kind did on two processes, before and after ([all proofs](../proofs.md)):"
LANES = "The two lanes are ranks, from the top to the bottom."


def pages() -> dict[str, str]:
    """docs-relative path -> text."""
    proofs = [expectation.load(folder) for folder in harness.folders()]
    out = {}
    for one in all_codemods():
        own = [p for p in proofs if (p.code or (p.refused.code if p.refused else "")) == one.code]
        findings = picture.told_of(one)
        lanes = picture.lanes(findings, own)
        shown = {"Example": ("The ranks", "\n".join([LANES, "", *fence(lanes, "text")]))} if lanes else {}
        levels = {"Refuses": ("Levels and proofs", "\n".join([SAW, "", *_levels(one, findings, own)]))}
        out[f"codemods/{one.rule_name()}.md"] = explain.page(one, {**shown, **levels})
    return out


def _levels(codemod: DdpCodemod, findings: Sequence[Finding], proofs: Sequence[Proof]) -> list[str]:
    example = sorted({LEVELS[f.applicability.value] for f in findings})
    rows = [(", ".join(example), "the example above", "", ""), *(_row(codemod, proof) for proof in proofs)]
    return table(("Level", "Program", "Before", "After"), rows)


def _row(codemod: DdpCodemod, proof: Proof) -> tuple[str, str, str, str]:
    anchor = f"{codemod.code.lower()}-{codemod.rule_name()}" if proof.after else "reported-only" if proof.repaired else "traps"
    level = proof.level if proof.after else "reported" if proof.repaired else "left alone"
    after = proof.after or (proof.repaired.run if proof.repaired else None)
    return level, f"[{code(proof.name)}](../proofs.md#{anchor})", _cell(proof.before), _cell(after)


def _cell(run: Run | None) -> str:
    return "<br>".join(described(run)) if run else ""
