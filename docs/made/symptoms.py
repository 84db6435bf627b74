"""docs/symptoms.md: from what one sees of a run to the pages of the codemods that find its cause."""

from __future__ import annotations

from dataclasses import dataclass

from codemods.api.codemod import DdpCodemod
from ddpfix.catalog import all_codemods
from ddpfix.summary.markdown import table


@dataclass(frozen=True, slots=True)
class Symptom:
    """title: what one sees; first: what to do before reading on; codes: the numbers of the codemods, the likely ones first."""

    title: str
    seen: str
    first: str
    codes: str


HEAD = """\
# Which bug do I have?

Start from what you see. Each codemod below finds one cause of it; its page says what happens on each rank, how it is repaired,
and when it is not. `ddpfix check --select` takes the codes of a table, separated by commas or one by one.

Do you have the log of the failed run? `ddpfix diagnose train.log .` reads the cause out of it and names the lines
([diagnose](diagnose.md)). The [tutorial](tutorial.md) goes through one hang from the log to the merge.
"""

SYMPTOMS = (
    Symptom(
        "It hangs",
        "The GPUs show 100 % and nothing is printed, or a rank ends after 10 to 30 minutes with `Watchdog caught collective "
        "operation timeout` or `Timed out waiting`.",
        "Some ranks wait in a collective that others never come to. Look for a rank test, an early `return`, a `break` or an "
        "`except` in front of it.",
        "301 303 305 310 314 309 411 108 415 206 312 608 114 302 707 708 715 706 407",
    ),
    Symptom(
        "It crashes in training",
        "An error in the first or second step, such as `Expected to have finished reduction in the prior iteration`, or an "
        "`AttributeError` on ranks other than 0.",
        "Read the error of the rank that fell first; the others only say that the connection was closed.",
        "002 004 003 507 420 508 209 210 213 214 506 505 804 306 113 114 604",
    ),
    Symptom(
        "It crashes at the start",
        "The launcher ends before the first step, an argument is unknown, or a folder is there already (`FileExistsError`).",
        "The same command on one process shows whether the launch is to blame.",
        "204 701 714 717 718 419 702 710 712 711 713 708 715 716 603 602 801 802 803 806 805 703 706 306",
    ),
    Symptom(
        "Out of memory on rank 0 or on GPU 0",
        "One GPU is full while the others have room: `nvidia-smi` shows several processes on GPU 0, or rank 0 alone dies.",
        "Each process must have its own device before the first tensor and the first `torch.load`.",
        "503 703 705 608 207",
    ),
    Symptom(
        "The metric is wrong",
        "The number depends on the count of GPUs, differs between ranks, or the best checkpoint is not the best.",
        "Each rank sees its own share of the data: a number of all must be made of sums and counts of all ranks.",
        "101 106 116 115 105 104 605 107 109 112 117 118 119 210 211 601 604 103 404 415 717",
    ),
    Symptom(
        "It learns worse than on one GPU",
        "The loss falls more slowly or stays higher, replicas drift apart, or seeds no longer decide.",
        "Check first that the gradients are averaged, then that each rank has its own data, then the effective batch.",
        "504 509 315 510 511 313 401 402 405 418 413 403 409 404 410 412 417 414 308 311 505 506 606 607 416 406 107 709 715 407",
    ),
    Symptom(
        "A file is torn, missing or overwritten",
        "Checkpoints that cannot be read, lines of a log that are mixed, a `FileNotFoundError` on some ranks.",
        "One rank should write; all others wait before they read.",
        "501 202 302 307 201 211 204 502 205",
    ),
    Symptom(
        "A checkpoint does not load",
        "`Missing key(s) in state_dict` with names that begin with `module.`, or the resumed run starts from other numbers.",
        "Save `model.module.state_dict()` and restore on every rank.",
        "502 501 503 308 302",
    ),
    Symptom(
        "It is slow",
        "More GPUs bring less than they should, or each step waits for the slowest rank.",
        "`ddpfix tune` looks at job files and arguments ([tune](tune.md)); these find what costs time in the code.",
        "001 102 704 901 902 903 003 401",
    ),
    Symptom(
        "It prints everything several times",
        "Each line, progress bar or run of the experiment tracker is there once for each process; or the end of a run complains.",
        "One rank should report.",
        "203 208 201 205 214 304 702 904 103",
    ),
)


def page() -> str:
    named = {c.code: c for c in all_codemods()}
    out = [HEAD]
    for symptom in SYMPTOMS:
        rows = [_row(named[f"DDP{number}"]) for number in symptom.codes.split()]
        out += [f"## {symptom.title}", "", f"{symptom.seen} {symptom.first}", "", *table(("code", "what it finds"), rows), ""]
    return "\n".join(out).rstrip() + "\n"


def _row(codemod: DdpCodemod) -> tuple[str, str]:
    return f"[{codemod.code}](codemods/{codemod.rule_name()}.md)", codemod.summary()
