"""The keys of the batches that a Trainer evaluates with, where the project's own data set shows all of them."""

from __future__ import annotations

import ast

from codemods.analysis.class_index import class_facts, find_class
from codemods.analysis.names import dotted
from codemods.analysis.trainer.references import binding_scope, bindings
from codemods.analysis.trainer.trainer_calls import TrainerCall
from codemods.files.source import walk_scope

# The collators that a Trainer takes by itself call these two `labels` (5.23, `default_data_collator`, `DataCollatorWithPadding`).
_RENAMED = {"label": "labels", "label_ids": "labels"}


def evaluation_keys(trainer: TrainerCall) -> frozenset[str]:
    """The keys that each batch of `eval_dataset` has; none where a collator is given, or they are not all literal."""
    if trainer.argument("data_collator") is not None:
        return frozenset()
    value = trainer.argument("eval_dataset")
    if isinstance(value, ast.Name):
        bound = bindings(trainer.module, value.id, binding_scope(trainer.module, value))
        made = bound[0] if len(bound) == 1 else None
        value = made.value if isinstance(made, (ast.Assign, ast.AnnAssign)) else None
    name = dotted(value.func) if isinstance(value, ast.Call) else ""
    site = find_class(trainer.project, trainer.module, name) if name else None
    found = class_facts(trainer.project, site.module, site.node).method("__getitem__") if site else None
    if found is None:
        return frozenset()
    keys: set[str] = set()
    returned = [n.value for n in walk_scope(found[1]) if isinstance(n, ast.Return)]
    for item in returned:
        if not isinstance(item, ast.Dict):
            return frozenset()
        for key in item.keys:
            if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
                return frozenset()
            keys.add(_RENAMED.get(key.value, key.value))
    return frozenset(keys)
