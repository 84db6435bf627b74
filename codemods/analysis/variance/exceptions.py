"""Exceptions on one rank that are caught: the rank goes on without a collective, makes one more, or leaves the loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.call_graph import called_function
from codemods.analysis.class_index import Role, class_facts
from codemods.analysis.handlers import kinds_of
from codemods.analysis.names import dotted, last
from codemods.analysis.variance.error_flags import raises_flag_of
from codemods.analysis.variance.exits import calls_in, is_exit, leaving_of
from codemods.analysis.variance.handler_ways import ways_on
from codemods.analysis.variance.package_trials import sets_up
from codemods.analysis.variance.partings import Form, Mismatch
from codemods.analysis.variance.values import SAME, Cause, Proof, differing
from codemods.analysis.variance.ways import Statements, Ways, missed_of
from codemods.files.source import walk

Attempt = ast.Try | ast.TryStar
_OTHER_MATTERS = frozenset(
    {"KeyboardInterrupt", "ImportError", "ModuleNotFoundError", "AttributeError", "SystemExit", "FileExistsError"}
)
_BROAD = frozenset({"", "Exception", "BaseException", "RuntimeError", "OutOfMemoryError"})


def caught(ways: Ways, node: Attempt, rest: Statements, loop: Statements | None) -> Iterator[Mismatch]:
    """Handlers behind which a rank is past a collective that the others come to; of a `try` the first one."""
    other = ways.way([*node.body, *node.orelse, *node.finalbody], rest, loop)
    for handler in node.handlers:
        names = _names(handler)
        if "StopIteration" in names:
            yield from _ended_stream(ways, node, handler, loop or rest)
            continue
        if not ways.state.is_parallel or names & _OTHER_MATTERS:
            continue
        if (ending := _ends_as_success(handler)) is not None and _is_awaited(ways, loop or rest):
            link = ways.state.link(handler, "an exception on one rank leads here")
            yield Mismatch(Form.ENDS, ending, differing(Cause.PLACE, Proof.LIKELY, link), None, ending)
            continue
        arms = ways_on(handler)
        if not arms or _only_asks(node) or _is_of_the_parent(node):
            continue
        if not names & _BROAD and not (loop and any(m.name == "backward" for m in ways.meets(node.body))):
            continue  # one kind of error, round something else than a step of the training
        led = [(arm, w) for arm in arms if (w := ways.way([*arm, *node.finalbody], rest, loop)) is not None]
        if not led or other is None or not _is_risky(ways, node) or _starts_the_group(ways, node):
            continue
        if _sets_up_a_package(ways, node):
            continue
        form, (arm, met) = Form.RAISES, next(((a, m) for a, way in led if (m := missed_of(other, way))), (handler.body, None))
        if met is None:
            form, met = Form.WAITS, missed_of(ways.meets(handler.body), ways.meets([*node.body, *node.orelse]))
            if met is None or all(missed_of(way, other) is None for _, way in led):
                continue
        elif met.steps and raises_flag_of(ways.state.module, handler, met.steps[0].line):
            form = Form.WAITS  # the rank that was caught is the one that goes there
        text = f"an exception on one rank is caught here: `except {' '.join(sorted(names))}`"
        value = differing(Cause.PLACE, Proof.LIKELY, ways.state.link(handler, text))
        yield Mismatch(form, handler, value, met, leaving_of(arm) or handler.body[0])
        return


_QUESTIONS = frozenset({"get_rank", "get_world_size", "get_backend", "get_process_group_ranks"})


def _only_asks(node: Attempt) -> bool:
    """True where the body begins with a question to the group: without one every rank gets that error."""
    calls = [n for n in walk(node.body[0]) if isinstance(n, ast.Call)]
    return bool(calls) and all(last(dotted(c.func)) in _QUESTIONS for c in calls)


def _is_of_the_parent(node: Attempt) -> bool:
    """True where the body starts the ranks and waits for them: the process that does so is none of them."""
    return any(last(dotted(c.func)) in ("spawn", "start_processes") for c in calls_in(node.body))


def _is_awaited(ways: Ways, behind: Statements) -> bool:
    """True where the others wait for a rank that ends here: in the function, or in the backward of the model whose part it is."""
    state = ways.state
    if ways.meets(behind) or ways.meets(state.body):
        return True
    owner = state.module.class_of(state.function) if state.function is not None and state.function.name == "forward" else None
    return owner is not None and class_facts(state.project, state.module, owner).is_a(Role.NN_MODULE)


def _ended_stream(ways: Ways, node: Attempt, handler: ast.ExceptHandler, behind: Statements) -> Iterator[Mismatch]:
    """`except StopIteration: break`: the loop ends with the rank's own data."""
    if not isinstance(leaving_of(handler.body), (ast.Break, ast.Return)):
        return
    for call in calls_in(node.body):
        if dotted(call.func) != "next" or not call.args or id(call.args[0]) not in ways.state.values:
            continue
        value = ways.analysis.resolved(ways.state.site, ways.state.values[id(call.args[0])])
        found = ways.meets(behind)
        if value.differs and value.sized and found:
            yield Mismatch(Form.ROUNDS, handler.body[0], value, found[0], handler.body[0])


