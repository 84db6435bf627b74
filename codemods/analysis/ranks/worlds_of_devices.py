"""Process groups of as many ranks as a machine has GPUs, in a program whose processes a launcher counts.

`world_size=torch.cuda.device_count()` is right where the program spawns a rank for each GPU. Under
`torchrun --nproc_per_node=2` on a machine with eight the group waits for six ranks that nobody starts.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_file
from codemods.analysis.guards.entry_points import group_arguments, starts_group
from codemods.analysis.job_files.command_lines import CommandLine, Flag, command_lines, script_of
from codemods.analysis.loading.same_program import whole_program
from codemods.analysis.names import qualified
from codemods.analysis.ranks.rank_sources import rank_source
from codemods.analysis.ranks.values_behind import values_behind
from codemods.files.left_alone import left
from codemods.files.source import SourceModule
from codemods.files.text_file import DOCUMENT_KINDS, SHELL_KINDS, YAML_KINDS, TextFile
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_LAUNCHERS = (b"torchrun", b"torch.distributed.run", b"torch.distributed.launch")
_LONGEST = 400_000
_USUAL = 8  # GPUs of a machine: as many processes may be all that its authors have
# What hides GPUs from a program, or asks for as many as there are processes.
_HIDES = lazy(r"CUDA_VISIBLE_DEVICES|NVIDIA_VISIBLE_DEVICES|gres|--gpus|\bsbatch\b|#SBATCH|#PBS|#\$ |\bsrun\b|--gpu|docker")
_HIDES_HERE = lazy(rb"environ(?:\[|\.setdefault\(|\.update\(.*)[\s\"']*CUDA_VISIBLE_DEVICES[\"']\s*(?:\]\s*=(?!=)|,)")
_STARTS_RANKS = lazy(rb"\bspawn\(|start_processes\(|\bProcess\(|_launcher\(|submitit|horovod|mpi4py|\bray\b")
_VARIABLE = lazy(r"\$\{?([A-Za-z_]\w*)\}?$")
_ARGUMENT = lazy(r"\$\d|\$\{\d(?::-[1-7])?\}")


@record
class Started:
    """A command that starts as many processes of a script as `number` says, which stands there."""

    script: str
    launcher: str
    number: str
    path: str
    line: int


@record
class WorldOfDevices:
    """size: the number of ranks in the call that starts the group. counted: where the GPUs are counted."""

    call: ast.Call
    size: ast.expr
    counted_in: SourceModule
    counted: ast.expr
    command: Started


def worlds_of_devices(project: Project, module: SourceModule) -> Iterator[WorldOfDevices]:
    """The starts of groups in the file that have a rank for each GPU, and are run by a launcher with a number of its own."""
    for call in module.calls_named("init_process_group"):
        given = (group_arguments(call) if starts_group(module, call) else None) or {}
        size = given.get("world_size")
        counted = _counts_devices(project, module, size) if size is not None else None
        if size is None or counted is None or not _has_rank_of_launcher(project, module, given):
            continue
        if _knows_the_launcher(module, call) and left(module, call, "the function asks the launcher for the number of processes"):
            continue
        command = next((c for c in _commands(project) if _runs(project, c, module)), None)
        if command is not None:
            yield WorldOfDevices(call, size, *counted, command)
            continue
        left(module, call, "no command of the repository starts this by torchrun with a number of processes beside other GPUs")


def _counts_devices(project: Project, module: SourceModule, size: ast.expr) -> tuple[SourceModule, ast.expr] | None:
    """Where the GPUs are counted; None where the size may come from anything else."""
    values = values_behind(project, module, size, constants=True)
    calls = [v for v in values if isinstance(v.node, ast.Call) and qualified(v.module, v.node.func) == "torch.cuda.device_count"]
    return (calls[0].module, calls[0].node) if calls and len(calls) == len(values) else None


def _has_rank_of_launcher(project: Project, module: SourceModule, given: dict[str, ast.expr]) -> bool:
    """True where the rank is what a launcher gives each process: in the environment, or as an option."""
    rank, method = given.get("rank"), given.get("init_method")
    if rank is not None:
        return rank_source(module, rank, project) is not None
    by_environment = method is None or (isinstance(method, ast.Constant) and method.value in (None, "env://"))
    return by_environment and "store" not in given


def _knows_the_launcher(module: SourceModule, call: ast.Call) -> bool:
    function = module.function_of(call)
    return "WORLD_SIZE" in (module.text_of(function) if function is not None else module.text)


# Commands


def _runs(project: Project, command: Started, module: SourceModule) -> bool:
    """True where the command starts a program of this file that spawns no ranks, and hides no GPUs from itself."""
    program = whole_program(project, command.script)
    if module.path not in program:
        return False
    texts = [project.read(p) or b"" for p in program if not is_test_file(p)]
    return not any(_STARTS_RANKS.search(text) or _HIDES_HERE.search(text) for text in texts)


def _commands(project: Project) -> tuple[Started, ...]:
    return project.keep("commands with a number of processes of their own", lambda: tuple(_all_commands(project)))


def _all_commands(project: Project) -> Iterator[Started]:
    kinds = (*SHELL_KINDS, *YAML_KINDS, *DOCUMENT_KINDS)
    named = {p for word in _LAUNCHERS for p in project.files_containing(word, kinds=kinds)}
    for path in sorted(named, key=lambda p: (p.endswith(DOCUMENT_KINDS), p)):
        file = project.module(path) if not is_test_file(path) and len(project.read(path) or b"") <= _LONGEST else None
        if not isinstance(file, TextFile) or _HIDES.search(file.text):
            continue
        for command in command_lines(file):
            number = _number(command) if command.launcher == "torchrun" else ""
            script = script_of(project, command) if number else None
            if script is not None:
                line = command.span(command.words[0].start, command.words[0].end).line
                yield Started(script, _spelled(command), number, path, line)


def _number(command: CommandLine) -> str:
    """How many processes the command starts, as it is said; "" where that may be one for each GPU, or there are more machines."""
    given = {f.field: f for f in command.launcher_flags}
    flag, nodes = given.get("nproc_per_node"), given.get("nnodes")
    if nodes is not None and nodes.settled != "1":
        return ""
    if flag is None:
        return "1" if "nproc_per_node" not in given and _is_closed(command) else ""
    value = flag.settled
    if value is not None:
        return value if _is_small(value) else ""
    return _said_in_the_file(command, flag)


def _is_closed(command: CommandLine) -> bool:
    """False where words that the shell decides may hold further options of the launcher."""
    first = command.words.index(next(w for w in command.words if w.text == command.target))
    return all(w.value is not None for w in command.words[:first])


def _said_in_the_file(command: CommandLine, flag: Flag) -> str:
    """`$NGPUS` where the file takes it from its own arguments, or a small number that it sets, and nothing else gives it."""
    raw = (flag.word.raw.partition("=")[2] if flag.joined else flag.values[0].raw if len(flag.values) == 1 else "").strip("\"'")
    if _ARGUMENT.fullmatch(raw):
        return raw
    name = _VARIABLE.match(raw)
    given = re.findall(rf"(?:^|[;\s]){name[1]}=([^\s;#]*)", command.file.text) if name is not None else []
    values = [value.strip("\"'") for value in given]
    if values and all(_ARGUMENT.fullmatch(value) for value in values):
        return raw
    return values[0] if len(values) == 1 and _is_small(values[0]) else ""


def _is_small(value: str) -> bool:
    return value.isdigit() and int(value) < _USUAL


def _spelled(command: CommandLine) -> str:
    return "torch.distributed.launch" if any(w.text == "torch.distributed.launch" for w in command.words) else "torchrun"
