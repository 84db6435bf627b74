"""The calls that make a Trainer of Lightning, and what of their arguments is a plain value."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.names import family, last, qualified
from codemods.analysis.trainer.lightning_upgrade import is_tried
from codemods.findings import Applicability, Edit
from codemods.record import record
from codemods.source import SourceModule


@record
class Change:
    """What a codemod does to the arguments of one call. level: SAFE but for what `doubts` assume and `refusals` rule out."""

    edits: tuple[Edit, ...]
    doubts: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()

    @property
    def level(self) -> Applicability:
        if self.refusals:
            return Applicability.DISPLAY
        return Applicability.UNSAFE if self.doubts else Applicability.SAFE

    @property
    def reason(self) -> str:
        return "; ".join(dict.fromkeys(self.refusals or self.doubts))


def trainer_calls(module: SourceModule) -> Iterator[ast.Call]:
    """Those that no test of a version decides over; heirs of the project are left out: what they hand on is theirs."""
    for call in module.calls_named("Trainer"):
        if is_trainer(module, call.func) and not is_tried(module, call, "TypeError", "Exception"):
            yield call


def is_trainer(module: SourceModule, node: ast.expr) -> bool:
    name = qualified(module, node)
    return last(name) == "Trainer" and family(name) == "lightning"


def keywords(call: ast.Call) -> dict[str, ast.keyword]:
    return {k.arg: k for k in call.keywords if k.arg}


def is_spread(call: ast.Call) -> bool:
    """True where arguments stand behind `**` as well."""
    return any(k.arg is None for k in call.keywords)


def literal_text(node: ast.expr) -> str | None:
    """The value as Python writes it, None for what is no literal."""
    try:
        return repr(ast.literal_eval(node))
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
