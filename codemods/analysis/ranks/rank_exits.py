"""Statements behind which only some ranks go on: an early return, continue, break, raise or `sys.exit()` by rank."""

from __future__ import annotations

import ast

from codemods.analysis.ranks.leaving import is_end, leaves
from codemods.analysis.ranks.rank_branches import Branch, branches_of
from codemods.analysis.ranks.rank_sets import Ranks, both, negated
from codemods.files.source import SourceModule, child_nodes, once_a_module
from codemods.store.project import Project

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


# By the id of what holds them: by the id of a statement, who goes on behind it.
Exits = dict[int, dict[int, Branch]]


def exits_of(module: SourceModule, project: Project | None) -> Exits:
    """Who goes on behind the statements of a file at which ranks leave; a branch's body is the statement that decides."""
    if project is None:
        return _exits_alone(module)
    return project.memo(("rank exits", module.path), lambda: _find_exits(module, project))


@once_a_module
def _exits_alone(module: SourceModule) -> Exits:
    return _find_exits(module, None)


def _find_exits(module: SourceModule, project: Project | None) -> Exits:
    found: Exits = {}
    parting: list[ast.If | ast.Match] = [*module.nodes(ast.If), *module.nodes(ast.Match)]
    for statement in parting:
        branches = branches_of(module, statement, project)
        if not branches or (passing := _passing(statement, branches)) is None:
            continue
        _add(module, found, statement, passing)
        _carry_out(module, statement, passing, found)
    return found


def _carry_out(module: SourceModule, statement: ast.stmt, passing: Branch, found: Exits) -> None:
    """The exit also keeps ranks from what stands behind the statements round it, as far as it leaves them."""
    returns = _leaves_in([statement], returns_only=True)
    unsure = Branch(Ranks.UNKNOWN, [statement], False)
    below: ast.AST = statement
    for up in module.ancestors(statement):
        if isinstance(up, (*_SCOPES, ast.Module)):
            return
        if isinstance(up, (ast.For, ast.AsyncFor, ast.While)) and not returns:
            return
        cleans_up = isinstance(up, ast.Try) and not up.handlers and any(s is below for s in (*up.body, *up.orelse))
        if not isinstance(up, (ast.With, ast.AsyncWith)) and not cleans_up:
            passing = unsure
        if isinstance(up, ast.stmt):
            _add(module, found, up, passing)
        below = up


def _add(module: SourceModule, found: Exits, node: ast.stmt, passing: Branch) -> None:
    beside = found.setdefault(id(module.parent(node)), {})
    before = beside.get(id(node))
    if before is not None:
        passing = Branch(both(before.ranks, passing.ranks), before.body, False)
    beside[id(node)] = passing


def _passing(statement: ast.stmt, branches: tuple[Branch, ...]) -> Branch | None:
    """Who goes on behind a statement that parts the ranks; None where all that come to it do."""
    stay = [b for b in branches if not leaves(b.body)]
    if not stay:
        return None
    if len(stay) < len(branches) and not any(_leaves_in(b.body) for b in stay):
        ranks = {b.ranks for b in stay}
        gone = {b.ranks for b in branches if b not in stay}
        return Branch(_one(ranks), [statement], all(b.alone for b in branches), _one(gone))
    if any(_leaves_in(b.body, quiet=True) for b in branches):
        return Branch(Ranks.UNKNOWN, [statement], False)
    return None


def _one(ranks: set[Ranks]) -> Ranks:
    return next(iter(ranks)) if len(ranks) == 1 else Ranks.UNKNOWN


def _leaves_in(block: list[ast.stmt], *, returns_only: bool = False, quiet: bool = False) -> bool:
    """True if a statement in the block leaves it: return, and continue or break of a loop outside.

    quiet: an exception does not count; one rank that fails is another matter.
    """
    stack: list[tuple[ast.AST, bool]] = [(s, False) for s in block]
    while stack:
        node, in_loop = stack.pop()
        if isinstance(node, ast.Return) or (isinstance(node, ast.Raise) and not quiet and not returns_only) or is_end(node):
            return True
        if isinstance(node, (ast.Continue, ast.Break)) and not in_loop and not returns_only:
            return True
        if not isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case) or isinstance(node, _SCOPES):
            continue
        loop = in_loop or isinstance(node, (ast.For, ast.AsyncFor, ast.While))
        stack += [(child, loop) for child in child_nodes(node)]
    return False


def early_exit(module: SourceModule, statement: ast.stmt, *, project: Project | None = None) -> Ranks | None:
    """The ranks that leave the block at `if <rank test>: return` (or continue, break, raise); None for other statements."""
    if not isinstance(statement, ast.If) or statement.orelse or not leaves(statement.body):
        return None
    branches = branches_of(module, statement, project)
    if not branches:
        return None
    false = branches[1].ranks
    return negated(false) if false is not Ranks.UNKNOWN else branches[0].ranks
