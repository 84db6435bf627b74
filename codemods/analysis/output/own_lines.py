"""Do the lines that every rank prints say the same, or does each rank tell of its own share?

The variance analysis knows the printed values, and the tests and loops round them. A line of own values is no repetition: what
a guard takes away from the other ranks is seen nowhere else.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from enum import IntEnum

from codemods.analysis.hooks import EVALUATION_HOOKS, OBSERVERS
from codemods.analysis.names import dotted, last
from codemods.analysis.output.own_answers import is_answer_for_a_share
from codemods.analysis.output.own_batches import is_of_own_batch
from codemods.analysis.output.own_words import asks_the_process, is_own_word, speaks_for_each
from codemods.analysis.output.trainer_answers import is_of_own_answers
from codemods.analysis.short_texts import shorter
from codemods.analysis.variance.analysis import Analysis, variance
from codemods.analysis.variance.paths import unpacked
from codemods.analysis.variance.values import Cause, Kind, Proof, Value
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.record import record
from codemods.store.project import Project

_TRAINS = frozenset({"backward", "manual_backward", "training_step"})
_MAKE_TEXT = frozenset({"join", "str", "repr", "format", "sorted", "list", "tuple", "dumps", "pformat"})
_OF_GENERATORS = frozenset({"initial_seed", "get_rng_state", "getstate", "get_state", "seed"})
_OF_THE_CLOCK = "is each process's own"
_DECIDES = (ast.Assign, ast.AugAssign, ast.Return, ast.Break)
_OVER_BATCHES = frozenset({Kind.LOADER, Kind.ENUMERATED, Kind.ZIPPED})


class Own(IntEnum):
    """What of a line is the rank's own.

    NOTHING: no value is seen to differ. NUMBER: one of the rank's own batches or of its clock; people let rank 0 speak for it.
    RESULT: what this rank alone has and the others do not show.
    """

    NOTHING = 0
    NUMBER = 1
    RESULT = 2


@record
class OwnLine:
    """assumes: what a guard rests on where a number of the rank's own is shown, or decides whether the line is printed."""

    own: Own = Own.NOTHING
    assumes: str = ""

    @property
    def is_of_the_clock(self) -> bool:
        return self.own is Own.NUMBER and self.assumes.endswith(_OF_THE_CLOCK)


def own_line(
    project: Project, module: SourceModule, function: FunctionNode | ast.Module, statements: Sequence[ast.stmt]
) -> OwnLine:
    """The most that printing statements tell of one rank alone, by their values and by the tests and loops round them."""
    analysis = variance(project)
    inside = [n for s in statements for n in walk(s)]
    above = _above(module, function, statements[0])
    loops = [n for n in (*inside, *above) if isinstance(n, (ast.For, ast.AsyncFor))]
    found = [_of_loop(analysis, module, loop) for loop in loops]
    in_batches = any(_goes_over_batches(analysis, module, loop) for loop in loops) and not trains(loops)
    for node in inside:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            shown = [part for given in node.value.args for part in _shown(given)]
            if any(isinstance(n, ast.Call) and last(dotted(n.func)) in _OF_GENERATORS for n in walk(node.value)):
                found.append(OwnLine(Own.RESULT))  # seeds are given by rank as often as not
            for part in shown:
                if is_own_word(project, module, part) or _is_own_answer(project, module, part):
                    found.append(OwnLine(Own.RESULT))
                value = analysis.value(module, part)
                if value.cause is Cause.UNKNOWN and is_of_own_batch(project, module, part):
                    value = Value(Cause.DATA, Proof.LIKELY)
                    in_batches = in_batches or _is_in_batches(project, module, loops)
                found.append(_of_value(module, part, value, in_batches=in_batches))
    tests = [n.test for n in (*inside, *above) if isinstance(n, (ast.If, ast.While, ast.IfExp))]
    for test in tests:
        own = asks_the_process(module, test) or is_of_own_answers(project, module, test)
        found.append(OwnLine(Own.RESULT) if own else _of_test(analysis, module, test))
    found += [OwnLine(Own.RESULT) for up in above if _is_decided_by_own(analysis, module, up)]
    most = max(found, key=lambda line: (line.own, not line.is_of_the_clock), default=OwnLine())
    if most.own is Own.NUMBER and (_is_of_a_step(function, most) or speaks_for_each(module, function, statements)):
        return OwnLine(Own.RESULT)
    return most


