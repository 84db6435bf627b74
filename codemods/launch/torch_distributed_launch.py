"""DDP702: a command of the launcher that torchrun has taken the place of."""

from __future__ import annotations

from collections.abc import Iterator

from codemods.analysis.distribution import is_test_file
from codemods.analysis.job_files.ended_commands import cut_off_by
from codemods.analysis.job_files.old_commands import LAUNCHER, OldCommand, is_shown_as_old, old_commands
from codemods.analysis.job_files.ready_for_torchrun import Readiness, is_only_named_so, readiness, scripts_of
from codemods.analysis.job_files.said_torch import SaidTorch, said_torch
from codemods.analysis.ranks.superseded import is_copy_beside
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Doubt, Edit, Evidence, Finding, lowest
from codemods.files.left_alone import left
from codemods.files.passages import Passage
from codemods.files.source import SourceModule
from codemods.files.text_file import DOCUMENT_KINDS, IMAGE_KINDS, SHELL_KINDS, YAML_KINDS
from codemods.runtime.record import replace
from codemods.store.project import Project

_SINCE = (1, 10)  # torch: torchrun
_PASSES_DASHES = (2, 0)  # torch: the launcher passes `--local-rank`
_OLD = f"{LAUNCHER} is deprecated, and warns at each start"
_REFUSED = (
    f"{LAUNCHER} passes `--local-rank` since torch 2.0, and the parser at {{}} takes `--local_rank` alone: "
    'every process ends with "unrecognized arguments"'
)
_REFUSED_BY_FIELDS = f"{LAUNCHER} passes `--local-rank` since torch 2.0, and {{}}: every process ends there with ValueError"


