"""Programs that cannot run on the CPU, or not here: told as such, never as a fault of theirs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ddpfix.prove.ranks import Ended, RankEnd
from ddpfix.prove.traces import Place, Trace, with_text

_ASKS = (
    (re.compile(r"Torch not compiled with CUDA enabled|Found no NVIDIA driver|No CUDA GPUs are available|invalid device ordinal|"
                r"CUDA driver initialization failed|Attempting to deserialize object on a CUDA device|"
                r"module 'torch\._C' has no attribute '_(cuda|nccl)_\w+'|Cannot access accelerator device when none is available|"
                r"Tried to instantiate dummy base class|has no attribute 'ProcessGroupNCCL'|NVIDIA-SMI has failed|"
                r"No such file or directory: '(nvidia-smi|rocm-smi|nvcc)'|(nvidia-smi|nvcc): (command )?not found|"
                r"CUDA_HOME environment variable is not set"),
     "it asks for a CUDA device"),
    (re.compile(r"CUDAAccelerator.{0,40}can ?not run on your system|No supported gpu backend found"),
     "it asks for a GPU of Lightning's Trainer"),
    (re.compile(r"fp16 mixed precision requires|(fp16|FP16).{0,60}(require|need|CUDA|GPU)|bf16/gpu.{0,60}require"),
     "it asks for a number format that needs a GPU"),
    (re.compile(r"not implemented for '\w+'|from the 'CPU' backend|not (implemented|supported) (on|for) (the )?CPU"),
     "it computes what this torch has not for the CPU"),
    (re.compile(r"No module named '?(flash_attn|apex|deepspeed|bitsandbytes|triton|xformers|transformer_engine)"),
     "it needs a package for GPUs"),
    (re.compile(r"requires? (a |at least \w+ )?(CUDA|GPU|NPU|NCCL)\b", re.IGNORECASE), "it needs a GPU"),
    (re.compile(r"ReduceOp\.AVG with Gloo"), "it averages with ReduceOp.AVG, which this torch has for NCCL only"),
    (re.compile(r"(ProcessGroupGloo|[Bb]ackend gloo|Gloo) (does not|doesn't|cannot) support"),
     "it asks for a collective that gloo has not"),
    (re.compile(r"^(?:\[rank\d+\]:\s*)?[\w.]+(?:Error|Exception)\b.*\bCUDA\b", re.IGNORECASE | re.MULTILINE),
     "it asks CUDA for what the CPU cannot answer"),
)  # fmt: skip
_MISSING = re.compile(r"^(?:\[rank\d+\]:\s*)?ModuleNotFoundError: No module named '([^']+)'", re.MULTILINE)
_IMPORT = re.compile(r"^(?:\[rank\d+\]:\s*)?ImportError: (.*\b(?:not installed|requires|install)\b.*)$", re.MULTILINE)
_TAKEN = re.compile(r"EADDRINUSE|[Aa]ddress already in use")
_AFFINITY = re.compile(r"invalid CPU (\d+|number|affinity)")
_STARTER = re.compile(r"^(?:\[rank\d+\]:\s*)?KeyError: '((?:SLURM|OMPI|PMI|PMIX|LSB|JSM|FLUX)_\w+)'", re.MULTILINE)
# What a tensor, or torch, answers in another way where there is a GPU, and an error that such an answer leads to.
_DEVICE = re.compile(r"\.is_cuda\b|\.device\b|\bget_device\b|torch\.(cuda|version)\.|\bdevice_type\b")
_BY_ANSWER = re.compile(r"^(?:\[rank\d+\]:\s*)?(AssertionError|AttributeError|TypeError|NotImplementedError)\b", re.MULTILINE)
_FRAME = re.compile(r'^\s*(?:\[rank\d+\]:\s*)?File "([^"]+)", line (\d+), in (.+)$', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Where and why a program cannot run, as the end of a sentence, with the user's line.

    of_cpu: the CPU cannot do it, so that no change of the program's own can help.
    """

    text: str
    of_cpu: bool = False


