"""Tests that let local rank 0 of every node through to files that all nodes share."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.bound_values import assigned
from codemods.analysis.call_graph import called_function
from codemods.analysis.files.file_calls import CHANGES, Act, meets, names_the_rank
from codemods.analysis.files.file_flow import Step, steps_in
from codemods.analysis.guards.node_layouts import is_by_local_rank, is_named_by_a_clock, state_beside
from codemods.analysis.guards.resumed_by_node import is_resumed_on_each_node
from codemods.analysis.names import dotted
from codemods.analysis.paths import origin_text
from codemods.analysis.positions import behind
from codemods.analysis.ranks.local_shares import is_for_one_node
from codemods.analysis.ranks.rank_guards import Ranks, ranks_at, ranks_of_test, split_of
from codemods.files.source import SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

# Files that each node wants on its own disk.
NODE_FILES = lazy(
    r"cache|download|extract|unzip|untar|/tmp|tempdir|tmpdir|scratch|local_dir|node|shm|build|compile|hostname", re.I
)
_EXITS = (ast.Return, ast.Continue, ast.Raise)
_FILES = frozenset({Act.WRITES, Act.FILLS, Act.REMOVES})


@record
class LocalGuard:
    """node: the `if`. operand: the part of its test that asks for the local rank. holds: it is true on local rank 0.

    step: what is done to a file behind it. beside: what it sets, and the line that reads that under the same test elsewhere.
    """

    node: ast.If
    operand: ast.expr
    holds: bool
    step: Step
    beside: tuple[str, int] | None = None

    @property
    def does(self) -> str:
        return {Act.REMOVES: "removes", Act.FILLS: "fills"}.get(self.step.act or Act.WRITES, "writes")


def local_guard(project: Project, module: SourceModule, node: ast.If) -> LocalGuard | None:
    """The guard that an `if` is, None where it lets others through, or what it guards may belong to each node."""
    asked = _asked(project, module, node)
    if asked is None or ranks_at(module, node, project=project).some or is_for_one_node(project):
        return None
    operand, holds = asked
    body = node.body if holds else behind(module, node)
    if not body or any(NODE_FILES.search(module.text_of(s)) for s in (node.test, *(body if holds else []))):
        return None
    for step in _writes(project, module, node, body):
        if _of_the_node(project, module, body, step) or _read_by_all(project, module, node, step):
            continue
        if is_resumed_on_each_node(project, module, step):
            continue
        leading = [s for s in body if any(_is_led_by(module, c, step) for c in walk(s))]
        if not is_by_local_rank(module, node) and not is_named_by_a_clock(project, module, step, leading):
            return LocalGuard(node, operand, holds, step, state_beside(module, node, operand, body))
    return None


def _asked(project: Project, module: SourceModule, node: ast.If) -> tuple[ast.expr, bool] | None:
    """(the operand that asks for the local rank, whether it is true on local rank 0)."""
    found = [(p, s) for p in _leaves(node.test) if (s := split_of(module, p, project)) is not None]
    if len(found) != 1:
        return None
    operand, split = found[0]
    if split.true is Ranks.LOCAL_ZERO and ranks_of_test(module, node.test, project=project) is Ranks.LOCAL_ZERO:
        return operand, True
    leaves = isinstance(node.body[-1], _EXITS) and not node.orelse
    alone = not isinstance(node.test, ast.BoolOp) or (isinstance(node.test.op, ast.Or) and operand in node.test.values)
    return (operand, False) if split.true is Ranks.LOCAL_OTHERS and leaves and alone else None


def _leaves(test: ast.expr) -> Iterator[ast.expr]:
    if isinstance(test, ast.BoolOp):
        for value in test.values:
            yield from _leaves(value)
    else:
        yield test


def _writes(project: Project, module: SourceModule, node: ast.If, body: list[ast.stmt]) -> Iterator[Step]:
    inside = {id(n) for s in body for n in walk(s)}
    for step in steps_in(project, module, list(body)):
        if step.act not in _FILES or step.ranks is Ranks.UNKNOWN:
            continue
        here = step.module is module and id(step.call) in inside
        ranks = ranks_at(step.module, step.call, project=project)
        if ranks is (Ranks.LOCAL_ZERO if here else Ranks.ALL):
            yield step


# What belongs to a node


def _of_the_node(project: Project, module: SourceModule, body: list[ast.stmt], step: Step) -> bool:
    """True where the path, or what it is made from, speaks of a node, a cache or a temporary folder; or of the rank."""
    if any(NODE_FILES.search(form) or "rank" in form for form in step.forms):
        return True
    texts = [step.module.text_of(step.module.statement_of(step.call))]
    for place, call in ((step.module, step.call), *((module, c) for s in body for c in walk(s) if isinstance(c, ast.Call))):
        if not isinstance(call, ast.Call) or (place is module and not _may_lead(module, call, step)):
            continue
        for given in (call.func, *call.args, *(k.value for k in call.keywords)):
            texts += [origin_text(place, given, depth=2), *_made_by(project, place, given)]
            if names_the_rank(given):
                return True
    return any(NODE_FILES.search(text) for text in texts)


def _may_lead(module: SourceModule, call: ast.Call, step: Step) -> bool:
    """True for the writing call itself, and for calls of functions, one of which leads to it."""
    return call is step.call or step.module is not module or called_function(None, module, call) is not None


def _is_led_by(module: SourceModule, call: ast.AST, step: Step) -> bool:
    return isinstance(call, ast.Call) and (call is step.call or called_function(None, module, call) is not None)


def _made_by(project: Project, module: SourceModule, node: ast.expr) -> Iterator[str]:
    """The text of the project functions that made what a path is put together from."""
    for part in walk(node):
        name = dotted(part)
        values = [part] if isinstance(part, ast.Call) else assigned(module, part, name)[:4] if name else []
        for value in values:
            if isinstance(value, ast.Call) and (site := called_function(project, module, value)) is not None:
                if len(text := site.module.text_of(site.node)) < 1500:
                    yield text


def _read_by_all(project: Project, module: SourceModule, node: ast.If, step: Step) -> bool:
    """True where every rank reads the file in the same function: what is prepared for a node's own ranks is right.

    What is read above is the file of an earlier run, which this one goes on from.
    """
    function = module.function_of(node)
    body = function.body if function is not None else module.tree.body
    around = [s for s in body if (s.end_lineno or s.lineno) >= node.lineno]
    assert step.act is not None
    for other in steps_in(project, module, list(around)):
        if other.act is None or other.act in CHANGES or other.ranks is not Ranks.ALL or other.act is Act.ASKS:
            continue
        if any(meets(step.act, made, other.act, used) for made in step.forms for used in other.forms):
            return True
    return False
