"""Wrappers that are handed to a pipeline of diffusers, which looks at the class of each part and refuses any other."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.wrapped.asked_of_wrapper import Asked, counts_for_it, may_be_wrapper
from codemods.analysis.wrapped.holders import Wrapped, wrapper_in
from codemods.files.left_alone import left
from codemods.files.source import SourceModule
from codemods.store.project import Project

# The parts that a saved pipeline has itself: those alone are looked at. A `controlnet` is added to one that has none.
_PARTS = frozenset({"unet", "transformer", "vae", "vqvae", "text_encoder", "text_encoder_2", "text_encoder_3"})


def handed_to_pipelines(project: Project, module: SourceModule) -> Iterator[Asked]:
    """`StableDiffusionPipeline.from_pretrained(path, unet=unet)` where `unet` holds the wrapper."""
    if not module.holds(b"Pipeline") or not module.holds(b"diffusers"):
        return
    for call in module.calls_named("from_pretrained"):
        if pipeline := _pipeline(module, call):
            yield from _of_call(project, module, call, pipeline)


def _of_call(project: Project, module: SourceModule, call: ast.Call, pipeline: str) -> Iterator[Asked]:
    parts = [k for k in call.keywords if k.arg in _PARTS and may_be_wrapper(module, k.value)]
    held = {k: found for k in parts if (found := wrapper_in(project, module, k.value)) is not None}
    for part in parts if held else ():
        found, where = held.get(part), ""
        if found is None:
            ways = ((f, line) for f in held.values() if (line := _prepared_on_one_way(f, module, part.value)))
            found, line = next(ways, (None, 0))
            where = f" where line {line} prepares it"
        if found is None:
            continue
        if not counts_for_it(project, module, part.value, found):
            left(module, call, "a test separates the wrapper and the model, or the wrapper is none of DDP")
            continue
        text = (
            f"`{pipeline}.from_pretrained` is handed the DDP wrapper as `{part.arg}`{where}: it looks at the class of each part, "
            "and with several processes this call raises ValueError"
        )
        receiver, name = module.text_of(part.value), part.arg or ""
        yield Asked(part.value, part.value, found, receiver, name, text, f"part({call.lineno}", known=True, plain=True)


def _pipeline(module: SourceModule, call: ast.Call) -> str:
    """The class of diffusers whose `from_pretrained` is called; "" for any other."""
    if not isinstance(call.func, ast.Attribute):
        return ""
    owner = qualified(module, call.func.value)
    return last(owner) if owner.startswith("diffusers.") and last(owner).endswith("Pipeline") else ""


def _prepared_on_one_way(beside: Wrapped, module: SourceModule, part: ast.expr) -> int:
    """The line in which one arm of a test prepares the part, where the other prepares the model beside it alone; 0 for none."""
    if beside.module is not module or module.function_of(beside.wrap) is not module.function_of(part):
        return 0
    for up in module.ancestors(beside.wrap):
        if isinstance(up, ast.If) and up.orelse:
            arms = [[s for s in arm if _targets_of_prepare(s)] for arm in (up.body, up.orelse)]
            lines = [s.lineno for arm in arms for s in arm if dotted(part) in _targets_of_prepare(s)]
            return lines[0] if all(arms) and len(lines) == 1 else 0
    return 0


def _targets_of_prepare(statement: ast.stmt) -> list[str]:
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
        return []
    if last(dotted(statement.value.func)) != "prepare":
        return []
    return [dotted(n) for t in statement.targets for n in ast.walk(t) if dotted(n)]
