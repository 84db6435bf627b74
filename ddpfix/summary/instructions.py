"""How to test the change, take it back, drop the summary, and make it again."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from codemods.api.codemod import DdpCodemod
from codemods.data.printed_errors import UNUSED, WAITING
from codemods.files.text_file import NOTEBOOK, PYTHON_KINDS
from ddpfix.discovery import SUMMARY
from ddpfix.results import Fixed
from ddpfix.summary.context import Context
from ddpfix.summary.markdown import code, fence, folded_up, plural, prose, table
from ddpfix.summary.places import codemod_of, origin_of
from ddpfix.summary.shown_commands import shown_commands


def how_it_was_checked(context: Context, fixed: Fixed) -> list[str]:
    """In a few lines what was done to the new files, and what was not."""
    out = ["## How it was checked", ""]
    if any(path.endswith((*PYTHON_KINDS, NOTEBOOK)) for path in fixed.after):
        out.append("- Each changed Python file that compiled before still does, which says nothing of its behaviour.")
    out += [f"- Run: {prose(text)}" for text in context.ran]
    out.append("- Run on two processes before and after: see Proof." if context.proof else "- No training was run.")
    return [*out, ""]


def how_to_test(codes: Sequence[str], fixed: Fixed, context: Context) -> list[str]:
    """Commands for two processes, then what each codemod's test must show and what is printed if the fix is wrong."""
    out = ["## How to test in five minutes", ""]
    if all(origin_of(key) == "project" for key in codes):
        out += ["Names were changed and nothing else: one process is enough, and the tests of the repository.", ""]
        return [*out, *folded_up("What the test must show", _shown(codes, fixed))]
    out.append("It takes two processes, and a data set small enough to get through an epoch.")
    notebooks = sorted(path for path in fixed.before if path.endswith(NOTEBOOK))
    if len(notebooks) < len(fixed.before) or not notebooks:
        out += shown_commands(fixed, context)
    if notebooks:
        more = f" and {plural(len(notebooks) - 1, 'more notebook')}" if len(notebooks) > 1 else ""
        out += [f"{code(notebooks[0])}{more}: restart the kernel, let the launcher start two processes, and run all cells.", ""]
    more_of_it = [*_shown(codes, fixed), ""]
    errors = {error for key in codes for error in _printed(key) or ()}
    if errors & {*WAITING}:
        more_of_it += ["A rank that waits is ended by the time-out of its process group: 10 to 30 minutes, unless it is set.", ""]
    if errors & {*UNUSED}:
        names = "`TORCH_DISTRIBUTED_DEBUG=INFO` in the environment makes torch name the parameters without a gradient."
        over = " Lightning 2 puts its own text over that: there, look for `p.grad is None` in `on_after_backward`."
        more_of_it += [names + (over if _lightning(fixed) else ""), ""]
    return [*out, *folded_up("What the test must show, and what is printed if a fix is wrong", more_of_it)]


def _shown(codes: Sequence[str], fixed: Fixed) -> list[str]:
    """What each codemod's test must show."""
    heads = ("Codemod", "What the test must show", "Printed if it is wrong here")
    return table(heads, [(key, _must_show(key), _errors(key, fixed)) for key in codes])


def _must_show(key: str) -> str:
    return (codemod_of(key) or DdpCodemod).must_show


def _printed(key: str) -> tuple[str, ...] | None:
    return (codemod_of(key) or DdpCodemod).printed


def _lightning(fixed: Fixed) -> bool:
    return any(b"lightning" in data.lower() for data in fixed.before.values())


def _errors(key: str, fixed: Fixed) -> str:
    if (printed := _printed(key)) is None:
        return "not known for this codemod"
    shown = [error for error in printed if _lightning(fixed) or "Lightning" not in error]
    return "<br>".join(code(error) for error in shown) or "nothing: the difference is in what is logged"


def how_to_take_back(codes: Sequence[str], context: Context) -> list[str]:
    """One codemod, one place, all of it, the summary."""
    out = ["## How to take it back", ""]
    if not context.branch:
        return [*out, "All of it, with the files as they were before:", "", *fence(["ddpfix undo"], "sh"), ""]
    if context.pull_request:
        return [
            *out,
            f"One codemod: comment `/ddpfix ignore {codes[0]}`, and it is made again without it. "
            f"One place: put `# ddpfix: ignore[{codes[0]}] reason` on its line. All of it: close this.",
            "",
        ]
    branch = shlex.quote(context.branch)
    home = shlex.quote(context.home) if context.home else ""
    start = f"git switch {home}" if home else f"git switch --detach {(context.base or 'HEAD')[:12]}"
    one = codes[0]
    fresh = shlex.quote(f"{context.branch}-without-{one.lower()}")
    out += ["All of it, as long as nobody has committed on the branch; you are back on your own branch afterwards:", ""]
    out += [*fence(["ddpfix undo"], "sh"), ""]
    parts = [
        "One codemod: imports are shared between the commits, so reverting a single commit may not apply. "
        f"Make the change again without it on a fresh branch, here without {one}:",
        "",
        *fence([start, f"{context.command} --ignore {one} --branch {fresh}"], "sh"),
        "",
        f"One place: put `# ddpfix: ignore[{one}] reason` on its line and run again.",
        "",
    ]
    if context.summary_commit:
        parts += [
            f"The summary: {code(SUMMARY)} is the last commit and holds nothing else. Merge everything but it:",
            "",
            *fence([f"git switch {home or 'YOUR-BRANCH'}", f"git merge {branch}~1"], "sh"),
            "",
        ]
    return [*out, *folded_up("A part of it", parts)]


def not_run(context: Context, fixed: Fixed) -> list[str]:
    """What nobody has seen happen."""
    out = ["## Not run", "", *(f"- {prose(text)}" for text in context.not_run)]
    its_own = "beyond what is named below" if context.ran else "no test, git hook, linter or formatter"
    out.append(f"- Nothing of the repository's own was started: {its_own}.")
    if context.ran:
        out += ["", "What did run:", "", *(f"- {prose(text)}" for text in context.ran)]
    return [*out, ""]


def how_it_was_made(context: Context, fixed: Fixed) -> list[str]:
    """The command, the versions, and what the state of the repository adds."""
    out = ["## How this was made", "", *fence([context.command], "sh"), ""]
    rows = [(name, code(version)) for name, version in context.versions.items()]
    if context.base:
        rows.append(("commit it stands on", code(context.base)))
    out += [*table(("What", "Version"), rows), ""]
    report = fixed.report
    seen = plural(report.scanned, "Python file")
    out += [f"{seen} looked at; {report.parsed} of them, with a word that a codemod looks for, were read whole.", ""]
    notes = [*context.notes, *([context.identity_note] if context.identity_note else [])]
    if notes:
        out += [*(f"- {prose(note)}" for note in notes), ""]
    return out
