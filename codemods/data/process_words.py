"""Bytes without which a file shows nothing of several processes, or offers no test for rank 0: asked before it is parsed.

They follow `analysis/distribution.py` (what shows processes), `analysis/guard_spelling.py` and `analysis/rank_tests.py` (how
rank 0 is told apart), `analysis/class_index.py` and `analysis/hooks.py` (whose class it is).
"""

from __future__ import annotations

# A class of Lightning's or transformers', be its base in another file: its own import, its base's name, or a hook.
_CLASSES = (
    b"import lightning", b"from lightning", b"pytorch_lightning", b"Lightning", b"Trainer(", b"Trainer)", b"Trainer,",
    b"Callback", b"DataModule", b"def on_", b"ing_step(", b"tion_step(", b"test_step(",
)  # fmt: skip

# Functions of a project that ask the process group: `from comm import is_main_process`.
_ASKED = (
    b"get_rank", b"get_dist_rank", b"get_global_rank", b"is_rank", b"rank_zero", b"is_main", b"main_process", b"is_master",
    b"is_primary", b"is_global",
)

# What shows that several processes run the file, and a class of one of the frameworks.
SHOWS_PROCESSES: tuple[bytes, ...] = (
    b"torch.distributed", b"ightning", b"Trainer", b"Accelerator", b"RANK", b"DistributedDataParallel", b"deepspeed",
    b"WORLD_SIZE", b"PartialState", b"TrainingArguments", b"horovod", b"trl", b"PROCID", b"import distributed",
    b"distributed as", *_CLASSES[8:], *_ASKED,
)  # fmt: skip

# A flag or a name of the global rank, an object that knows it, or a class that does.
OFFERS_A_GUARD: tuple[bytes, ...] = (
    *_CLASSES, b"get_rank", b"Accelerator", b" rank", b".rank", b"(rank", b"\nrank", b"\trank", b"\"rank", b"'rank", b" _rank",
    b"._rank", b"global_rank", b"world_rank", b"distributed_rank", b"ddp_rank", b"dist_rank", b"process_rank", b"Get_rank",
    b"RANK", b"PROCID", b"rank_zero", b"zero_rank", b"main_rank", b"first_rank", b"rank0", b"rank_0", b"main_process",
    b"global_zero", b"process_zero", b"process_index", b"master", b"is_main", b"is_primary", b"is_root", b"is_chief",
    b"is_logging", b"should_save", b"should_log", b"import accelerate", b"WORLD_SIZE", b"training_args",
    b"accelerator", b"local_rank", b"init_process_group",
)  # fmt: skip
