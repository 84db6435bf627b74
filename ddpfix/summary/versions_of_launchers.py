"""Which launcher starts a program under the torch that its repository asks for, where the one that its command has does not."""

from __future__ import annotations

from codemods.analysis.frameworks import torch_pin
from codemods.analysis.job_files.command_lines import CommandLine
from codemods.analysis.job_files.local_rank_option import PASSED, SPELLINGS
from ddpfix.summary.needed_options import Program
from ddpfix.summary.two_processes import OtherLauncher

_TORCHRUN_SINCE, _DASHES_SINCE = (1, 10), (2, 0)
_BY_ENVIRONMENT = frozenset({"--use_env", "--use-env"})
_TWO = "--nproc_per_node=2"
_LAUNCH = ("python", "-m", "torch.distributed.launch", _TWO)
# The option that neither torchrun nor the launcher of torch 2 hands over so.
_BY_SHELL = ("torchrun", "--standalone", _TWO, "--no_python", "bash", "-c", "'exec python \"$@\" --local_rank=$LOCAL_RANK'", "-")
IN_PLACE_OF_PYTHON = "where it has plain Python"


def launcher_here(program: Program, script: str, command: CommandLine, *, joins: bool) -> OtherLauncher | None:
    """None where the command's own will do. joins: the command has plain Python, and the program joins a launcher's processes."""
    pin = torch_pin(program.project, near=script)
    old = pin is not None and pin.surely_below(_DASHES_SINCE)
    if joins:
        return _in_place_of_python(program, old=old, oldest=pin is not None and pin.surely_below(_TORCHRUN_SINCE))
    words = {word.text for word in command.words}
    if "torch.distributed.launch" not in words or words & _BY_ENVIRONMENT or old or not _takes_underscore_alone(program):
        return None
    return OtherLauncher(_BY_SHELL, "by torchrun: the launcher of torch 2 gives --local-rank, which its parser refuses")


def _in_place_of_python(program: Program, *, old: bool, oldest: bool) -> OtherLauncher:
    if _asks_for_the_option(program):
        if old or not _takes_underscore_alone(program):
            return OtherLauncher(_LAUNCH, f"by torch.distributed.launch, {IN_PLACE_OF_PYTHON}")
        return OtherLauncher(_BY_SHELL, f"by torchrun, {IN_PLACE_OF_PYTHON}")
    if oldest:
        return OtherLauncher((*_LAUNCH, "--use_env"), f"by torch.distributed.launch, {IN_PLACE_OF_PYTHON}")
    return OtherLauncher(("torchrun", "--standalone", _TWO), f"by torchrun, {IN_PLACE_OF_PYTHON}")


def _flags(program: Program) -> frozenset[str]:
    return frozenset(flag for option in program.options.values() for flag in option.flags)


def _takes_underscore_alone(program: Program) -> bool:
    return SPELLINGS[0] in _flags(program) and PASSED not in _flags(program)


def _asks_for_the_option(program: Program) -> bool:
    """True where the rank comes from the command line alone."""
    if not _flags(program) & frozenset(SPELLINGS):
        return False
    return not any(b"LOCAL_RANK" in (program.project.read(path) or b"") for path in program.files)
