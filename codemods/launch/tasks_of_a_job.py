"""DDP716: a Slurm job whose tasks are not those that its program takes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_file
from codemods.analysis.frameworks import lightning_pin
from codemods.analysis.job_files.command_lines import CommandLine, Flag, command_lines, script_of
from codemods.analysis.job_files.slurm_tasks import Tasks, tasks_on_a_node
from codemods.analysis.job_files.srun_variables import OF_SLURM, UnsetRead, unset_by_srun
from codemods.analysis.loading.same_program import whole_program
from codemods.analysis.ranks.launcher_variables import is_under_a_test
from codemods.analysis.trainer.lightning_trainers import keywords, more_of, trainer_calls
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Evidence, Finding
from codemods.files.source import SourceModule
from codemods.files.text_file import SHELL_KINDS, TextFile
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_CHECKED_SINCE = (2, 1)  # Lightning: the Trainer holds its devices against the tasks
_GPUS = lazy(r"(?:--gpus-per-node|--gres=gpu|--gres[ \t]+gpu)(?:[=: \t]+[A-Za-z][\w.-]*)?[=: \t]+(\d+)(?!\S)")
_OF_TASK = lazy(r"SLURM_(?:PROCID|LOCALID|NTASKS\b|NPROCS)")  # each launcher is told which one it is
_TASK = lazy(rb"SLURM_(?:PROCID|LOCALID|NTASKS|NPROCS|STEP)")
_TASK_AS_RANK = lazy(rb"rank\b[^\n]{0,60}?SLURM_(?:PROCID|LOCALID)")
_AS_MANY = lazy(r"[\"']?\$\{?SLURM_(?:NTASKS_PER_NODE|TASKS_PER_NODE)\}?[\"']?$")
_ALL_GPUS = lazy(r"gpu$|auto$|[\"']?\$\{?SLURM_GPUS_(?:ON|PER)_NODE\}?[\"']?$")
_MEETING = ("master_port", "rdzv_endpoint")
_NOT_SLURM = lazy(r"(?:--job-name(?:=|[ \t]+)|-J[ \t]*)(?:bash|interactive)(?!\S)")
_LAUNCHED = ("auto", "ddp", "fsdp", "deepspeed")  # strategies whose processes Slurm starts


class TasksOfAJob(DdpCodemod):
    """A Slurm job that starts another number of tasks on a node than its launcher or its Trainer takes.

    ## What it does
    Finds `srun torchrun --nproc_per_node=4 …` in a job with `--ntasks-per-node=4`: each of the four tasks is a launcher, and
    starts four processes; so with `torch.distributed.launch`. Finds `srun torchrun --standalone` in several tasks of a
    node. Finds `srun python train.py` whose script makes a Lightning `Trainer(devices=4)`, in a job with another
    `--ntasks-per-node`. Finds `srun python train.py` whose script reads `RANK`, `LOCAL_RANK` or `WORLD_SIZE` in every run,
    itself or by `init_process_group`, and nothing sets them.

    ## Why it matters
    The job waits in the queue, and starts sixteen processes on four GPUs. Where the command names a port, one launcher has it,
    and the others end with "address already in use"; where it names none, four trainings run beside each other and write the same
    files. Lightning ends each task in `fit` with "the number of tasks per node configured in SLURM does not match". What srun
    starts has the numbers of Slurm in its environment alone: `os.environ["RANK"]` ends each task with KeyError,
    `init_process_group("nccl")` with ValueError.

    ## Example
    ```bash
    #!/bin/bash
    #SBATCH --nodes=1
    #SBATCH --gpus-per-node=4
    #SBATCH --ntasks-per-node=4
    #SBATCH --cpus-per-task=8

    srun torchrun --nproc_per_node=4 train.py --epochs 90
    ```

    ## Use instead
    ```bash
    #!/bin/bash
    #SBATCH --nodes=1
    #SBATCH --gpus-per-node=4
    #SBATCH --ntasks-per-node=1
    #SBATCH --cpus-per-task=32

    srun torchrun --nproc_per_node=4 train.py --epochs 90
    ```

    ## Safety
    There is no fix: how many CPUs a task has goes with the number of tasks, and which number is meant is the job's.

    ## Refuses
    - Says nothing where srun is given a number of its own (`srun --ntasks-per-node=1`), and of a launcher without srun: the job
      runs it once.
    - Says nothing of a number that is not written out, and where tasks have GPUs of their own (`--gpus-per-task`),
      but of a torchrun with `--standalone` in several of them.
    - Says nothing where a launcher is given the number of its task (`SLURM_PROCID`, `SLURM_LOCALID`), or starts another number of
      processes than there are tasks.
    - Says nothing of a Trainer of one device, of a number that is no literal, with `plugins`, under a test, or beside another.
    - Says nothing where Lightning may be below 2.1, which does not look, and of jobs named `bash` and `interactive`, where it
      does not ask Slurm.
    - Says nothing of a variable that the job sets, or a file that it sources may, of one that is read under a test, and where a
      file of the program asks Slurm itself, sets variables, or has a framework that may (DeepSpeed, Lightning, submitit, mpi4py).
    - A repository's own tests.

    ## References
    Slurm's manuals of sbatch and srun; two launchers with two processes each on one node (torch 2.13): without a port both train,
    with one the second ends with EADDRINUSE; Lightning 2.6: `SLURMEnvironment.validate_settings`, run with a job's variables.
    """

    code = "DDP716"
    severity = "crash"
    TRIGGERS = ((b"#SBATCH",), (b"srun ",))  # no Python is read
    READS_TESTS = False
    TEXT = (b"srun",)
    TEXT_KINDS = SHELL_KINDS

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if not isinstance(module, TextFile) or is_test_file(module.path):
            return
        for command in command_lines(module):
            if (unset := unset_by_srun(project, command)) is not None:
                yield self._of_the_environment(command, unset)
                continue
            tasks = tasks_on_a_node(command)
            if command.launcher == "torchrun":
                each = _processes(command, tasks) if tasks is not None else None
                if tasks is not None and each is not None:
                    yield self._of_launchers(command, tasks, each)
                elif (alone := _tasks_of_their_own(project, command)) is not None:
                    yield self._of_lone_launchers(command, alone)
            elif tasks is not None and not command.launcher and tasks.per_node and not _NOT_SLURM.search(tasks.options):
                yield from self._of_trainer(project, command, tasks)

    def _of_launchers(self, command: CommandLine, tasks: Tasks, each: int) -> Finding:
        port = any(f.field in _MEETING for f in command.launcher_flags)
        name = "torch.distributed.launch" if any(w.text == "torch.distributed.launch" for w in command.words) else "torchrun"
        then = (
            "one launcher has the port, and the others end with an error or wait until the time-out"
            if port else f"{tasks.count} trainings run beside each other"
        )  # fmt: skip
        return self.finding(
            command.file,
            command.span(command.words[0].start, command.words[-1].end),
            f"srun starts {tasks.count} tasks on each node, and each of them is a {name} that starts {each} processes: "
            f"{tasks.count * each} on the GPUs of one node, where {then}",
            evidence=[Evidence("static", f"{tasks.count} tasks on each node", command.file.path, tasks.line)],
            reason="ask for one task on each node, with the CPUs of all (`--ntasks-per-node=1`, `--cpus-per-task`), or let srun "
            "start the program without a launcher",
        )

    def _of_lone_launchers(self, command: CommandLine, tasks: Tasks) -> Finding:
        return self.finding(
            command.file,
            command.span(command.words[0].start, command.words[-1].end),
            f"srun starts {tasks.count} tasks on each node, and each of them is a torchrun of its own (`--standalone`): "
            f"{tasks.count} trainings run beside each other, each with a rank 0 of its own, and write the same files",
            evidence=[Evidence("static", f"{tasks.count} tasks on each node", command.file.path, tasks.line)],
            reason="ask for one task on each node, with the GPUs and CPUs of all (`--ntasks-per-node=1`, `--gpus-per-node`), or "
            "let srun start the program without a launcher",
        )

    def _of_the_environment(self, command: CommandLine, unset: UnsetRead) -> Finding:
        given = OF_SLURM[unset.variable]
        return self.finding(
            command.file,
            command.span(command.words[0].start, command.words[-1].end),
            f"srun sets {given}, and no {unset.variable}: each task of {unset.module.path} ends with {unset.error} in "
            f"line {unset.node.lineno}",
            evidence=[Evidence("static", f"{unset.variable} is asked for in every run", unset.module.path, unset.node.lineno)],
            reason="let srun start one torchrun on each node, or set RANK, LOCAL_RANK and WORLD_SIZE in each task from Slurm's "
            "own numbers, by a `bash -c` behind srun",
        )

    def _of_trainer(self, project: Project, command: CommandLine, tasks: Tasks) -> Iterator[Finding]:
        script = script_of(project, command)
        module = project.module(script) if script is not None else None
        found = _devices(project, module) if module is not None else None
        if module is None or found is None or found[1] == tasks.count:
            return
        call, devices = found
        yield self.finding(
            command.file,
            command.span(command.words[0].start, command.words[-1].end),
            f"srun starts {tasks.count} task{'s' if tasks.count > 1 else ''} on each node, and the Trainer of {module.path} is "
            f"given {devices} devices: fit() ends each with ValueError",
            evidence=[
                Evidence("static", f"`--ntasks-per-node` is {tasks.count}", command.file.path, tasks.line),
                Evidence("static", f"the Trainer is given {devices} devices", module.path, call.lineno),
            ],
            reason="give both the same number: the GPUs of a node",
        )


def _tasks_of_their_own(project: Project, command: CommandLine) -> Tasks | None:
    """The tasks of `srun torchrun --standalone` that nothing tells apart: no two of them meet."""
    tasks = tasks_on_a_node(command, own_gpus=True) if any(f.field == "standalone" for f in command.launcher_flags) else None
    script = script_of(project, command) if tasks is not None and tasks.count > 1 else None
    if script is None or any(_OF_TASK.search(w.raw) for w in command.words):
        return None
    return tasks if not any(_tells_apart(project.read(p) or b"") for p in whole_program(project, script)) else None


def _tells_apart(data: bytes) -> bool:
    """True for a program that asks for its task, but for one that takes it for its rank."""
    return _TASK.search(_TASK_AS_RANK.sub(b"", data)) is not None


def _processes(command: CommandLine, tasks: Tasks) -> int | None:
    """How many processes each launcher starts, where they are as many as the tasks; None else."""
    flag = next((f for f in reversed(command.launcher_flags) if f.field == "nproc_per_node"), None)
    if flag is None or tasks.count < 2 or any(_OF_TASK.search(w.raw) for w in command.words):
        return None
    value = _text(flag)
    if value.isdigit():
        return tasks.count if int(value) == tasks.count else None
    gpus = _GPUS.findall(tasks.options)
    as_many = _AS_MANY.match(value) or (_ALL_GPUS.match(value) and gpus and int(gpus[-1]) == tasks.count)
    return tasks.count if as_many else None


def _text(flag: Flag) -> str:
    """What the launcher is told, a variable as it is written."""
    if flag.settled is not None:
        return flag.settled
    written = flag.word.raw.partition("=")[2] if flag.joined else ""
    return flag.values[0].raw if len(flag.values) == 1 else written


def _devices(project: Project, module: SourceModule) -> tuple[ast.Call, int] | None:
    """The one Trainer of a script, and the devices that it is told of, more than one; None where that is not shown."""
    pin = lightning_pin(project, near=module.path)
    calls = list(trainer_calls(project, module)) if pin is None or pin.surely_at_least(_CHECKED_SINCE) else []
    if len(calls) != 1 or len(module.calls_named("Trainer")) != 1 or not module.calls_named("fit"):
        return None
    given = keywords(calls[0])
    devices, strategy = given.get("devices"), given.get("strategy")
    count = _count(devices.value) if devices is not None else 0
    chosen = "auto" if strategy is None else strategy.value.value if isinstance(strategy.value, ast.Constant) else ""
    launched = str(chosen).startswith(_LAUNCHED) and "spawn" not in str(chosen) and "notebook" not in str(chosen)
    if count < 2 or not launched or "plugins" in given or more_of(module, calls[0]):
        return None
    return None if is_under_a_test(module, calls[0]) else (calls[0], count)


def _count(node: ast.expr) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isdigit():
        return int(node.value)
    return len(node.elts) if isinstance(node, (ast.List, ast.Tuple)) else 0
