"""Arguments of Lightning's Trainer that were renamed or went: one table for DDP801, DDP802, their pages and their tests.

Measured: the parameters of `Trainer.__init__` in the wheels of pytorch-lightning 1.2.10, 1.3.8, 1.4.2, 1.5.10, 1.6.5, 1.7.7,
1.8.6, 1.9.5, 2.0.9 and 2.6.6; so a version is that of a minor line.
"""

from __future__ import annotations

from collections.abc import Mapping

from codemods.data.lightning_names import ALWAYS, V2, Minor
from codemods.runtime.record import field, record


@record
class Argument:
    """An argument that is a TypeError from `gone` on.

    new, since: what it is called now and since when, "" where no name takes its place. idle: values (as Python writes them)
    with which it does nothing, so that it can go. values: value -> the value that means the same under the new name.
    instead: what takes the place of any other value; "" where the new name takes every value as it is.
    """

    name: str
    gone: Minor
    new: str = ""
    since: Minor = ALWAYS
    idle: tuple[str, ...] = ()
    values: Mapping[str, str] = field(default_factory=dict)
    instead: str = ""


_CALLBACK = "put {} into callbacks="
_ROWS = (
    Argument("replace_sampler_ddp", V2, "use_distributed_sampler", V2),
    Argument("checkpoint_callback", (1, 7), "enable_checkpointing", (1, 5), values={"True": "True", "False": "False"},
             instead="put the ModelCheckpoint into callbacks="),
    Argument("weights_summary", (1, 7), "enable_model_summary", (1, 5), ("'top'",), {"None": "False"},
             _CALLBACK.format("ModelSummary(max_depth=-1)")),
    Argument("progress_bar_refresh_rate", (1, 7), "enable_progress_bar", (1, 5), ("None",), {"0": "False"},
             _CALLBACK.format("TQDMProgressBar(refresh_rate=…)")),
    Argument("reload_dataloaders_every_epoch", (1, 6), "reload_dataloaders_every_n_epochs", (1, 4), ("False",), {"True": "1"},
             "write reload_dataloaders_every_n_epochs=1 where it was True"),
    Argument("resume_from_checkpoint", V2, idle=("None",), instead="hand the path to fit(…, ckpt_path=…)"),
    Argument("process_position", (1, 7), idle=("0",), instead=_CALLBACK.format("TQDMProgressBar(process_position=…)")),
    Argument("log_gpu_memory", (1, 7), idle=("None", "False"), instead=_CALLBACK.format("DeviceStatsMonitor()")),
    Argument("flush_logs_every_n_steps", (1, 7), idle=("None",), instead="give it to the logger: CSVLogger has it"),
    Argument("weights_save_path", (1, 8), idle=("None",), instead="give ModelCheckpoint a dirpath=, or set default_root_dir="),
    Argument("terminate_on_nan", (1, 7), idle=("None", "False"), instead="detect_anomaly=True looks for NaN, at a cost"),
    Argument("stochastic_weight_avg", (1, 7), idle=("False",),
             instead=_CALLBACK.format("StochasticWeightAveraging(swa_lrs=…)")),
    Argument("prepare_data_per_node", (1, 7), idle=("None", "True"), instead="it is an attribute of the data module or module"),
    Argument("truncated_bptt_steps", (1, 5), idle=("None",), instead="it was an attribute of the module until 2.0"),
    Argument("automatic_optimization", (1, 3), idle=("None", "True"), instead="it is an attribute of the module"),
    Argument("enable_pl_optimizer", (1, 3), idle=("None", "True"), instead="optimizers are always those of Lightning"),
    Argument("auto_select_gpus", V2, idle=("None", "False"), instead="find_usable_cuda_devices of lightning.fabric finds them"),
    Argument("auto_lr_find", V2, idle=("None", "False"), instead="Tuner(trainer).lr_find(model) does it"),
    Argument("auto_scale_batch_size", V2, idle=("None", "False"), instead="Tuner(trainer).scale_batch_size(model) does it"),
    Argument("track_grad_norm", V2, idle=("-1", "-1.0"), instead="log grad_norm(…) in on_before_optimizer_step"),
    Argument("move_metrics_to_cpu", V2, idle=("None", "False"), instead="nothing takes its place"),
    Argument("multiple_trainloader_mode", V2, idle=("'max_size_cycle'",), instead="return a CombinedLoader(…, mode=…)"),
    Argument("amp_backend", V2, idle=("None", "'native'"), instead="precision= alone says it: apex is gone"),
    Argument("amp_level", V2, idle=("None",), instead="precision= alone says it: apex is gone"),
    Argument("ipus", V2, idle=("None",), instead="Lightning 2.1 and newer has no IPU"),
)  # fmt: skip
OLD: Mapping[str, Argument] = {row.name: row for row in _ROWS}

