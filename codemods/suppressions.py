"""`# ddpfix: ignore[DDP101] reason`: which findings it silences, and DDP000 for one that silences nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from codemods.findings import Evidence, Finding
from codemods.source import SourceModule, Suppression

CODE = "DDP000"
NAME = "unused-suppression"


def silences(module: SourceModule, suppression: Suppression, finding: Finding) -> bool:
    """True if the comment names the finding's code or name and stands on its line, its statement, or just above it."""
    wanted = {c.lower() for c in suppression.codes}
    if not ({finding.code.lower(), finding.name.lower()} & wanted):
        return False
    if suppression.whole_file:
        return True
    top, bottom = _reach(module, finding)
    return top - 1 <= suppression.line <= bottom and (
        suppression.line != top - 1 or module.lines[suppression.line - 1].lstrip().startswith("#")
    )


def _reach(module: SourceModule, finding: Finding) -> tuple[int, int]:
    """First and last line of the smallest statement round the finding; of a compound one only the header."""
    best = (finding.span.line, finding.span.end_line)
    for cls, nodes in module.buckets():
        if not issubclass(cls, ast.stmt):
            continue
        for node in nodes:
            body = getattr(node, "body", None)
            top = node.lineno  # type: ignore[attr-defined]
            bottom = body[0].lineno - 1 if isinstance(body, list) and body else node.end_lineno  # type: ignore[attr-defined]
            decorators = getattr(node, "decorator_list", [])
            top = min([top, *(d.lineno for d in decorators)])
            inside = top <= finding.span.line <= max(bottom, top)
            if inside and (body or bottom - top >= best[1] - best[0]):
                best = (top, bottom)
    return best


def apply(
    module: SourceModule, findings: Iterable[Finding], *, checked: frozenset[str]
) -> tuple[list[Finding], list[Finding]]:
    """(findings left, DDP000 findings). `checked` are the codes and names that were looked for: others cannot be judged."""
    left = list(findings)
    unused: list[Finding] = []
    for suppression in module.suppressions:
        hit = [f for f in left if silences(module, suppression, f)]
        left = [f for f in left if f not in hit]
        names = [c for c in suppression.codes if c.lower() in checked]
        if not hit and (names or not suppression.codes):
            unused.append(_unused(module, suppression, names))
    return left, unused


def _unused(module: SourceModule, suppression: Suppression, names: Sequence[str]) -> Finding:
    if names:
        message = f"nothing here is found as {', '.join(names)} any more: the comment can go"
    else:
        message = "a suppression names what it silences, as in `# ddpfix: ignore[DDP101] reason`; this one names nothing"
    evidence = (Evidence("text", suppression.reason),) if suppression.reason else ()
    return Finding(CODE, NAME, module.path, suppression.span, "", message, evidence)
