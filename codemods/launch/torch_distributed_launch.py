"""DDP702: a command of the launcher that torchrun has taken the place of."""

from __future__ import annotations

from collections.abc import Iterator

from codemods.analysis.distribution import is_test_file
from codemods.analysis.frameworks import torch_pin
from codemods.analysis.job_files.job_pins import pin_of_job
from codemods.analysis.job_files.lasting_commands import stated_torch
from codemods.analysis.job_files.old_commands import LAUNCHER, OldCommand, old_commands
from codemods.analysis.job_files.ready_for_torchrun import Readiness, is_only_named_so, readiness, scripts_of
from codemods.analysis.requirement_files import documents
from codemods.codemod import DdpCodemod
from codemods.findings import Applicability, Doubt, Edit, Evidence, Finding, lowest
from codemods.project import Project
from codemods.record import record, replace
from codemods.source import SourceModule
from codemods.text_file import DOCUMENT_KINDS, IMAGE_KINDS, SHELL_KINDS, YAML_KINDS, TextFile

_SINCE = (1, 10)  # torch: torchrun
_OLD = f"{LAUNCHER} is deprecated, and warns at each start"


@record
class _Torch:
    """What the installed torch allows. assumes: what a fix rests on, "" where torchrun is surely there."""

    level: Applicability
    assumes: str = ""


class TorchDistributedLaunch(DdpCodemod):
    """A command that starts ranks by `python -m torch.distributed.launch`, which is deprecated.

    ## What it does
    Finds commands of `torch.distributed.launch` in shell scripts, Slurm files, Makefiles, Dockerfiles, YAML, fenced shell blocks
    of Markdown, and in lists of arguments of a program. Writes `torchrun` for it (`-m torch.distributed.run` where the
    interpreter is a chosen one or has options), takes out `--use_env`, which torchrun refuses, and in the same fix makes the
    script that is started ready: its option `--local_rank` takes `LOCAL_RANK` for its default and is required no longer.

    ## Why it matters
    torch warns at each start that the module "is deprecated and will be removed in future". Written over by hand, the command
    loses the option `--local_rank`: a script that reads it puts all ranks on the GPU of the default, and `--use_env` ends the
    start with "unrecognized arguments".

    ## Example
    ```bash
    python -m torch.distributed.launch --nproc_per_node=4 --use_env train.py --epochs 90
    ```

    ## Use instead
    ```bash
    torchrun --nproc_per_node=4 train.py --epochs 90
    ```

    ## Safety
    Safe with `--use_env`, by which both launchers do the same, and where the script is in the repository and takes its local rank
    from `LOCAL_RANK`, or does by this fix. Unsafe where the repository allows a torch below 1.10, which has no `torchrun`.

    ## Refuses
    - Says nothing where torch is pinned below 1.10.
    - Says nothing in Markdown of a script that the repository does not have, and in a repository's own tests.
    - Tells a script that is not in the repository or stands behind a variable, one that reads the option in another way than by
      argparse, and one that takes `LOCAL_RANK` nowhere.
    - Tells a default that is worked out, for which the option cannot be given another.
    - Tells options that torchrun does not know, and variables in which `--use_env` or an unknown option may stand.
    - Tells `--use_env` with a comment before it.

    ## References
    The page of `torchrun`: "Transitioning from torch.distributed.launch to torchrun"; the warning of the module in torch 2.13;
    the parsers of both in `torch/distributed/run.py`; runs of both on two processes.
    """

    code = "DDP702"
    TRIGGERS = ((LAUNCHER.encode(),),)
    READS_TESTS = False
    TEXT = (LAUNCHER.encode(),)
    TEXT_KINDS = (*SHELL_KINDS, *YAML_KINDS, *DOCUMENT_KINDS, *IMAGE_KINDS)

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_file(module.path):
            return
        torch: _Torch | None = None
        for command in old_commands(module):
            torch = torch or _torch(project, module)
            if torch.level is Applicability.DISPLAY:
                return
            if (found := self._judged(project, command, torch)) is not None:
                yield found

    def _judged(self, project: Project, command: OldCommand, torch: _Torch) -> Finding | None:
        edits = command.edits()
        scripts = scripts_of(project, command)
        if command.strange or not edits:
            why = command.strange or "a comment stands before `--use_env`: take the option out by hand"
            return self._told(command, why, key=why)
        if command.use_env:
            at = Evidence("static", "`--use_env`: the script is handed nothing", command.file.path, command.span.line)
            return self._fixed(command, edits, torch, [Readiness(Applicability.SAFE, "", (at,))])
        ready = [readiness(project, path) for path in scripts]
        not_ready = next((r.why for r in ready if r.why), "")
        if not scripts or (not_ready and all(is_only_named_so(command, path) for path in scripts)):
            if command.file.path.endswith(DOCUMENT_KINDS):
                return None
            named = command.script.raw if command.script is not None else "the script"
            return self._told(command, f"{named} is not found in the repository: let it take LOCAL_RANK, then write torchrun")
        return self._told(command, not_ready, key=not_ready) if not_ready else self._fixed(command, edits, torch, ready)

    def _fixed(self, command: OldCommand, edits: list[Edit], torch: _Torch, ready: list[Readiness]) -> Finding:
        beside = [e for r in ready for e in r.edits]
        instead = "" if command.use_env else ", and sets LOCAL_RANK instead of handing over `--local-rank`"
        return self.finding(
            command.file, command.span, f"{_OLD}: {command.becomes} starts the same ranks{instead}",
            level=lowest(torch.level, *(r.level for r in ready)),
            edits=[*edits, *dict.fromkeys(beside)],
            evidence=[e for r in ready for e in r.evidence],
            reason="; ".join(dict.fromkeys(a for a in (torch.assumes, *(r.assumes for r in ready)) if a)),
        )  # fmt: skip

    def _told(self, command: OldCommand, why: str, *, key: str = "") -> Finding:
        found = self.finding(command.file, command.span, _OLD, reason=why)
        return replace(found, doubt=Doubt(key or why, ()))


def _torch(project: Project, file: SourceModule) -> _Torch:
    """DISPLAY where the installed torch has no torchrun."""
    pin = pin_of_job(project, file, "torch") if isinstance(file, TextFile) else torch_pin(project, near=file.path)
    if pin is not None and pin.surely_below(_SINCE) and not documents(pin.path):
        return _Torch(Applicability.DISPLAY)
    if pin is not None and pin.minimum is not None and pin.minimum < _SINCE:
        return _Torch(Applicability.UNSAFE, f"assumes torch 1.10 or later, which has torchrun: {pin.path} allows an older one")
    stated = [v for v in stated_torch(project) if tuple(int(n) for n in v.split(".")[:2]) < _SINCE]
    if stated and (pin is None or not pin.surely_at_least(_SINCE)):
        return _Torch(Applicability.UNSAFE, f"assumes torch 1.10 or later, which has torchrun: a text names torch {stated[0]}")
    return _Torch(Applicability.SAFE)
