"""What a value is to those who change it: an object of a host-only package, newly made here, or shared with others."""

from __future__ import annotations

import ast
import re
from enum import IntEnum
from weakref import WeakKeyDictionary

from codemods.analysis.bindings import bindings_of
from codemods.analysis.bound_values import assigned
from codemods.analysis.names import dotted, family, last, qualified
from codemods.analysis.paths import is_path, origin_text
from codemods.data import host_only
from codemods.files.source import SourceModule
from codemods.runtime.lazy_pattern import lazy

# What people call the model, as a name or an attribute.
MODEL_NAMES = frozenset(
    {"model", "pl_module", "module", "net", "network", "backbone", "encoder", "decoder", "generator", "discriminator",
     "unet", "vae", "critic", "policy", "ema_model", "student", "teacher"}
)  # fmt: skip

_GIVES_PARTS = frozenset(
    {"get", "values", "items", "keys", "setdefault", "pop", "modules", "parameters", "children", "buffers", "named_modules",
     "named_parameters", "named_buffers", "named_children", "state_dict"}
)  # fmt: skip
# What gives another view of the same numbers, or may: `model.state_dict()[name].copy_(x)` and `x.view(-1).zero_()` change the
# model and `x` (documentation of torch, "Tensor Views"; `.to()` and the like give the tensor itself where nothing changes).
_SHARES = frozenset(
    {"view", "view_as", "reshape", "transpose", "permute", "expand", "flatten", "squeeze", "unsqueeze", "split", "chunk",
     "detach", "contiguous", "to", "cpu", "cuda", "float", "half", "double", "long", "int", "bool", "type", "numpy", "diag",
     "narrow", "select", "unbind", "as_tensor", "asarray", "from_numpy", "unfold", "swapaxes", "movedim", "ravel"}
)  # fmt: skip

_MEDIA = lazy(r"\.(?:png|jpe?g|gif|webp|bmp|tiff?|wav|flac|mp3|mp4)\b", re.IGNORECASE)


class Nature(IntEnum):
    """Of several values that a name may have, the highest counts."""

    HOST = 0  # a figure, a data frame, an open file, a logger
    FRESH = 1  # made in this function: changing it changes nothing for others
    SHARED = 2  # an attribute, a parameter, a global


_KNOWN: WeakKeyDictionary[SourceModule, dict[ast.AST, Nature]] = WeakKeyDictionary()


def nature(module: SourceModule, node: ast.AST) -> Nature:
    """What `node` is, as its function shows it; SHARED where nothing shows it."""
    known = _KNOWN.setdefault(module, {})
    if node not in known:
        known[node] = Nature.HOST  # what depends on itself adds nothing to itself
        known[node] = _nature(module, node)
    return known[node]


def _nature(module: SourceModule, node: ast.AST) -> Nature:
    if isinstance(node, ast.Call):
        return _of_call(module, node)
    if isinstance(node, (ast.Attribute, ast.Subscript)):
        return _of_part(module, node)
    if isinstance(node, ast.Name):
        return _of_name(module, node)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and is_path(module, node):
        return Nature.HOST
    if isinstance(node, ast.IfExp):
        return max(nature(module, node.body), nature(module, node.orelse))
    if isinstance(node, ast.BoolOp):
        return max(nature(module, v) for v in node.values)
    if isinstance(node, (ast.Starred, ast.NamedExpr, ast.Await)):
        return nature(module, node.value)
    return Nature.FRESH