def obstacle(ended: Ended, cwd: Path) -> Obstacle | None:
    """Why the program cannot run; None where nothing says that it cannot."""
    started = next((t for t in ended.traces if t.spawns), None)
    if started and ended.outcome == "error":
        starts = f"it starts {started.asked} ranks itself{_at(started.spawns, cwd)}"
        return Obstacle(f"as asked: {starts}. Give --nproc {started.asked}, or let it start fewer")
    if alone := _cannot_meet(ended, cwd):
        return alone
    if ended.outcome != "error":
        return None
    for rank, trace in zip(ended.ranks, ended.traces, strict=True):
        if rank.status and not rank.waited and (why := _cannot(rank, trace, cwd)):
            return why
    return None


def _cannot_meet(ended: Ended, cwd: Path) -> Obstacle | None:
    """Why the ranks cannot be in one group as the program asks for it."""
    for meeting in (m for t in ended.traces for m in t.meetings):
        if meeting.size is not None and meeting.size != len(ended.traces):
            give = f". Give --nproc {meeting.size}, or let it ask for {len(ended.traces)}" if meeting.size > 1 else ""
            makes = f"it makes a group of {meeting.size}, of {len(ended.traces)} processes{_at(meeting.at, cwd)}"
            return Obstacle(f"as asked: {makes}{give}")
    if ended.outcome == "completes":
        return None
    first = [t.meetings[0] for t in ended.traces if t.meetings]
    if len(first) > 1 and first[0].rank is not None and len({m.rank for m in first}) == 1:
        how = "Where an option of the command gives the rank, write '${local_rank}' there"
        return Obstacle(f"as asked: each process takes itself for rank {first[0].rank}{_at(first[0].at, cwd)}. {how}")
    return None


def _at(place: Place | None, cwd: Path) -> str:
    if place is None:
        return ""
    place = place if place.text else with_text(place, cwd)
    return f", at {place}: {place.text}"


def _cannot(rank: RankEnd, trace: Trace, cwd: Path) -> Obstacle | None:
    """Why a rank that has failed by itself cannot run."""
    said = "\n".join([*([str(trace.failed)] if trace.failed else []), rank.stderr[-20_000:]])
    at = failed_at(rank, trace, cwd)
    for pattern, reason in _ASKS:
        if found := pattern.search(said):
            line = next((t.strip() for t in said.splitlines() if found[0] in t), found[0])
            return Obstacle(f"on the CPU: {reason}{_at(at, cwd)} ({line[:200]})", of_cpu=True)
    if found := _MISSING.search(said):
        return Obstacle(f"with this Python: {found[1]} is not installed for it")
    if found := _IMPORT.search(said):
        return Obstacle(f"with this Python: {found[1][:200]}{_at(at, cwd)}")
    if found := _STARTER.search(said):
        return Obstacle(f"as asked: it is made to be started by its cluster's launcher, which sets {found[1]}{_at(at, cwd)}")
    if found := _TAKEN.search(said):
        return Obstacle(f"on this machine now: the port that it asks for is taken{_at(at, cwd)}")
    if _AFFINITY.search(said) or (at and "sched_setaffinity" in at.text and "OSError" in said):
        return Obstacle(f"on this machine: it binds itself to CPUs that are not there{_at(at, cwd)}")
    if trace.answered and at and _DEVICE.search(at.text) and (found := _BY_ANSWER.search(said)):
        line = next(t.strip() for t in said[found.start() :].splitlines())
        return Obstacle(f"on the CPU: it goes by what a device answers{_at(at, cwd)} ({line[:200]})", of_cpu=True)
    return None


def failed_at(rank: RankEnd, trace: Trace, cwd: Path) -> Place | None:
    """The user's line at which a rank failed: as it says itself, else as its traceback says."""
    if trace.failed and trace.failed.at:
        return with_text(trace.failed.at, cwd)
    return crash_place(rank.stderr, cwd)


def crash_place(stderr: str, cwd: Path) -> Place | None:
    """The innermost line of the project in the last traceback of `stderr`."""
    text = stderr[stderr.rfind("Traceback (most recent call last)") :]
    for match in reversed(list(_FRAME.finditer(text))):
        if match[1].startswith("<"):  # Python's own: <frozen importlib._bootstrap>, <string>
            continue
        full = Path(match[1]) if Path(match[1]).is_absolute() else cwd / match[1]
        if "site-packages" not in match[1] and full.resolve().is_relative_to(cwd.resolve()):
            shown = full.resolve().relative_to(cwd.resolve()).as_posix()
            return with_text(Place(shown, int(match[2]), match[3]), cwd)
    return None
