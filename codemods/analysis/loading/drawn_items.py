"""Data sets that draw which sample they give, whatever index they are asked for: a sampler shares nothing out then."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_file
from codemods.analysis.loading.same_program import same_program
from codemods.analysis.names import last, qualified
from codemods.files.source import FunctionNode, SourceModule, walk, walk_scope
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_PICKS = frozenset(
    {"random.choice", "random.choices", "random.sample", "random.randint", "random.randrange", "numpy.random.choice",
     "numpy.random.randint", "torch.randint"}
)  # fmt: skip
_HELD = lazy(r"\bself\.|\blen\(")  # what it picks from is the object's own
_NOT_TRAINED = lazy(r"val|test|eval|infer|pred")
_WORDS = tuple(last(name).encode() for name in sorted(_PICKS))


@record
class DrawnItem:
    """call: the draw. kept: the class of the data set."""

    module: SourceModule
    call: ast.Call
    kept: ast.ClassDef


def drawn_items(project: Project, path: str) -> tuple[DrawnItem, ...]:
    """Draws by which a data set of the programs of a file gives another sample than it is asked for, one for each data set."""
    found = project.memo("drawn items", lambda: tuple(_all(project)))
    return tuple(d for d in found if same_program(project, path, d.module.path))


def may_draw_items(project: Project) -> frozenset[str]:
    """The files with a data set that may draw its samples, told from the bytes."""

    def build() -> frozenset[str]:
        holding = {p for word in _WORDS for p in project.files_containing(word)}
        return frozenset(p for p in project.files_containing(b"def __getitem__(") if p in holding and not is_test_file(p))

    return project.keep("may draw items", build)


def _all(project: Project) -> Iterator[DrawnItem]:
    for path in sorted(may_draw_items(project)):
        module = project.module(path)
        for function in module.functions if module is not None else ():
            owner = module.parent(function) if module is not None and function.name == "__getitem__" else None
            if module is None or not isinstance(owner, ast.ClassDef) or _NOT_TRAINED.search(owner.name.lower()):
                continue
            if _takes_no_notice(function) and (call := _pick(module, owner, function)) is not None:
                yield DrawnItem(module, call, owner)


def _takes_no_notice(function: FunctionNode) -> bool:
    """True where the index is a parameter that nothing reads."""
    names = [a.arg for a in function.args.args]
    return len(names) == 2 and not any(isinstance(n, ast.Name) and n.id == names[1] for n in walk(function))


def _pick(module: SourceModule, owner: ast.ClassDef, function: FunctionNode) -> ast.Call | None:
    """The draw in `__getitem__`, or in a method of the object that it calls, that takes one of what the object holds."""
    methods = {s.name: s for s in owner.body if isinstance(s, ast.FunctionDef)}
    called = [n.func.attr for n in walk_scope(function) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)
              and isinstance(n.func.value, ast.Name) and n.func.value.id == "self"]  # fmt: skip
    for scope in (function, *(methods[name] for name in called if name in methods and name != "__getitem__")):
        for node in walk_scope(scope):
            if isinstance(node, ast.Call) and qualified(module, node.func) in _PICKS:
                if any(_HELD.search(module.text_of(a)) for a in node.args):
                    return node
    return None