def _of_call(module: SourceModule, call: ast.Call) -> Nature:
    name = qualified(module, call.func)
    root = dotted(call.func).partition(".")[0]
    if root in module.imports:
        if family(name) == "collections":
            return Nature.FRESH  # a list or a dict like any other: what it holds may be anything
        if family(name) in host_only.PACKAGES or name.startswith((*host_only.PREFIXES, "logging.", "csv.", "os.")):
            return Nature.HOST
        if name.startswith("torch."):
            shared = call.args[:1] if last(name) in _SHARES else []
            return nature(module, shared[0]) if shared else Nature.FRESH
    if name == "open":
        return Nature.HOST
    if name in host_only.BUILTINS:
        if name in ("getattr", "iter", "reversed", "enumerate", "zip", "vars", "filter", "super") and call.args:
            return max(nature(module, a) for a in call.args[:3])
        return Nature.FRESH
    if isinstance(call.func, ast.Attribute):
        inner = nature(module, call.func.value)
        if inner is Nature.HOST:
            return Nature.HOST
        if call.func.attr in _GIVES_PARTS or call.func.attr in _SHARES:
            return inner
        if call.func.attr in host_only.PURE_METHODS:
            return Nature.FRESH
    return Nature.SHARED


def _of_part(module: SourceModule, node: ast.Attribute | ast.Subscript) -> Nature:
    name = dotted(node)
    if name and name.partition(".")[0] in module.imports and name.partition(".")[0] != "self":
        whole = qualified(module, node)
        host = family(whole) in host_only.PACKAGES or whole.startswith(host_only.PREFIXES)
        return Nature.HOST if host else Nature.SHARED
    if name.startswith("self.") and name.count(".") == 1:
        values = [v for v in values_of(module, node) if not (isinstance(v, ast.Constant) and v.value is None)]
        if values and all(isinstance(v, ast.Call) and nature(module, v) is Nature.HOST for v in values):
            return Nature.HOST
        return Nature.SHARED
    return nature(module, node.value)


def _of_name(module: SourceModule, node: ast.Name) -> Nature:
    if node.id in module.imports:
        whole = qualified(module, node)
        return Nature.HOST if family(whole) in host_only.PACKAGES else Nature.SHARED
    values = values_of(module, node)
    if not values:
        return Nature.SHARED
    found = max(nature(module, v) for v in values)
    return Nature.SHARED if found is Nature.FRESH and _is_of_the_file(module, node) else found


def _is_of_the_file(module: SourceModule, name: ast.Name) -> bool:
    """True in a function for what the file itself has made: whoever reads it afterwards sees what the function changed."""
    bound = bindings_of(module, name) if module.function_of(name) is not None else []
    return bool(bound) and all(module.function_of(b.node) is None for b in bound)


def writes_a_picture(module: SourceModule, call: ast.Call) -> bool:
    """True for `x.save(path)` where the path names a picture or a sound, or `x` is a scripted module: a file of its own."""
    if not call.args or not isinstance(call.func, ast.Attribute) or call.func.attr != "save":
        return False
    if _MEDIA.search(origin_text(module, call.args[0], depth=2)):
        return True
    made = [v for v in values_of(module, call.func.value) if isinstance(v, ast.Call)]
    return bool(made) and all(qualified(module, v.func) in ("torch.jit.script", "torch.jit.trace") for v in made)


def values_of(module: SourceModule, node: ast.AST) -> list[ast.expr]:
    """The values a name or `self.name` is given: assignments, `with … as`, what a loop goes through."""
    name = dotted(node)
    if not name:
        return []
    if name.startswith("self."):
        return assigned(module, node, name)
    function = module.function_of(node)
    if function is not None and _is_argument(function, name):
        return []  # rebound or not, it may still be what was handed in
    return assigned(module, node, name)


def _is_argument(function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> bool:
    a = function.args
    return any(arg.arg == name for arg in (*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))))


def root_name(node: ast.expr) -> str:
    """`self.x` for anything reached through it, the name for anything reached through a name."""
    parts: list[str] = []
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        elif isinstance(node, ast.Subscript):
            parts.clear()
            node = node.value
        elif isinstance(node, ast.Call):
            parts.clear()
            node = node.func
        else:
            return ast.unparse(node)[:40]
    return ".".join([node.id, *reversed(parts)][: 2 if node.id == "self" else 4])