# Arguments that none of these wheels has: of Lightning 0 and 1.0, and one that never was. A call with one fails first by it.
UNHEARD_OF = frozenset(
    {"early_stop_callback", "tpus", "nb_gpu_nodes", "nb_sanity_val_steps", "max_nb_epochs", "min_nb_epochs", "show_progress_bar",
     "row_log_interval", "log_save_interval", "add_row_log_interval", "use_amp", "proc_rank", "overfit_pct",
     "train_percent_check", "val_percent_check", "test_percent_check", "default_save_path", "gradient_clip"}
)  # fmt: skip

# What strategies take, and no Trainer of these wheels does.
OF_STRATEGIES = frozenset({"find_unused_parameters", "static_graph", "gradient_as_bucket_view", "ddp_comm_hook", "bucket_cap_mb"})

# Which devices, and how the processes work together: these decide over each other (analysis/trainer/device_arguments.py).
DEVICES_SINCE: Minor = (1, 5)  # accelerator="gpu", devices= and strategy=
GPUS_GONE = V2  # gpus, num_processes, tpu_cores
BACKEND_GONE: Minor = (1, 5)  # distributed_backend
ACCELERATOR_GONE: Minor = (1, 7)  # accelerator="ddp"
PLUGINS_GONE: Minor = (1, 7)  # a strategy in plugins=
ARGPARSE_GONE = V2  # Trainer.from_argparse_args, add_argparse_args
DEVICE_ARGUMENTS = ("gpus", "num_processes", "tpu_cores", "distributed_backend")

# Their default was None up to 1.9, and is "auto", which None is not, from 2.0 on. The first version that takes "auto": devices=
# beside an accelerator alone before 2.0, and strategy= from a patch on (measured: the connectors of 1.9.0 to 1.9.5).
NONE_WAS_DEFAULT: Mapping[str, tuple[int, ...]] = {"strategy": (1, 9, 4), "accelerator": (1, 5), "devices": (1, 5)}
NONE_GONE = V2

# Strategies of Lightning 1 that mean the same by name in Lightning 2.
KEPT_STRATEGIES = frozenset({"ddp", "ddp_spawn"})
# Those that are gone, with what takes their place.
GONE_STRATEGIES: Mapping[str, str] = {
    "dp": "strategy=\"ddp\" takes the batch size of one device: dp split one batch over all, so divide it",
    "ddp2": "strategy=\"ddp\" has one process for each device, with a batch of its own",
    "horovod": "strategy=\"ddp\"",
    "bagua": "strategy=\"ddp\"",
    "ddp_sharded": "strategy=\"fsdp\" or \"deepspeed_stage_2\" shards",
    "ddp_sharded_spawn": "strategy=\"fsdp\" or \"deepspeed_stage_2\" shards",
    "ddp_fully_sharded": "strategy=\"fsdp\"",
    "fsdp_native": "strategy=\"fsdp\"",
}  # fmt: skip
# The first version that takes each of them no longer: as strategy= all but ddp2 lasted until 2.0.
STRATEGY_GONE: Mapping[str, Minor] = {name: (1, 8) if name == "ddp2" else V2 for name in GONE_STRATEGIES}

# Strategies under the names that they had as plug-ins: renamed in 1.6, the old names are gone from 1.8 on.
PLUGIN_RENAMED: Minor = (1, 6)
PLUGIN_CLASSES_GONE: Minor = (1, 8)
PLUGIN_CLASSES: Mapping[str, str] = {"DDPPlugin": "DDPStrategy", "DeepSpeedPlugin": "DeepSpeedStrategy"}
TOLD_PLUGIN_CLASSES: Mapping[str, str] = {
    "DDPSpawnPlugin": 'DDPStrategy(start_method="spawn"), or strategy="ddp_spawn"',
    "DDP2Plugin": "DDPStrategy, with a batch of its own for each device",
    "DDPShardedPlugin": "FSDPStrategy or DeepSpeedStrategy shard",
    "DDPSpawnShardedPlugin": "FSDPStrategy or DeepSpeedStrategy shard",
    "DDPFullyShardedPlugin": "FSDPStrategy",
    "DataParallelPlugin": GONE_STRATEGIES["dp"],
    "HorovodPlugin": "DDPStrategy",
    "TrainingTypePlugin": "Strategy of pytorch_lightning.strategies, with other methods",
}
PLUGIN_PLACES = ("plugins", "plugins.training_type", "plugins.training_type.ddp", "plugins.training_type.ddp_plugin")
GONE_PLUGIN_ARGUMENTS = frozenset({"num_nodes", "sync_batchnorm"})  # of the plug-ins: gone from 1.6 on, the Trainer has them
