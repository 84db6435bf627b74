"""One JSON object a finding and line, as in the `findings` of the JSON report."""

from __future__ import annotations

from ddpfix.outputs.answer import Answer
from ddpfix.outputs.json import finding_object
from ddpfix.outputs.json_text import dumps


def document(answer: Answer) -> str:
    return "".join(dumps(finding_object(f, p.shown, p.span(f))) + "\n" for p, f in answer.rows())
