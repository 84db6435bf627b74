"""The names by which a process is told from the others: ranks, flags, decorators, contexts.

Names of the frameworks are theirs: torch 1.0 to 2.13, Lightning 1.2 to 2.6, transformers 3 to 5, Accelerate, Horovod, mpi4py,
torch_xla, Slurm and Open MPI. The others are what projects call their own helpers most often.
"""

from __future__ import annotations

import re
from functools import lru_cache

from codemods.runtime.lazy_pattern import lazy

GLOBAL_NAMES = frozenset(
    {"global_rank", "world_rank", "process_index", "distributed_rank", "get_global_rank", "get_world_rank", "ddp_rank",
     "dist_rank", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "GLOBAL_RANK", "WORLD_RANK",
     "JSM_NAMESPACE_RANK", "ddp_global_rank", "get_process_rank", "get_ordinal", "global_ordinal", "process_rank"}
)  # fmt: skip
LOCAL_NAMES = frozenset(
    {"local_rank", "LOCAL_RANK", "get_local_rank", "local_process_index", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK",
     "ddp_local_rank", "MPI_LOCALRANKID", "MV2_COMM_WORLD_LOCAL_RANK", "get_node_local_rank", "get_local_ordinal",
     "local_ordinal", "node_local_rank"}
)  # fmt: skip
# The rank within some part of the processes: which processes a test on it lets through is not shown.
GROUP_NAMES = frozenset(
    {"data_parallel_rank", "tensor_parallel_rank", "tp_rank", "pp_rank", "sp_rank", "cp_rank", "dp_rank", "node_rank",
     "group_rank", "NODE_RANK", "GROUP_RANK", "get_data_parallel_rank", "get_tensor_model_parallel_rank", "mp_rank",
     "get_node_rank", "get_group_rank", "get_pipeline_model_parallel_rank", "SLURM_NODEID"}
)  # fmt: skip
# A word of many trades (low-rank adapters, rankings): it counts only where processes are shown.
WEAK_NAMES = frozenset({"rank", "RANK"})
HOLDERS = frozenset(
    {"args", "opt", "opts", "cfg", "config", "self", "cls", "dist", "comm", "accelerator", "fabric", "trainer", "strategy",
     "rank_zero_only", "hparams", "env", "context", "ctx", "training_args", "flags", "distributed_training", "state",
     "runner", "info"}
)  # fmt: skip
PROCESS_WORDS = (
    b"torch.distributed", b"init_process_group", b"get_rank", b"local_rank", b"LOCAL_RANK", b"world_size", b"WORLD_SIZE",
    b"DistributedDataParallel", b"DistributedSampler", b"rank_zero", b"is_main_process", b"global_rank", b"horovod", b"mpi4py",
)  # fmt: skip

ZERO_FLAGS = frozenset(
    {"is_global_zero", "is_main_process", "is_world_process_zero", "is_rank_zero", "is_rank_0", "is_rank0", "master_process",
     "main_process", "if_main_process", "is_master_process", "is_global_master", "is_zero_rank", "is_main_rank",
     "is_logging_process", "is_global_main_process", "is_world_master", "is_global_rank_zero", "is_first_rank",
     "is_distributed_master", "is_first_process", "is_lead_process", "is_primary_process", "is_root_process",
     "is_chief_process", "is_main_worker", "is_master_rank", "is_world_zero", "is_main_proc"}
)  # fmt: skip
# Words of other trades too (trees, databases, boards): they count only where processes are shown.
WEAK_FLAGS = frozenset(
    {"is_master", "is_main", "is_root", "is_primary", "is_chief", "rank_zero", "master", "is_first_worker", "is_leader"}
)  # fmt: skip
# `is_master_ordinal` of torch_xla asks for the local master unless it is called with False.
LOCAL_FLAGS = frozenset(
    {"is_local_main_process", "is_local_process_zero", "is_local_master", "is_local_zero", "is_local_rank_zero",
     "is_local_rank_0", "is_local_rank0", "is_local_main", "is_local_master_process", "is_master_ordinal"}
)  # fmt: skip
# Properties of transformers.TrainingArguments; TrainerControl.should_save is another thing.
ARGUMENT_FLAGS = frozenset({"should_save", "should_log"})

ZERO_DECORATORS = frozenset(
    {"rank_zero_only", "on_main_process", "master_only", "main_process_only", "rank0_only", "only_on_rank_zero", "on_rank_zero",
     "rank_zero", "only_main_process", "is_master_only", "main_process", "master_process", "run_on_main", "only_on_master",
     "rank_zero_fn", "on_rank0"}
)  # fmt: skip
LOCAL_DECORATORS = frozenset({"on_local_main_process", "local_rank_zero_only"})
# Members of Accelerate's `Accelerator` and `PartialState`, which let one process in that need not be rank 0.
OTHER_FLAGS = frozenset({"is_last_process"})
OTHER_DECORATORS = frozenset({"on_last_process", "on_process", "on_local_process"})
# `with …:` whose body every rank enters, one after the other.
ORDERED_CONTEXTS = frozenset(
    {"rank_zero_first", "main_process_first", "local_main_process_first", "torch_distributed_zero_first", "zero_first"}
)
# A statement that calls one of these is not passed.
EXIT_CALLS = frozenset({"sys.exit", "exit", "quit", "os._exit"})

# A field, property or method of an object that nothing shows the class of is looked for by its name, if that speaks of ranks.
MEMBER_WORD = lazy(
    r"rank|master|main_proc|is_main|primary|is_root|chief|is_first|leader|first_proc|last_proc|_zero$|process_index|^gpu$", re.I
)


@lru_cache(maxsize=16384)  # asked of every name that is read
def speaks_of_rank(name: str) -> bool:
    """True for a name with a word of the ranks in it."""
    return MEMBER_WORD.search(name) is not None
