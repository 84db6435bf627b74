"""Programs that leave each of their processes fewer GPUs than a command of the repository starts processes on a machine.

`os.environ["CUDA_VISIBLE_DEVICES"] = "0"` at the top of a script stands over whatever the launcher, or the shell, has set. Two
ranks then share a GPU, which NCCL refuses ("Duplicate GPU detected"), or the second asks for a device that it does not see.
"""

from __future__ import annotations

import ast
import sys

from codemods.analysis.distribution import is_test_file
from codemods.analysis.guards.entry_points import starts_group
from codemods.analysis.job_files.command_lines import CommandLine, command_lines, script_of
from codemods.analysis.loading.same_program import whole_program
from codemods.analysis.ranks.counted_among import environment
from codemods.analysis.ranks.launcher_variables import is_sure_to_come
from codemods.files.source import SourceModule
from codemods.files.text_file import DOCUMENT_KINDS, SHELL_KINDS, YAML_KINDS, TextFile
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_VARIABLE = "CUDA_VISIBLE_DEVICES"
_LAUNCHERS = (b"torchrun", b"torch.distributed", b"accelerate launch")
_COUNTS = {"torchrun": "nproc_per_node", "accelerate": "num_processes"}
_OTHER_MACHINES = frozenset({"num_machines", "config_file", "cpu", "use_cpu", "use_deepspeed", "tpu", "mps"})
_DEVICES = lazy(r"\d+(?:,\d+)*")
# What may ask for the devices: from there on CUDA goes by what it has seen.
_ASKS = lazy(r"cuda\.|\.cuda\b|device|Accelerator|PartialState|init_")
# Packages that ask for no device when they are imported.
_QUIET = frozenset({"torch", "torchvision", "torchaudio", "numpy", "pandas", "scipy", "sklearn", "tqdm", "yaml", "PIL", "cv2",
                    "matplotlib", "transformers", "datasets", "tokenizers", "accelerate", "wandb", "einops"})  # fmt: skip
_ON_CPU = lazy(rb"gloo|no_cuda|use_cpu|cpu[ ]*=[ ]*True|device_map[ ]*=[ ]*[\"']auto")
_LONGEST = 400_000


@record
class HiddenGpus:
    """statement: what leaves each process `gpus` of them. processes: as many start on the machine, in that line of `path`."""

    statement: ast.Assign
    gpus: int
    processes: int
    launcher: str
    script: str
    path: str
    line: int


@record
class Started:
    """A script that a command starts on several processes of one machine."""

    script: str
    launcher: str
    processes: int
    path: str
    line: int


def hidden_gpus(project: Project, module: SourceModule) -> HiddenGpus | None:
    """The constant of a script that is sure to count, and a command that starts more processes than it names GPUs."""
    found = next(((s, n) for s in module.tree.body if isinstance(s, ast.Assign) and (n := _named(module, s))), None)
    if found is None or not is_sure_to_come(module, found[0]) or not _is_first(project, module, found[0]):
        return None
    statement, gpus = found
    for one in _started(project):
        if one.script == module.path and one.processes > gpus and _meets_on_gpus(project, module):
            return HiddenGpus(statement, gpus, one.processes, one.launcher, one.script, one.path, one.line)
    return None


def _named(module: SourceModule, node: ast.Assign) -> int:
    """How many GPUs an assignment names by their numbers."""
    target, value = node.targets[0], node.value
    if len(node.targets) != 1 or not isinstance(target, ast.Subscript) or environment(module, target) != _VARIABLE:
        return 0
    text = value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""
    return len(set(text.split(","))) if _DEVICES.fullmatch(text) else 0


def _is_first(project: Project, module: SourceModule, statement: ast.Assign) -> bool:
    """True where nothing above may have asked for the devices, and nothing below sets them anew."""
    others = (n for n in module.nodes(ast.Subscript) if isinstance(n.ctx, ast.Store) and environment(module, n) == _VARIABLE)
    if any(n is not statement.targets[0] for n in others):
        return False
    for above in module.tree.body:
        if above is statement:
            return True
        if isinstance(above, (ast.Import, ast.ImportFrom)):
            if not all(_is_quiet(project, module, name) for name in _imported(above)):
                return False
        elif not isinstance(above, (ast.FunctionDef, ast.ClassDef)) and _ASKS.search(module.text_of(above)):
            return False
    return False


def _imported(node: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        return ["." if node.level else node.module or ""]
    return [alias.name for alias in node.names]


def _is_quiet(project: Project, module: SourceModule, name: str) -> bool:
    """True for an import that asks for no device: of the project's own files those that do not speak of CUDA."""
    root = name.partition(".")[0]
    resolved = project.resolve(name, module.path) if root else None
    if resolved is not None:
        return not any(b"cuda" in (project.read(p) or b"") for p in whole_program(project, resolved.path))
    return root in sys.stdlib_module_names or root in _QUIET


def _meets_on_gpus(project: Project, module: SourceModule) -> bool:
    """True where the ranks of the program meet over NCCL, and nothing of it speaks of another way."""
    paths = [p for p in sorted(whole_program(project, module.path)) if not is_test_file(p)]
    if any(_ON_CPU.search(project.read(p) or b"") for p in paths):
        return False
    for path in paths:
        data = project.read(path) or b""
        home = project.module(path) if b"nccl" in data or b"Accelerator(" in data else None
        if home is None:
            continue
        if any(starts_group(home, c) and "nccl" in home.text_of(c) for c in home.calls_named("init_process_group")):
            return True
        if home.calls_named("Accelerator"):
            return True
    return False


def _started(project: Project) -> tuple[Started, ...]:
    return project.keep("scripts on several processes of a machine", lambda: tuple(_all_started(project)))


def _all_started(project: Project) -> list[Started]:
    kinds = (*SHELL_KINDS, *YAML_KINDS, *DOCUMENT_KINDS)
    found: list[Started] = []
    named = {p for word in _LAUNCHERS for p in project.files_containing(word, kinds=kinds)}
    for path in sorted(named, key=lambda p: (p.endswith(DOCUMENT_KINDS), p)):
        file = project.module(path) if not is_test_file(path) and len(project.read(path) or b"") <= _LONGEST else None
        for command in command_lines(file) if isinstance(file, TextFile) else ():
            number = _processes(command)
            script = script_of(project, command) if number > 1 else None
            if script is not None:
                line = command.span(command.words[0].start, command.words[0].end).line
                found.append(Started(script, _spelled(command), number, path, line))
    return found


def _processes(command: CommandLine) -> int:
    """How many processes start on each machine, by the command's own words; 0 where they do not say so."""
    given = {f.field: f for f in command.launcher_flags}
    if command.launcher == "accelerate" and any(name in given for name in _OTHER_MACHINES):
        return 0
    flag = given.get(_COUNTS.get(command.launcher, ""))
    value = (flag.settled or "") if flag is not None else ""
    return int(value) if value.isdigit() else 0


def _spelled(command: CommandLine) -> str:
    if command.launcher == "accelerate":
        return "accelerate launch"
    return "torch.distributed.launch" if any(w.text == "torch.distributed.launch" for w in command.words) else "torchrun"
