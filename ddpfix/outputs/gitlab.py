"""GitLab's Code Quality report.

An array of objects as in docs.gitlab.com/ci/testing/code_quality (implement a custom tool): the path has no `./` in front, and
of two entries with one fingerprint GitLab shows the first only.
"""

from __future__ import annotations

import hashlib

from ddpfix.outputs.answer import Answer, plain, story
from ddpfix.outputs.json_text import dumps
from ddpfix.outputs.severity import ERROR, NOTE, WARNING, severity

_WORDS = {ERROR: "major", WARNING: "minor", NOTE: "info"}


def document(answer: Answer) -> str:
    seen: dict[str, int] = {}
    rows = []
    for project, finding in answer.rows():
        path = answer.home(project, finding.path)
        key = f"{path}\0{finding.id}"
        span = project.span(finding)
        seen[key] = seen.get(key, 0) + 1
        digest = hashlib.sha256(f"{key}\0{seen[key]}".encode("utf-8", "surrogateescape")).hexdigest()
        rows.append(
            {
                "description": story(finding),
                "check_name": finding.code,
                "fingerprint": digest,
                "severity": _WORDS[severity(finding)],
                "location": {"path": plain(path), "lines": {"begin": span.line, "end": span.end_line}},
            }
        )
    return dumps(rows, indent=1) + "\n"
