"""Fixed -> DDPFIX_SUMMARY.md, which is the body of a pull request too. No clock, no machine, the same text for the same input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from codemods.api.findings import Finding
from codemods.files.text_file import NOTEBOOK
from ddpfix.project_renames import renamed
from ddpfix.results import Fixed
from ddpfix.summary import breakage, proof_section, review_section, tuning_section
from ddpfix.summary.codemod_section import Detail, assumptions, section
from ddpfix.summary.commit_messages import subject
from ddpfix.summary.context import Context
from ddpfix.summary.excerpts import Hunk, hunks
from ddpfix.summary.instructions import how_it_was_checked, how_it_was_made, how_to_take_back, how_to_test, not_run
from ddpfix.summary.left_alone import left_alone
from ddpfix.summary.markdown import code, cut, folded_up, plural, prose, table
from ddpfix.summary.new_lines import in_new_text
from ddpfix.summary.places import (
    by_code,
    by_file,
    codemod_of,
    offered,
    origin_of,
    told,
    unmade,
    unsafe_fixed,
)

_LINES = "Line numbers are those after the fixes; `ddpfix check` showed those before."
_NO_TRAINING = "No training was run: see [Not run](#not-run)."
LIMIT = 30_000  # a forge takes 65,536 characters; what is longer is not read
SHORTER = (
    Detail(),
    Detail(files=60, facts=12, groups=16, pictures=2),
    Detail(files=20, facts=6, groups=8, pictures=1),
    Detail(files=8, facts=3, groups=4, words=500, pictures=0),
    Detail(files=3, facts=1, groups=2, words=200, pictures=0),
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
        out += how_it_was_checked(context, fixed)
        out += how_to_test(tuple(groups), fixed, context)
        out += how_to_take_back(tuple(groups), context)
    out += folded_up("Left alone, with the reasons", left_alone(fixed, context.launched, detail))
    for key, findings in groups.items():
        title = f"{key} {findings[0].name}: cause, safety and places"
        out += folded_up(title, section(key, findings, changed, fixed, detail))
    out += folded_up("What the unsafe fixes assume", assumptions(unsafe_fixed(fixed), detail))
    out += folded_up("Proof: before and after, on two processes", proof_section.section(context.proof)) if context.proof else []
    out += tuning_section.section(context.tuning) if context.tuning else []
    out += folded_up("Review", review_section.section(context.decided, detail)) if context.decided else []
    out += folded_up("What was not run", not_run(context, fixed))
    out += folded_up("How this was made", how_it_was_made(context, fixed))
    if detail.items < 10**9:
        out += [f"Excerpts were left out to keep this under its length; {_all_of_it(context)}", ""]
    return "\n".join(out).rstrip() + "\n"


def _first_screen(fixed: Fixed, context: Context, groups: dict[str, tuple[Finding, ...]]) -> list[str]:
    count, files = plural(len(fixed.fixed), "fix", "fixes"), plural(len(fixed.after), "file")
    if not groups:
        return ["# ddpfix: nothing was changed", "", *_counts(fixed), ""]
    out = [f"# ddpfix: {count} in {files}", "", *_severities(fixed, context.launched, groups), *_tables(groups)]
    unsafe = len(unsafe_fixed(fixed))
    if unsafe:
        out.append(
            f"{len(fixed.fixed) - unsafe} of level safe, {unsafe} of level unsafe; what the unsafe ones "
            "[assume](#what-the-unsafe-fixes-assume) was not checked."
        )
    else:
        out.append("Level safe; the section of each codemod says why it may be changed.")
    if context.branch:
        onto = f" on top of {code(context.base[:12])}" if context.base else ""
        out.append(f"They are committed on {code(context.branch)}{onto}, one commit for each codemod.")
    ran = "They were run before and after: see [Proof](#proof)." if context.proof else _NO_TRAINING
    reviewed = [f"Reviewed: {review_section.counts(context.decided)}; see [Review](#review)."] if context.decided else []
    out += [*reviewed, *_counts(fixed), ran, _LINES, ""]
    if context.branch:
        out += folded_up("Commits", _commits(context, groups))
    return out


def _severities(fixed: Fixed, launched: frozenset[str], groups: dict[str, tuple[Finding, ...]]) -> list[str]:
    rows = breakage.breaks_today(groups, (*told(fixed), *offered(fixed)), launched)
    return ["What breaks today when this code runs as several processes, the worst first:", "", *rows, ""] if rows else []


HEADINGS = {
    "": ("The fixes:", "Today", "Fixed"),
    "project": ("What this project's own settings ask to be called otherwise:", "Old and new name", "Renamed"),
    "plugins": ("What codemods of this team's own change:", "What it is about", "Changed"),
}


def _tables(groups: dict[str, tuple[Finding, ...]]) -> list[str]:
    """What is wrong, what is renamed because the project asks for it, and what plug-ins change: a table each."""
    out: list[str] = []
    for origin, (said, what, made) in HEADINGS.items():
        rows = [
            (
                f"{key} {code(findings[0].name)}",
                _renames(findings) if origin == "project" else _summary(key, findings),
                f"{len(findings)} in {plural(len(by_file(findings)), 'file')}",
            )
            for key, findings in groups.items()
            if origin_of(key) == origin
        ]
        if rows:
            out += [said, "", *table(("Codemod", what, made), rows), ""]
    return out


def _renames(findings: Sequence[Finding]) -> str:
    pairs = renamed(findings)
    more = [f"and {len(pairs) - 5} more"] if len(pairs) > 5 else []
    return "<br>".join([*(f"{code(old)} → {code(new)}" for old, new in pairs[:5]), *more])


def _commits(context: Context, groups: dict[str, tuple[Finding, ...]]) -> list[str]:
    if context.commits:
        return [f"- {code(sha[:10])} {prose(title)}" for sha, title in context.commits]
    return [f"- {prose(subject(key, findings[0].name, findings))}" for key, findings in groups.items()]


def _summary(key: str, findings: Sequence[Finding]) -> str:
    codemod = codemod_of(key)
    return codemod.summary() if codemod else prose(findings[0].message)


def _counts(fixed: Fixed) -> list[str]:
    out = []
    seen, rest = told(fixed), offered(fixed)
    if seen or rest or fixed.withdrawn:
        parts = [f"{plural(len(seen), 'finding')} without a fix"] if seen else []
        parts += [f"{plural(len(rest), 'finding')} that only `--unsafe-fixes` would fix"] if rest else []
        parts += [f"{plural(len(unmade(fixed)), 'fix', 'fixes')} that could not be made"] if unmade(fixed) else []
        out.append(f"Left alone, with the reasons below: {', '.join(parts)}.")
    if failed := fixed.report.failed:
        them = "it" if len(failed) == 1 else "them"
        were = "path was" if len(failed) == 1 else "paths were"
        out.append(f"{len(failed)} {were} not read, so nothing is known of {them}: see [Not read](#not-read).")
    return out