class TorchDistributedLaunch(DdpCodemod):
    """A command that starts ranks by `python -m torch.distributed.launch`, which is deprecated.

    ## What it does
    Finds commands of `torch.distributed.launch` in shell scripts, Slurm files, Makefiles, Dockerfiles, YAML, fenced shell blocks
    of Markdown, and in lists of arguments of a program. Writes `torchrun` for it (`-m torch.distributed.run` where the
    interpreter is a chosen one or has options), and takes out `--use_env`, which torchrun refuses. Where the script that is
    started reads its option `--local_rank`, the same fix takes `LOCAL_RANK` for the default, and requires the option no longer.

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
    from `LOCAL_RANK`, or does by this fix. Unsafe where a pin or a text of the repository names or allows a torch below 1.10,
    which has no `torchrun`, and the script's parser refuses what the launcher of torch 2 passes. Unsafe where the script is named
    by a variable that the job file sets (`$method.py`): whoever sets another starts another script.

    ## Refuses
    - Says nothing where the pins, the texts, the images and the install scripts name no torch from 2.0 on (`PyTorch 1.7.1`,
      `cudatoolkit=10.1`): that launcher passes what the script takes, and below 1.10 there is no torchrun. A page that installs a
      torch speaks for its folder, whatever those above it name.
    - Says nothing where the program sets `MASTER_PORT` itself, whatever the launcher has set: the ranks look for the store of
      torchrun there, and none finds the others (run with torch 2.13, by the old launcher as well).
    - Says nothing where one of them names or allows a torch below 1.10 and the start ends in no error: only the warning would go.
    - Says nothing below a heading of a document that names the launcher (`## Using torch.distributed.launch (deprecated)`) where
      the start ends in no error: it is shown there for what it is.
    - Says nothing of a command for one process (`--nproc_per_node=1`) that ends in no error, and of one that its line ends, for
      want of a backslash above its options (DDP710 does).
    - Says nothing of a script that the repository does not have or that stands behind a variable, and in its own tests.
    - Says nothing of a script that cannot be made ready (another parser, a default that is worked out, no `LOCAL_RANK`), and of
      options that torchrun does not know or that a variable may hold, where the start ends in no error.
    - Reports those where argparse takes `--local_rank` alone, and torch 2 is not ruled out: the launcher passes `--local-rank`.
      So with `HfArgumentParser`, where a pin holds transformers below 4.46, whose parser takes both spellings.

    ## References
    The page of `torchrun`: "Transitioning from torch.distributed.launch to torchrun"; the warning of the module in torch 2.13;
    the parsers of both in `torch/distributed/run.py`; runs of both on two processes. `HfArgumentParser` of transformers 4.45.2
    and 4.46.0, run with `--local-rank=1`: "Some specified arguments are not used by the HfArgumentParser" in the first.
    """

    code = "DDP702"
    severity = "noise"
    subject = "Start ranks by torchrun"
    must_show = "The job starts as many ranks as before, without the warning; each takes another GPU."
    printed = (
        ("torch.distributed.launch is deprecated", "unrecognized arguments: --use_env", "arguments are required: --local_rank",
         "arguments are not used by the HfArgumentParser: ['--local-rank")
    )
    TRIGGERS = ((LAUNCHER.encode(),),)
    READS_TESTS = False
    TEXT = (LAUNCHER.encode(),)
    TEXT_KINDS = (*SHELL_KINDS, *YAML_KINDS, *DOCUMENT_KINDS, *IMAGE_KINDS)

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_file(module.path):
            return
        if is_copy_beside(project, module.path) and left(module, None, "it is a copy beside the file itself, named by nobody"):
            return
        torch: SaidTorch | None = None
        for command in old_commands(module):
            torch = torch or said_torch(project, module)
            if torch.surely_below(_PASSES_DASHES) and not command.use_env:
                continue  # the launcher is there, and passes what the script takes
            if (found := self._judged(project, command, torch)) is not None:
                yield found

    def _judged(self, project: Project, command: OldCommand, torch: SaidTorch) -> Finding | None:
        if isinstance(command.source, Passage) and cut_off_by(command.source.text, command.words[-1]):
            return None  # it starts the script without its options: DDP710 tells of it
        edits = command.edits()
        as_old = is_shown_as_old(command)
        older = torch.allows_below(_SINCE)
        if command.use_env:
            if command.starts_one or older or command.strange or not edits or as_old:
                return None
            at = Evidence("safe", "`--use_env`: the script is handed nothing", command.file.path, command.span.line)
            return self._fixed(command, edits, "", [Readiness(Applicability.SAFE, "", (at,))])
        scripts = scripts_of(project, command)
        ready = [readiness(project, path) for path in scripts]
        not_ready = next((r.why for r in ready if r.why), "")
        if not scripts or (not_ready and all(is_only_named_so(command, path) for path in scripts)):
            return None
        by_fields = _by_fields(ready)
        refused = by_fields or next((_REFUSED.format(r.refused) for r in ready if r.refused), "")
        if command.starts_one and not refused:
            return None  # one process warns once, and no rank of it is told its place by this
        why = command.strange or not_ready
        if why or not edits:
            return self._told(command, refused, why, by_fields=bool(by_fields)) if refused else None
        return self._fixed(command, edits, older, ready) if refused or not (older or as_old) else None

    def _fixed(self, command: OldCommand, edits: list[Edit], older: str, ready: list[Readiness]) -> Finding:
        beside = [e for r in ready for e in r.edits]
        instead = "" if command.use_env else ", and sets LOCAL_RANK instead of handing over `--local-rank`"
        assumes = f"assumes torch 1.10 or later, which has torchrun: {older} names or allows an older one" if older else ""
        word = command.script
        set_above = word is not None and word.settled is not None and not command.use_env
        if word is not None and set_above:  # whoever writes another name there starts another script
            stays = f"assumes that `{word.raw}` stays {word.text}: others are not made ready"
            assumes = f"{assumes}; {stays}" if assumes else stays
        ends = _by_fields(ready)
        return self.finding(
            command.file, command.span, f"{ends or _OLD}: {command.becomes} starts the same ranks{instead}",
            level=lowest(Applicability.UNSAFE if older or set_above else Applicability.SAFE, *(r.level for r in ready)),
            edits=[*edits, *dict.fromkeys(beside)],
            evidence=[e for r in ready for e in r.evidence],
            reason="; ".join(dict.fromkeys(a for a in (assumes, *(r.assumes for r in ready)) if a)),
            severity="crash" if ends else "",
        )  # fmt: skip

    def _told(self, command: OldCommand, refused: str, why: str, *, by_fields: bool) -> Finding:
        found = self.finding(command.file, command.span, refused, reason=why, severity="crash" if by_fields else "")
        return replace(found, doubt=Doubt(refused, ()))


def _by_fields(ready: list[Readiness]) -> str:
    """What comes of the command by a parser that makes its options of fields; "" where one script it may mean has none."""
    return _REFUSED_BY_FIELDS.format(ready[0].refusal) if ready and all(r.refusal for r in ready) else ""
