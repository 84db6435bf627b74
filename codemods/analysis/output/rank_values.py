"""Names that only rank 0 has: given a value under a test of the rank, and None or nothing elsewhere."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import Binding, name_or_field_bindings
from codemods.analysis.model.signatures import bind, defaults, has_parameter
from codemods.analysis.names import dotted, last
from codemods.analysis.output.given_to_zero import gives_on_rank_zero
from codemods.analysis.positions import above
from codemods.analysis.ranks.handed_arguments import arguments
from codemods.analysis.ranks.rank_guards import Ranks, ranks_at, split_of
from codemods.analysis.ranks.rank_sources import rank_source
from codemods.analysis.ranks.several_processes import several_processes
from codemods.analysis.ranks.uses import uses_of
from codemods.files.source import SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_OF_A_PROCESS = lazy(r"(?:^|_)(?:dist|proc|process|worker|replica|machine|host)_?(?:id|idx|index|no|num|number)$", 2)
_LEAVES = (ast.Return, ast.Continue, ast.Break)
_DEEPEST = 4  # functions that hand it on
_OF_ZERO = (Ranks.ZERO, Ranks.LOCAL_ZERO)


def under_such_a_name(project: Project, module: SourceModule, statement: ast.stmt) -> bool:
    """True under `if output_dir is not None:` and the like, and behind `if output_dir is None: return`, where the name is None on
    every rank but 0.
    """
    tests: list[ast.expr] = []
    below: ast.AST = statement
    for up in module.ancestors(statement):
        if isinstance(up, (ast.If, ast.While)):
            tests.append(up.test)
        tests += (
            s.test for s in above(module, below) if isinstance(s, ast.If) and not s.orelse and isinstance(s.body[-1], _LEAVES)
        )
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            break
        below = up
    if isinstance(statement, ast.If):
        tests.append(statement.test)
    return any(_stands_for_rank(project, module, test) for test in tests)


def _stands_for_rank(project: Project, module: SourceModule, test: ast.expr) -> bool:
    def build() -> bool:
        if any(_asks_for_the_first(project, module, node) for node in walk(test)):
            return True
        named = (node for node in walk(test) if isinstance(node, (ast.Name, ast.Attribute)))
        return any(is_of_rank_zero(project, module, node) for node in named)

    return project.memo(("names for the rank", module.path, id(test)), build)


def _asks_for_the_first(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True for `log.dist_id == 0`: what is no known rank, and may number the processes all the same."""
    if not isinstance(node, ast.Compare) or len(node.ops) != 1 or not isinstance(node.ops[0], (ast.Eq, ast.LtE)):
        return False
    first = node.comparators[0]
    if not isinstance(first, ast.Constant) or first.value != 0 or _OF_A_PROCESS.search(last(dotted(node.left))) is None:
        return False
    return rank_source(module, node.left, project) is None


def is_of_rank_zero(
    project: Project, module: SourceModule, node: ast.Name | ast.Attribute, seen: frozenset[int] = frozenset()
) -> bool:
    """True for a name or `self.x` that has a value on rank 0 alone: every other binding is None or False."""
    bound = name_or_field_bindings(module, node)
    if isinstance(node, ast.Name) and bound and all(b.parameter for b in bound):
        return _is_handed_there(project, module, node, seen)
    given = [b for b in bound if not _is_empty(b.value)]
    return bool(given) and all(_only_there(project, module, b) for b in given)


def _is_handed_there(project: Project, module: SourceModule, node: ast.Name, seen: frozenset[int]) -> bool:
    """True for a parameter for which every caller has such a value, None, or leaves it None: `train(config, run=run)`."""
    function = module.function_of(node)
    if function is None or id(function) in seen or len(seen) > _DEEPEST or not has_parameter(function, node.id):
        return False
    used = uses_of(project, module, function).outside_tests()
    if used.more or used.handed_on or not used.calls:
        return False
    handed = list(arguments(project, module, function, node.id))
    default = defaults(function).get(node.id)
    if not _is_empty(default) and (default is not None or len(handed) < len(used.calls)):
        return False
    if any(bind(function, site.call, bound=False) is None for site in used.calls):
        return False  # `*args` may hold it
    values = [(m, v) for m, v in handed if not _is_empty(v)]
    named = [(m, v) for m, v in values if isinstance(v, (ast.Name, ast.Attribute))]
    if not values or len(named) < len(values):
        return False
    return all(is_of_rank_zero(project, m, v, seen | {id(function)}) for m, v in named)


def _only_there(project: Project, module: SourceModule, binding: Binding) -> bool:
    if binding.parameter or binding.value is None:
        return False
    if ranks_at(module, binding.node, project=project) in _OF_ZERO:
        return True
    value = binding.value
    if isinstance(value, ast.Call) and not binding.part:
        return gives_on_rank_zero(project, module, value)
    if not isinstance(value, ast.IfExp):
        return False
    if (several := several_processes(module, value.test)) is not None:  # `gathered(x) if is_initialized() else x`
        made = value.body if several else value.orelse
        return isinstance(made, ast.Call) and gives_on_rank_zero(project, module, made)
    split = split_of(module, value.test, project)
    return split is not None and (
        (split.true in _OF_ZERO and _is_empty(value.orelse)) or (split.false in _OF_ZERO and _is_empty(value.body))
    )


def _is_empty(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and value.value in (None, False, "", 0)
