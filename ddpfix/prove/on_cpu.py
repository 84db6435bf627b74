"""Programs that cannot run on the CPU, or not here: told as such, never as a fault of theirs."""

from __future__ import annotations

import re
from pathlib import Path

from ddpfix.prove.ranks import Ended
from ddpfix.prove.traces import Place, with_text

_ASKS = (
    (re.compile(r"Torch not compiled with CUDA enabled|Found no NVIDIA driver|No CUDA GPUs are available|invalid device ordinal|"
                r"CUDA driver initialization failed|Attempting to deserialize object on a CUDA device|"
                r"module 'torch\._C' has no attribute '_cuda_setDevice'|Cannot access accelerator device when none is available"),
     "it asks for a CUDA device"),
    (re.compile(r"CUDAAccelerator.{0,40}can ?not run on your system|No supported gpu backend found"),
     "it asks for a GPU of Lightning's Trainer"),
    (re.compile(r"fp16 mixed precision requires|(fp16|FP16).{0,60}(require|need|CUDA|GPU)|bf16/gpu.{0,60}require"),
     "it asks for a number format that needs a GPU"),
    (re.compile(r"No module named '?(flash_attn|apex|deepspeed|bitsandbytes|triton|xformers|transformer_engine)"),
     "it needs a package for GPUs"),
    (re.compile(r"requires? (a |at least \w+ )?(CUDA|GPU|NPU|NCCL)\b", re.IGNORECASE), "it needs a GPU"),
    (re.compile(r"ReduceOp\.AVG with Gloo"), "it averages with ReduceOp.AVG, which this torch has for NCCL only"),
    (re.compile(r"^(?:\[rank\d+\]:\s*)?[\w.]+(?:Error|Exception)\b.*\bCUDA\b", re.IGNORECASE | re.MULTILINE),
     "it asks CUDA for what the CPU cannot answer"),
)  # fmt: skip
_MISSING = re.compile(r"^(?:\[rank\d+\]:\s*)?ModuleNotFoundError: No module named '([^']+)'", re.MULTILINE)
_FRAME = re.compile(r'^\s*(?:\[rank\d+\]:\s*)?File "([^"]+)", line (\d+), in (.+)$', re.MULTILINE)


def why_not(ended: Ended, cwd: Path) -> str:
    """Where and why the program cannot run, as the end of a sentence, with the user's line; "" where nothing says so."""
    if ended.outcome != "error":
        return ""
    for trace in ended.traces:
        if trace.spawns:
            place = with_text(trace.spawns, cwd)
            starts = f"it starts {trace.asked} ranks itself, at {place}: {place.text}"
            return f"as asked: {starts}. Give --nproc {trace.asked}, or let it start fewer"
    for rank in ended.ranks:
        tail = rank.stderr[-20_000:]
        for pattern, reason in _ASKS:
            if found := pattern.search(tail):
                line = next((t.strip() for t in tail.splitlines() if found[0] in t), found[0])
                at = crash_place(tail, cwd)
                return f"on the CPU: {reason}{f', at {at}: {at.text}' if at else ''} ({line[:200]})"
        if found := _MISSING.search(tail):
            return f"with this Python: {found[1]} is not installed for it"
    return ""


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
