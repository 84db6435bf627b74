"""Functions of other packages that wait for all ranks, by the first and the last part of their qualified name.

Seen in the sources of transformers 5.23, timm, ignite and MONAI, by the names that MMEngine hands on, and by the documentation of
torchmetrics and Composer. Those of mmcv, mmdet and mmseg are known from copies of them in other projects only.
"""

from __future__ import annotations

_COMMON = frozenset({"barrier", "all_reduce", "all_gather", "broadcast"})
_RESULTS = frozenset({"multi_gpu_test", "collect_results_cpu", "collect_results_gpu"})  # of OpenMMLab, which its packages hand on

PACKAGE_COLLECTIVES = {
    "accelerate": frozenset({"gather", "gather_object", "broadcast", "broadcast_object_list", "reduce", "pad_across_processes",
                             "wait_for_everyone"}),
    "composer": _COMMON | {"all_gather_object", "broadcast_object_list"},
    "detectron2": frozenset({"synchronize", "all_gather", "gather", "reduce_dict", "shared_random_seed"}),
    "horovod": frozenset({"allreduce", "allgather", "broadcast", "broadcast_parameters", "broadcast_object",
                          "broadcast_optimizer_state", "barrier"}),
    "ignite": _COMMON,
    "lightning": frozenset({"gather_all_tensors"}),
    "mmcv": _RESULTS | {"allreduce_params", "allreduce_grads"},
    "mmdet": _RESULTS | {"sync_random_seed"},
    "mmengine": _COMMON | {
        "gather", "gather_object", "all_gather_object", "all_reduce_dict", "allreduce_params", "broadcast_object_list",
        "collect_results", "collect_results_cpu", "collect_results_gpu", "sync_random_seed",
    },
    "mmseg": _RESULTS,
    "monai": frozenset({"string_list_all_gather", "evenly_divisible_all_gather"}),
    "mpi4py": frozenset({"Barrier", "barrier", "Bcast", "bcast", "Gather", "Gatherv", "gather", "Scatter", "Scatterv", "scatter",
                         "Allgather", "Allgatherv", "allgather", "Reduce", "reduce", "Allreduce", "allreduce", "Alltoall",
                         "alltoall"}),
    "timm": frozenset({"reduce_tensor", "distribute_bn"}),
    "torch_xla": frozenset({"rendezvous", "mesh_reduce", "all_reduce", "all_gather", "mark_step_sync"}),
    "torchmetrics": frozenset({"gather_all_tensors"}),
    "transformers": frozenset({"distributed_concat", "distributed_broadcast_scalars"}),
}  # fmt: skip
# Packages whose other collectives do nothing in one process alone, while these raise there.
RAISE_ALONE = frozenset({"lightning", "torchmetrics", "transformers"})
