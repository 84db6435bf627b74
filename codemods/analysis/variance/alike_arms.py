"""Tests whose arms leave the ranks alike: each rank has its turn, the others catch up, both ways give a name the same."""

from __future__ import annotations

import ast

from codemods.analysis.names import dotted
from codemods.analysis.variance.paths import as_many_rounds, unpacked
from codemods.analysis.variance.state import State
from codemods.files.source import SourceModule, once_a_module, walk


def is_turn(state: State, node: ast.If) -> bool:
    """True for `for i in range(n): if i == rank:`: each rank runs it, one after the other."""
    if not isinstance(node.test, ast.Compare) or not isinstance(node.test.ops[0], ast.Eq):
        return False
    names = {n.id for n in (node.test.left, *node.test.comparators) if isinstance(n, ast.Name)}
    loops = (up for up in state.module.ancestors(node) if isinstance(up, ast.For))
    return any(isinstance(up.target, ast.Name) and up.target.id in names for up in loops)


def takes_what_was_sent(module: SourceModule, node: ast.If) -> bool:
    """True for `if rank != root: state.load(sent)` below `dist.broadcast(sent, src=root)`: the others catch up with the root."""
    test = node.test
    if node.orelse or not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.NotEq):
        return False
    sides = {ast.unparse(test.left), ast.unparse(test.comparators[0])}
    function = module.function_of(node)
    above = (c for c in module.calls_named("broadcast", "broadcast_object_list") if c.lineno < node.lineno)
    sent = [c for c in above if module.function_of(c) is function and _root(c) in sides]
    names = {n.id for c in sent if c.args for n in ast.walk(c.args[0]) if isinstance(n, ast.Name)}
    return any(isinstance(n, ast.Name) and n.id in names for s in node.body for n in walk(s))


def _root(call: ast.Call) -> str:
    given = next((k.value for k in call.keywords if k.arg == "src"), call.args[1] if len(call.args) > 1 else None)
    return ast.unparse(given) if given is not None else "0"


@once_a_module
def known_alikes(module: SourceModule) -> dict[ast.If, set[str]]:
    """What `alike_names` says of the branches that were read: they are read again in loops and recursion."""
    del module
    return {}


def alike_names(node: ast.If) -> set[str]:
    """The names that go through the same on both ways: `data = tqdm(loader)` here, `data = loader` there."""
    given: list[dict[str, ast.expr]] = []
    for arm in (node.body, node.orelse):
        simple = ((s.targets[0], s.value) for s in arm if isinstance(s, ast.Assign))
        given.append({target.id: value for target, value in simple if isinstance(target, ast.Name)})
    kept = {n for n, value in given[0].items() if n in given[1] and as_many_rounds(given[1][n], value)}
    bare = ((n, unpacked(value)) for arm in given for n, value in arm.items())
    kept |= {n for n, value in bare if isinstance(value, ast.Name) and value.id == n}
    return kept | (_filled_in(node.body) & _filled_in(node.orelse) if node.orelse else set())


def _filled_in(arm: list[ast.stmt]) -> set[str]:
    """The lists that an arm puts something into."""
    calls = (n.func for s in arm for n in walk(s) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute))
    return {dotted(f.value) for f in calls if f.attr in ("append", "extend", "add", "update")} - {""}
