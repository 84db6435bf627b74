"""How a Trainer of transformers or TRL is asked whether this is the main process: only by what its class is known to have."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from codemods.analysis.class_index import Role, external_role
from codemods.analysis.names import dotted, family, last
from codemods.files.source import SourceModule

# Trainers of TRL that derive from its own BaseTrainer: PPOTrainer up to 0.11, the others always. Each has an accelerator.
_OF_THEIR_OWN = frozenset({"PPOTrainer", "DDPOTrainer", "AlignPropTrainer"})


def test_of_trainer(module: SourceModule, holder: str, classes: Iterable[str]) -> str:
    """The test for an object of a class, or of an heir of classes, by their qualified names; "" where it is no such Trainer.

    A file that asks the object's accelerator already goes on so: all of them have one.
    """
    names = [n for n in classes if external_role(n) is Role.HF_TRAINER]
    if not names:
        return ""
    by_accelerator = f"{holder}.accelerator.is_main_process"
    own = any(family(n) == "trl" and last(n) in _OF_THEIR_OWN for n in names)
    return by_accelerator if own or _is_asked(module, by_accelerator) else f"{holder}.is_world_process_zero()"


def _is_asked(module: SourceModule, test: str) -> bool:
    return module.holds(b".accelerator.is_main_process") and any(dotted(n) == test for n in module.nodes(ast.Attribute))
