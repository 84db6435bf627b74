"""Which calls and tests of an evaluation leave out what a sampler repeats, by what the sampler says of its own rows?

`all_ranks(hits, is_valid=i < loader.sampler.valid_length)`, and `if i < loader.sampler.valid_length: hits += 1`.
"""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_of
from codemods.analysis.names import dotted, last
from codemods.files.source import FunctionNode, SourceModule, walk, walk_scope
from codemods.runtime.lazy_pattern import lazy

# Of torch's own sampler these say nothing of what is repeated, or are asked for something else.
_OTHERS = frozenset({"set_epoch", "epoch", "num_samples", "total_size", "dataset", "num_replicas", "rank", "seed", "shuffle"})
_VALID = lazy(r"(^|_)valid(_|$)")


def is_told_which_count(module: SourceModule, call: ast.Call) -> bool:
    """True for a call that is handed which rows are no repeated ones."""
    given = [*call.args, *(k.value for k in call.keywords)]
    return any(_asks_the_sampler(module, a) for a in given) or any(_VALID.search(k.arg or "") for k in call.keywords)


def tests_which_count(module: SourceModule, scope: FunctionNode | ast.Module) -> bool:
    """True for a function that asks in a test which rows are no repeated ones."""
    tests = (n.test for n in walk_scope(scope) if isinstance(n, (ast.If, ast.IfExp, ast.While)))
    return any(_asks_the_sampler(module, test) for test in tests)


def _asks_the_sampler(module: SourceModule, node: ast.expr) -> bool:
    names = [n for n in walk(node) if isinstance(n, ast.Name)]
    values = [b.value for name in names for b in bindings_of(module, name) if b.value is not None]
    return any(_is_of_a_sampler(n) for value in (node, *values) for n in walk(value))


def _is_of_a_sampler(node: ast.AST) -> bool:
    """True for `loader.sampler.valid_length`."""
    return isinstance(node, ast.Attribute) and node.attr not in _OTHERS and last(dotted(node.value)).endswith("sampler")
