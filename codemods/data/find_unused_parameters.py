"""The flag's names, defaults and spellings by framework and version.

Measured: two-process runs on Lightning 1.6.5, 1.9.5, 2.6.6, torch 2.13, transformers 5.23; names from Lightning's tags.
"""

from __future__ import annotations

RAW_KEYWORD = "find_unused_parameters"
HF_KEYWORD = "ddp_find_unused_parameters"
STATIC_KEYWORDS = ("static_graph", "ddp_static_graph")

# Without a name the flag is DistributedDataParallel's argument 7 (counted from 0) up to torch 2.3, and 8 in 2.13, where
# `init_sync` stands before `process_group`.
FIRST_POSITION = 7
FIRST_POSITION_BELOW = (2, 4, 0)
SECOND_POSITION_FROM = (2, 13, 0)

# Lightning: the flag's default is True from the first version up to (not including) the second; and below 1.2.0, which made it
# False for four releases (pull requests 5185, 5435).
LIGHTNING_FIRST_OFF_FROM = (1, 2, 0)
LIGHTNING_ON_FROM = (1, 2, 4)
LIGHTNING_OFF_FROM = (2, 0, 0)
FLAG_FORCED_BY_HAND_BELOW = (1, 6, 0)  # Lightning switched it on for manual optimization, whatever was written
# `ddp_find_unused_parameters_true` and its kin are known from 2.0.0, `..._false` from 1.3.0, DDPStrategy from 1.6.0.
LIGHTNING_TRUE_NAME_FROM = (2, 0, 0)
LIGHTNING_FALSE_NAME_FROM = (1, 3, 0)
STRATEGY_CLASS_FROM = (1, 6, 0)

# torch.utils.checkpoint: `use_reentrant` came with 1.11; left out, the reentrant kind is taken (still so in 2.13).
REENTRANT_CHOICE_FROM = (1, 11, 0)

# strategy name with the flag on -> the same with the flag off, and the other way round
ON_NAMES = {
    "ddp_find_unused_parameters_true": "ddp",
    "ddp_spawn_find_unused_parameters_true": "ddp_spawn",
    "ddp_fork_find_unused_parameters_true": "ddp_fork",
    "ddp_notebook_find_unused_parameters_true": "ddp_notebook",
}
OFF_NAMES = {
    **{off: on for on, off in ON_NAMES.items()},
    **{on.replace("_true", "_false"): on for on in ON_NAMES},
}

# a plain name -> the one with the flag off, for the versions in which the plain one has it on
FALSE_NAMES = {off: on.replace("_true", "_false") for on, off in ON_NAMES.items() if off in ("ddp", "ddp_spawn")}

STRATEGY_CLASSES = frozenset(
    {"DDPStrategy", "DDPPlugin", "DDPSpawnPlugin", "DDPSpawnStrategy", "DDPShardedPlugin", "DDPShardedStrategy"}
)
# Strategies that hand the flag to torch's wrapper as it is.
PLAIN_STRATEGY_CLASSES = frozenset({"DDPStrategy", "DDPPlugin"})

# Families whose default configuration drops layers at random (transformers 5.23): 0.05 or 0.1.
LAYER_DROP_FAMILIES = (
    "wav2vec2", "hubert", "wavlm", "unispeech", "sew", "data2vecaudio", "speecht5", "vits", "parakeet", "lasr", "nemotronasr",
    "m2m100", "nllbmoe", "seamlessm4t", "autoformer", "informer", "timeseriestransformer",
)  # fmt: skip

# What a run says when the flag is off and a parameter goes without a gradient (torch since 1.x; Lightning since 2.0).
TORCH_ERROR = "Expected to have finished reduction in the prior iteration"
LIGHTNING_ERROR = "parameters that were not used in producing the loss"
