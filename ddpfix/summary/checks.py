"""The checks behind a flipped flag as a table: the questions a careful reviewer asks, answered by the finding's evidence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from codemods.api.findings import Asked, Evidence, Finding
from ddpfix.summary.markdown import code, prose, table

QUESTIONS: Mapping[Asked, str] = {
    Asked.PARAMETERS: "Does every parameter reach the loss?",
    Asked.BRANCHES: "Which branches skip modules, and what decides them?",
    Asked.OPTIONAL: "Are there optional modules, and does training use them?",
    Asked.STATIC_GRAPH: "Is `static_graph` set?",
}
ALWAYS = tuple(QUESTIONS.values())
STATIC_GRAPH = QUESTIONS[Asked.STATIC_GRAPH]
KINDS: Mapping[str, str] = {
    "log": "What does a log of the training say?",
    "probe": "What did an instrumented run say?",
    "version": "Which versions does the project pin?",
}
OTHER = "What else was read?"
NOTHING = "Nothing was recorded for this question."
SETTLED = "Not asked: `static_graph=True` makes torch ignore the flag."
MOST_PLACES = 3


def question(evidence: Evidence) -> str:
    """The question that a piece of evidence answers."""
    if evidence.kind in KINDS:
        return KINDS[evidence.kind]
    return QUESTIONS[evidence.asked] if evidence.asked is not None else OTHER


def alike(findings: Iterable[Finding]) -> list[tuple[Finding, ...]]:
    """Findings with the same answers in one group: they share a table."""
    groups: dict[tuple[tuple[str, str, str], ...], list[Finding]] = {}
    for finding in findings:
        groups.setdefault(tuple((e.kind, e.text, e.strength) for e in finding.evidence), []).append(finding)
    return [tuple(group) for group in groups.values()]


def checks(findings: Sequence[Finding], before: Mapping[str, bytes]) -> list[str]:
    """The table of findings with the same answers. The four questions are always there; one without evidence says so."""
    answers: dict[str, list[tuple[Evidence, list[str]]]] = {asked: [] for asked in ALWAYS}
    for same in zip(*(f.evidence for f in findings), strict=True):
        places = list(dict.fromkeys(place(e) for e in same))
        answers.setdefault(question(same[0]), []).append((same[0], places))
    settled = bool(answers[STATIC_GRAPH])
    rows = []
    for asked, found in answers.items():
        if not found:
            rows.append((asked, _unanswered(asked, before) if not settled else SETTLED, ""))
        for index, (evidence, places) in enumerate(found):
            weak = " (weak)" if evidence.strength == "weak" else ""
            more = f" and {len(places) - MOST_PLACES} more" if len(places) > MOST_PLACES else ""
            rows.append((asked if index == 0 else "", prose(evidence.text) + weak, ", ".join(places[:MOST_PLACES]) + more))
    return table(("Question", "Answer", "Where"), rows)


def _unanswered(asked: str, before: Mapping[str, bytes]) -> str:
    if asked == STATIC_GRAPH and not any(b"static_graph" in data for data in before.values()):
        return "`static_graph` does not occur in the changed files."
    return NOTHING


def place(evidence: Evidence) -> str:
    """`path:line`, as far as there is one."""
    if not evidence.path:
        return ""
    return code(evidence.place)
