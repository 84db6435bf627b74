"""How to test the change, take it back, drop the summary, and make it again."""

from __future__ import annotations

import re
from collections.abc import Sequence

from codemods.files.text_file import NOTEBOOK
from ddpfix.results import Fixed
from ddpfix.summary.context import Context, Launch
from ddpfix.summary.launches import SPAWNS
from ddpfix.summary.markdown import code, fence, plural
from ddpfix.summary.places import origin_of

MOST_MISSED = 6
_ACCELERATE = re.compile(rb"^[ \t]*(?:from|import)[ \t]+accelerate\b|\bTrainingArguments\b", re.M)
_LOCAL_RANK = re.compile(rb"add_argument\([^)]{0,80}--local[_-]rank")


def how_to_test(codes: Sequence[str], fixed: Fixed, context: Context) -> list[str]:
    """Commands for two processes, then what each codemod's test must show and what is printed if the fix is wrong."""
    out = ["## How to test in five minutes", ""]
    if all(origin_of(key) == "project" for key in codes):
        out += ["Names were changed and nothing else: one process is enough, and the tests of the repository.", ""]
        return out
    out.append("It takes two processes, and a data set small enough to get through an epoch.")
    notebooks = sorted(path for path in fixed.before if path.endswith(NOTEBOOK))
    if len(notebooks) < len(fixed.before) or not notebooks:
        out += _commands(fixed, context)
    if notebooks:
        more = f" and {plural(len(notebooks) - 1, 'more notebook')}" if len(notebooks) > 1 else ""
        out += [f"{code(notebooks[0])}{more}: restart the kernel, let the launcher start two processes, and run all cells.", ""]
    return out


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


def _devices(launch: Launch) -> str:
    """What the command itself does not say: plain `python` gets its processes from the script's settings."""
    if launch.counted:
        return ""
    return f" (set two devices in {launch.devices})" if launch.devices else " (set two devices)"


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
