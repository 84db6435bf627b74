"""The uses of a name that rank 0 alone has, and whether something keeps the others from one."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from codemods.analysis.bindings import bindings_in, bindings_of
from codemods.analysis.conditions import conjuncts
from codemods.analysis.names import dotted, last
from codemods.analysis.output.rank_values import is_of_rank_zero
from codemods.analysis.positions import above
from codemods.analysis.ranks.leaving import leaves
from codemods.analysis.ranks.made_on_zero import Made
from codemods.analysis.ranks.missed_meetings import keeps_ranks_going
from codemods.analysis.ranks.partial_uses import is_called_by_all
from codemods.analysis.ranks.used_as_there import is_kept_from
from codemods.files.source import SourceModule
from codemods.store.project import Project


def uses_of_made(module: SourceModule, made: Made) -> Iterator[ast.expr]:
    for node in module.reads_of(last(made.name)):
        if dotted(node) != made.name:
            continue
        if is_in_function(module, made, node):
            if isinstance(node, ast.Name) and all(module.function_of(b.node) is None for b in bindings_of(module, node)):
                yield node
            continue
        home = module.class_of(node) if "." in made.name else module.function_of(node) or module.tree
        if home is made.home and (home is not module.tree or module.class_of(node) is None):
            yield node


def is_in_function(module: SourceModule, made: Made, node: ast.AST) -> bool:
    """True for a name of the file that a function uses."""
    return made.home is module.tree and module.function_of(node) is not None


def is_used_by_all(project: Project, module: SourceModule, made: Made, node: ast.expr) -> bool:
    """True where a call that lets every rank in leads to the function, and nothing but the rank may keep the use from them."""
    function = module.function_of(node)
    if function is None or is_kept_from(project, module, node, made.name):
        return False
    return is_called_by_all(project, module, function)


def asked_beside_rank(module: SourceModule, made: Made) -> frozenset[str]:
    """What is asked beside the rank where the name is made (`if rank == 0 and self.copies:`): it does not stand for the rank."""
    out: set[str] = set()
    for assign in (n for n in (*module.nodes(ast.Assign), *module.nodes(ast.AnnAssign)) if n.lineno == made.line):
        tests = [up.test for up in module.ancestors(assign) if isinstance(up, ast.If)]
        out |= {module.text_of(part) for t in tests for part in conjuncts(t) if part is not t}
    return frozenset(out)


def is_asked_for(
    project: Project,
    module: SourceModule,
    node: ast.AST,
    name: str,
    apart: Collection[int] = (),
    beside: Collection[str] = (),
) -> bool:
    """True in a `try` that lets the rank go on, in a function of its own, and under a test that may stand for the rank.

    Such a test is one that names what is used, too, or that leads out of the function above it.

    apart: the tests (by id) that are known for what they ask of the rank. beside: the texts of tests that do not ask for it.
    """
    attribute = name.rpartition(".")[2]
    below = node
    for up in module.ancestors(node):
        inner, below = below, up
        asking = [up] if isinstance(up, (ast.If, ast.While, ast.IfExp, ast.BoolOp)) else []
        if any(_may_ask(project, module, asked, attribute, apart, beside) for asked in (*asking, *_exits_above(module, inner))):
            return True
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        if isinstance(up, ast.Lambda):
            return True
        if isinstance(up, (ast.Try, ast.TryStar)) and keeps_ranks_going(project, module, up, inner):
            return True
    return False


def _exits_above(module: SourceModule, place: ast.AST) -> list[ast.If]:
    """The tests above a place of its block that lead out of it: `if not hasattr(self, "average"): return`."""
    return [s for s in above(module, place) if isinstance(s, ast.If) and (leaves(s.body) or leaves(s.orelse))]


def _may_ask(
    project: Project,
    module: SourceModule,
    asked: ast.expr | ast.stmt,
    attribute: str,
    apart: Collection[int],
    beside: Collection[str],
) -> bool:
    """True for a test that names what is used, or that may stand for the rank."""
    test = asked.test if isinstance(asked, (ast.If, ast.While, ast.IfExp)) else asked
    text = module.text_of(test)
    if "__name__" in text or text in beside:
        return False  # the program itself
    if attribute in text or "hasattr" in text:
        return True
    if id(asked) in apart:
        return False
    if any(word in text for word in ("rank", "main", "master", "zero")):
        return True
    return any(isinstance(n, (ast.Name, ast.Attribute)) and is_of_rank_zero(project, module, n) for n in ast.walk(test))


def hides_test(module: SourceModule, made: Made, use: ast.AST) -> bool:
    """True where a function in which the file's name is used has another value for a name of the test."""
    function = module.function_of(use) if made.home is module.tree else None
    names = {n.id for n in ast.walk(ast.parse(made.test, mode="eval")) if isinstance(n, ast.Name)} if function else set()
    return any(bindings_in(module, function, name) for name in names)
