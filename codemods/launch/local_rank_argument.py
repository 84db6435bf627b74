"""DDP701: a script learns its local rank from `--local_rank` alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from codemods.analysis.distribution import is_test_file, is_test_module
from codemods.analysis.job_files.local_rank_option import (
    PASSED,
    SPELLINGS,
    from_environment,
    local_rank_flag,
    local_rank_options,
    options_of,
    quoted,
    with_alias,
)
from codemods.analysis.job_files.old_launcher import STARTS_IN, Start, started_with_launcher
from codemods.analysis.job_files.said_torch import said_torch
from codemods.analysis.ranks.option_devices import ASKED, device_by_option, has_its_own
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Edit, Evidence, Finding, ReplaceExpression
from codemods.files.import_statements import stem_of
from codemods.files.source import SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_UNHEARD = "torchrun does not pass `--local-rank`, and every rank goes by the default: read LOCAL_RANK"
_REFUSED = (
    "torch.distributed.launch of torch 2 passes `--local-rank`, and argparse then refuses `--local_rank`; torchrun passes "
    "neither, and every rank goes by the default: read LOCAL_RANK"
)
_STARTED = (
    "{} (line {}) starts this script with torch.distributed.launch, which passes `--local-rank` since torch 2.0: argparse "
    'refuses it, and every process ends with "unrecognized arguments"'
)
_LEFT_OVER = (
    "{} (line {}) starts this script with torch.distributed.launch, which passes `--local-rank` since torch 2.0: "
    "`parse_known_args` ({}:{}) leaves it among the rest, and every process keeps the default of this option"
)
_UNKNOWN = (
    "{} (line {}) starts this script with torch.distributed.launch, which passes `--local-rank` since torch 2.0: absl knows "
    "`--local_rank` alone, and every process ends with \"Unknown command line flag 'local-rank'\""
)
_STARTED_BEFORE = (
    "{} (line {}) starts this script with torch.distributed.launch, which passes `--local_rank` before torch 2.0 ({}): argparse "
    'refuses it, and every process ends with "unrecognized arguments"'
)
_PASSES_DASHES = (2, 0)  # torch: the launcher passes `--local-rank`
_TAKEN_FROM_ENVIRONMENT = lazy(rb"(?m)^[^#\n]*local_rank[\"'\])]*\s*=[^=\n]*LOCAL_RANK")


class LocalRankArgument(DdpCodemod):
    """A script of raw torch that takes its local rank from the command line, where newer launchers do not put it.

    ## What it does
    Finds faults of `add_argument("--local_rank", ...)`. Where a script, a text or a program of the repository starts the
    file with `torch.distributed.launch`, the option accepts `--local-rank` as well, whether the program reads it or not (and
    `--local_rank` as well as `--local-rank` where all that names a torch names one below 2.0, whose launcher passes that); so for
    `flags.DEFINE_integer("local_rank", ...)` of absl, which gets an alias. Where the script starts a process group, chooses its
    GPU by the option and does not read `LOCAL_RANK`, the option takes its default from there, and accepts both spellings; it is
    followed over names, fields and the functions it is handed to (also one that is fetched by a part of its name:
    `getattr(comm, "init_%s" % kind)(args.local_rank)`), and the group may start in a file beside the parser's.

    ## Why it matters
    `torch.distributed.launch` passes `--local-rank` since torch 2.0: argparse ends every process with "unrecognized arguments",
    absl with "Unknown command line flag".
    `torchrun` passes nothing and sets `LOCAL_RANK`: a program that chooses its GPU by the option has the default on all ranks.
    All of them take one GPU, where NCCL says "Duplicate GPU detected", or the memory runs out.

    ## Example
    ```python
    import argparse

    import torch
    import torch.distributed as dist

    parser = argparse.ArgumentParser()
    parser.add_argument("--local_rank", type=int, default=0)
    args = parser.parse_args()
    torch.cuda.set_device(args.local_rank)
    dist.init_process_group("nccl")
    ```

    ## Use instead
    ```python
    import argparse
    import os

    import torch
    import torch.distributed as dist

    parser = argparse.ArgumentParser()
    parser.add_argument("--local_rank", "--local-rank", type=int, default=int(os.environ.get("LOCAL_RANK", 0)))
    args = parser.parse_args()
    torch.cuda.set_device(args.local_rank)
    dist.init_process_group("nccl")
    ```

    ## Safety
    Safe where the argument is a whole number with a plain default: what the command line gives still wins, and without a
    launcher the old default holds. The name in the result stays `local_rank`. An alias of absl leaves the flag as it is.

    ## Refuses
    - Says nothing in a repository's own tests.
    - Says nothing where a file of the repository reads `LOCAL_RANK` into the argument (not another script, for its own option),
      and in a file that reads it at all (not `cfg.LOCAL_RANK`, a field), unless a command starts it with
      `torch.distributed.launch` without `--use_env`.
    - Says nothing of `--local-rank` where the repository is started with `torch.distributed.launch`, and never with torchrun,
      unless all torch that it names is below 2.0.
    - Says nothing where the pins, the texts, the images and the install scripts name no torch from 2.0 on, whose launcher passes
      `--local_rank` (`PyTorch 1.7.1`, `cudatoolkit=10.1`), and in a file of DeepSpeed, whose launcher passes `--local_rank`.
    - Says nothing where a file beside the parser's starts the group, or the argument is followed, and the project gives the field
      another value (`args.local_rank = gpu`), or spawns its processes.
    - Says nothing of an argument that chooses no device, and of a script that starts no process group, where no command of the
      repository starts it. Says nothing there of a script that passes over unknown arguments.
    - Takes for unsafe where a torch below 2.0 is named beside one that is, or may be, newer.
    - Says nothing of a flag of absl where an alias is there, and where unknown flags are passed over (`known_only`, `undefok`).
    - Reports a call with comments inside, without `type=int`, or whose default is worked out.

    ## References
    torch 2.0: "torch.distributed.launch: the argument --local-rank replaces --local_rank"; the page of `torchrun`: "Moving from
    torch.distributed.launch to torchrun"; NCCL's error "Duplicate GPU detected"; absl-py 2.5, run with both spellings, and with
    `flags.DEFINE_alias`.
    """

    code = "DDP701"
    severity = "crash"
    subject = "Take the local rank as launchers give it"
    must_show = "The script starts with `--local_rank` and with `--local-rank`."
    printed = ("unrecognized arguments: --local-rank", "Duplicate GPU detected")
    TRIGGERS = ((b"local_rank", b"local-rank"), (b"add_argument", b"DEFINE_integer"))
    READS_TESTS = False

    @classmethod
    def commit_subject(cls, findings: Sequence[Finding]) -> str:
        """An option that only gets its other spelling takes nothing from the environment."""
        spelled = findings and not any(finding.message in (_UNHEARD, _REFUSED) for finding in findings)
        return "Accept `--local_rank` and `--local-rank`" if spelled else cls.subject

    def is_worth_parsing(self, path: str, project: Project) -> bool:
        data = project.read(path) or b""
        named = any(spelling.encode() in data for spelling in SPELLINGS) or (b"DEFINE_integer" in data and b"absl" in data)
        return named and b"deepspeed" not in data

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module) or module.holds(b"deepspeed"):
            return
        found = list(self._by_device(module, project))
        yield from found or self._by_command(module, project)
        yield from self._of_absl(module, project)

    def _by_command(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        """The option of a file that is started by the launcher, which no longer passes it in this spelling."""
        calls = local_rank_options(module)
        if len(calls) != 1 or options_of(calls[0]).issuperset(SPELLINGS) or _passes_over(module):
            return
        start = started_with_launcher(project, module)
        if PASSED in options_of(calls[0]):
            yield from self._before_the_dashes(module, project, calls[0], start)
            return
        if start is None or _is_old(project, module):
            return
        older = said_torch(project, module).names_below(_PASSES_DASHES)
        edits = _both_spellings(module, calls[0])
        known = _passed_over_by(project, module)
        text = _STARTED if known is None else _LEFT_OVER
        yield self.finding(
            module, calls[0], text.format(start.text, start.line, *(known or ())),
            level=_level(older) if edits else Applicability.DISPLAY,
            edits=edits,
            evidence=[Evidence("static", f"starts {start.script} with torch.distributed.launch", start.path, start.line)],
            reason=_assumed(older) if edits else "give the option both spellings, `--local_rank` and `--local-rank`",
        )  # fmt: skip

    def _before_the_dashes(
        self, module: SourceModule, project: Project, call: ast.Call, start: Start | None
    ) -> Iterator[Finding]:
        """The option in the new spelling alone, of a file that the launcher of an older torch starts."""
        if start is None or not _is_old(project, module) or _passed_over_by(project, module) is not None:
            return
        named = said_torch(project, module).names_below(_PASSES_DASHES)
        edits = _both_spellings(module, call)
        yield self.finding(
            module, call, _STARTED_BEFORE.format(start.text, start.line, f"{named} names an older one"),
            level=Applicability.SAFE if edits else Applicability.DISPLAY,
            edits=edits,
            evidence=[Evidence("static", f"starts {start.script} with torch.distributed.launch", start.path, start.line)],
            reason="" if edits else "give the option both spellings, `--local_rank` and `--local-rank`",
        )  # fmt: skip

    def _of_absl(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        """The flag of a file that is started by the launcher, which no longer passes it in this spelling."""
        flag = local_rank_flag(module) if module.holds(b"absl") else None
        start = started_with_launcher(project, module) if flag is not None else None
        if flag is None or start is None or b"absl" not in (project.read(start.file or "") or b"") or _is_old(project, module):
            return
        older = said_torch(project, module).names_below(_PASSES_DASHES)
        edits = with_alias(module, flag)
        yield self.finding(
            module, flag, _UNKNOWN.format(start.text, start.line),
            level=_level(older) if edits else Applicability.DISPLAY,
            edits=edits,
            evidence=[Evidence("static", f"starts {start.script} with torch.distributed.launch", start.path, start.line)],
            reason=_assumed(older) if edits else "give the flag an alias: `flags.DEFINE_alias(\"local-rank\", \"local_rank\")`",
        )  # fmt: skip

    def _by_device(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        for call in module.calls_named("add_argument"):
            option = next((a for a in call.args if isinstance(a, ast.Constant) and a.value in SPELLINGS), None)
            if option is None:
                continue
            place = device_by_option(project, module)
            passed = any(isinstance(a, ast.Constant) and a.value == PASSED for a in call.args)
            if place is None or _is_settled(project, module) or (passed and _is_launched_with_it(project)):
                return
            edits, reason = from_environment(module, call)
            older = said_torch(project, module).names_below(_PASSES_DASHES)
            yield self.finding(
                module, call,
                _UNHEARD if passed or _passes_over(module) else _REFUSED,
                level=_level(older) if edits else Applicability.DISPLAY,
                edits=edits,
                evidence=[
                    Evidence("static", "the GPU is chosen by it", place.module.path, place.node.lineno),
                    *([Evidence("safe", _OLD_WAYS, module.path, call.lineno)] if edits and not older else []),
                ],
                reason=reason or _assumed(older),
            )  # fmt: skip
            return


_OLD_WAYS = "what the command line gives still wins, and without a launcher the old default holds"


def _level(older: str) -> Applicability:
    return Applicability.UNSAFE if older else Applicability.SAFE


def _assumed(older: str) -> str:
    return f"assumes that torch 2 or torchrun starts it: {older} names an older one, beside others" if older else ""


def _passes_over(module: SourceModule) -> bool:
    """True where no parser of the file refuses what it does not know."""
    return bool(module.calls_named("parse_known_args")) and not module.calls_named("parse_args")


def _passed_over_by(project: Project, module: SourceModule) -> tuple[str, int] | None:
    """Where the files that import this parser have it leave what it does not know, and none of them parses otherwise."""
    if module.calls_named("parse_known_args", "parse_args"):
        return None
    users = [project.module(p) for p in sorted(project.files_importing(stem_of(module.path))) if not is_test_file(p)]
    if any(m is not None and m.calls_named("parse_args") for m in users):
        return None
    known = ((m.path, c.lineno) for m in users if m is not None for c in m.calls_named("parse_known_args"))
    return next(known, None)


def _both_spellings(module: SourceModule, call: ast.Call) -> list[Edit]:
    """The call, which takes the other spelling as well; the name in the result stays, which both of them give."""
    text, first = module.text_of(call), next(a for a in call.args if isinstance(a, ast.Constant) and a.value in SPELLINGS)
    written = module.text_of(first)
    if "#" in text or text.count(written) != 1 or call.args[0] is not first:
        return []
    other = next(s for s in SPELLINGS if s != first.value)
    return [ReplaceExpression(module.path, module.span(call), text.replace(written, f"{written}, {quoted(written, other)}"))]


def _is_old(project: Project, module: SourceModule) -> bool:
    """True where the launcher of every torch that the repository names still passes `--local_rank`."""
    return said_torch(project, module).surely_below(_PASSES_DASHES)


def _is_settled(project: Project, module: SourceModule) -> bool:
    """True where a launcher of this age passes it, or another file takes it from the environment."""
    if _is_old(project, module):
        return True
    paths = [p for p in project.files_containing(b"LOCAL_RANK") if not is_test_file(p)]
    near = [project.read(p) or b"" for p in paths if not has_its_own(project, p, module.path)]
    # `local_rank = cfg.LOCAL_RANK` takes what some file has put there
    return any(map(_TAKEN_FROM_ENVIRONMENT.search, near)) and any(map(ASKED.search, near))


def _is_launched_with_it(project: Project) -> bool:
    """True where the repository's own scripts and texts name the launcher that passes it, and never torchrun."""
    named = project.files_containing(b"torch.distributed.launch", kinds=STARTS_IN)
    return bool(named) and not project.files_containing(b"torchrun", kinds=STARTS_IN)