def _is_risky(ways: Ways, node: Attempt) -> bool:
    """True where the body does more than wait: an exception in the collective itself meets all ranks.

    So does one in what makes a tensor of a number, or a number of a tensor. A forward or a backward works before it waits.
    """
    met = ways.state.met
    calls = (c for c in calls_in(node.body) if last(dotted(c.func)) not in _MAKES_NUMBERS and not _is_item(ways, c))
    calls = (c for c in calls if not _raises_nothing(c))
    return any(id(c) not in met or len(met[id(c)][0].steps) > 1 or met[id(c)][0].name in _WORKS for c in calls)


_WORKS = frozenset({"forward", "backward"})
_MAKES_NUMBERS = frozenset({"tensor", "zeros", "ones", "full", "zeros_like", "ones_like", "float", "int", "bool", "device"})


def _raises_nothing(call: ast.Call) -> bool:
    """True for a question to torch.distributed, and for `shutil.rmtree(folder, ignore_errors=True)`."""
    name = last(dotted(call.func))
    quiet = any(k.arg == "ignore_errors" and isinstance(k.value, ast.Constant) and k.value.value is True for k in call.keywords)
    return name in ("is_initialized", "is_available", "print") or (name == "rmtree" and quiet)


def _is_item(ways: Ways, call: ast.Call) -> bool:
    """True for `flag.item()`, and for that of what a collective gives; `model(batch).item()` runs the model."""
    func = call.func
    if not isinstance(func, ast.Attribute) or func.attr not in ("item", "to", "cuda"):
        return False
    met = ways.state.met.get(id(func.value), ())
    return not isinstance(func.value, ast.Call) or any(m.name != "forward" for m in met)


def _starts_the_group(ways: Ways, node: Attempt) -> bool:
    """True where the body brings the ranks together in the first place: a start that fails, fails on all of them."""
    for call in calls_in(node.body):
        site = called_function(ways.state.project, ways.state.module, call)
        inner = [n for n in walk(site.node) if isinstance(n, ast.Call)] if site is not None else []
        if any(last(dotted(c.func)) == "init_process_group" for c in (call, *inner)):
            return True
    return False


def _sets_up_a_package(ways: Ways, node: Attempt) -> bool:
    """True where what fails is the import of a package: no share of the data goes into it, and all have it or none."""
    calls = sets_up(ways.state.project, ways.state.module, node)
    given = (a for c in calls for a in (*c.args, *(k.value for k in c.keywords)))
    values = (ways.analysis.resolved(ways.state.site, ways.state.values.get(id(a), SAME)) for a in given)
    return bool(calls) and not any(v.cause in (Cause.DATA, Cause.PLACE) for v in values)


def _names(handler: ast.ExceptHandler) -> frozenset[str]:
    """The exceptions that are caught; "" for a bare `except`."""
    if handler.type is None:
        return frozenset({""})
    return frozenset(last(dotted(t)) for t in kinds_of(handler))


def _ends_as_success(handler: ast.ExceptHandler) -> ast.stmt | None:
    """`exit()` in a handler: the process ends with status 0, and the launcher lets the others go on."""
    for statement in handler.body:
        if is_exit(statement) and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            status = statement.value.args[0] if statement.value.args else None
            if status is None or (isinstance(status, ast.Constant) and status.value in (0, None)):
                return statement
    return None
