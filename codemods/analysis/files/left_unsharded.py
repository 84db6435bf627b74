"""What is no sharded model at a save, though the file speaks of one: in the branch for other runs, an average of the weights."""

from __future__ import annotations

import ast

from codemods.analysis.literals import is_none
from codemods.analysis.names import dotted, end_of, last
from codemods.analysis.output.natures import values_of
from codemods.files.source import SourceModule, walk
from codemods.runtime.lazy_pattern import lazy

_FSDP = lazy(rb"FullyShardedDataParallel|\bFSDP\b|FSDPStrategy|fully_shard\b")
_AVERAGES = frozenset({"EMAModel", "ExponentialMovingAverage", "ModelEma", "ModelEmaV2", "ModelEmaV3"})
_WRAPS = ("prepare", "prepare_model", "initialize", "fully_shard", "FullyShardedDataParallel", "FSDP")


def without_kinds_left_out(module: SourceModule, data: bytes, at: ast.stmt) -> bytes:
    """`data` without the words of FSDP, where `at` stands in the branch for runs of another type: a run has one."""
    return _FSDP.sub(b"", data) if _is_of_another_type(module, at) else data


def _is_of_another_type(module: SourceModule, at: ast.stmt) -> bool:
    """True behind the `else` of `if accelerator.distributed_type == DistributedType.FSDP`, and under `!=`."""
    below: ast.AST = at
    for up in module.ancestors(at):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        if isinstance(up, ast.If) and isinstance(up.test, ast.Compare) and len(up.test.ops) == 1 and _asks_for_fsdp(up.test):
            taken = any(s is below for s in up.body)
            if isinstance(up.test.ops[0], ast.NotEq if taken else ast.Eq):
                return True
        below = up
    return False


def _asks_for_fsdp(test: ast.Compare) -> bool:
    ends = [test.left, *test.comparators]
    typed = any(end_of(end) == "distributed_type" for end in ends)
    return typed and any(last(dotted(end)) == "FSDP" and "DistributedType" in dotted(end) for end in ends)


def is_an_average(module: SourceModule, stored: ast.expr) -> bool:
    """True for an average of the weights that is made here, and that no rank shares out: it holds tensors of its own."""
    made = [v for v in values_of(module, stored) if not is_none(v)]
    own = [v for v in made if isinstance(v, ast.Call) and last(dotted(v.func)) in _AVERAGES]
    if not own or len(own) < len([v for v in made if not _is_its_source(v, own, stored)]):
        return False
    name = dotted(stored)
    wrapping = (c for c in module.calls_named(*_WRAPS))
    handed = (a for c in wrapping for a in (*c.args, *(k.value for k in c.keywords)))
    return not any(isinstance(n, (ast.Name, ast.Attribute)) and dotted(n) == name for a in handed for n in walk(a))


def _is_its_source(value: ast.expr, own: list[ast.Call], stored: ast.expr) -> bool:
    """True for the model that the average is made of under the same name: `ema = Net(); ema = EMAModel(ema.parameters())`."""
    name = dotted(stored)
    inside = (n for c in own for a in (*c.args, *(k.value for k in c.keywords)) for n in walk(a))
    lines = [c.lineno for c in own]
    return getattr(value, "lineno", 0) < min(lines) and any(isinstance(n, ast.Name) and n.id == name for n in inside)
