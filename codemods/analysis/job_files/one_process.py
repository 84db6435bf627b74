"""Launchers that are told to start one process, on each machine or at all: `torchrun --nproc_per_node=1`, a job of one task."""

from __future__ import annotations

import re
from posixpath import basename

from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_ONE_TASK = lazy(r"(?m)^[ \t]*#SBATCH\b[^\n]*\s(?:-n|--ntasks)[ =]*1\b")
_ONE_TASK_A_NODE = lazy(r"(?m)^[ \t]*#SBATCH\b[^\n]*\s--ntasks-per-node[ =]*1\b")
_ONE_NODE = lazy(r"(?m)^[ \t]*#SBATCH\b[^\n]*\s(?:-N|--nodes)[ =]*1\b")
# What a job asks for of GPUs, and how many nodes and tasks it asks for.
_GPUS = lazy(
    r"(?m)^[ \t]*#SBATCH\b[^\n]*\s(?:--gres[ =]gpu|--gpus(?:-per-node)?|-G)(?:[ =:][A-Za-z][\w.-]*)?(?:[ =:](\d+))?(?=\s|$)"
)
_TASKS = lazy(r"(?m)^[ \t]*#SBATCH\b[^\n]*\s(?:-n|--ntasks(?!-)|--n?tasks-per-node|-N|--nodes)[ =]*(\S+)")
_SRUN_MORE = lazy(
    r"\bsrun\b[^\n]*?\s(?:(?:-n|-N|--ntasks|--ntasks-per-node|--nodes)[ =]*(?!1\b)|--gres[ =]gpu:(?:[A-Za-z]\w*:)?[2-9])"
)
# What a job asks for, one value each time; that it asks for one; what SLURM then sets.
_TASKS_A_NODE = (
    lazy(r"(?m)^[ \t]*#SBATCH\b[^\n]*\s--n?tasks-per-node[ =]*(\S+)"), _ONE_TASK_A_NODE,
    lazy(r"\$(?:\{SLURM_NTASKS_PER_NODE\}|SLURM_NTASKS_PER_NODE\b)"),
)  # fmt: skip
_NODES = (
    lazy(r"(?m)^[ \t]*#SBATCH\b[^\n]*\s(?:-N|--nodes)[ =]*(\S+)"), _ONE_NODE,
    lazy(r"\$(?:\{SLURM_(?:JOB_NUM_NODES|NNODES)\}|SLURM_(?:JOB_NUM_NODES|NNODES)\b)"),
)  # fmt: skip
# A launcher that is told to start one process: so on one node, or with one device left to it.
_ONE = lazy(
    r"--(?:nproc[_-]per[_-]node|num[_-]processes|num[_-]gpus|ntasks)[ =]1(?!\d)|"
    r"\b(?:horovodrun|mpirun|mpiexec|srun)(?:\s+-\S+)*?\s-np?[ =]1(?!\d)|--include[ =][\"']?localhost:\d(?![,\d])|"
    r"\baccelerate\s+launch\b.*?\s--gpu[_-]ids[ =][\"']?\d+[\"']?(?=\s|$)|"  # it refuses to start more with one number
    r"(?<!\w)CUDA_VISIBLE_DEVICES=[\"']?\d[\"']?(?=\s)(?!.*\b(?:srun|mpirun|mpiexec)\b)"
)
_ONE_A_MACHINE = lazy(r"--(?:nproc[_-]per[_-]node)[ =]1(?!\d)")
_MORE_NODES = lazy(r"--(?:nnodes|num[_-]nodes|num[_-]machines)[ =](?!1(?!\d))")
_SET_BY = lazy(r"--config[_-]file[ =](\S+)")
_ONE_SET = lazy(rb"(?m)^[ ]*num_processes:[ ]*1[ ]*$")
_SRUN = lazy(r"(?<![\w-])srun(?![\w-])")
_BELOW_SRUN = lazy(r"torchrun|torch\.distributed|accelerate|deepspeed")  # a launcher that each task of the job runs
_MORE = lazy(r"(?:nproc[_-]per[_-]node|num[_-]processes)[ =](?!1(?!\d))")
_COUNT_BY_NAME = lazy(r"(--(?:nproc[_-]per[_-]node|num[_-]processes|num[_-]gpus)[ =])[\"']?\$(?:\{(\w+)\}|(\w+))[\"']?(?![\w$])")


def with_own_ones(text: str) -> str:
    """A job file with 1 in the place of a variable for the number of processes that it sets to 1, and nowhere to more.

    Also of those that SLURM sets, in a job that asks for one task on a node, or for one node.
    """
    if "$" not in text:
        return text
    if "SLURM_" in text:
        text = _as_slurm_sets(text)
    return _COUNT_BY_NAME.sub(lambda m: f"{m[1]}1" if _is_one_throughout(text, m[2] or m[3]) else m[0], text)


def _as_slurm_sets(text: str) -> str:
    """The job with 1 in the place of `$SLURM_NTASKS_PER_NODE` and `$SLURM_NNODES`, where its own lines ask for one of it."""
    for asked, told, variables in (_TASKS_A_NODE, _NODES):
        if told.findall(text) and all(value == "1" for value in asked.findall(text)):
            text = variables.sub("1", text)
    return text


def _is_one_throughout(text: str, name: str) -> bool:
    """True for `GPUS=1` alone: `GPUS=${1:-1}`, a loop over numbers and `read GPUS` leave it to the user.

    `GPUS=${GPUS:-4}` below it changes nothing.
    """
    bound = rf"(?:(?<![\w$-]){name}\+?=|\b(?:for|read|select|mapfile|getopts)\b[^\n;]*\s{name}\b)"
    written = rf"^[ \t]*(?:export[ \t]+)?{name}=(?:(1|\"1\"|'1')|[\"']?\$\{{{name}:-[^}}\n]*\}}[\"']?)[ \t]*(?:;|#|$)"
    found = re.findall(written, text, re.MULTILINE)
    return bool(found) and bool(found[0]) and len(re.findall(bound, text)) == len(found)


def is_job_of_one(text: str) -> bool:
    """True for a job of SLURM with one task, also of one GPU where it asks for no more tasks: sbatch's default is one a node."""
    if has_one_gpu(text):
        return True
    return bool(_ONE_TASK.search(text) or (_ONE_TASK_A_NODE.search(text) and _ONE_NODE.search(text)))


def has_one_gpu(text: str) -> bool:
    """True for a job of SLURM that asks for one GPU on one node: `#SBATCH --gres=gpu:1`, and no second task or node."""
    if "#SBATCH" not in text or not (gpus := _GPUS.findall(text)):
        return False
    return all(n in ("", "1") for n in gpus) and all(n == "1" for n in _TASKS.findall(text))


def starts_one(project: Project, line: str, *, alone: bool) -> bool:
    """True for a launcher that is told to start one process, on the command line, by the job or by its own settings."""
    if _MORE_NODES.search(line):
        return False
    if alone and _SRUN.search(line) and not _BELOW_SRUN.search(line) and not _SRUN_MORE.search(line):
        return True
    if _ONE.search(line) and not _MORE.search(line):
        return True
    if (given := _SET_BY.search(line)) and "--num_processes" not in line:
        named = basename(given[1].strip("\"'"))
        held = [project.read(p) or b"" for p in project.files if basename(p) == named]
        return bool(held) and all(_ONE_SET.search(data) for data in held)
    return False


def starts_one_a_machine(line: str) -> bool:
    """True for a launcher that is told to start one process on each of several machines."""
    return _ONE_A_MACHINE.search(line) is not None and _MORE.search(line) is None and _MORE_NODES.search(line) is not None
