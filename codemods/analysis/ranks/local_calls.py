"""Calls that are known to stay in their own process, by the tables of host-only packages and the words of tensors and loggers."""

from __future__ import annotations

import ast

from codemods.analysis.names import dotted, family, qualified
from codemods.data import host_only
from codemods.files.source import SourceModule

_ROOTS = frozenset(
    {"os", "sys", "logging", "numpy", "random", "subprocess", "threading", "signal", "gc", "builtins", "safetensors"}
)
_BUILTINS = host_only.BUILTINS | {"print", "open", "exit", "quit", "input", "next", "setattr", "delattr", "BaseException"}
# Whatever they are called on: containers, tensors, modules that change their mode, loggers.
_METHODS = (
    host_only.PURE_METHODS | host_only.WRITING_METHODS | host_only.TRACKER_METHODS | host_only.LEVELS
    | {"append", "extend", "add", "pop", "clear", "insert", "remove", "setdefault", "discard", "eval", "set_postfix",
       "set_description", "close", "zero_", "fill_", "add_", "div_", "mul_", "copy_", "is_alive", "add_argument", "parse_args"}
)  # fmt: skip
# Parts of torch that do reach other processes, or run what is handed to them.
_OF_TORCH = (
    "torch.distributed.", "torch.nn.parallel.", "torch.multiprocessing.", "torch.hub.", "torch.compile",
    "torch.utils.checkpoint",
)  # fmt: skip


def stays_here(module: SourceModule, call: ast.Call) -> bool:
    """True where the call is known to reach no other process; False says nothing."""
    name = qualified(module, call.func)
    if name in host_only.LOOKS or name in host_only.WRITERS:
        return True
    if name and "." not in name:
        return name in _BUILTINS or name.endswith(("Error", "Exception", "Warning"))
    if dotted(call.func).partition(".")[0] in module.imports:
        root = family(name)
        if root in _ROOTS or root in host_only.PACKAGES or name.startswith(host_only.PREFIXES):
            return True
        if root == "torch":
            return not name.startswith(_OF_TORCH)
    return isinstance(call.func, ast.Attribute) and call.func.attr in _METHODS
