"""Does the project show that Accelerate may run its programs with DeepSpeed, FSDP or Megatron-LM?

By a configuration of Accelerate, a plug-in, a test for the engine, a command or an option that names one. What is only installed,
or spoken of in a text, counts as nothing.
"""

from __future__ import annotations

from codemods.analysis.distribution import is_test_file
from codemods.files.text_file import SHELL_KINDS
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_KINDS = (".py", ".yaml", ".yml", ".json", ".md", ".rst", ".ipynb", *SHELL_KINDS)
_WORDS = (b"eepspeed", b"eepSpeed", b"EEPSPEED", b"fsdp", b"FSDP", b"FullySharded", b"MEGATRON", b"egatronLM", b"megatron_lm")
_LONGEST = 400_000  # beyond it, a list of something
_SHOWS = lazy(
    rb"distributed_type[\"']?[ \t]*:[ \t]*[\"']?(?:DEEPSPEED|FSDP|MEGATRON_LM)\b|"
    rb"DistributedType\.(?:DEEPSPEED|FSDP|MEGATRON_LM)\b|"
    rb"\b(?:DeepSpeed|FullyShardedDataParallel|MegatronLM)Plugin\(|\b(?:deepspeed|fsdp|megatron_lm)_plugins?\b|"
    rb"--(?:use_)?(?:deepspeed|fsdp)\b|--(?:deepspeed|fsdp)_\w+|\b(?:deepspeed|fsdp)_config(?:_file)?\b|"
    rb"ACCELERATE_USE_(?:DEEPSPEED|FSDP)\b|\b(?:import|from) deepspeed\b"
)


def may_shard(project: Project) -> bool:
    """True where an engine may run the programs for which `save_state` is a collective, or a part of the state on each rank."""
    return project.keep("engines that shard", lambda: _shows(project))


def _shows(project: Project) -> bool:
    paths = {p for word in _WORDS for p in project.files_containing(word, kinds=_KINDS) if not is_test_file(p)}
    texts = (project.read(path) or b"" for path in sorted(paths))
    return any(_SHOWS.search(text) for text in texts if len(text) <= _LONGEST)