def _is_own_answer(project: Project, module: SourceModule, part: ast.expr) -> bool:
    """True for what a Trainer, or an object of the project, answered for this rank's samples."""
    return is_of_own_answers(project, module, part) or is_answer_for_a_share(project, module, part)


def _is_of_a_step(function: FunctionNode | ast.Module, line: OwnLine) -> bool:
    """True in the hooks of an evaluation, whose samples no other rank has, and for the time that any step takes.

    What stands at its end for the whole set is this rank's part of it.
    """
    name = "" if isinstance(function, ast.Module) else function.name
    evaluates = name in _EVALUATING_STEPS or (name in _EVALUATING_HOOKS and not line.is_of_the_clock)
    return evaluates or (name.endswith("_step") and line.is_of_the_clock)


def _above(module: SourceModule, function: FunctionNode | ast.Module, statement: ast.stmt) -> list[ast.AST]:
    """What stands round a statement, up to its function."""
    found: list[ast.AST] = []
    below: ast.AST = statement
    for up in module.ancestors(statement):
        if up is function:
            break
        if not isinstance(up, (ast.For, ast.AsyncFor)) or below not in up.orelse:
            found.append(up)
        below = up
    return found


def trains(loops: Sequence[ast.For | ast.AsyncFor]) -> bool:
    """True where a loop goes backward: it reports on its own batches, and people let rank 0 do that for all."""
    return any(isinstance(n, ast.Call) and _end(n.func) in _TRAINS for loop in loops for s in loop.body for n in walk(s))


def _goes_over_batches(analysis: Analysis, module: SourceModule, loop: ast.For | ast.AsyncFor) -> bool:
    value = analysis.value(module, unpacked(loop.iter))
    return value.kind is Kind.LOADER or (value.kind in _OVER_BATCHES and value.cause is Cause.DATA)


_EVALUATING_STEPS = frozenset({"validation_step", "test_step", "predict_step"})
_EVALUATING_HOOKS = EVALUATION_HOOKS | {h for h in OBSERVERS if h.startswith(("on_validation_", "on_test_", "on_predict_"))}


def names_own_items(project: Project, module: SourceModule, name: ast.expr) -> bool:
    """True for a name that is made from the items of this rank alone, in a loop over them or in a step of an evaluation.

    No other rank has the same items.
    """
    analysis = variance(project)
    function = module.function_of(name)
    if function is not None and function.name in _EVALUATING_STEPS and _is_of_rank(analysis.value(module, name)):
        return True
    above = (up for up in module.ancestors(name) if isinstance(up, (ast.For, ast.AsyncFor)))
    loops = [up for up in above if module.function_of(up) is function]
    if not loops or trains(loops) or not _is_of_rank(analysis.value(module, name)):
        return False
    return any(_is_of_rank(analysis.value(module, loop.iter)) for loop in loops)


def _is_in_batches(project: Project, module: SourceModule, loops: Sequence[ast.For | ast.AsyncFor]) -> bool:
    """True in a loop over the batches of an evaluation that are known by what they are called."""
    targets = [n for loop in loops for n in walk(loop.target) if isinstance(n, ast.Name)]
    used = [r for t in targets for r in module.reads_of(t.id) if isinstance(r, ast.Name)]
    return not trains(loops) and any(is_of_own_batch(project, module, r) for r in used[:8])


def _is_of_rank(value: Value) -> bool:
    return value.differs and value.cause in (Cause.DATA, Cause.RANK)


