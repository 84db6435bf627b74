"""A Lightning Trainer that names no strategy: on several devices it takes DDP by itself, with the flag at its default."""

from __future__ import annotations

import ast

from codemods.analysis.model.flag_setting import Framework, Setting, State, Wrapper
from codemods.analysis.model.flag_values import bound_once
from codemods.analysis.names import last, qualified
from codemods.files.source import SourceModule
from codemods.store.project import Project

_DECIDES = ("strategy", "plugins", "distributed_backend")
_COUNTS = ("devices", "gpus", "num_processes")


def implicit_setting(wrapper: Wrapper) -> Setting | None:
    """The strategy that is not written, where the Trainer may run on several devices; None where that is not so or not seen."""
    call, module = wrapper.call, wrapper.module
    if wrapper.framework is not Framework.LIGHTNING or wrapper.settings or last(qualified(module, call.func)) != "Trainer":
        return None
    given = {k.arg: k.value for k in call.keywords}
    if None in given or call.args or any(name in given for name in _DECIDES):
        return None
    accelerator = given.get("accelerator")
    kind = accelerator.value if isinstance(accelerator, ast.Constant) else None
    counted = any(name in given for name in (*_COUNTS, "num_nodes"))
    if kind not in ("gpu", "cuda", "auto", None) and not (kind == "cpu" and counted):
        return None  # the CPU is one device unless a number is named; other accelerators have strategies of their own
    several = _several(module, given)
    if not several:
        return None
    return Setting(
        State.DEFAULT,
        module,
        call,
        "strategy",
        call,
        strategy=True,
        text="no strategy",
        overridable=f"{several}, on CUDA or the CPU",
    )


def only_on_several(setting: Setting, name: str) -> str:
    """The strategy's name as an expression: one device keeps what it has, where the number of devices is surely a number."""
    assert setting.call is not None
    counts = [k.value for k in setting.call.keywords if k.arg in _COUNTS]
    if len(counts) != 1 or any(k.arg == "num_nodes" for k in setting.call.keywords) or not _is_number(setting.module, counts[0]):
        return f'"{name}"'
    return f'"{name}" if {setting.module.text_of(counts[0])} > 1 else "auto"'


def _is_number(module: SourceModule, count: ast.expr) -> bool:
    """True for a local name that is bound once, to `int(…)`, `len(…)` or `torch.cuda.device_count()`."""
    if not isinstance(count, ast.Name) or (bound := bound_once(module, count)) is None or not isinstance(bound, ast.Call):
        return False
    return last(qualified(module, bound.func)) in ("int", "len", "device_count")


def kept_to_one(project: Project, wrapper: Wrapper) -> ast.keyword | None:
    """`devices=1` of a Trainer that names no strategy."""
    call = wrapper.call
    given = {k.arg for k in call.keywords}
    if wrapper.framework is not Framework.LIGHTNING or wrapper.settings or None in given or given & {*_DECIDES, "num_nodes"}:
        return None
    counts = [k for k in call.keywords if k.arg in ("devices", "gpus")]
    one = counts and isinstance(counts[0].value, ast.Constant) and counts[0].value.value in (1, "1") and len(counts) == 1
    return counts[0] if one else None


def _several(module: SourceModule, given: dict[str | None, ast.expr]) -> str:
    """What has to hold for several devices, "" where the call says one."""
    nodes = given.get("num_nodes")
    if nodes is not None and not (isinstance(nodes, ast.Constant) and nodes.value in (1, None)):
        return "several nodes or devices are used"
    for name in _COUNTS:
        value = given.get(name)
        if value is None:
            continue
        text = f"{name}={' '.join(module.text_of(value).split())}"
        if isinstance(value, ast.Constant):
            return "" if value.value in (0, 1, "1", None) else "there are as many devices"
        if isinstance(value, (ast.List, ast.Tuple)):
            return "" if len(value.elts) < 2 else "there are as many devices"
        return f"{text} comes to several devices"
    return "the machine has several devices, of which Lightning takes all where none are named"
