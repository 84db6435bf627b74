"""Options of the launchers, by the name that argparse keeps: torchrun of torch 2.13, accelerate launch 1.15, deepspeed 0.18.

Read in `torch/distributed/run.py`, `accelerate/commands/launch.py` and `deepspeed/launcher/runner.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

# Launcher -> its options that take no value.
SWITCHES: Mapping[str, frozenset[str]] = {
    "torchrun": frozenset(
        {
            "h",
            "help",
            "m",
            "module",
            "no_python",
            "run_path",
            "standalone",
            "use_env",
            "virtual_local_rank",
        }
    ),
    "accelerate": frozenset(
        {
            "cpu",
            "debug",
            "downcast_bf16",
            "dynamo_use_dynamic",
            "dynamo_use_fullgraph",
            "enable_cpu_affinity",
            "fsdp_cpu_ram_efficient_loading",
            "ipex",
            "h",
            "help",
            "m",
            "module",
            "mps",
            "multi_gpu",
            "no_python",
            "no_tpu_cluster",
            "q",
            "quiet",
            "same_network",
            "tpu",
            "tpu_use_cluster",
            "tpu_use_sudo",
            "use_deepspeed",
            "use_fsdp",
            "use_megatron_lm",
            "use_mps_device",
            "use_parallelism_config",
            "use_xpu",
        }
    ),
    "deepspeed": frozenset(
        {
            "bind_cores_to_rank",
            "force_multi",
            "h",
            "help",
            "module",
            "no_local_rank",
            "no_python",
            "no_ssh",
            "no_ssh_check",
            "save_pid",
        }
    ),
}
# Those of torchrun that take one.
VALUES_OF_TORCHRUN = frozenset(
    {
        "event_log_handler",
        "local_addr",
        "local_ranks_filter",
        "log_dir",
        "logs_specs",
        "master_addr",
        "master_port",
        "max_restarts",
        "monitor_interval",
        "nnodes",
        "node_rank",
        "nproc_per_node",
        "numa_binding",
        "r",
        "rdzv_backend",
        "rdzv_conf",
        "rdzv_endpoint",
        "rdzv_id",
        "redirects",
        "role",
        "signals_to_handle",
        "start_method",
        "t",
        "tee",
    }
)
