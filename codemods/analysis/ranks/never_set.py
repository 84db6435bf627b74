"""Attributes that are asked for and that nobody sets: what stands under `hasattr(self, "tiles")` then never runs."""

from __future__ import annotations

import ast
import re

from codemods.analysis.class_index import class_facts
from codemods.analysis.names import family, last
from codemods.files.source import SourceModule
from codemods.store.project import Project

_KINDS = (".py", ".yaml", ".yml", ".json", ".toml", ".cfg", ".ini", ".gin", ".sh", ".ipynb")
_PLAIN_BASES = frozenset({"Module", "LightningModule", "LightningDataModule", "Callback", "Dataset", "IterableDataset", "ABC"})
# What these bases set themselves, or their Trainer sets on them (torch 2.13, Lightning 2.6).
_OF_BASES = frozenset(
    {"trainer", "logger", "loggers", "fabric", "device", "dtype", "training", "hparams", "hparams_initial", "global_rank",
     "local_rank", "global_step", "current_epoch", "example_input_array", "automatic_optimization", "on_gpu", "strict_loading",
     "truncated_bptt_steps", "allow_zero_length_dataloader_with_multiple_devices", "call_super_init", "dump_patches"}
)  # fmt: skip


def asks_for_what_nobody_sets(project: Project, module: SourceModule, test: ast.expr) -> bool:
    """True for `hasattr(self, "name")` where no file of the project sets the name: as a field, a key, an option or a setting."""
    if not isinstance(test, ast.Call) or not isinstance(test.func, ast.Name) or test.func.id != "hasattr" or len(test.args) != 2:
        return False
    held, name = test.args
    if not isinstance(held, ast.Name) or held.id != "self":
        return False
    if not isinstance(name, ast.Constant) or not isinstance(name.value, str):
        return False
    owner = module.class_of(test)
    if owner is None or name.value in _OF_BASES or name.value.startswith("_") or not name.value.isidentifier():
        return False
    facts = class_facts(project, module, owner)
    if facts.unresolved or not all(last(b) in _PLAIN_BASES or family(b) == "abc" for b in facts.external):
        return False
    wanted = name.value
    return project.keep(("nobody sets", wanted), lambda: _nobody_sets(project, wanted))


def _nobody_sets(project: Project, name: str) -> bool:
    """True where every mention of the name only asks for it."""
    word = re.escape(name.encode())
    asks = re.compile(
        rb"(?:hasattr|getattr)\(\s*[\w.]+\s*,\s*[\"']" + word + rb"[\"']|"  # hasattr(self, "name")
        rb"\.\s*" + word + rb"\b(?!\s*(?:[-+*/|&]?=(?!=)|:[^=\n]*=(?!=)|,[^()\n]*=(?!=)|\s+in\b))"  # self.name, not stored to
    )
    for path in project.files_containing(name.encode(), kinds=_KINDS):
        data = project.read_text(path) or b""
        mentions = re.findall(rb"(?<!\w)" + word + rb"(?!\w)", data)
        if len(mentions) != len(asks.findall(data)) or re.search(rb"\bas\s+[\w.]+\." + word, data):
            return False
    return True
