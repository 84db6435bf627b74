"""Which code of a notebook do several processes run? The kernel is one process: only what it hands to a launcher is run by ranks.

`accelerate.notebook_launcher`, `torch.multiprocessing.spawn` and `start_processes` fork the kernel and call a function in each
child (accelerate 1.12, `launchers.py`; torch 2.9); Lightning does so inside `fit` (`strategy="ddp_notebook"`). The cells
themselves are run by the kernel alone, whatever they print or write.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.names import family
from codemods.files.source import FunctionNode, SourceModule, once_a_module, walk

_LAUNCHERS = (
    "notebook_launcher", "debug_launcher", "spawn", "start_processes", "elastic_launch", "Process", "launch", "TorchTrainer"
)  # fmt: skip
_RUNNERS = ("TorchDistributor", "HorovodRunner", "DeepspeedTorchDistributor")  # `TorchDistributor(...).run(train)`
_WORDS = tuple(name.encode() for name in (*_LAUNCHERS, *_RUNNERS))
_Defined = FunctionNode | ast.ClassDef


def starts_no_ranks(module: SourceModule) -> bool:
    """True for a notebook of which the kernel runs all, told from its words: most are."""
    return not any(module.holds(word) for word in _WORDS) and not _has_lightning(module)


def _has_lightning(module: SourceModule) -> bool:
    return any(family(name) == "lightning" for name in module.imported_modules)


def is_of_the_kernel(module: SourceModule, node: ast.AST) -> bool:
    """True for a place in a notebook that no rank comes to: a cell's own lines, a function that no launcher leads to."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    around = [up for up in (node, *module.ancestors(node)) if isinstance(up, kinds)]
    if all(isinstance(up, ast.ClassDef) for up in around):
        return True
    if isinstance(around[-1], ast.ClassDef) and _has_lightning(module):
        return False  # what a Trainer makes of it is judged elsewhere
    return around[-1] not in _run_by_ranks(module)


@once_a_module
def _run_by_ranks(module: SourceModule) -> frozenset[ast.AST]:
    """The functions and classes at the top that a launcher is given, and those that these name, and so on."""
    defined: dict[str, list[_Defined]] = {}
    for node in _defined(module):
        defined.setdefault(node.name, []).append(node)
    found: set[ast.AST] = set()
    names = [name for call in _launches(module) for argument in _handed(call) for name in _names_in(argument)]
    while names:
        for node in defined.get(names.pop(), ()):
            if node not in found:
                found.add(node)
                names += _names_in(node)
    return frozenset(found)


def _defined(module: SourceModule) -> Iterator[_Defined]:
    """Functions and classes that stand in no other one."""
    for node in (*module.functions, *module.nodes(ast.ClassDef)):
        if module.function_of(node) is None and module.class_of(node) is None:
            yield node


def _launches(module: SourceModule) -> Iterator[ast.Call]:
    yield from module.calls_named(*_LAUNCHERS)
    for call in module.calls_named("run"):
        if isinstance(call.func, ast.Attribute) and any(module.holds(name.encode()) for name in _RUNNERS):
            yield call  # a run of another object counts, too: what it is handed may be run by ranks


def _handed(call: ast.Call) -> Iterator[ast.expr]:
    yield from call.args
    yield from (keyword.value for keyword in call.keywords)


def _names_in(node: ast.AST) -> Iterator[str]:
    for inner in walk(node):
        if isinstance(inner, ast.Name):
            yield inner.id
        elif isinstance(inner, ast.Attribute):
            yield inner.attr
