"""What the ranks part by without a test before a collective: flags for the framework, steps without a loss, exits, schedulers."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_of
from codemods.analysis.class_index import ClassSite, Role, class_facts
from codemods.analysis.literals import is_none
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.rank_sets import Ranks
from codemods.analysis.ranks.reach import ranks_entering, ranks_reaching
from codemods.analysis.variance.analysis import Analysis
from codemods.analysis.variance.exits import calls_in, leaving_of
from codemods.analysis.variance.given_back import makes_the_loss
from codemods.analysis.variance.own_rates import own_rates
from codemods.analysis.variance.partings import Form, Mismatch
from codemods.analysis.variance.state import State
from codemods.analysis.variance.values import SAME, Cause, Proof, differing
from codemods.data.rank_variance import PROCESS_EXITS
from codemods.files.source import SourceModule, walk, walk_block
from codemods.runtime.lazy_pattern import lazy

_EPOCH = lazy(r"(?:i_?|cur(?:rent)?_|global_|this_)?epochs?(?:_?(?:i|idx|index|num|number|no|id))?", re.IGNORECASE)


def other_forms(analysis: Analysis, state: State) -> Iterator[Mismatch]:
    yield from _stops(analysis, state)
    yield from _no_losses(analysis, state)
    yield from _ends_well(analysis, state)
    yield from _told(analysis, state)
    yield from own_rates(analysis, state)


def _stops(analysis: Analysis, state: State) -> Iterator[Mismatch]:
    """`trainer.should_stop = True` under what is one rank's own: the framework takes it for everybody's."""
    for node, found in {id(n): (n, v) for n, v in state.stops}.values():
        value = analysis.resolved(state.site, found)
        if value.differs and not state.carries():
            yield Mismatch(Form.STOPS, node, value, None)


def _no_losses(analysis: Analysis, state: State) -> Iterator[Mismatch]:
    """`return None` from a training_step, by the rank's own batch: Lightning makes no backward on this rank."""
    function, module = state.function, state.module
    if function is None or (owner := module.class_of(function)) is None:
        return
    if not class_facts(analysis.project, module, owner).is_a(Role.LIGHTNING_MODULE):
        return
    if function.name == "backward":
        yield from _caught_in_backward(state)
    if function.name != "training_step" and not makes_the_loss(analysis.project, ClassSite(module, owner), function.name):
        return
    yield from _caught_without_loss(state)
    for node in (n for n in walk_block(function.body) if isinstance(n, ast.If)):
        value = analysis.resolved(state.site, state.tests.get(id(node.test), SAME))
        for arm in (node.body, node.orelse):
            leaving = leaving_of(arm)
            if not isinstance(leaving, ast.Return) or not (leaving.value is None or is_none(leaving.value)):
                continue
            if value.differs and value.cause is not Cause.RANK:
                yield Mismatch(Form.NO_LOSS, node, value, None, leaving)


def _caught_without_loss(state: State) -> Iterator[Mismatch]:
    """`except RuntimeError: return None`: out of memory is one rank's own."""
    for node in (n for n in walk_block(state.body) if isinstance(n, ast.ExceptHandler)):
        for leaving in (n for n in walk_block(node.body) if isinstance(n, ast.Return)):
            if leaving.value is None or is_none(leaving.value):
                link = state.link(node, "an exception is one rank's own")
                yield Mismatch(Form.NO_LOSS, node, differing(Cause.PLACE, Proof.LIKELY, link, link), None, leaving)
                break


def _caught_in_backward(state: State) -> Iterator[Mismatch]:
    """`try: loss.backward() except RuntimeError:` of the hook: the others wait in the middle of their own."""
    for node in (n for n in walk_block(state.body) if isinstance(n, ast.Try)):
        if not any(isinstance(c.func, ast.Attribute) and c.func.attr == "backward" for c in calls_in(node.body)):
            continue
        for handler in node.handlers:
            if not isinstance(leaving_of(handler.body), ast.Raise):
                link = state.link(handler, "an exception is one rank's own")
                yield Mismatch(Form.RAISES, handler, differing(Cause.PLACE, Proof.LIKELY, link, link), None)


def _ends_well(analysis: Analysis, state: State) -> Iterator[Mismatch]:
    """`sys.exit(0)` in a function that rank 0 alone runs: the launcher takes it for a success, and the others wait."""
    module, function = state.module, state.function
    if function is None or b"exit(" not in module.data or not state.is_parallel:
        return
    if ranks_entering(analysis.project, module, function) not in (Ranks.ZERO, Ranks.LOCAL_ZERO):
        return
    for call in calls_in(function.body):
        status = call.args[0].value if call.args and isinstance(call.args[0], ast.Constant) else None
        if dotted(call.func) in PROCESS_EXITS and (not call.args or status == 0) and module.function_of(call) is function:
            link = state.link(function, f"only rank 0 runs {function.name}()")
            statement = module.statement_of(call)
            yield Mismatch(Form.ENDS, statement, differing(Cause.RANK, Proof.PROVEN, link, link), None, statement)


def _told(analysis: Analysis, state: State) -> Iterator[Mismatch]:
    """`scheduler.step(val_loss)` of a rank's own loss: the learning rates part. What rank 0 alone steps is DDP308's."""
    if not state.is_parallel:
        return
    for told in {id(t.call): t for t in state.told}.values():
        value = analysis.resolved(state.site, told.value)
        name = dotted(told.call.func).lower()
        if not value.differs or value.cause is Cause.RANK or not ("sched" in name or "plateau" in name):
            continue
        if _counts_epochs(state.module, told.call):
            continue
        if not ranks_reaching(analysis.project, state.module, told.call).some:
            yield Mismatch(Form.PLATEAU, state.module.statement_of(told.call), value, None)


def _counts_epochs(module: SourceModule, call: ast.Call) -> bool:
    """True for `scheduler.step(epoch)`: the number of the pass, which all ranks count alike, and no score."""
    given = call.args[0] if call.args else next((k.value for k in call.keywords), None)
    read = [n for n in walk(given) if isinstance(n, (ast.Name, ast.Attribute))] if given is not None else []
    names = [n for n in read if not isinstance(module.parent(n), ast.Attribute)]
    return bool(names) and all(_EPOCH.fullmatch(last(dotted(n))) or _is_counted(module, n) for n in names)


def _is_counted(module: SourceModule, node: ast.expr) -> bool:
    """True for the number of a loop over `range(…)`."""
    bound = bindings_of(module, node) if isinstance(node, ast.Name) else []
    loops = [b.node for b in bound if isinstance(b.node, ast.For)]
    ranges = [f for f in loops if isinstance(f.iter, ast.Call) and dotted(f.iter.func) in ("range", "trange")]
    return bool(bound) and len(ranges) == len(bound)
