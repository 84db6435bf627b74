"""Names of Lightning that moved or went: one table for DDP803, its page and its tests.

Measured: the modules of the wheels of pytorch-lightning 1.2.10, 1.3.8, 1.4.2, 1.5.10, 1.6.5, 1.7.7, 1.8.6, 1.9.5, 2.0.9, 2.1.4,
2.3.3 and 2.6.6, each import followed to its definition; so a version is that of a minor line.
"""

from __future__ import annotations

from codemods.runtime.record import record

Minor = tuple[int, int]
ALWAYS: Minor = (1, 2)  # the oldest wheel that was looked into
V2: Minor = (2, 0)


@record
class Moved:
    """`name` of the module `old` is `new_name` of `new` (modules below the package; "" is the package itself).

    since: the first minor line that has it there; gone: the first that has it no longer at the old place.
    """

    old: str
    name: str
    new: str
    new_name: str
    since: Minor
    gone: Minor

    @property
    def place(self) -> str:
        """The new place with the name, below the package."""
        return f"{self.new}.{self.new_name}".lstrip(".")

    @property
    def anywhere(self) -> bool:
        """True where the new place is that of every version, so that nobody need know which one runs."""
        return self.since <= ALWAYS


def _moved(old: str, names: str, new: str, since: Minor, gone: Minor) -> list[Moved]:
    pairs = [name.partition(":") for name in names.split()]
    return [Moved(old, name, new, renamed or name, since, gone) for name, _, renamed in pairs]


_PROFILERS = "SimpleProfiler AdvancedProfiler PyTorchProfiler PassThroughProfiler XLAProfiler Profiler"
_CLI = "LightningCLI LightningArgumentParser SaveConfigCallback"

_ROWS = (
    # `utilities.distributed` was absent in 1.8.0, came back with 1.8.1, and is gone from 2.0 on
    *_moved("utilities.distributed", "rank_zero_only rank_zero_info rank_zero_warn", "utilities", ALWAYS, V2),
    *_moved("utilities.distributed", "rank_zero_deprecation", "utilities", (1, 3), V2),
    *_moved("utilities.distributed", "rank_zero_debug", "utilities.rank_zero", (1, 6), V2),
    *_moved("utilities.seed", "seed_everything", "", ALWAYS, V2),
    *_moved("core.lightning", "LightningModule", "", ALWAYS, (1, 9)),
    *_moved("callbacks.base", "Callback", "callbacks", ALWAYS, (1, 9)),
    *_moved("callbacks", "ProgressBarBase:ProgressBar", "callbacks", V2, V2),
    *_moved("callbacks.progress", "ProgressBarBase:ProgressBar", "callbacks", V2, V2),
    *_moved("callbacks.progress.base", "ProgressBarBase:ProgressBar", "callbacks", V2, V2),
    *_moved("loggers.base", "rank_zero_experiment DummyLogger DummyExperiment", "loggers.logger", (1, 7), (1, 9)),
    *_moved("loggers.base", "LightningLoggerBase:Logger", "loggers", (1, 7), (1, 9)),
    *_moved("loggers", "LightningLoggerBase:Logger", "loggers", (1, 7), (1, 9)),
    *_moved("profiler", _PROFILERS, "profilers", (1, 7), V2),
    *_moved("profiler.simple", "SimpleProfiler", "profilers", (1, 7), (1, 9)),
    *_moved("profiler.advanced", "AdvancedProfiler", "profilers", (1, 7), (1, 9)),
    *_moved("profiler.pytorch", "PyTorchProfiler", "profilers", (1, 7), (1, 9)),
    *_moved("profiler.base", "PassThroughProfiler", "profilers", (1, 7), (1, 9)),
    *_moved("utilities.cli", _CLI, "cli", (1, 7), (1, 9)),
    *_moved("utilities.cli", "instantiate_class", "cli", (1, 7), (1, 9)),
    *_moved("utilities.apply_func", "move_data_to_device", "utilities", ALWAYS, V2),
    *_moved("accelerators", "GPUAccelerator:CUDAAccelerator", "accelerators", (1, 7), (1, 9)),
    *_moved("accelerators.gpu", "GPUAccelerator:CUDAAccelerator", "accelerators", (1, 7), (1, 9)),
    *_moved("plugins.environments.cluster_environment", "ClusterEnvironment", "plugins.environments", ALWAYS, (1, 8)),
    *_moved("plugins.environments.lightning_environment", "LightningEnvironment", "plugins.environments", ALWAYS, (1, 8)),
    *_moved("plugins.environments.slurm_environment", "SLURMEnvironment", "plugins.environments", ALWAYS, (1, 8)),
    *_moved("plugins.environments.torchelastic_environment", "TorchElasticEnvironment", "plugins.environments", ALWAYS, (1, 8)),
)  # fmt: skip
MOVED: dict[tuple[str, str], Moved] = {(row.old, row.name): row for row in _ROWS}


@record
class Gone:
    """What has no place of its own any more. name "": the whole module, with what is below it. since: the minor line without."""

    module: str
    name: str
    since: Minor
    instead: str


