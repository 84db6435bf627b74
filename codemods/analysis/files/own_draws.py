"""Is a path made of numbers that each process draws for itself? Then the ranks write files of their own."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_of
from codemods.analysis.loading.seeds import is_of_rank, seeds_of_stream, stream_of
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.variance.analysis import variance
from codemods.analysis.variance.values import Proof
from codemods.files.source import SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_DRAWS = frozenset(
    {"random.choice", "random.choices", "random.sample", "random.randint", "random.randrange", "random.random",
     "random.uniform", "random.getrandbits", "numpy.random.choice", "numpy.random.randint", "numpy.random.permutation",
     "numpy.random.random", "numpy.random.rand", "torch.randint", "torch.randperm", "torch.multinomial", "torch.rand"}
)  # fmt: skip
_WORDS = tuple(last(name).encode() for name in sorted(_DRAWS))
# Calls that give on what they are given, or a text of it; what others make of a draw may be the same for all.
_KEEPS = frozenset(
    {"sorted", "list", "tuple", "str", "int", "float", "join", "format", "Path", "tolist", "numpy", "item", "cpu", "zfill"}
)
_ONLY_ASKED = frozenset({"shape", "dtype", "device", "ndim"})
_NEW_IN_EACH = lazy(r"^`(?:[\w.]+\.)?(?:uuid[14]|generate_id|token_hex|getpid|mkdtemp)\(")  # as a `Link` tells of it
_DEPTH = 4  # names on the way from the path to the draw


def is_named_by_draw(project: Project, module: SourceModule, path: ast.expr) -> bool:
    """True where a part of the path is drawn in this file, and nothing is seen to seed these draws alike on all ranks."""
    if not any(module.holds(word) for word in _WORDS):
        return False
    return any(_is_own(project, module, call) for call in _draws(module, path, _DEPTH))


def is_named_by_own_number(project: Project, module: SourceModule, path: ast.expr) -> bool:
    """True where a part of the path is new in each process, also where a function gives it back or a caller hands it on.

    What such a call gives is never another's: a host's name and a clock may be, and draws may be seeded alike.
    """
    asked = variance(project)
    values = (asked.value(module, n) for n in walk(path) if isinstance(n, (ast.Name, ast.Attribute)) and n is not path)
    known = (v for v in (asked.value(module, path), *values) if v.proof is Proof.PROVEN and v.origin is not None)
    return any(v.origin is not None and _NEW_IN_EACH.search(v.origin.text) is not None for v in known)


def is_saved_by_draw(project: Project, module: SourceModule, statements: tuple[ast.stmt, ...]) -> bool:
    """The same of what an object saves itself as: `image.save(folder / f"{seed}.png")`."""
    calls = (n for s in statements for n in walk(s) if isinstance(n, ast.Call) and n.args)
    saves = (c for c in calls if isinstance(c.func, ast.Attribute) and c.func.attr == "save")
    return any(is_named_by_draw(project, module, c.args[0]) for c in saves)


def _draws(module: SourceModule, value: ast.AST, depth: int) -> Iterator[ast.Call]:
    """The draws that a value hands on, by the names that it is made of and by calls that give what they are given."""
    if isinstance(value, ast.Call):
        if qualified(module, value.func) in _DRAWS:
            if not any(k.arg == "generator" for k in value.keywords):
                yield value
            return
        if (value.func.attr if isinstance(value.func, ast.Attribute) else last(dotted(value.func))) not in _KEEPS:
            return
    if isinstance(value, ast.Attribute) and value.attr in _ONLY_ASKED:
        return
    if isinstance(value, ast.Name) and depth > 0:
        for given in _given(module, value):
            yield from _draws(module, given, depth - 1)
    for below in ast.iter_child_nodes(value):
        yield from _draws(module, below, depth)


def _given(module: SourceModule, name: ast.Name) -> Iterator[ast.expr]:
    """What a name is given; the number of a round says nothing of what the loop goes through."""
    for bound in bindings_of(module, name):
        loop = bound.node
        if not isinstance(loop, (ast.For, ast.AsyncFor)):
            yield from (bound.value,) if bound.value is not None else ()
        elif not isinstance(loop.iter, ast.Call):
            yield loop.iter
        elif last(dotted(loop.iter.func)) in ("enumerate", "zip") and not _is_first(loop, name):
            yield from loop.iter.args
        elif qualified(module, loop.iter.func) in _DRAWS:
            yield loop.iter


def _is_first(loop: ast.For | ast.AsyncFor, name: ast.Name) -> bool:
    """`i` of `for i, x in enumerate(rows)`."""
    first = loop.target.elts[0] if isinstance(loop.target, ast.Tuple) and loop.target.elts else loop.target
    counted = isinstance(loop.iter, ast.Call) and last(dotted(loop.iter.func)) == "enumerate"
    return counted and isinstance(first, ast.Name) and first.id == name.id


def _is_own(project: Project, module: SourceModule, draw: ast.Call) -> bool:
    stream = stream_of(qualified(module, draw.func))
    return all(is_of_rank(project, seed) for seed in seeds_of_stream(project, module.path, stream))
