"""How to test the change, take it back, drop the summary, and make it again."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from codemods.api.codemod import DdpCodemod
from codemods.data.printed_errors import UNUSED, WAITING
from codemods.files.text_file import NOTEBOOK, PYTHON_KINDS
from ddpfix.discovery import SUMMARY
from ddpfix.results import Fixed
from ddpfix.summary.context import Context, Launch
from ddpfix.summary.launches import SPAWNS
from ddpfix.summary.markdown import code, fence, folded_up, plural, prose, table
from ddpfix.summary.places import codemod_of, origin_of

MOST_MISSED = 6
_ACCELERATE = re.compile(rb"^[ \t]*(?:from|import)[ \t]+accelerate\b|\bTrainingArguments\b", re.M)
_LOCAL_RANK = re.compile(rb"add_argument\([^)]{0,80}--local[_-]rank")


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
        out += _commands(fixed, context)
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


def _commands(fixed: Fixed, context: Context) -> list[str]:
    if not context.launches:
        none = "No command that starts a changed program was found in the repository with all its words"
        return [f"{none}; put your own script and arguments in:", "", *fence(_usual_commands(fixed), "sh"), ""]
    out = ["As this repository starts what was changed, with two processes, from its root:", ""]
    rows = [row for launch in context.launches for row in (_place(launch), launch.command)]
    out += [*fence(rows, "sh"), ""]
    if to_fill := dict.fromkeys(word for launch in context.launches for word in launch.to_fill):
        out += [f"Yours to give, before or in the command: {', '.join(map(code, to_fill))}.", ""]
    return [*out, *_not_started(fixed, context)]


def _place(launch: Launch) -> str:
    """Where the command stands, and how it differs from what stands there."""
    return f"# {', '.join((f'{launch.path}:{launch.line}', *launch.edits))}{_devices(launch)}"


def _not_started(fixed: Fixed, context: Context) -> list[str]:
    """The changed programs that these commands do not test."""
    reached = {path for launch in context.launches for path in launch.programs}
    missed = [path for path in sorted(fixed.after) if path.endswith(".py") and path not in reached]
    if not missed or not any(launch.programs for launch in context.launches):
        return []
    shown = ", ".join(map(code, missed[:MOST_MISSED]))
    more = f" and {plural(len(missed) - MOST_MISSED, 'more file')}" if len(missed) > MOST_MISSED else ""
    return [f"Changed too, and reached by none of these, as far as imports and settings show: {shown}{more}.", ""]


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


def _devices(launch: Launch) -> str:
    """What the command itself does not say: plain `python` gets its processes from the script's settings."""
    if launch.counted:
        return ""
    return f" (set two devices in {launch.devices})" if launch.devices else " (set two devices)"


def _errors(key: str, fixed: Fixed) -> str:
    if (printed := _printed(key)) is None:
        return "not known for this codemod"
    shown = [error for error in printed if _lightning(fixed) or "Lightning" not in error]
    return "<br>".join(code(error) for error in shown) or "nothing: the difference is in what is logged"


def _usual_commands(fixed: Fixed) -> list[str]:
    data = b"\n".join(data for path, data in fixed.before.items() if not path.endswith(NOTEBOOK))
    out = []
    if b"lightning" in data:
        out.append("python SCRIPT.py ...  # with devices=2 in its Trainer")
    if _ACCELERATE.search(data):
        out.append("accelerate launch --num_processes 2 SCRIPT.py ...")
    if re.search(SPAWNS, data):  # under torchrun, each of its processes would start all ranks once more
        return ["python SCRIPT.py ...  # it starts its ranks itself: let there be two", *out]
    if _LOCAL_RANK.search(data) and b"LOCAL_RANK" not in data:  # from the command line alone, which torchrun does not write
        return out or ["python -m torch.distributed.launch --nproc_per_node=2 SCRIPT.py ..."]
    return out or ["torchrun --standalone --nproc_per_node=2 SCRIPT.py ..."]


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
