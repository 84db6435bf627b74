"""What a logged value can be, and the calls that tell it by their names."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record


class Kind(IntEnum):
    """From the most harmless to the one that decides: of several sources the higher kind wins."""

    EQUAL = 0  # the same on every rank: a learning rate, an epoch, a constant
    GAUGE = 1  # a clock or a memory gauge: the machine's own, or its peak counts, which a mean over ranks hides
    NUMBER = 2  # a Python or numpy number of this rank: Lightning makes a tensor on the module's device of it
    LOCAL = 3  # a tensor of this rank, on the module's device
    CPU = 4  # a tensor that may sit on the CPU, where NCCL cannot reduce it (`moved_values`, issue #18803)
    UNKNOWN = 5
    LIST = 6  # worked out from what the steps gathered on this rank
    REDUCED = 7  # gathered, reduced or computed by a metric
    METRIC_RESULT = 8  # what `metric(preds, y)` returned: the batch's value
    METRIC_OBJECT = 9


@record
class Value:
    """A kind, and the text that shows it. traced: every part of it was followed to where it comes from."""

    kind: Kind
    text: str = ""
    traced: bool = True


# Stands for the name that is being looked into: it adds nothing to what its other sources say.
NEUTRAL = Value(Kind.EQUAL, "itself")

REDUCERS = frozenset(
    {"all_gather", "all_reduce", "broadcast", "gather_for_metrics", "all_gather_object", "reduce_boolean_decision", "reduce_dict",
     "reduce_tensor", "reduce_mean", "sync_tensor", "all_reduce_mean", "all_gather_cat", "gather_all_tensors",
     "average_losses_across_data_parallel_group", "reduce_value", "allreduce", "allgather"}
)  # fmt: skip
# Collectives that change their first argument where it stands.
IN_PLACE = frozenset({"all_reduce", "broadcast", "reduce", "allreduce_"})
EQUAL_CALLS = frozenset(
    {"get_last_lr", "get_lr", "optimizers", "lr_schedulers", "get_learning_rate", "_get_lr", "get_world_size", "get_rank",
     # after the backward pass the gradients are those of all ranks
     "parameters", "named_parameters", "grad_norm", "clip_grad_norm_", "clip_grad_norm", "get_total_norm"}
)  # fmt: skip
EQUAL_ATTRIBUTES = frozenset(
    {"current_epoch", "global_step", "param_groups", "hparams", "world_size", "num_devices", "global_rank", "local_rank",
     "max_epochs", "num_training_batches", "log_every_n_steps", "last_lr"}
)  # fmt: skip
TO_NUMBER = frozenset({"float", "int", "len", "round", "bool"})  # as functions: x.float() is a tensor still
NUMBER_FAMILIES = frozenset({"numpy", "math", "time", "statistics", "psutil", "sklearn", "scipy", "datetime", "random"})
# Clocks and gauges: by package, by the words of a function of torch's devices, by the method of a CUDA event.
GAUGE_FAMILIES = frozenset({"time", "psutil", "datetime", "resource", "pynvml", "GPUtil", "timeit", "tracemalloc"})
_DEVICE_GAUGE = lazy(
    r"^torch\.(?:cuda|mps|xpu|npu|accelerator)\.(?:memory\.)?\w*(?:memory|mem_get_info|utilization|temperature|power_draw)"
)
ON_CPU = frozenset({"cpu", "numpy", "from_numpy"})
NEW_TENSORS = frozenset(
    {"tensor", "as_tensor", "zeros", "ones", "full", "arange", "FloatTensor", "Tensor", "LongTensor", "empty", "rand", "randn",
     "linspace", "eye", "from_numpy"}
)  # fmt: skip
# Packages whose functions give tensors on the device of their arguments.
TENSOR_FAMILIES = frozenset(
    {"torch", "torchmetrics", "torchvision", "torchaudio", "einops", "kornia", "torch_scatter", "torch_geometric"}
)  # fmt: skip
MODEL_WORDS = ("loss", "criterion", "crit", "model", "net", "encoder", "decoder", "head", "backbone", "forward", "step")


def is_gauge(name: str) -> bool:
    """True for the qualified name of a function that reads a clock or how full a memory is."""
    return name.partition(".")[0] in GAUGE_FAMILIES or _DEVICE_GAUGE.search(name) is not None


def join(values: Iterable[Value]) -> Value:
    """What a name is that may come from any of these."""
    sources = list(values)
    found = [v for v in sources if v is not NEUTRAL]
    if not found:
        return NEUTRAL if sources else Value(Kind.UNKNOWN, "nothing shows what it is", traced=False)
    worst = max(found, key=lambda v: v.kind)
    return worst if all(v.traced for v in found) else Value(worst.kind, worst.text, traced=False)


def arithmetic(parts: list[Value]) -> Value:
    """What an operator gives: with a tensor of this rank in it, it is one, on that tensor's device, whatever a weight is."""
    worst = join(parts)
    if worst.kind in (Kind.UNKNOWN, Kind.CPU):
        tensor = next((p for p in parts if p.kind is Kind.LOCAL), None)
        if tensor is not None:
            return Value(Kind.LOCAL, tensor.text, traced=worst.traced and tensor.traced)
    return worst
