"""Do all settings of a repository ask Lightning for DataParallel (`accelerator: dp`)? Its devices share one process then.

Whoever runs a program may set another strategy, so it is open rather than one process.
"""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_of, only_value
from codemods.analysis.job_files.documented_starts import starts
from codemods.analysis.ranks.one_device import settings_of_trainers
from codemods.files.source import SourceModule
from codemods.files.text_file import SHELL_KINDS
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_HOW = frozenset({"strategy", "accelerator", "distributed_backend", "plugins"})
_DEVICES = frozenset({"devices", "gpus"})
_SET = lazy(rb"(?m)^[ ]*(?P<key>strategy|accelerator|distributed_backend)[ ]*:[ ]*[\"']?(?P<value>[\w.-]+)?")
_COUNTED = lazy(rb"(?m)^[ ]*(?:devices|gpus|num_nodes)[ ]*:[ ]*[\"'\[]*[\w-]")
_KINDS = frozenset({b"gpu", b"cuda", b"cpu", b"auto", b"null"})  # of devices: they say nothing of processes
_OTHERWISE = lazy(
    rb"(?:strategy|accelerator|distributed_backend)[ \t=:\"']+(?:ddp|fsdp|deepspeed|horovod)|torchrun|distributed\.launch"
)
_TEXTS = (*SHELL_KINDS, ".md", ".rst", ".txt", "Makefile")


def is_left_to_dp(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True for `Trainer(**settings)` that names no strategy itself, where each file of settings for Trainers asks for `dp`.

    Also where the function takes the strategy out of the settings (`cfg.trainer.accelerator = None`) and leaves one device.
    """
    given = {k.arg for k in call.keywords}
    packed = [k.value for k in call.keywords if k.arg is None]
    if len(packed) != 1 or given & (_HOW | _DEVICES) or _is_made_with_it(module, packed[0]):
        return False
    written = _written_above(module, call, packed[0])
    if written is None:
        return False
    hows = [value for name, value in written.items() if name in _HOW]
    if not hows:
        return project.keep("settings of dp", lambda: _all_ask_for_it(project))
    none_left = all(isinstance(v, ast.Constant) and v.value is None for v in hows)
    devices = [value for name, value in written.items() if name in _DEVICES]
    return none_left and bool(devices) and all(_is_one(module, v) for v in devices)


def _is_made_with_it(module: SourceModule, packed: ast.expr) -> bool:
    """True for `options = dict(cfg, strategy="ddp")`, and for an expression like it in the call itself."""
    made = [b.value for b in bindings_of(module, packed) if b.value is not None] if isinstance(packed, ast.Name) else [packed]
    return any(word in module.text_of(value) for value in made for word in _HOW)


def _written_above(module: SourceModule, call: ast.Call, settings: ast.expr) -> dict[str, ast.expr] | None:
    """The keys that the function of the call writes into the settings, `cfg.trainer.gpus = 1`, with their last values.

    None where it may come to the call without such a line.
    """
    out: dict[str, ast.expr] = {}
    text = ast.unparse(settings)
    if any(isinstance(c.func, ast.Attribute) and ast.unparse(c.func.value) == text for c in module.calls_named("update")):
        return None
    round_it = {id(s) for up in (call, *module.ancestors(call)) if isinstance(up, ast.stmt) for s in module.block_of(up)}
    for assign in module.nodes(ast.Assign):
        if module.function_of(assign) is not module.function_of(call) or assign.lineno > call.lineno:
            continue
        for key in (k for target in assign.targets for k in _key_in(target, text)):
            if key in _HOW | _DEVICES and id(assign) not in round_it:
                return None
            out[key] = assign.value
    return out


def _key_in(target: ast.expr, settings: str) -> list[str]:
    """The key of `settings.key` and `settings["key"]`."""
    if not isinstance(target, (ast.Attribute, ast.Subscript)) or ast.unparse(target.value) != settings:
        return []
    if isinstance(target, ast.Attribute):
        return [target.attr]
    return [str(target.slice.value)] if isinstance(target.slice, ast.Constant) else []


def _is_one(module: SourceModule, value: ast.expr) -> bool:
    made = only_value(bindings_of(module, value)) if isinstance(value, ast.Name) else value
    return isinstance(made, ast.Constant) and made.value in (1, "1") and made.value is not True


def _all_ask_for_it(project: Project) -> bool:
    asked = [_asks_for_it(text) for text in settings_of_trainers(project) if _SET.search(text) or _COUNTED.search(text)]
    if not asked or not all(asked) or any(s.several for s in starts(project)):
        return False
    texts = (p for p in project.files if p.endswith(_TEXTS))
    return not any(_OTHERWISE.search(project.read(p) or b"") for p in texts)


def _asks_for_it(text: bytes) -> bool:
    values = [m["value"] or b"null" for m in _SET.finditer(text)]
    return b"dp" in values and all(v == b"dp" or v in _KINDS for v in values)
