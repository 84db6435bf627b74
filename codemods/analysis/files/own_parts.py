"""Is what `torch.save` stores the rank's own part of the results, and nothing of a model beside it?"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bound_values import assigned
from codemods.analysis.files.written_saves import Save
from codemods.analysis.names import dotted
from codemods.analysis.variance.analysis import variance
from codemods.analysis.variance.values import Cause, How, Proof
from codemods.files.source import SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_STATE = lazy(
    r"(?i)model|net\b|module|optim|sched|tokenizer|processor|config|args|state|weight|centroid|codebook|proto|epoch|step"
)
_GIVES_STATE = lazy(r"state_dict|parameters|buffers|unwrap")


def is_own_part(project: Project, module: SourceModule, save: Save) -> bool:
    """True for what is made of rows that are cut by the rank, `torch.save([encode(x) for x in rows[rank::n]], path)`, and for
    what `trainer.predict` of Lightning gives back."""
    if save.pretrained:
        return False
    value = variance(project).argument(module, save.call, 0)
    shared = any(link.how is How.SHARE for link in value.chain)
    sure = value.cause is Cause.DATA and value.proof is Proof.PROVEN and shared
    if any(link.how is How.PREDICTED for link in value.chain):
        return value.cause is Cause.DATA  # the model that it is handed is not in it
    return sure and not any(_STATE.search(word) for word in _words(module, save.stored, 2))


def _words(module: SourceModule, node: ast.expr, depth: int) -> Iterator[str]:
    """What an expression is made of, without the functions that are called: `encode(x)` holds `x`, and nothing of `encode`."""
    called = {id(n) for c in walk(node) if isinstance(c, ast.Call) for n in walk(c.func)}
    for part in walk(node):
        if isinstance(part, ast.Call) and _GIVES_STATE.search(dotted(part.func)):
            yield "state"
        elif isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value
        elif isinstance(part, (ast.Name, ast.Attribute)) and id(part) not in called and (name := dotted(part)):
            yield name
            for value in assigned(module, part, name)[:4] if depth else ():
                yield from _words(module, value, depth - 1)
