"""What can be done about findings: the titles at once, the edits when one is chosen, since a fix may take its time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from lsprotocol import types

from codemods.api.findings import Applicability, Finding
from codemods.engine import suppressions
from codemods.engine.fix_source import safe, with_unsafe
from ddpfix.lsp.held import Held
from ddpfix.lsp.options import Options

FIX_ALL = "source.fixAll.ddpfix"
WHY = "say why"
EXPLAIN, IGNORE, ASK = "ddpfix.explain", "ddpfix.ignore", "ddpfix.askForReason"
_LONGEST_REASON = 120  # of a title


class Gone(Exception):
    """The finding is no longer there: the text has changed since."""


def offered(
    here: Sequence[Finding], every: Sequence[Finding], uri: str, options: Options, only: Sequence[str] | None
) -> Iterator[types.CodeAction]:
    """The actions for the findings at a place. every: those of the file. only: the kinds that the client wants."""
    if _wants(only, types.CodeActionKind.QuickFix):
        for finding in here:
            yield from _of_one(finding, uri, options)
        for code in dict.fromkeys(f.code for f in here):
            fixable = [f for f in every if f.code == code and _is_acceptable(f, options)]
            if len(fixable) > 1:
                title = f"Fix all {len(fixable)} {code} {fixable[0].name} in this file"
                yield _action(title, types.CodeActionKind.QuickFix, {"do": "code", "uri": uri, "code": code})
    if _wants(only, FIX_ALL) and (count := sum(map(safe, every))):
        title = f"Fix all {count} safe findings of ddpfix in this file" if count > 1 else "Fix the safe finding of ddpfix"
        yield _action(title, FIX_ALL, {"do": "all", "uri": uri})


def _of_one(finding: Finding, uri: str, options: Options) -> Iterator[types.CodeAction]:
    data = {"uri": uri, "id": finding.id}
    said = f"{finding.code} {finding.name}"
    if finding.applicability is not Applicability.DISPLAY:
        assumed = f", assuming: {_short(finding.reason)}" if finding.applicability is Applicability.UNSAFE else ""
        action = _action(f"Fix {said}{assumed}", types.CodeActionKind.QuickFix, {"do": "one", **data})
        action.is_preferred = finding.applicability is Applicability.SAFE
        yield action
    if finding.code == suppressions.CODE:
        return
    ignore = _action(f"Ignore {said}, with a reason", types.CodeActionKind.QuickFix, {"do": "ignore", **data})
    if options.ask_for_reason:
        ignore.data, ignore.command = None, types.Command(ignore.title, ASK, arguments=[uri, finding.id])
    yield ignore
    explain = types.CodeAction(f"Explain {said}", types.CodeActionKind.QuickFix)
    explain.command = types.Command(explain.title, EXPLAIN, arguments=[finding.code])
    yield explain


def _action(title: str, kind: str | types.CodeActionKind, data: dict[str, Any]) -> types.CodeAction:
    return types.CodeAction(title, kind, data=data)


def _is_acceptable(finding: Finding, options: Options) -> bool:
    return with_unsafe(finding) if options.unsafe_fixes else safe(finding)


def _short(reason: str) -> str:
    flat = " ".join(reason.split())
    return flat if len(flat) <= _LONGEST_REASON else flat[: _LONGEST_REASON - 1] + "…"


def _wants(only: Sequence[str] | None, kind: str) -> bool:
    return only is None or any(kind == word or kind.startswith(f"{word}.") for word in only)


def changed(held: Held, path: str, data: dict[str, Any], options: Options) -> dict[str, bytes]:
    """The files that an action changes, with their new bytes. Raises Gone, and RewriteError where its edits cannot be made."""
    if data.get("do") == "all":
        return held.fixed_all(path, held.codemods, safe)
    if data.get("do") == "code":
        codemods = [c for c in held.codemods if c.code == data.get("code")]
        return held.fixed_all(path, codemods, with_unsafe if options.unsafe_fixes else safe)
    finding = next((f for f in held.findings(path) if f.id == data.get("id")), None)
    if finding is None:
        raise Gone("the text has changed since")
    if data.get("do") == "ignore":
        return held.ignored(finding, str(data.get("reason") or WHY))
    return held.fixed_one(finding)
