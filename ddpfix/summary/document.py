"""Fixed -> DDPFIX_SUMMARY.md, which is the body of a pull request too. No clock, no machine, the same text for the same input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from codemods.api.findings import Finding
from codemods.files.text_file import NOTEBOOK
from ddpfix.results import Fixed
from ddpfix.summary import breakage, proof_section, review_section, tuning_section
from ddpfix.summary.codemod_section import Detail, section
from ddpfix.summary.context import Context
from ddpfix.summary.excerpts import Hunk, hunks
from ddpfix.summary.instructions import how_to_test
from ddpfix.summary.left_alone import left_alone
from ddpfix.summary.markdown import code, cut, folded_up, plural
from ddpfix.summary.new_lines import in_new_text
from ddpfix.summary.origin import how_it_was_made
from ddpfix.summary.places import by_code, offered, told, unmade, unsafe_fixed
from ddpfix.summary.undo import how_to_take_back

_NO_TRAINING = "No training was run."
_LINES = "Line numbers are those after the fixes."
LIMIT = 30_000  # a forge takes 65,536 characters; what is longer is not read
SHORTER = (
    Detail(),
    Detail(files=60, groups=16, pictures=2),
    Detail(files=20, groups=8, pictures=1, kinds=4, facts=2),
    Detail(files=8, groups=4, pictures=0, kinds=2, facts=1),
    Detail(files=3, groups=2, pictures=0, kinds=1, facts=0),
)


def render(fixed: Fixed, context: Context, *, limit: int = LIMIT) -> str:
    """The summary, no longer than `limit`: excerpts are left out first, then lists are shortened, never the instructions.

    A byte of a file's name that is no UTF-8 is shown as a replacement character: everything else of the summary can be written.
    """
    return _fitted(fixed, context, limit).encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _fitted(fixed: Fixed, context: Context, limit: int) -> str:
    changed = _changed(fixed, notebooks_only=bool(context.branch or context.pull_request))
    fixed = in_new_text(fixed)
    most = len(fixed.fixed) + len(changed) + 1
    for detail in SHORTER:
        text = _document(fixed, context, changed, detail)
        if len(text) <= limit:
            return text
        few = _with(detail, 0)
        if len(_document(fixed, context, changed, few)) > limit:
            continue
        low, high = 0, most
        while high - low > 1:
            middle = (low + high) // 2
            fits = len(_document(fixed, context, changed, _with(detail, middle))) <= limit
            low, high = (middle, high) if fits else (low, middle)
        return _document(fixed, context, changed, _with(detail, low))
    shortest = _document(fixed, context, changed, _with(SHORTER[-1], 0))
    return cut(shortest, limit, f"Cut at {limit} characters; {_all_of_it(context)}")


def _with(detail: Detail, items: int) -> Detail:
    return replace(detail, items=items)


def _all_of_it(context: Context) -> str:
    if context.base and context.branch:
        return f"the whole change is `git diff {context.base[:12]} {context.branch}`."
    return "`ddpfix check` lists every place."


def _changed(fixed: Fixed, *, notebooks_only: bool) -> tuple[Hunk, ...]:
    """What the commits do not show already: they show Python as Python, and a notebook as JSON."""
    found: list[Hunk] = []
    for path in sorted(fixed.after):
        if notebooks_only and not path.endswith(NOTEBOOK):
            continue
        found += hunks(path, fixed.before[path], fixed.after[path], fixed.fixed)
    return tuple(found)


def _document(fixed: Fixed, context: Context, changed: Sequence[Hunk], detail: Detail) -> str:
    groups = dict(sorted(by_code(fixed.fixed).items(), key=lambda row: min(f.severity_rank for f in row[1])))
    out = _first_screen(fixed, context, groups)
    if groups:
        out += ["## Fixes", ""]
        for key, findings in groups.items():
            out += section(key, findings, changed, fixed, detail)
        out += how_to_test(tuple(groups), fixed, context)
    out += left_alone(fixed, context.launched, detail)
    if groups:
        out += how_to_take_back(tuple(groups), context)
    out += folded_up("Proof: before and after, on two processes", proof_section.section(context.proof)) if context.proof else []
    out += tuning_section.section(context.tuning) if context.tuning else []
    out += folded_up("Review", review_section.section(context.decided, detail)) if context.decided else []
    out += folded_up("How this was made, and what was not run", how_it_was_made(context, fixed))
    if changed and detail.items < 10**9:
        out += [f"Excerpts were left out to keep this under its length; {_all_of_it(context)}", ""]
    return "\n".join(out).rstrip() + "\n"


def _first_screen(fixed: Fixed, context: Context, groups: dict[str, tuple[Finding, ...]]) -> list[str]:
    count, files = plural(len(fixed.fixed), "fix", "fixes"), plural(len(fixed.after), "file")
    if not groups:
        return ["# ddpfix: nothing was changed", "", *_counts(fixed), ""]
    out = [f"# ddpfix: {count} in {files}", "", *_severities(groups)]
    if unsafe := len(unsafe_fixed(fixed)):
        out.append(f"{len(fixed.fixed) - unsafe} of level safe, {unsafe} of level unsafe: those rest on what was not checked.")
    if context.branch:
        onto = f" on top of {code(context.base[:12])}" if context.base else ""
        each = ", one commit for each codemod" if len(groups) > 1 else ""
        out.append(f"Committed on {code(context.branch)}{onto}{each}.")
    if context.decided:
        out.append(f"Reviewed: {review_section.counts(context.decided)}; see [Review](#review).")
    ran = "They were run before and after: see [Proof](#proof)." if context.proof else _NO_TRAINING
    more = "`ddpfix explain CODE` says more about a code."
    return [*out, *_counts(fixed), f"{ran} {_LINES} {more}", ""]


def _severities(groups: dict[str, tuple[Finding, ...]]) -> list[str]:
    rows = breakage.repairs(groups)
    return [breakage.heading(rows), "", *rows, ""] if rows else []


def _counts(fixed: Fixed) -> list[str]:
    """What was found and is not changed, in a line: how bad, and why not; the rest stands under Left alone."""
    out = []
    seen, rest = told(fixed), offered(fixed)
    if seen or rest or fixed.withdrawn:
        parts = [f"{len(seen)} without a fix"] if seen else []
        parts += [f"{len(rest)} that only `--unsafe-fixes` would fix"] if rest else []
        parts += [f"{plural(len(unmade(fixed)), 'fix', 'fixes')} that could not be made"] if unmade(fixed) else []
        found = breakage.counted((*seen, *rest, *(f for f, _ in unmade(fixed))))
        too = "Found too" if fixed.fixed else "Found"
        out.append(f"{too}, and not changed here: {found} ({', '.join(parts)}): see [Left alone](#left-alone).")
    if failed := fixed.report.failed:
        them = "it" if len(failed) == 1 else "them"
        were = "path was" if len(failed) == 1 else "paths were"
        out.append(f"{len(failed)} {were} not read, so nothing is known of {them}: see [Not read](#not-read).")
    return out