_SPAWN = 'DDPStrategy(start_method="spawn")'
GONE: tuple[Gone, ...] = (
    Gone("metrics", "", (1, 5), "take the metric from torchmetrics, whose classes ask for a task= since 0.11"),
    Gone("utilities.apply_func", "", V2, "lightning_utilities.core.apply_func has apply_to_collection"),
    Gone("utilities.cloud_io", "", V2, "lightning_fabric.utilities.cloud_io has get_filesystem; torch.load for load"),
    Gone("utilities.distributed", "", V2, "torch.distributed and torchmetrics.utilities.distributed have what is left of it"),
    Gone("utilities.xla_device", "", V2, "XLAAccelerator.is_available() of pytorch_lightning.accelerators says it"),
    Gone("utilities.device_parser", "", V2, "lightning_fabric.utilities.device_parser has it, with a leading underscore"),
    Gone("utilities.cli", "", (1, 9), "pytorch_lightning.cli is its place; its registries are gone"),
    Gone("utilities.types", "EPOCH_OUTPUT", V2, "the hooks whose outputs it describes are gone as well (DDP804)"),
    Gone("utilities", "AMPType", (1, 8), "precision= of the Trainer says it all"),
    Gone("utilities", "DistributedType", (1, 8), "compare the class of trainer.strategy"),
    Gone("utilities.enums", "DistributedType", (1, 8), "compare the class of trainer.strategy"),
    Gone("utilities", "DeviceType", (1, 6), "compare the class of trainer.accelerator"),
    Gone("trainer.supporters", "CombinedLoader", V2, "CombinedLoader of pytorch_lightning.utilities gives triples"),
    Gone("core.memory", "", (1, 7), "ModelSummary of pytorch_lightning.utilities.model_summary takes max_depth= for mode="),
    Gone("core.decorators", "", (1, 7), "auto_move_data is gone: move the batch with .to(self.device)"),
    Gone("callbacks", "GPUStatsMonitor", (1, 7), "DeviceStatsMonitor takes its place, with other keys"),
    Gone("callbacks", "QuantizationAwareTraining", V2, "use torch.ao.quantization"),
    Gone("loggers", "TestTubeLogger", (1, 7), "TensorBoardLogger writes the same files"),
    Gone("loggers", "LoggerCollection", (1, 8), "trainer.loggers is a list of them"),
    Gone("lite", "", V2, "LightningLite is lightning.fabric.Fabric"),
    Gone("strategies", "DDPSpawnStrategy", V2, f"{_SPAWN} is the same"),
    Gone("strategies", "DataParallelStrategy", V2, "DDPStrategy, with the batch size divided by the devices: dp split one batch"),
    Gone("strategies", "DDP2Strategy", (1, 8), "DDPStrategy"),
    Gone("strategies", "DDPShardedStrategy", V2, "FSDPStrategy or DeepSpeedStrategy shard"),
    Gone("strategies", "DDPFullyShardedStrategy", V2, "FSDPStrategy"),
    Gone("strategies", "DDPFullyShardedNativeStrategy", V2, "FSDPStrategy, whose arguments were renamed in part"),
    Gone("strategies", "HorovodStrategy", V2, "DDPStrategy"),
    Gone("plugins", "NativeMixedPrecisionPlugin", V2, "MixedPrecision of pytorch_lightning.plugins, since 2.1"),
    Gone("overrides.base", "", V2, "the wrapper is torch's own: trainer.strategy.model"),
    Gone("overrides.data_parallel", "", V2, "the strategy dp is gone"),
)

# Attributes of the Trainer that hold the strategy, and the version from which on they are an AttributeError.
STRATEGY_SINCE: Minor = (1, 6)
OLD_HOLDERS: dict[str, Minor] = {
    "training_type_plugin": (1, 8),
    "accelerator.training_type_plugin": (1, 6),
    "accelerator": (1, 6),  # its barrier alone: `trainer.accelerator.barrier()`
}  # fmt: skip
# What the strategy of every version since 1.6, and the plugin before it, gives under the same name.
OF_EVERY_STRATEGY = frozenset(
    {"barrier", "broadcast", "all_gather", "reduce", "reduce_boolean_decision", "root_device", "lightning_module", "model",
     "is_global_zero", "global_rank", "local_rank", "node_rank", "world_size", "parallel_devices"}
)  # fmt: skip

# Hooks that no Trainer calls any more: 1.8 and 1.9 end the program where a class has one (`configuration_validator.py` of 1.9.5),
# Lightning 2 does not look for it (no call of the name in 2.6.6).
HOOKS_GONE: Minor = (1, 8)
_EPOCHS = "on_train_epoch_{0}, on_validation_epoch_{0} or on_test_epoch_{0}; it ran in all three until 1.7"
GONE_HOOKS: dict[str, str] = {
    "on_epoch_start": _EPOCHS.format("start"),
    "on_epoch_end": _EPOCHS.format("end"),
    "on_pretrain_routine_start": "on_fit_start",
    "on_pretrain_routine_end": "on_fit_start",
}
# Those of callbacks alone.
GONE_CALLBACK_HOOKS: dict[str, str] = {
    "on_batch_start": "on_train_batch_start(self, trainer, pl_module, batch, batch_idx)",
    "on_batch_end": "on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx)",
    "on_init_start": "setup(self, trainer, pl_module, stage)",
    "on_init_end": "setup(self, trainer, pl_module, stage)",
    "on_configure_sharded_model": "setup(self, trainer, pl_module, stage)",
    "on_before_accelerator_backend_setup": "setup(self, trainer, pl_module, stage)",
}
