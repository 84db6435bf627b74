"""Which command gives the Trainer of its program a strategy? Lightning refuses a second one, by `strategy=`, beside it."""

from __future__ import annotations

import ast

from codemods.analysis.job_files.documented_starts import starts_of
from codemods.analysis.names import dotted, last
from codemods.files.source import SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

# `--accelerator gpu` is a kind of device.
_GIVEN = lazy(
    r"(?<!\S)--(?:strategy[= ]+[\"']?(?!auto\b)\w+|(?:accelerator|distributed_backend)[= ]+[\"']?"
    r"(?:dp|ddp\w*|fsdp\w*|horovod|deepspeed\w*|bagua)(?![\w-]))"
)


@record
class CommandWithStrategy:
    """job, line: where it stands. written: the option with its value."""

    job: str
    line: int
    written: str


def command_with_strategy(project: Project, module: SourceModule, call: ast.Call) -> CommandWithStrategy | None:
    """The first command for the file that gives `Trainer.from_argparse_args(args)` a strategy."""
    if last(dotted(call.func)) != "from_argparse_args":
        return None
    for start in starts_of(project, module.path) or ():
        if (given := _GIVEN.search(start.given)) is not None:
            return CommandWithStrategy(start.job, start.line, given[0])
    return None
