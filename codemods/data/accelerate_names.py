"""Arguments and properties of accelerate.Accelerator that went: one table for DDP806, its page and its tests.

Measured: `Accelerator.__init__` and the properties in the wheels of accelerate 0.10.0, 0.12.0, 0.15.0, 0.16.0, 0.18.0, 0.19.0,
0.20.0, 0.21.0, 0.24.1, 0.28.0, 0.33.0, 0.34.2, 1.0.0, 1.8.1 and 1.15.0; `Accelerator(split_batches=True)` in a run of 1.15.0.
"""

from __future__ import annotations

from collections.abc import Mapping

from codemods.runtime.record import record

Minor = tuple[int, int]


@record
class Gone:
    """What is an error from `gone` on. new, since: what takes its place, and the first version measured that has it.

    ignored: no error, but nothing is done with it. idle: the values, as Python writes them, that ask for what is done anyway.
    """

    name: str
    gone: Minor
    new: str
    since: Minor
    ignored: bool = False
    idle: tuple[str, ...] = ()


CONFIGURATION = "DataLoaderConfiguration"
LOGGING_DIR = Gone("logging_dir", (0, 20), "project_dir", (0, 16), idle=("None",))
FP16 = Gone("fp16", (0, 16), "mixed_precision", (0, 10), idle=("None", "False"))
USE_FP16 = Gone("use_fp16", (1, 0), "mixed_precision", (0, 10))
_OF_LOADERS = (
    Gone("split_batches", (1, 0), "dataloader_config", (0, 28), ignored=True, idle=("False",)),
    Gone("dispatch_batches", (1, 0), "dataloader_config", (0, 28), idle=("None",)),
    Gone("even_batches", (1, 0), "dataloader_config", (0, 28), idle=("True",)),
    Gone("use_seedable_sampler", (1, 0), "dataloader_config", (0, 28), idle=("False",)),
)
OF_LOADERS: Mapping[str, Gone] = {row.name: row for row in _OF_LOADERS}
ARGUMENTS: Mapping[str, Gone] = {row.name: row for row in (LOGGING_DIR, FP16, *_OF_LOADERS)}
