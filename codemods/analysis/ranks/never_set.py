"""Attributes that are asked for and that nobody sets: what stands under `hasattr(self, "tiles")` then never runs.

And methods that cannot run to their end, since they call such an attribute.
"""

from __future__ import annotations

import ast
import re

from codemods.analysis.class_index import class_facts, subclasses
from codemods.analysis.names import dotted, family, last
from codemods.files.source import FunctionNode, SourceModule, walk
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
    return _is_set_by_nobody(project, name.value)


def needs_what_nobody_sets(project: Project, module: SourceModule, function: FunctionNode) -> str:
    """A field that a method both calls and hands on, and that no file of the project sets: `val_acc`. "" for none.

    The method is left over in a base class whose heirs have their own. What a base has is no such field: it is called alone.
    """
    owner = module.parent(function)
    if not isinstance(owner, ast.ClassDef):
        return ""
    fields = [n for n in walk(function) if isinstance(n, ast.Attribute) and dotted(n.value) == "self"]
    called = {n.attr for n in fields if _is_surely_called(module, function, n)}
    handed = {n.attr for n in fields if isinstance(n.ctx, ast.Load) and isinstance(module.parent(n), (ast.Call, ast.keyword))}
    wanted = sorted(n for n in called & handed if any(f.attr == n and not _is_function(module, f) for f in fields))
    if not wanted:
        return ""
    facts = class_facts(project, module, owner)
    lines = (facts, *(class_facts(project, s.module, s.node) for s in subclasses(project, facts.lineage[0])))
    if any(f.unresolved or any(last(b) not in _PLAIN_BASES and family(b) != "abc" for b in f.external) for f in lines):
        return ""
    free = (n for n in wanted if n not in _OF_BASES and not n.startswith("_") and facts.method(n) is None)
    return next((n for n in free if _is_set_by_nobody(project, n)), "")


def _is_function(module: SourceModule, field: ast.Attribute) -> bool:
    up = module.parent(field)
    return isinstance(up, ast.Call) and up.func is field


def _is_surely_called(module: SourceModule, function: FunctionNode, field: ast.Attribute) -> bool:
    """True for `self.name(…)` in a plain statement of the function's own block."""
    statement = module.statement_of(field)
    plain = isinstance(statement, (ast.Expr, ast.Assign)) and any(s is statement for s in function.body)
    return plain and _is_function(module, field)


def _is_set_by_nobody(project: Project, name: str) -> bool:
    return project.keep(("nobody sets", name), lambda: _nobody_sets(project, name))


def _nobody_sets(project: Project, name: str) -> bool:
    """True where every mention of the name only asks for it."""
    word = re.escape(name.encode())
    asks = re.compile(
        rb"(?:hasattr|getattr)\(\s*[\w.]+\s*,\s*[\"']" + word + rb"[\"']|"  # hasattr(self, "name")
        rb"\.\s*" + word + rb"\b(?!\s*(?:[-+*/|&]?=(?!=)|:[^=\n]*=(?!=)|,[^()\n]*=(?!=)|\s+in\b))"  # self.name, not stored to
    )
    logged = re.compile(rb"\.log\(\s*[\"']" + word + rb"[\"']\s*,\s*(self\." + word + rb"\b)[^()\n]*")  # log("name", self.name)
    for path in project.files_containing(name.encode(), kinds=_KINDS):
        data = logged.sub(rb"\1", project.read_text(path) or b"")
        mentions = re.findall(rb"(?<!\w)" + word + rb"(?!\w)", data)
        if len(mentions) != len(asks.findall(data)) or re.search(rb"\bas\s+[\w.]+\." + word, data):
            return False
    return True
