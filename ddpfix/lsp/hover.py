"""What the hover says of a finding, as Markdown: what happens, the fix, the evidence, the way of the ranks or of the value."""

from __future__ import annotations

from codemods.api.findings import Applicability, Finding
from ddpfix.outputs.severity import about
from ddpfix.summary.markdown import fence, prose
from ddpfix.summary.rank_flow import drawn, flow_of
from ddpfix.summary.value_way import way_of

MOST_EVIDENCE = 8
_FIX = {
    Applicability.SAFE: "There is a safe fix.",
    Applicability.UNSAFE: "There is a fix that rests on an assumption:",
    Applicability.DISPLAY: "There is no fix:",
}


def text(finding: Finding) -> str:
    codemod = about(finding)
    out = [f"**{finding.code} {finding.name}**", "", prose(finding.message), ""]
    if codemod:
        out += [prose(codemod.summary()), ""]
    level = finding.applicability
    if finding.reason or level is Applicability.SAFE:
        out += [f"{_FIX[level]} {prose(finding.reason)}".rstrip(), ""]
    if finding.evidence:
        out += ["Evidence:", ""]
        shown = finding.evidence[:MOST_EVIDENCE]
        out += [f"- {prose(e.text)}" + (f" ({prose(e.place)})" if e.path else "") for e in shown]
        if more := len(finding.evidence) - len(shown):
            out.append(f"- and {more} more")
        out.append("")
    if flow := way_of(finding) or flow_of(finding):
        out += [*fence(drawn(flow), "text"), ""]
    return "\n".join(out).rstrip() + "\n"
