"""Calls that put together a state of which each rank holds a part: FSDP, ZeRO, torch's own sharded optimizer.

Every rank has to make them, whatever `rank0_only` says: it says who keeps the result. Sources: the documentation of
`torch.distributed.fsdp`, `torch.distributed.checkpoint.state_dict`, `ZeroRedundancyOptimizer.consolidate_state_dict` (torch 2.13)
and of `DeepSpeedEngine.save_checkpoint` ("all processes must call this method and not just the process with rank 0").
"""

from __future__ import annotations

import ast
import re

from codemods.analysis.bindings import attribute_bindings, bindings_of
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.ranks.fsdp_wraps import fsdp_wrap_of
from codemods.files.source import SourceModule
from codemods.files.text_file import PYTHON_KINDS, TEXT_KINDS
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_OF_FSDP = frozenset({"optim_state_dict", "full_optim_state_dict", "sharded_optim_state_dict", "scatter_full_optim_state_dict"})
_OF_WRAPPED = frozenset({"get_model_state_dict", "get_optimizer_state_dict", "get_state_dict"})
_GIVEN_BACK = frozenset({"set_model_state_dict", "set_optimizer_state_dict", "set_state_dict"})
_OF_ZERO = frozenset({"_zero3_consolidated_16bit_state_dict", "_zero3_consolidated_fp16_state_dict"})
_CONTEXTS = frozenset({"summon_full_params", "GatheredParameters"})
# `"stage": 2`, `zero_stage=2`, `--zero_stage 3`, `stage3_gather_16bit_weights_on_model_save`, `zero_stage3.json`
_ZERO = (b"zero_optimization", b"zero_stage", b"zero2", b"zero3")
_KINDS = (*PYTHON_KINDS, *TEXT_KINDS)
_STAGE = lazy(rb"stage[_-]?(?:[\"']?\s*[:= ]\s*)?([0-3])\b|stage_?(3)_|zero[_-]?(3)", re.I)
_SHARDS = (b"fully_shard", b"FullyShardedDataParallel")
_STRATEGIES = (b"FULL_SHARD", b"SHARD_GRAD_OP", b"HYBRID_SHARD", b"_HYBRID_SHARD_ZERO2")
# The last names of such calls; `state_dict` and `save_checkpoint` are many things besides.
NAMES = _OF_FSDP | _OF_WRAPPED | _GIVEN_BACK | _OF_ZERO | _CONTEXTS | {"consolidate_state_dict", "save_checkpoint", "state_dict"}


def framework_of_sharded(module: SourceModule, call: ast.Call, name: str, end: str, project: Project | None) -> str:
    """Whose call it is that puts a sharded state together, or shares one out; "" for any other. name: its qualified one."""
    if end == "state_dict":
        return "fsdp" if (_in_full_state(module, call) and not _keeps_all(module)) or _of_wrapper(module, call) else ""
    if end == "consolidate_state_dict":
        own = project is not None and project.files_containing(b"def consolidate_state_dict")
        return "torch" if isinstance(call.func, ast.Attribute) and not own else ""
    if end == "save_checkpoint":
        return "deepspeed" if _of_engine(module, call) or _takes_client_state(project, call) else ""
    if end in _CONTEXTS:
        if end == "GatheredParameters" and (not name.startswith("deepspeed.") or _keeps_parameters_whole(project)):
            return ""  # it gathers what ZeRO-3 divides, and does nothing below that
        known = name.startswith(("torch.distributed.fsdp.", "deepspeed."))
        return ("fsdp" if end == "summon_full_params" else "deepspeed") if known and _is_entered(module, call) else ""
    if end in _OF_ZERO:
        return "deepspeed"
    if end in _OF_FSDP:
        return "fsdp" if name.startswith("torch.distributed.fsdp.") and not _keeps_all(module) else ""
    if end in _OF_WRAPPED | _GIVEN_BACK and name.startswith("torch.distributed.checkpoint."):
        asked = "full_state_dict" if end in _OF_WRAPPED else "broadcast_from_rank0"
        return "fsdp" if _option(module, call, asked) and _shards(project) else ""
    return ""


