"""One JSON object a finding and line, as in the `findings` of the JSON report."""

from __future__ import annotations

import json

from ddpfix.outputs.answer import Answer
from ddpfix.outputs.json import finding_object


def document(answer: Answer) -> str:
    return "".join(json.dumps(finding_object(f, p.shown), ensure_ascii=False) + "\n" for p, f in answer.rows())
