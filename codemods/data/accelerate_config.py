"""The keys of an Accelerate configuration file by version, and what each kind of run makes of them.

From the tags 0.2 to 1.14 of Accelerate and from 1.15, where the errors were seen in runs of `accelerate launch`. Any key is taken
for any `distributed_type`; one that is in no version ends the launch (a ValueError from 0.23 on, before it a TypeError).
"""

from __future__ import annotations

from collections.abc import Mapping

Version = tuple[int, int]

# key -> (first version with it, first without it); None: older than what was looked up, or still there
KEYS: Mapping[str, tuple[Version | None, Version | None]] = {
    **dict.fromkeys(
        ("compute_environment", "distributed_type", "num_processes", "machine_rank", "num_machines", "main_process_ip",
         "main_process_port", "main_training_function", "deepspeed_config", "fp16"), (None, None)),
    **dict.fromkeys(("mixed_precision", "use_cpu"), ((0, 6), None)),
    "fsdp_config": ((0, 7), None),
    "downcast_bf16": ((0, 12), None),
    **dict.fromkeys(("gpu_ids", "rdzv_backend", "same_network"), ((0, 13), None)),
    **dict.fromkeys(
        ("megatron_lm_config", "tpu_name", "tpu_zone", "tpu_use_cluster", "tpu_use_sudo", "command_file", "commands", "tpu_vm",
         "tpu_env"), ((0, 14), None)),
    "dynamo_backend": ((0, 15), None),
    "dynamo_config": ((0, 17), None),
    "ipex_config": ((0, 19), (1, 13)),
    "debug": ((0, 22), None),
    "mpirun_config": ((0, 28), None),
    "enable_cpu_affinity": ((0, 29), None),
    "fp8_config": ((0, 34), None),
    "tp_config": ((1, 4), (1, 7)),
    "parallelism_config": ((1, 10), None),
}  # fmt: skip

# Keys whose value is a word that YAML reads as false without quotes; the launcher asks for its letters: key -> the word.
WORDS: Mapping[str, str] = {"mixed_precision": "no", "dynamo_backend": "NO"}

# DDP's own arguments with their defaults, by the name of the argument and that of the Trainer: no version knows them.
DDP_KEYS: Mapping[str, tuple[str, ...]] = {
    "find_unused_parameters": ("false",), "bucket_cap_mb": ("25",), "gradient_as_bucket_view": ("false",),
    "static_graph": ("false",), "broadcast_buffers": ("true",), "ddp_find_unused_parameters": ("null", ""),
    "ddp_bucket_cap_mb": ("25", "null", ""), "ddp_broadcast_buffers": ("null", ""), "ddp_static_graph": ("null", ""),
    "ddp_backend": ("null", ""), "ddp_timeout": ("1800",), "ddp_config": ("null", ""), "ddp_kwargs": ("null", ""),
}  # fmt: skip

# Keys that belong into a part of the file of their own.
DEEPSPEED_KEYS = frozenset(
    {"gradient_accumulation_steps", "gradient_clipping", "zero_stage", "offload_optimizer_device", "offload_param_device",
     "zero3_init_flag", "zero3_save_16bit_model", "deepspeed_config_file", "deepspeed_multinode_launcher"}
)  # fmt: skip

TYPES = frozenset(
    {"NO", "MULTI_GPU", "MULTI_CPU", "MULTI_NPU", "MULTI_XPU", "MULTI_MLU", "MULTI_SDAA", "MULTI_MUSA", "MULTI_HPU",
     "MULTI_NEURON", "FSDP", "DEEPSPEED", "XLA", "TPU", "MEGATRON_LM"}
)  # fmt: skip
# What people write for it.
MEANT_TYPES: Mapping[str, str] = {"DDP": "MULTI_GPU", "DISTRIBUTEDDATAPARALLEL": "MULTI_GPU", "GPU": "MULTI_GPU"}
# These start one process, whatever `num_processes` says.
ONE_PROCESS = frozenset({"NO", "MULTI_CPU"})
