"""What is read off the source before any value is known: parameters, access paths, entries of dicts, what a loop goes through."""

from __future__ import annotations

import ast

from codemods.analysis.names import dotted, last
from codemods.data.rank_variance import PASSED_ON, PROGRESS
from codemods.files.source import FunctionNode, walk


def parameters(function: FunctionNode | None) -> tuple[str, ...]:
    """The names of all parameters, in the order in which positions fill them; starred ones last."""
    if function is None:
        return ()
    spec = function.args
    return tuple(a.arg for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs, *filter(None, (spec.vararg, spec.kwarg))))


def path_of(node: ast.AST) -> str:
    """The access path that a value is kept under: `x`, `self.x`, `x` for `x[0]`; "" for anything else."""
    return dotted(container_of(node)) if isinstance(node, ast.expr) else dotted(node)


def container_of(node: ast.expr) -> ast.expr:
    """What `path_of` names: `x` of `x[0]["a"]`."""
    while isinstance(node, (ast.Subscript, ast.Starred)):
        node = node.value
    return node


def entry_of(node: ast.Subscript) -> str:
    """The path of one entry of a dict, where its key is written out, or a constant by its name."""
    path, key = dotted(node.value), written_key(node.slice)
    return f"{path}[{key}]" if path and key else ""


def written_key(key: ast.expr) -> str:
    """`'rank'` for a text, `Keys.RANK` for a constant, which has a name in capitals; "" for any other key."""
    if isinstance(key, ast.Constant):
        return repr(key.value) if isinstance(key.value, str) else ""
    name = dotted(key)
    return name if len(last(name)) > 1 and last(name).isupper() else ""


def own_field(path: str) -> str:
    """`best` for `self.best` and an entry of it (`self.best['loss']`); "" for any other path."""
    holder, _, name = path.partition("[")[0].rpartition(".")
    return name if holder == "self" else ""


def is_super(func: ast.expr) -> bool:
    """True for `super().method`."""
    return isinstance(func, ast.Attribute) and isinstance(func.value, ast.Call) and dotted(func.value.func) == "super"


def unpacked(node: ast.expr) -> ast.expr:
    """What is gone through behind `enumerate`, `tqdm` and the like, and behind a name on the way (`(bar := tqdm(loader))`)."""
    while True:
        if isinstance(node, ast.NamedExpr):
            node = node.value
        elif isinstance(node, ast.Call) and last(dotted(node.func)) in PASSED_ON and (given := _given(node)) is not None:
            node = given
        else:
            return node


def behind_bar(node: ast.expr) -> ast.expr:
    """What a progress bar is drawn for: `loader` of `tqdm(loader)`."""
    if not isinstance(node, ast.Call) or last(dotted(node.func)) not in PROGRESS:
        return node
    return _given(node) or node


def _given(node: ast.Call) -> ast.expr | None:
    """What such a call goes through; `tqdm` may be handed it by its name."""
    if not node.args:
        return next((k.value for k in node.keywords if k.arg == "iterable"), None)
    return node.args[-1] if last(dotted(node.func)) == "map" else node.args[0]


def as_many_rounds(one: ast.expr, other: ast.expr) -> bool:
    """True for `tqdm(loader)` and `loader`, `trange(n)` and `range(n)`: a bar on rank 0, none on the others."""
    (word, parts), (other_word, other_parts) = _rounds(one), _rounds(other)
    if word != other_word or len(parts) != len(other_parts):
        return False
    return all(a.__class__ is b.__class__ and ast.dump(a) == ast.dump(b) for a, b in zip(parts, other_parts, strict=True))


def _rounds(node: ast.expr) -> tuple[str, list[ast.expr]]:
    """What a loop goes through: the arguments of a `range`, or the thing itself."""
    node = node.value if isinstance(node, ast.NamedExpr) else node
    while isinstance(node, ast.Call) and (word := last(dotted(node.func))) and node.args:
        if word in ("range", "trange", "prange"):
            return "range", node.args
        if word not in PASSED_ON:
            break
        node = node.args[-1] if word == "map" else node.args[0]
    return "", [node]


_ROUND_IT = frozenset({"sorted", "list", "tuple", "enumerate", "reversed", "tqdm"})


def bare(source: ast.expr) -> ast.expr:
    """`d.items()` of `list(d.items())` and `sorted(d.items())`."""
    while isinstance(source, ast.Call) and last(dotted(source.func)) in _ROUND_IT and source.args:
        source = source.args[0]
    return source


def goes_through_entries(source: ast.expr) -> bool:
    """True for `d.items()`, `sorted(d.keys())`: there are as many rounds as there are keys."""
    source = bare(source)
    func = source.func if isinstance(source, ast.Call) and not source.args else None
    return isinstance(func, ast.Attribute) and func.attr in ("keys", "items", "values")


def names_device(node: ast.expr) -> bool:
    """True for `f"cuda:{rank}"` and `"cuda:{}".format(gpu)`: where a tensor is."""
    text = next((n.value for n in walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)), "")
    return text.startswith(("cuda", "cpu", "npu", "xpu", "gpu"))


def is_false(node: ast.expr) -> bool:
    """True for `False`, `None`, `0` and `""` that are written out."""
    return isinstance(node, ast.Constant) and not node.value
