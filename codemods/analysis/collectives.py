"""Which calls every rank must reach: direct ones, the hidden ones of the frameworks, and project functions that reach one."""

from __future__ import annotations

import ast

from codemods.analysis.names import dotted, family, last, qualified
from codemods.source import SourceModule

# torch.distributed: all of them wait for the other ranks (`new_group` too).
TORCH = frozenset(
    {"barrier", "all_reduce", "all_gather", "all_gather_into_tensor", "all_gather_object", "gather", "gather_object",
     "broadcast", "broadcast_object_list", "reduce", "reduce_scatter", "reduce_scatter_tensor", "scatter",
     "scatter_object_list", "all_to_all", "all_to_all_single", "monitored_barrier", "new_group", "init_process_group"}
)  # fmt: skip
# Methods of Lightning's strategy and modules, Fabric and Accelerate.
METHODS = frozenset(
    {"barrier", "broadcast", "all_gather", "all_reduce", "reduce_boolean_decision", "gather_for_metrics",
     "wait_for_everyone", "save_checkpoint", "pad_across_processes", "save_state", "all_gather_object"}
)  # fmt: skip
# `gather`, `reduce`, `save` are words of many libraries: they count on these receivers only.
RECEIVERS = {
    "gather": ("accelerator",),
    "reduce": ("accelerator", "strategy", "fabric"),
    "save": ("fabric",),
    "load": ("fabric",),
    "fit": ("trainer",),
    "validate": ("trainer",),
    "test": ("trainer",),
    "predict": ("trainer",),
    "evaluate": ("trainer",),
    "train": ("trainer",),
    "setup_data": ("fit_loop",),
}
# Properties whose read is a collective, or runs pending ones (measured; Lightning issue #18148).
PROPERTIES = frozenset({"log_dir", "callback_metrics", "logged_metrics", "progress_bar_metrics", "estimated_stepping_batches"})


def collective_call(module: SourceModule, call: ast.Call) -> str:
    """The name of the collective that `call` is, "" if it is none that can be told from its own text."""
    name = qualified(module, call.func)
    end = last(name)
    if name.startswith("torch.distributed.") and end in TORCH and family(name) == "torch":
        return name
    if not isinstance(call.func, ast.Attribute):
        return ""
    receiver = last(dotted(call.func.value)).lstrip("_")
    if end in RECEIVERS:
        return module.text_of(call.func) if receiver in RECEIVERS[end] else ""
    if end in METHODS and receiver not in ("np", "numpy", "torch", "os", "spark", "jnp"):
        return module.text_of(call.func)
    if end in ("log", "log_dict") and receiver in ("self", "pl_module") and _synced(call):
        return module.text_of(call.func) + "(sync_dist=True)"
    return ""


def _synced(call: ast.Call) -> bool:
    for keyword in call.keywords:
        if keyword.arg == "sync_dist":
            return not (isinstance(keyword.value, ast.Constant) and keyword.value.value is False)
    return False


def collective_read(module: SourceModule, node: ast.Attribute) -> str:
    """The name of a Trainer property whose read is a collective: `trainer.log_dir`, `trainer.callback_metrics` & co."""
    if node.attr not in PROPERTIES or not isinstance(node.ctx, ast.Load):
        return ""
    receiver = last(dotted(node.value)).lstrip("_")
    return module.text_of(node) if receiver == "trainer" else ""
