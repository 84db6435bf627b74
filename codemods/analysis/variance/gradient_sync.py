"""Does a backward of the project wait for the other ranks at all? A bare module's reduces nothing."""

from __future__ import annotations

from codemods.analysis.distribution import is_test_file
from codemods.store.project import Project

# What makes a backward wait, or may hand out a model that does: wrappers, frameworks and their helpers, hooks on gradients.
_WORDS = (
    b"DDP", b"DataParallel", b"FSDP", b"FullyShard", b"fully_shard", b"ShardedData", b"replicate(", b"prepare(", b"_hook(",
    b"ightning", b"ccelerat", b"Fabric", b"fabric", b"eepspeed", b"eepSpeed", b"orovod", b"hvd", b"auto_model", b"apex",
    b"bagua", b"egatron", b"olossal", b"torch_xla", b"parallelize", b"DistributedOptimizer", b"mmcv", b"mmengine", b"detectron",
    b"Trainer(", b"fairseq", b"composer", b"ddp(", b"wrap_model", b"model_wrap", b"wrapper", b"ddp_model", b"model_ddp",
)  # fmt: skip


_BY_HAND = (b"all_reduce", b"allreduce", b"all_gather", b"allgather", b"reduce_scatter", b"broadcast", b".reduce(")


def may_sync_gradients(project: Project) -> bool:
    """False where the project starts its process group itself, and no file of it holds a word of what wraps a model."""
    return project.keep("may sync gradients", lambda: _any(project, _WORDS) or not _any(project, (b"init_process_group(",)))


def may_have_one_model(project: Project) -> bool:
    """False where, beside that, nothing brings the ranks' gradients or weights together by hand: each trains its own model."""
    return may_sync_gradients(project) or project.keep("may sync by hand", lambda: _any(project, _BY_HAND))


def _any(project: Project, words: tuple[bytes, ...]) -> bool:
    return any(not is_test_file(path) for word in words for path in project.files_containing(word))
