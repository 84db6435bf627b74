"""Wrapper classes of the project's own that hand attributes on: `class Wrapper(DistributedDataParallel)` with a `__getattr__`.

`wrapper.loss(batch)` then runs the method of the module inside, and DDP's own `forward` never runs.
"""

from __future__ import annotations

import ast

from codemods.analysis.class_index import ClassSite, class_facts, find_class
from codemods.analysis.names import dotted, last
from codemods.files.source import SourceModule, walk
from codemods.store.project import Project

_DDP = "DistributedDataParallel"
# What the wrapper has itself, as a module and as DDP, and so never asks the module inside for (torch 2.13).
_OWN = frozenset(
    {"forward", "train", "eval", "to", "cuda", "cpu", "float", "half", "double", "bfloat16", "type", "apply", "parameters",
     "named_parameters", "buffers", "named_buffers", "children", "named_children", "modules", "named_modules", "state_dict",
     "load_state_dict", "zero_grad", "requires_grad_", "share_memory", "extra_repr", "add_module", "register_module",
     "register_buffer", "register_parameter", "register_forward_hook", "register_forward_pre_hook",
     "register_full_backward_hook", "get_submodule", "get_parameter", "get_buffer", "compile", "no_sync", "join",
     "join_hook", "join_device", "join_process_group", "register_comm_hook", "will_sync_module_buffers", "gather", "scatter",
     "to_kwargs"}
)  # fmt: skip


def own_wrapper(project: Project, module: SourceModule, call: ast.Call) -> ClassSite | None:
    """The class of the project, made of DDP, that a call makes an object of; None for anything else."""
    names = project.keep("own wrappers", lambda: _named_so(project))
    if not names or last(dotted(call.func)) not in names:
        return None
    site = find_class(project, module, dotted(call.func))
    if site is None or not any(last(b) == _DDP for b in class_facts(project, site.module, site.node).external):
        return None
    return site


def _named_so(project: Project) -> frozenset[str]:
    """The names of the classes whose header names DDP, or another name that it is imported by."""
    return frozenset(name for base in (_DDP, *project.aliases_of(_DDP)) for _, name in project.headers_naming(base))


def hands_on(project: Project, module: SourceModule, wrap: ast.Call, name: str) -> bool:
    """True where `wrapper.name` is looked up in the module inside: no attribute of DDP, none of the class's own."""
    if name in _OWN or (site := own_wrapper(project, module, wrap)) is None:
        return False
    facts = class_facts(project, site.module, site.node)
    if facts.method(name) is not None or (found := facts.method("__getattr__")) is None:
        return False
    return any(isinstance(n, ast.Attribute) and n.attr == "module" for n in walk(found[1]))