def _in_full_state(module: SourceModule, call: ast.Call) -> bool:
    """`model.state_dict()` in `with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT):` gathers the whole model."""
    if not module.holds(b"FULL_STATE_DICT") or not isinstance(call.func, ast.Attribute):
        return False
    for up in module.ancestors(call):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            return False
        if not isinstance(up, ast.With):
            continue
        for entered in (item.context_expr for item in up.items):
            if not isinstance(entered, ast.Call) or last(dotted(entered.func)) != "state_dict_type" or not entered.args:
                continue
            kind = _given(entered, 1, "state_dict_type")
            if kind is not None and last(dotted(kind)) == "FULL_STATE_DICT":
                return dotted(entered.args[0]) == dotted(call.func.value) != ""
    return False


def _of_wrapper(module: SourceModule, call: ast.Call) -> bool:
    """True for `model.state_dict()` of an FSDP wrapper, in a file that asks for no other kind of state: it gathers them all."""
    if not isinstance(call.func, ast.Attribute) or module.holds(b"state_dict_type"):
        return False
    return fsdp_wrap_of(module, call.func.value) is not None


def _keeps_all(module: SourceModule) -> bool:
    """True where the file names `NO_SHARD` and no other strategy: each rank has the whole model then."""
    return module.holds(b"NO_SHARD") and not any(module.holds(word) for word in _STRATEGIES)


def _of_engine(module: SourceModule, call: ast.Call) -> bool:
    """True where the file makes the engine by `deepspeed.initialize`, whatever it calls it."""
    if not module.holds(b"deepspeed") or not isinstance(call.func, ast.Attribute):
        return False
    holder = call.func.value
    if isinstance(holder, ast.Name):
        made = [b.value for b in bindings_of(module, holder)]
    else:
        made = [b.value for b in attribute_bindings(module, holder)] if isinstance(holder, ast.Attribute) else []
    return bool(made) and all(isinstance(v, ast.Call) and qualified(module, v.func) == "deepspeed.initialize" for v in made)


def _takes_client_state(project: Project | None, call: ast.Call) -> bool:
    """True for `model.save_checkpoint(path, client_state=…)` of a model from elsewhere: the argument is DeepSpeed's own."""
    if project is None or not any(k.arg == "client_state" for k in call.keywords) or not isinstance(call.func, ast.Attribute):
        return False
    holder = dotted(call.func.value)
    if holder == "self" or isinstance(call.func.value, ast.Call):  # a method of the project, `super()`
        return False
    return project.keep("client_state is DeepSpeed's", lambda: _is_of_deepspeed_alone(project))


def _is_of_deepspeed_alone(project: Project) -> bool:
    """True where the project imports DeepSpeed, and has no `save_checkpoint` that is handed a `client_state` itself."""
    if not project.files_containing(b"deepspeed"):
        return False
    for path in project.files_containing(b"def save_checkpoint"):
        module = project.module(path)
        for function in module.functions if module is not None else ():
            names = {a.arg for a in (*function.args.args, *function.args.kwonlyargs)}
            if function.name == "save_checkpoint" and "client_state" in names:
                return False
    return True


def _keeps_parameters_whole(project: Project | None) -> bool:
    """True where the project says which stages of ZeRO it runs, and none of them is the third."""
    if project is None:
        return False

    def build() -> bool:
        paths = {p for word in _ZERO for p in project.files_containing(word, kinds=_KINDS)}
        stages = {found[1] or found[2] or found[3] for path in paths for found in _STAGE.finditer(project.read(path) or b"")}
        return bool(stages) and b"3" not in stages

    return project.keep("ZeRO divides no parameters", build)


def _is_entered(module: SourceModule, call: ast.Call) -> bool:
    return isinstance(module.parent(call), ast.withitem)


def _option(module: SourceModule, call: ast.Call, name: str) -> bool:
    """True for `options=StateDictOptions(full_state_dict=True)`, also by a name that is given once."""
    options = next((k.value for k in call.keywords if k.arg == "options"), None)
    if isinstance(options, ast.Name):
        found = [b.value for b in bindings_of(module, options)]
        options = found[0] if len(found) == 1 else None
    if not isinstance(options, ast.Call):
        return False
    return any(k.arg == name and isinstance(k.value, ast.Constant) and k.value.value is True for k in options.keywords)


def _shards(project: Project | None) -> bool:
    return project is not None and any(project.files_containing(word) for word in _SHARDS)


def _given(call: ast.Call, position: int, name: str) -> ast.expr | None:
    found = next((k.value for k in call.keywords if k.arg == name), None)
    return call.args[position] if found is None and len(call.args) > position else found