def _of_loop(analysis: Analysis, module: SourceModule, loop: ast.For | ast.AsyncFor) -> OwnLine:
    """A line for each item of what this rank alone has. The batches of a loader are not asked here: their number is."""
    value = analysis.value(module, loop.iter)
    if not value.differs or value.kind is Kind.LOADER or _goes_over_batches(analysis, module, loop):
        return OwnLine()
    return OwnLine(Own.RESULT)


def _shown(node: ast.expr) -> list[ast.expr]:
    """The values that a printed text is put together from: a list that is joined to a text is still as long as it was."""
    if isinstance(node, ast.JoinedStr):
        inner = [v.value for v in node.values if isinstance(v, ast.FormattedValue)]
    elif isinstance(node, ast.Call) and _end(node.func) in _MAKE_TEXT:
        inner = [*node.args, *(k.value for k in node.keywords)]
    elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mod)):
        inner = [node.left, node.right]
    elif isinstance(node, (ast.Tuple, ast.List)):
        inner = node.elts
    else:
        return [node]
    return [node, *(part for value in inner for part in _shown(value))]


def _end(func: ast.expr) -> str:
    return func.attr if isinstance(func, ast.Attribute) else last(dotted(func))


def _of_value(module: SourceModule, node: ast.expr, value: Value, *, in_batches: bool) -> OwnLine:
    if not value.differs:
        return OwnLine()
    if value.cause is Cause.RANK or value.sized or value.listed or in_batches or _counts(node):
        return OwnLine(Own.RESULT)
    by = _OF_THE_CLOCK if value.cause is Cause.PLACE else "comes from each rank's own batches"
    return OwnLine(Own.NUMBER, f"assumes that rank 0 speaks for all: `{shorter(module, node)}` {by}")


def _of_test(analysis: Analysis, module: SourceModule, test: ast.expr) -> OwnLine:
    asked = _asked_for(test)
    if asked is not None and _is_of_rank(analysis.value(module, asked)):
        return OwnLine(Own.RESULT)
    if any(isinstance(n, ast.Call) and _counts(n) and _is_of_rank(analysis.value(module, n)) for n in walk(test)):
        return OwnLine(Own.RESULT)  # a batch that is short on this rank
    value = analysis.tested(module, test)
    if not value.differs:
        return OwnLine()
    if value.cause is not Cause.DATA:
        return OwnLine(Own.RESULT)
    return OwnLine(Own.NUMBER, f"assumes that rank 0 speaks for all: `{shorter(module, test)}` goes by each rank's own batch")


def _is_decided_by_own(analysis: Analysis, module: SourceModule, up: ast.AST) -> bool:
    """True for an `if` by which this rank alone changes what it goes on with: the line tells of that rank's decision."""
    if not isinstance(up, ast.If) or not any(isinstance(n, _DECIDES) for s in up.body for n in walk(s)):
        return False
    value = analysis.tested(module, up.test)
    return value.differs and value.cause is Cause.DATA


def _asked_for(test: ast.expr) -> ast.expr | None:
    """What a test asks for, whether it is there at all: where a rank's own batch may lack it, the line reports on that rank."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _asked_for(test.operand)
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        left, right = test.left, test.comparators[0]
        if isinstance(test.ops[0], (ast.Is, ast.IsNot)) and isinstance(right, ast.Constant) and right.value is None:
            return left
        counted = isinstance(left, ast.Call) and dotted(left.func) == "len" and len(left.args) == 1
        return left.args[0] if counted and isinstance(left, ast.Call) and _is_nought(right) else None
    return test if isinstance(test, (ast.Name, ast.Attribute)) else None


def _counts(node: ast.expr) -> bool:
    """True for `len(batch)`: where it differs, the ranks have more or fewer items."""
    return isinstance(node, ast.Call) and dotted(node.func) == "len"


def _is_nought(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0
