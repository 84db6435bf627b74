"""The calls that make a Trainer of Lightning, and what of their arguments is a plain value."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.model.config_targets import targets_under
from codemods.analysis.names import dotted, family, last, qualified
from codemods.analysis.trainer.lightning_upgrade import is_tried
from codemods.api.findings import Applicability, Edit
from codemods.files.source import SourceModule
from codemods.runtime.record import record
from codemods.store.project import Project

_INSTANTIATE = ("hydra.utils.instantiate", "hydra.utils.call")


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


def trainer_calls(project: Project, module: SourceModule) -> Iterator[ast.Call]:
    """Those that no test of a version decides over; heirs of the project are left out: what they hand on is theirs.

    With `Trainer.from_argparse_args(args, …)` and `instantiate(config.trainer, …)`, whose keywords go to the Trainer as well.
    """
    made = [c for c in module.calls_named("Trainer") if is_trainer(module, c.func)]
    made += [c for c in module.calls_named("from_argparse_args") if _is_of_trainer(module, c)]
    made += [c for c in module.calls_named("instantiate") if c.keywords and _configures_trainer(project, module, c)]
    yield from (c for c in made if not is_tried(module, c, "TypeError", "Exception"))


def _is_of_trainer(module: SourceModule, call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and is_trainer(module, call.func.value)


def _configures_trainer(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True where Hydra makes the object of a key that some configuration file gives Lightning's Trainer."""
    if not call.args or qualified(module, call.func) not in _INSTANTIATE or not (key := key_of(call.args[0])):
        return False
    targets = targets_under(project, key)
    return bool(targets) and all(is_trainer_name(t.name) for t in targets)


def key_of(node: ast.expr) -> str:
    """The last key of `config.trainer` or `config["trainer"]`."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return str(node.slice.value)
    return last(dotted(node)) if isinstance(node, ast.Attribute) else ""


def is_trainer_name(name: str) -> bool:
    return last(name) == "Trainer" and family(name) == "lightning"


def is_trainer(module: SourceModule, node: ast.expr) -> bool:
    return is_trainer_name(qualified(module, node))


def keywords(call: ast.Call) -> dict[str, ast.keyword]:
    return {k.arg: k for k in call.keywords if k.arg}


def of_several(call: ast.Call, name: str, change: Change) -> Change:
    """The change of an argument, in a Trainer whose strategy, as it is written, is one of several processes."""
    given = [keywords(call)[n].value for n in ("strategy", "accelerator") if n in keywords(call)]
    texts = [v.value for v in given if isinstance(v, ast.Constant) and isinstance(v.value, str)]
    several = any(t.startswith(("ddp", "fsdp", "deepspeed")) for t in texts)
    if change.edits or not several or name != "auto_scale_batch_size":
        return change
    return Change((), refusals=("Tuner.scale_batch_size refuses several processes: search the size in a run of one instead",))


def more_of(module: SourceModule, call: ast.Call) -> str:
    """What gives the call more arguments than are written there, for people; "" where nothing does."""
    if last(dotted(call.func)) in ("from_argparse_args", "instantiate"):
        return module.text_of(call.args[0]) if call.args else "what it is handed"
    return "what stands behind **" if any(k.arg is None for k in call.keywords) else ""


def literal_text(node: ast.expr) -> str | None:
    """The value as Python writes it, None for what is no literal."""
    try:
        return repr(ast.literal_eval(node))
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
