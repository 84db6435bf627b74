"""A hook that runs the model to measure it: without gradients, on events of CUDA, and back in train mode at its end.

No later state differs: `fit` begins in train mode on every rank, and what was computed is thrown away.
"""

from __future__ import annotations

import ast

from codemods.analysis.names import last, qualified
from codemods.analysis.output.effect_kinds import Effect, Effects, Kind
from codemods.files.source import FunctionNode, SourceModule

_WITHOUT_GRADIENTS = frozenset({"torch.no_grad", "torch.inference_mode"})
_MODES = frozenset({"eval", "train"})


def only_measures(module: SourceModule, function: FunctionNode, effects: Effects) -> bool:
    """True where a hook runs the model and times it, and does nothing else but output."""
    rest = effects.besides(Kind.FORWARD)
    if effects.returns or not effects.of(Kind.FORWARD) or not all(_is_of_it(e) for e in rest):
        return False
    heads = (d.func if isinstance(d, ast.Call) else d for d in function.decorator_list)
    if _WITHOUT_GRADIENTS.isdisjoint(qualified(module, head) for head in heads):
        return False
    modes = [e.called for e in rest if e.kind is Kind.STATE]
    return not modes or modes[-1] == "train"


def _is_of_it(effect: Effect) -> bool:
    """True for a change of the mode, and for an event of CUDA that is made or recorded."""
    if effect.kind is Kind.STATE:
        return effect.called in _MODES
    return effect.kind is Kind.UNKNOWN and (effect.name == "torch.cuda.Event" or last(effect.name) == "record")
