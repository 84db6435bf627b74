"""Numbers of one rank that are shown as if they were everybody's: rank 0 prints, logs or goes by the loss of its own share."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.class_index import class_facts
from codemods.analysis.names import dotted, last
from codemods.analysis.variance.analysis import Analysis
from codemods.analysis.variance.comparisons import decides, is_answer, rivals
from codemods.analysis.variance.guessed_shares import is_guess
from codemods.analysis.variance.merged_entries import may_be_of_another
from codemods.analysis.variance.named_files import names_a_file, numbers_in_names
from codemods.analysis.variance.number_roles import Role, Source, source_of, state_of
from codemods.analysis.variance.number_uses import role_of
from codemods.analysis.variance.number_words import (
    holds_pictures,
    is_made_by_a_metric,
    is_mean,
    is_number,
    is_text,
    named_by_texts,
    names_metric,
    numbers_gone_through,
    texts_of,
    where_made,
)
from codemods.analysis.variance.outlets import is_on_zero, may_be_of_zero, may_be_own_writer, prints_on_zero, says_shown, shows
from codemods.analysis.variance.passed_over import PassedOver, is_completed, passed_over
from codemods.analysis.variance.put_into import dict_of_row, is_entry, names_a_number, written_out
from codemods.analysis.variance.shown_results import holds_reduced, holds_results, puts_itself
from codemods.analysis.variance.state import State
from codemods.analysis.variance.switched_outlets import shows_where_switched_on
from codemods.analysis.variance.told_by_all import is_end_of_its_way, may_print_on_all, prints_on_all
from codemods.analysis.variance.unseen_shares import leave_unseen
from codemods.analysis.variance.values import SAME, Cause, How, Value
from codemods.data.rank_variance import DRAWS, SHOWN_BY_MAIN, SHOWN_NUMBERS
from codemods.files.left_alone import left
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.record import record, replace
from codemods.store.project import Project

_SHARE = re.compile(r"own (batches|share)|rank's own|share|prepare|loader|sampler|batch|dataset", re.I)
_TRACKERS = frozenset({"wandb.log", "mlflow.log_metric", "mlflow.log_metrics", "accelerator.log"})
# They take numbers alone: all of the dict that they are handed is drawn as a curve.
_OF_NUMBERS = frozenset(
    {"accelerator.log", "self.accelerator.log", "fabric.log_dict", "self.fabric.log_dict", "mlflow.log_metrics"}
)  # fmt: skip
_NEAR = 10  # lines from the entry of a dict to where the dict is shown: a finding stands where its reader sees both
_LOSSES = re.compile(r"^forward$|^__call__$|loss", re.I)
_PASSING = frozenset({"zip", "enumerate", "sorted", "map"})
_NAMED = (ast.Name, ast.Attribute, ast.Subscript)
_Place = ast.Call | ast.Compare


@record
class Beside:
    """text: a number of all ranks, as it is written where it is shown; reduced: the call that makes it one."""

    text: str
    reduced: ast.Call


@record
class Number:
    """at: where the number is made (a mean) or shown; shown: the call or test that shows it. text: the number, as written.

    role: what it is used for. everyone: each rank decides by its own, not only rank 0. source: the loop that it comes from.
    behind: it is shown behind that loop. alone: only rank 0 goes through the loop at all. over: the parts of all ranks are there.
    beside: a number of all ranks that is shown in the same way. answers: its caller decides. names: it is in the name of a file.
    unnamed: no word says that it is a loss or a metric.
    """

    at: ast.AST
    shown: ast.AST
    text: str
    value: Value
    role: Role
    source: Source
    behind: bool = False
    everyone: bool = False
    alone: bool = False
    over: PassedOver | None = None
    beside: Beside | None = None
    answers: bool = False
    names: bool = False
    unnamed: bool = False


def all_numbers(analysis: Analysis, module: SourceModule) -> list[Number]:
    """Every number of one rank that a file shows or goes by, in the order of its functions."""
    project = analysis.project
    if not analysis.is_parallel(module) and not _speaks_of_main(project, module):
        left(module, None, "several processes are not seen to run the file")
        return []
    return [n for function, places in _places(project, module).items() for n in _in_function(analysis, module, function, places)]


def _speaks_of_main(project: Project, module: SourceModule) -> bool:
    """True where the file asks for the rank, and the processes are started elsewhere in the project."""
    return b"rank" in module.data and bool(project.files_containing(b"init_process_group"))


def _places(project: Project, module: SourceModule) -> dict[FunctionNode | None, list[_Place]]:
    """The calls and tests that show a number or go by it, by their functions: the others are not interpreted for this."""
    places: dict[FunctionNode | None, list[_Place]] = {}
    for call in module.nodes(ast.Call):
        told = shows(project, module, call) or may_be_of_zero(module, call) or may_be_own_writer(project, module, call)
        if told or may_print_on_all(module, call) or names_a_file(project, module, call):
            places.setdefault(module.function_of(call), []).append(call)
    for test in module.nodes(ast.Compare):
        if decides(module, test):
            places.setdefault(module.function_of(test), []).append(test)
    return places


def _in_function(
    analysis: Analysis, module: SourceModule, function: FunctionNode | None, places: list[_Place]
) -> Iterator[Number]:
    state = analysis.of(FunctionSite(module, function)) if function is not None else analysis.top_level(module)
    for node in sorted(places, key=lambda n: (n.lineno, n.col_offset)) if state is not None else ():
        assert state is not None
        if isinstance(node, ast.Call):
            yield from _shown_in(analysis, state, node)
            yield from _named_in(analysis, state, node)
        else:
            yield from _compared_in(analysis, state, node)


# What is shown


def _shown_in(analysis: Analysis, state: State, node: ast.Call) -> Iterator[Number]:
    on_zero = shows(state.project, state.module, node)
    by_all = not on_zero and may_print_on_all(state.module, node) and prints_on_all(state.project, state.module, node)
    if not on_zero and not by_all:
        if not isinstance(node.func, ast.Attribute):
            return
        site = state.targets.get(id(node))
        by_zero = site is not None and (prints_on_zero(state.project, site) or shows_where_switched_on(analysis, site))
        if not by_zero and _value(analysis, state, node.func.value).cause is not Cause.RANK:
            return
    if any(m.carries for m in state.met.get(id(node), ())):
        left(state.module, node, "the function that shows the number puts it together over the ranks itself")
        return
    parts = list(_parts(state, node))
    if any(_is_rank(_value(analysis, state, p)) for p in parts) and left(state.module, node, "it says whose number it is"):
        return
    taken: set[int] = set()
    for part in parts:
        if isinstance(part, ast.Call) and (dotted(part.func) in _PASSING or (by_all and is_text(part))):
            continue  # what it goes through, or is put together of, is looked at
        if any(m.carries for m in state.met.get(id(part), ())):
            taken |= {id(n) for n in walk(part)}  # what is handed to it comes out as everybody's
        value = _value(analysis, state, part) if id(part) not in taken else SAME
        if not value.differs or value.cause is not Cause.DATA:
            leave_unseen(state.module, part, value)
            continue
        if holds_reduced(value) and left(state.module, part, "what the ranks differ by in this dict is no number"):
            continue
        over = passed_over(state.project, state.module, value) if isinstance(part, ast.Name) and value.mean else None
        named = over is not None or _reads_like_one(state, node, part, value)
        if not named and not _is_plain_mean(state, node, part, value):
            continue
        told = last(dotted(node.func)) in SHOWN_NUMBERS or dotted(node.func) in SHOWN_BY_MAIN or value.mean
        if not told or holds_pictures(state.module, part) or _reduces_as_text(analysis, value):
            continue
        taken |= {id(n) for n in walk(part)}
        number = _number(analysis, state, part, node, value)
        if number is None or _is_told_above(state, number):
            continue
        if by_all:  # each its own: nobody puts them together, nor does the caller have them
            if named and over is None and number.role is Role.RESULT and not number.alone and is_end_of_its_way(state, value):
                yield replace(number, everyone=True)
            continue
        if not named:  # a mean of something: what an evaluation shows of all its batches is a result, whatever it is called
            if number.role is Role.RESULT:
                yield replace(number, unnamed=True)
            continue
        if over is not None:
            yield replace(number, at=over.statement, over=over)
            continue
        if number.role is not Role.CURVE or is_number(part) or not _is_whole(node, part, value):  # all that a training logs
            yield number


def _parts(state: State, node: ast.Call) -> Iterator[ast.expr]:
    """The expressions that a call shows; of a dict or a text that is put together above, what it is made of."""
    for given in (*node.args, *(k.value for k in node.keywords)):
        inner = [t for n in walk(given) if isinstance(n, ast.Name) for t in texts_of(state.module, n)] if is_text(given) else []
        for whole in [*(written_out(state, dict_of_row(given)) or [given]), *inner]:
            for part in walk(whole):
                if isinstance(part, (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.BinOp)):
                    yield part


def _is_rank(value: Value) -> bool:
    return value.cause is Cause.RANK and len(value.chain) < 2


def _reads_like_one(state: State, node: ast.Call, part: ast.expr, value: Value) -> bool:
    name = dotted(node.func)
    tracked = name in _TRACKERS and isinstance(part, ast.Call) and last(dotted(part.func) or "item") == "item"
    drawn = last(name) in ("add_scalar", "log_scalar") and len(node.args) > 1 and part is node.args[1]
    plotted = drawn and (value.mean or names_metric(node.args[0]))
    if plotted or tracked or _is_whole(node, part, value):
        return True
    if value.mean and (numbers_gone_through(state.module, part) is not None or any(n is part for n in named_by_texts(node))):
        return True  # its keys are shown beside it, or its name
    if value.mean and any(part is given for given in node.args) and (holds_results(part) or puts_itself(state.project, value)):
        return True  # all that an evaluation came to
    made = value.mean and is_made_by_a_metric(state.module, part)
    return is_number(part) or (is_entry(state.module, part) and (names_a_number(state.module, part) or made))


def _is_plain_mean(state: State, node: ast.Call, part: ast.expr, value: Value) -> bool:
    """True for a mean over what the own batches gave that is put into a text: no name has to say that it is a metric."""
    written = value.mean and value.is_of_own_data and is_mean(part) and last(dotted(node.func)) not in DRAWS
    return written and not is_entry(state.module, part)


def _is_whole(node: ast.Call, part: ast.expr, value: Value) -> bool:
    """True for the dict of numbers, made of many batches, that a tracker is handed."""
    return dotted(node.func) in _OF_NUMBERS and value.mean and any(part is given for given in node.args[:1])


def _named_in(analysis: Analysis, state: State, node: ast.Call) -> Iterator[Number]:
    """What an evaluation came to, in the name of what rank 0 saves."""
    parts = numbers_in_names(state.module, node)
    for part in parts if parts and names_a_file(state.project, state.module, node) else ():
        value = _value(analysis, state, part)
        if not value.differs or value.cause is not Cause.DATA or not value.mean:
            continue
        number = _number(analysis, state, part, node, value)
        if number is not None and number.role is Role.RESULT:
            yield replace(number, names=True)


# What decides


def _compared_in(analysis: Analysis, state: State, test: ast.Compare) -> Iterator[Number]:
    """`if acc > best:`: the best checkpoint is that of an own share; of rank 0, or of each rank."""
    for side in rivals(state.module, test):
        value = _value(analysis, state, side)
        if value.differs and value.cause is Cause.DATA:
            if may_be_of_another(state.module, side, lambda part: _value(analysis, state, part).cause is Cause.DATA):
                return
            number = _number(analysis, state, side, test, value, decides=True)
            if number is not None:
                yield replace(number, answers=is_answer(state.module, test))
            return
        leave_unseen(state.module, side, value)


def _number(
    analysis: Analysis, state: State, part: ast.expr, shown: _Place, value: Value, *, decides: bool = False
) -> Number | None:
    """None where it is not shown that the number is that of one share."""
    source = source_of(analysis, state.module, shown, value)
    module = state.module
    text = " ".join(module.text_of(numbers_gone_through(module, part) or part).split())
    behind = source.is_behind(module, shown, value)
    role = role_of(source, decides=decides)
    if not value.mean and decides and source.trains:
        left(module, shown, "{} is what a single batch of the training gives", part)
        return None
    if role is Role.RESULT and not behind and (source.loop is not None or not value.mean):
        left(module, shown, "{} only says how far the evaluation has come", part)
        return None
    if value.decided or is_guess(analysis, value, source) or _may_gather(analysis, value) or is_completed(module, value):
        left(module, shown, "{} may be every rank's: it may be gathered or completed, or only a name says that it is own", part)
        return None
    if decides and source.trains and value.origin is not None and not _SHARE.search(value.origin.text):
        return None  # the loop round it trains, but what it evaluates on is not seen
    everyone = decides and not is_on_zero(analysis.project, module, _decided_over(module, shown))
    beside = role in (Role.RESULT, Role.DECIDES) and source.path == module.path
    if beside and source.loop is not None and is_on_zero(analysis.project, module, source.loop):
        return Number(source.loop, shown, text, value, role, source, behind, everyone, alone=True)
    at = where_made(module, value) if value.mean and (behind or role is not Role.CURVE) else None
    if role is Role.CURVE and at is not None and abs(shown.lineno - at.lineno) > _NEAR:
        at = None
    put_in = is_entry(module, part) and (isinstance(module.parent(part), ast.Assign) or abs(shown.lineno - part.lineno) <= _NEAR)
    entry = part if put_in else shown
    return Number(at or entry, shown, text, value, role, source, behind, everyone)


def _decided_over(module: SourceModule, shown: _Place) -> ast.AST:
    """What an `if` decides over, for its test: all of `loss < best and rank == 0` has held there."""
    up = next((u for u in module.ancestors(shown) if isinstance(u, ast.stmt)), None)
    return up.body[0] if isinstance(up, ast.If) and not up.orelse else shown


def _is_told_above(state: State, number: Number) -> bool:
    """True for a helper that is handed the number by a call that shows it already."""
    link = number.value.chain[0]
    module = state.project.module(link.path) if link.how is How.HANDED else None
    calls = [c for c in module.nodes(ast.Call) if c.lineno == link.line] if module is not None else []
    named = [c for c in calls if says_shown(c) and any(_may_read_like_one(a) for a in (*c.args, *(k.value for k in c.keywords)))]
    return module is not None and any(shows(state.project, module, c) for c in named)


def _may_read_like_one(given: ast.expr) -> bool:
    """False for an object that no name says to be a number: what is shown of it is seen where it is taken apart."""
    return any(isinstance(n, ast.Dict) or (isinstance(n, _NAMED) and is_number(n)) for n in walk(given))


def _may_gather(analysis: Analysis, value: Value) -> bool:
    """True where a step of the way is a loss that gathers inside: what it gives may be everybody's."""
    for link in value.chain:
        module = analysis.project.module(link.path)
        if module is None or link.how is How.HANDED:
            continue
        for call in (c for c in module.nodes(ast.Call) if c.lineno <= link.line <= (c.end_lineno or c.lineno)):
            state = state_of(analysis, module, call)
            site = state.targets.get(id(call)) if state is not None else None
            if state is None or site is None or not _LOSSES.search(site.node.name):
                continue
            if any(m.carries for m in state.met.get(id(call), ())):
                return True
    return False


def _reduces_as_text(analysis: Analysis, value: Value) -> bool:
    """True for an object that is reduced when it is put into a text."""
    site = value.thing.site if value.thing is not None else None
    if site is None:
        return False
    facts = class_facts(analysis.project, site.module, site.node)
    methods = (facts.method(name) for name in ("__format__", "__str__", "__repr__"))
    states = (analysis.of(FunctionSite(found[0].module, found[1])) for found in methods if found is not None)
    return any(state is not None and state.carries() for state in states)


def _value(analysis: Analysis, state: State, node: ast.expr) -> Value:
    return analysis.resolved(state.site, state.values.get(id(node), SAME))
