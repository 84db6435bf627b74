"""DDP707: every rank asks a person."""

from __future__ import annotations

from collections.abc import Iterator

from codemods.analysis.distribution import is_test_module
from codemods.analysis.guards.asked_questions import NAMES, questions
from codemods.analysis.ranks.started_groups import is_of_lone_scripts
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Evidence, Finding
from codemods.files.sites import Site
from codemods.files.source import SourceModule
from codemods.store.project import Project


class InputOnEveryRank(DdpCodemod):
    """A question to a person, or a debugger, that every rank comes to.

    ## What it does
    Finds `input()`, `getpass()`, `click.confirm()` and `click.prompt()`, `breakpoint()` and `set_trace()` under no test of the
    rank, in code that one process of several runs: it starts the process group, or is called by what does, or is what
    `mp.spawn` starts. Finds a debugger as well that a test of numbers (`if torch.isnan(h).any():`) leads to in the `forward` of a
    network, in a method that it comes to, or in a step of a LightningModule, that several processes run.

    ## Why it matters
    The processes of a node share one terminal, or have none. Children of `mp.spawn` and of a job on a cluster read the end of
    the file: `EOFError: EOF when reading a line`. Under torchrun all of them wait for the one keyboard: one rank gets the
    answer, the others wait on, or get an answer of their own and go another way.

    ## Example
    ```python
    import torch.distributed as dist


    def main(run):
        dist.init_process_group("nccl")
        answer = input(f"replace {run}? [y/N] ")
        if answer == "y":
            train(run)
    ```

    ## Use instead
    ```python
    import torch.distributed as dist


    def main(run):
        dist.init_process_group("nccl")
        answers = [input(f"replace {run}? [y/N] ") if dist.get_rank() == 0 else None]
        dist.broadcast_object_list(answers, src=0)
        if answers[0] == "y":
            train(run)
    ```

    ## Safety
    There is no fix: whether the answer is asked for by rank 0 and handed on, or is an option of the command line, is the
    project's decision.

    ## Refuses
    - Says nothing in a repository's own tests.
    - Says nothing under a test of the rank, and in a function that only some ranks call.
    - Says nothing of a debugger that a setting leads to (`if self.check:`): who turns it on wants it.
    - Says nothing where the code asks for a terminal (`isatty`), is for debugging by a flag's name, or stands in a `try`.
    - Says nothing in a program that makes no process group: tools, clean-up scripts, and the process that starts the others.
    - Says nothing of a function of the project, or a variable, that is called `input`.

    ## References
    Python's `multiprocessing`: standard input of a child is closed; torchrun hands its own terminal on to all workers; two-
    process runs of both.
    """

    code = "DDP707"
    severity = "hang"
    TRIGGERS = (
        tuple(f"{name}(".encode() for name in sorted(NAMES)),
        (b"torch", b"ccelerat", b"ightning", b"rank", b"distributed"),
    )
    SITES = (Site(
        rb"(?<![.\w])(?:input|getpass|breakpoint|confirm|prompt)\(|(?:getpass\.getpass|set_trace|click\.\w+|typer\.\w+|\.embed|\.interact)\(",
        b"input(", b"getpass", b"breakpoint(", b"set_trace(", b"confirm(", b"prompt(", b"click.", b"typer.", b".embed(",
        b".interact(",
    ),)  # fmt: skip
    READS_TESTS = False

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        for found in questions(project, module):
            if is_of_lone_scripts(project, module.path):
                return
            what = f"`{module.text_of(found.call.func)}()`"
            does = "stops every rank in a debugger" if found.stops else "is asked on every rank"
            told = (
                f"{what} {does}: the ranks share one terminal or have none, so all but one wait for an answer, or end with "
                "EOFError"
            )
            if found.by_data:
                told = (
                    f"{what} stops the rank whose numbers lead here: it waits for an answer on a terminal that all ranks share, "
                    "and the others wait for it in their next collective until the time-out"
                )
            yield self.finding(
                module, found.call, told,
                evidence=[Evidence("static", found.why, *found.place)],
                reason=_RAISE if found.by_data else _REMOVE if found.stops else _ASK,
            )  # fmt: skip


_ASK = "ask on rank 0 and hand the answer on (`broadcast_object_list`), or make it an option of the command line"
_RAISE = "take it out, or raise an error there: the launcher then ends all ranks, and the traceback says where"
_REMOVE = "take it out, or let one rank stop: `torch.distributed.breakpoint(rank=0)` waits for the others"
