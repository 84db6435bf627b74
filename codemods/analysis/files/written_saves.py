"""Which calls store the state of a training: the call, where it stores to, and the statement that does it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.call_graph import called_function
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.output.effect_kinds import Effect
from codemods.analysis.output.natures import values_of
from codemods.files.source import SourceModule
from codemods.runtime.record import record
from codemods.store.project import Project

# Position of the path among the arguments, and its names.
_FUNCTIONS = {
    "torch.save": 1, "torch.jit.save": 1, "torch.export.save": 1, "torch.onnx.export": 2, "safetensors.torch.save_file": 1,
    "safetensors.torch.save_model": 1, "safetensors.numpy.save_file": 1,
}  # fmt: skip
_EFFECTS = frozenset({"torch.save", "torch.jit.save", "safetensors.torch.save_file", "safetensors.numpy.save_file", "save_file"})
_PATHS = frozenset({"f", "path", "filename", "save_directory", "output_dir"})
_IN_MEMORY = frozenset({"BytesIO", "SpooledTemporaryFile", "TemporaryFile", "NamedTemporaryFile", "StringIO"})
_OF_MAIN = frozenset({"is_main_process", "save_function"})  # one process writes: what transformers and diffusers offer for it
NAMES = frozenset({*map(last, _FUNCTIONS), "save_pretrained"})


@record
class Save:
    """path: as it is written where the file is opened. index: which argument of the call it is. stored: what goes into the file.

    pretrained: `x.save_pretrained(folder)`, a folder of files.
    """

    call: ast.Call
    path: ast.expr
    index: int | str
    stored: ast.expr
    pretrained: bool = False


def saves_in(project: Project, module: SourceModule) -> Iterator[Save]:
    """The calls of a file that store something, those of the project's own methods of such names left out."""
    for call in module.calls_named(*NAMES):
        if found := _save(project, module, call):
            yield found


def is_of_saves(project: Project, effect: Effect) -> bool:
    """True for an effect that such a call has, under any name of torch: DDP501 has it, not DDP202."""
    name = effect.name
    home = project.module(effect.path)
    for found in home.imports.get(name.partition(".")[0], ()) if home is not None else ():
        name = f"{found.dotted}.{name.partition('.')[2]}".rstrip(".")
    return name.endswith(".save_pretrained") or name in _EFFECTS


def _save(project: Project, module: SourceModule, call: ast.Call) -> Save | None:
    name = qualified(module, call.func)
    if name in _FUNCTIONS:
        position = _FUNCTIONS[name]
        stored = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg in ("obj", "m", "model")), None)
        found = _argument(call, position)
        if stored is None or found is None or any(isinstance(a, ast.Starred) for a in call.args[: position + 1]):
            return None
        opened = _opened(module, found[1])
        return Save(call, opened, found[0], stored) if opened is not None else None
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "save_pretrained":
        return None
    own = dotted(call.func.value) in ("self", "cls") or "super(" in module.text_of(call.func)
    if own or any(k.arg in _OF_MAIN or k.arg is None for k in call.keywords) or called_function(project, module, call):
        return None
    found = _argument(call, 0)
    return Save(call, found[1], found[0], call.func.value, pretrained=True) if found is not None else None


def _argument(call: ast.Call, position: int) -> tuple[int | str, ast.expr] | None:
    if len(call.args) > position:
        return position, call.args[position]
    return next(((k.arg, k.value) for k in call.keywords if k.arg in _PATHS), None)


def is_in_memory(module: SourceModule, path: ast.expr) -> bool:
    """True for a buffer of this process in the place of a path."""
    return _opened(module, path) is None


def _opened(module: SourceModule, path: ast.expr) -> ast.expr | None:
    """The path behind an open file; None for a buffer in memory and for what the source does not show to be a file."""
    values = values_of(module, path) if isinstance(path, ast.Name) else [path]
    for value in values:
        if isinstance(value, ast.Call):
            name = last(dotted(value.func)) or getattr(value.func, "attr", "")
            if name in _IN_MEMORY:
                return None
            if name == "open" and value.args and isinstance(value.func, ast.Name):
                return value.args[0]
    if isinstance(path, ast.Constant) and not isinstance(path.value, str):
        return None
    return path
