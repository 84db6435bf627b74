"""`# ddpfix: ignore[DDP101] reason`: which findings it silences, and DDP000 for one that silences nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from codemods.api.findings import Evidence, Finding, ReplaceLines, Span
from codemods.files.source import SourceModule, Suppression, line_of
from codemods.files.text_file import TextFile
from codemods.rewriting.runs import newline_of
from codemods.runtime.lazy_pattern import lazy

CODE = "DDP000"
NAME = "unused-suppression"
_OWN_CODE = lazy(r"(?i:ddp)\d+")


def names(suppression: Suppression, finding: Finding) -> set[str]:
    """The words of the comment that mean the finding: its code or its name."""
    return {c for c in suppression.codes if c.lower() in (finding.code.lower(), finding.name.lower())}


def silences(module: SourceModule, suppression: Suppression, finding: Finding) -> bool:
    """True if the comment names the finding's code or name and stands on its line, its statement, or just above it."""
    if not names(suppression, finding):
        return False
    if suppression.whole_file:
        return True
    top, bottom = _reach(module, finding)
    if suppression.line == top - 1:
        return module.lines[suppression.line - 1].lstrip().startswith("#")
    return top <= suppression.line <= bottom


def _reach(module: SourceModule, finding: Finding) -> tuple[int, int]:
    """First and last line of the innermost statement that the finding begins in; of a compound one only the header."""
    if isinstance(module, TextFile):
        return module.reach(finding.span)
    line = finding.span.line
    best = (line, finding.span.end_line)
    smallest = None
    for cls, nodes in module.buckets():
        if not issubclass(cls, (ast.stmt, ast.ExceptHandler)):
            continue
        for node in nodes:
            top, bottom = _header(node)
            if top <= line <= bottom and (smallest is None or bottom - top < smallest):
                smallest = bottom - top
                best = (top, bottom)
    return best


def _header(node: ast.AST) -> tuple[int, int]:
    """The lines of a statement; of a compound one up to its body, decorators included."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    top = min([line_of(node), *(line_of(d) for d in decorators)])
    if isinstance(node, ast.Match):
        return top, node.subject.end_lineno or top
    body: list[ast.stmt] | None = getattr(node, "body", None)
    if not body:
        return top, node.end_lineno  # type: ignore[attr-defined]
    first = min([body[0].lineno, *(d.lineno for d in getattr(body[0], "decorator_list", []))])
    return top, max(top, first - 1)


def apply(
    module: SourceModule, findings: Iterable[Finding], *, checked: frozenset[str]
) -> tuple[list[Finding], list[Finding]]:
    """(findings left, DDP000 findings). `checked` are the codes and names that were looked for: others cannot be judged."""
    left = list(findings)
    unused: list[Finding] = []
    for suppression in module.suppressions:
        hit = [f for f in left if silences(module, suppression, f)]
        left = [f for f in left if f not in hit]
        used = {word for f in hit for word in names(suppression, f)}
        idle = [c for c in suppression.codes if c.lower() in checked and c not in used]
        if idle or not suppression.codes:
            unused.append(_unused(module, suppression, idle))
        if nobodys := [c for c in suppression.codes if c.lower() not in checked and _is_nobodys(c)]:
            message = f"no codemod has the code {', '.join(nobodys)}: nothing is silenced by it"
            unused.append(_finding(module, suppression, message))
    return left, unused


def comments(module: SourceModule, rejected: Sequence[tuple[Finding, str]]) -> list[ReplaceLines]:
    """The edits that put a comment above the statement of each finding, with the reason; one that stands there is extended."""
    at: dict[int, list[tuple[Finding, str]]] = {}
    for finding, reason in rejected:
        at.setdefault(_reach(module, finding)[0], []).append((finding, reason))
    out = []
    for top, found in sorted(at.items()):
        above = next((s for s in module.suppressions if s.line == top - 1 and s.codes and not s.whole_file), None)
        own_line = above is not None and module.lines[top - 2].lstrip().startswith("#")
        known = above if own_line else None
        codes = dict.fromkeys([*(known.codes if known else ()), *(f.code for f, _ in found)])
        said = [known.reason if known else "", *(" ".join(reason.split()) for _, reason in found)]
        reasons = dict.fromkeys(text for text in said if text)
        line = module.lines[top - 1]
        indent = line[: len(line) - len(line.lstrip(" \t\f"))]
        text = f"{indent}# ddpfix: ignore[{', '.join(codes)}] {'; '.join(reasons)}".rstrip() + newline_of(module.lines, top)
        first = top - 1 if known else top
        out.append(ReplaceLines(module.path, Span(first, 0, top, 0), text))
    return out


def _unused(module: SourceModule, suppression: Suppression, idle: Sequence[str]) -> Finding:
    if not idle:
        message = "a suppression names what it silences, as in `# ddpfix: ignore[DDP101] reason`; this one names nothing"
    elif len(idle) == len(suppression.codes):
        message = f"nothing here is found as {', '.join(idle)} any more: the comment can go"
    else:
        message = f"nothing here is found as {', '.join(idle)} any more: the comment need not name it"
    return _finding(module, suppression, message)


def _is_nobodys(code: str) -> bool:
    """True for a word that reads like a code of ours and is none. Those of plug-ins that do not run are not known."""
    if not _OWN_CODE.fullmatch(code) or code.upper() == CODE:
        return False
    from codemods.api.codemod import built_in

    return all(c.code != code.upper() for c in built_in())


def _finding(module: SourceModule, suppression: Suppression, message: str) -> Finding:
    evidence = (Evidence("text", suppression.reason),) if suppression.reason else ()
    return Finding(CODE, NAME, module.path, suppression.span, "", message, evidence)
