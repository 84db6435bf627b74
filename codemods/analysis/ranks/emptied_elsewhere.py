"""What the other ranks take away from themselves: `if rank != 0: self.track = False`, `if rank != 0: args.folder = None`.

Behind that, `if self.track:` and `if args.folder is not None:` let rank 0 alone in, whoever gave the value before.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from codemods.analysis.conditions import conjuncts
from codemods.analysis.literals import is_none
from codemods.analysis.names import dotted, is_parameter
from codemods.analysis.ranks.plain_ranks import plain_ranks
from codemods.analysis.ranks.rank_sets import Ranks, Split, negated
from codemods.analysis.ranks.set_elsewhere import may_be_set_elsewhere
from codemods.analysis.ranks.several_processes import several_processes
from codemods.files.source import FunctionNode, SourceModule, once_a_module, walk
from codemods.runtime.record import record
from codemods.store.project import Project

Says = Callable[[ast.expr], Split | None]
_OF_OTHERS = (Ranks.OTHERS, Ranks.LOCAL_OTHERS)
_OF_ZERO = (Ranks.ZERO, Ranks.LOCAL_ZERO)
_MOST = 6  # stores


@record
class _Store:
    """value: None where it is no whole expression."""

    target: ast.expr
    value: ast.expr | None


def split_of_emptied(
    module: SourceModule, asked: ast.AST, project: Project | None, says: Says, *, none_alone: bool = False
) -> Split | None:
    """What it says of ranks that a name or a field is true; None where the other ranks do not all take it away.

    none_alone: the test is `is not None`, which False passes. says: what a test says of ranks that asks for no such value.
    """
    text = dotted(asked) if isinstance(asked, (ast.Name, ast.Attribute)) else ""
    stores = _stores(module).get(text, ()) if text else ()
    if project is None or not isinstance(asked, ast.expr) or not 0 < len(stores) <= _MOST:
        return None
    taken = [(s, r) for s in stores if _is_empty(s, none_alone) and (r := _others_at(module, s.target, says)) is not None]
    if not taken or len({ranks for _, ranks in taken}) > 1:
        return None
    last, ranks = max(taken, key=lambda t: t[0].target.lineno)
    home = module.function_of(last.target)
    if home is None or not _comes_behind(module, asked, text, last.target, home):
        return None
    others = [s for s in stores if s is not last]
    rest = (s for s in others if not _is_empty(s, none_alone) and not _is_early(module, s, last, home))
    if not all(_is_of_zero(module, s, text, says) for s in rest):
        return None
    if isinstance(asked, ast.Attribute) and _may_be_given(project, module, asked, text):
        return None
    return Split(negated(ranks), Ranks.UNKNOWN, alone=False)


def _is_empty(store: _Store, none_alone: bool) -> bool:
    value = store.value
    return is_none(value) if none_alone else isinstance(value, ast.Constant) and not value.value


def _others_at(module: SourceModule, node: ast.AST, says: Says) -> Ranks | None:
    """The ranks other than 0, where all of them come to a place of the function, once, by what stands round it."""
    ranks: Ranks | None = None
    below: ast.AST = node
    for up in module.ancestors(node):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return ranks
        if isinstance(up, ast.If):
            inside = any(s is below for s in up.body)
            split = says(up.test)
            if split is not None:
                split = split if inside else split.turned
                if split.true not in _OF_OTHERS or not split.alone or ranks is not None:
                    return None
                ranks = split.true
            elif several_processes(module, up.test) is not inside:
                return None
        elif isinstance(up, (ast.For, ast.AsyncFor, ast.While, ast.Try, ast.TryStar, ast.Match, ast.ClassDef, ast.Lambda)):
            return None
        below = up
    return None


def _comes_behind(module: SourceModule, asked: ast.expr, text: str, taken: ast.expr, home: FunctionNode) -> bool:
    """True where the value is asked for below the place that takes it away, or, of `self`, in a method that runs later."""
    function = module.function_of(asked)
    if function is home:
        return asked.lineno > taken.lineno
    owner = module.class_of(asked)
    if not text.startswith("self.") or home.name != "__init__" or owner is None or module.class_of(taken) is not owner:
        return False
    return function is not None and not _is_called_above(module, home, function.name, taken.lineno)


def _is_called_above(module: SourceModule, home: FunctionNode, name: str, line: int) -> bool:
    calls = (n for n in walk(home) if isinstance(n, ast.Call) and n.lineno < line)
    return any(dotted(c.func) == f"self.{name}" for c in calls)


def _is_early(module: SourceModule, store: _Store, last: _Store, home: FunctionNode) -> bool:
    return module.function_of(store.target) is home and store.target.lineno < last.target.lineno


def _is_of_zero(module: SourceModule, store: _Store, text: str, says: Says) -> bool:
    """True where rank 0 alone gives the value, or one that has it already: `if args.folder is not None: args.folder = …`."""
    below: ast.AST = store.target
    for up in module.ancestors(store.target):
        if isinstance(up, ast.If) and any(s is below for s in up.body):
            if any(dotted(part) == text or _asks_for_it(part, text) for part in conjuncts(up.test)):
                return True
        below = up
    return plain_ranks(module, store.target, says) in _OF_ZERO


def _asks_for_it(test: ast.expr, text: str) -> bool:
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return False
    return dotted(test.left) == text and isinstance(test.ops[0], ast.IsNot) and is_none(test.comparators[0])


def _may_be_given(project: Project, module: SourceModule, asked: ast.Attribute, text: str) -> bool:
    """True where another place than those of the same words gives such a field a value."""
    root, _, rest = text.partition(".")
    owner = module.class_of(asked)
    if root == "self" and "." not in rest:
        return owner is None or may_be_set_elsewhere(project, module, owner, asked.attr, or_none=True)
    if module.holds(b"setattr") or is_parameter(module, text, asked):
        return True
    for path in project.files_containing(f".{asked.attr}".encode()):
        other = project.module(path)
        for name, stores in _stores(other).items() if other is not None else ():
            if name.rpartition(".")[2] == asked.attr and "." in name:
                here = other is module and name == text and all(_is_beside(module, s, asked, root) for s in stores)
                if not here and not all(_is_empty(s, False) for s in stores):
                    return True
    return False


def _is_beside(module: SourceModule, store: _Store, asked: ast.Attribute, root: str) -> bool:
    """True in the same class, or, of what a name holds, in the same function."""
    if root == "self":
        return module.class_of(store.target) is module.class_of(asked)
    return module.function_of(store.target) is module.function_of(asked)


@once_a_module
def _stores(module: SourceModule) -> dict[str, Sequence[_Store]]:
    """What is stored under each name or chain of fields, as it is written."""
    whole: dict[int, ast.expr] = {}
    for assign in module.nodes(ast.Assign):
        whole.update((id(target), assign.value) for target in assign.targets)
    whole.update((id(a.target), a.value) for a in module.nodes(ast.AnnAssign) if a.value is not None)
    found: dict[str, list[_Store]] = {}
    nodes: list[ast.Name | ast.Attribute] = [*module.nodes(ast.Name), *module.nodes(ast.Attribute)]
    for node in nodes:
        if isinstance(node.ctx, (ast.Store, ast.Del)) and (text := dotted(node)):
            found.setdefault(text, []).append(_Store(node, whole.get(id(node))))
    return {text: tuple(stores) for text, stores in found.items()}
