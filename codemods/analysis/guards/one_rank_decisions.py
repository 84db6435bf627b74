"""Decisions to stop, to skip or to leave a loop that one rank may take otherwise than the rest."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from enum import Enum

from codemods.analysis.bindings import bindings_in
from codemods.analysis.branches import LOOPS, ifs_round
from codemods.analysis.call_graph import called_function
from codemods.analysis.class_index import ClassSite, Role, class_facts
from codemods.analysis.files.file_flow import ranks_in_function
from codemods.analysis.guards.last_waits import wait_inside
from codemods.analysis.guards.told_on_one_rank import told_on_one_rank
from codemods.analysis.guards.trained_inside import trains_inside
from codemods.analysis.literals import is_true
from codemods.analysis.model.wrapped_model import model_of
from codemods.analysis.names import dotted, end_of, last, qualified
from codemods.analysis.ranks.collectives import collective_at
from codemods.analysis.ranks.local_calls import stays_here
from codemods.analysis.ranks.rank_guards import Guard, Ranks, guards_over
from codemods.analysis.ranks.reached_collectives import may_put_together, reached_by
from codemods.analysis.ranks.several_processes import is_of_one_process
from codemods.analysis.variance.exits import asks_number
from codemods.files.left_alone import left
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.record import record
from codemods.store.project import Project

# Each process has its own answer to these.
_OWN_ANSWERS = frozenset(
    {"time.time", "time.monotonic", "time.perf_counter", "os.path.exists", "os.path.isfile", "random.random",
     "datetime.datetime.now"}
)  # fmt: skip
_STEP = frozenset({"training_step"})
_GIVEN = frozenset({"batch", "outputs", "loss"})


class Form(Enum):
    SHOULD_STOP = "should_stop"  # Lightning's flag
    CONTROL = "control"  # that of the HF Trainer
    NO_LOSS = "no loss"  # a training_step that returns None
    LEAVES = "leaves"  # break, continue, return in a training loop
    FINALLY = "finally"  # a collective that an exception of one rank leads to


@record
class Decision:
    """node: the assignment or the exit. test: what decides, where the data do. guard: the rank test, where ranks do.

    anchor: the outermost statement that only the deciding ranks enter.
    """

    form: Form
    node: ast.stmt
    anchor: ast.stmt
    test: ast.expr | None
    guard: Guard | None
    own: str


def decisions(project: Project, module: SourceModule) -> Iterator[Decision]:
    for find in (_flags, _missing_losses, _exits, _last_words):
        yield from (found for found in find(project, module) if not is_of_one_process(module, found.node))


# Flags of the frameworks


def _flags(project: Project, module: SourceModule) -> Iterator[Decision]:
    for assign in module.nodes(ast.Assign):
        target = assign.targets[0]
        if not isinstance(target, ast.Attribute) or not is_true(assign.value):
            continue
        holder = last(dotted(target.value))
        if target.attr == "should_stop" and holder.endswith("trainer"):
            form = Form.SHOULD_STOP
        elif target.attr == "should_training_stop" and holder == "control":
            form = Form.CONTROL
        else:
            continue
        function = module.function_of(assign)
        if function is None or _is_settled(project, module, function):
            continue
        guard = _guard(project, module, assign)
        tests = list(ifs_round(module, assign, until=LOOPS))
        if guard is not None:
            anchor = guard.node if isinstance(guard.node, ast.stmt) else module.statement_of(guard.node)
            yield Decision(form, assign, anchor, None, guard, "")
        elif found := next(((t, own) for t in tests if (own := _own(project, module, function, t.test))), None):
            yield Decision(form, assign, tests[-1], found[0].test, None, found[1])


def _is_settled(project: Project, module: SourceModule, function: FunctionNode) -> bool:
    """True where a collective stands in the function: what decides may be everybody's, or the decision be passed on."""
    return any(isinstance(n, ast.Call) and may_put_together(project, module, n) for n in walk(function))


def _guard(project: Project, module: SourceModule, node: ast.AST) -> Guard | None:
    """The outermost rank test, where rank 0 alone passes."""
    if ranks_in_function(project, module, node) is not Ranks.ZERO:
        return None
    guards = [g for g in guards_over(module, node, project=project) if g.ranks.some]
    return guards[-1] if guards else None


def _own(project: Project, module: SourceModule, function: FunctionNode, test: ast.expr, depth: int = 2) -> str:
    """What in a test each process answers for itself: its clock, its disk, its batch; "" where nothing is shown to be."""
    for node in walk(test):
        if isinstance(node, ast.Call):
            name = qualified(module, node.func)
            if collective_at(module, node, project) or reached_by(project, module, node):
                return ""
            if name in _OWN_ANSWERS:
                return f"{name}()"
    for node in walk(test):
        if not isinstance(node, ast.Name):
            continue
        bound = bindings_in(module, function, node.id)
        if len(bound) == 1 and bound[0].parameter and (node.id in _GIVEN or node.id == _batch_of(function)):
            return f"`{node.id}`"
        values = [b.value for b in bound if b.value is not None]
        if depth > 0 and values and len(values) == len(bound):
            if own := next((o for v in values if (o := _own(project, module, function, v, depth - 1))), ""):
                return own
    return ""


def _batch_of(function: FunctionNode) -> str:
    """The parameter behind `self` in which a step gets its batch, whatever its name is."""
    return "".join(a.arg for a in function.args.args[1:2]) if function.name in _STEP else ""


# A step without a loss


def _missing_losses(project: Project, module: SourceModule) -> Iterator[Decision]:
    for leaving in module.nodes(ast.Return):
        function = module.function_of(leaving)
        if function is None or function.name not in _STEP or not _is_none(leaving.value):
            continue
        owner = module.parent(function)
        if not isinstance(owner, ast.ClassDef) or not class_facts(project, module, owner).is_a(Role.LIGHTNING_MODULE):
            continue
        tests = list(ifs_round(module, leaving, until=LOOPS))
        if not tests or _is_settled(project, module, function):
            continue
        deciding = next((t for t in tests if asks_number(t.test) or _own(project, module, function, t.test)), None)
        if deciding is not None:
            yield Decision(Form.NO_LOSS, leaving, deciding, deciding.test, None, "the rank's own batch")


def _is_none(value: ast.expr | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and value.value is None)


# Exits of a training loop


def _exits(project: Project, module: SourceModule) -> Iterator[Decision]:
    """`break`, `continue` and `return` in a loop that goes on with a backward pass or a collective."""
    leaving: list[ast.Break | ast.Continue | ast.Return] = [*module.nodes(ast.Break), *module.nodes(ast.Continue)]
    leaving += module.nodes(ast.Return)
    for node in sorted(leaving, key=lambda n: n.lineno):
        loop = _loop(module, node)
        tests = list(ifs_round(module, node, until=LOOPS))
        if loop is None or not tests:
            continue
        if guard := _guard_inside(project, module, node, loop):
            together = not isinstance(node, ast.Return) and _goes_together(project, module, loop, node)
            if together and not _all_leave(loop, tests[0]):
                anchor = guard.node if isinstance(guard.node, ast.stmt) else module.statement_of(guard.node)
                yield Decision(Form.LEAVES, node, anchor, None, guard, "")
        elif ranks_in_function(project, module, node) is not Ranks.ALL:
            continue
        elif asks_number(tests[0].test) and _is_local_number(project, module, tests[0], loop):
            if _backward_below(module, loop, node):
                yield Decision(Form.LEAVES, node, tests[0], tests[0].test, None, "the loss of the rank's own batch")
        elif isinstance(node, ast.Return) and node.value is not None:
            continue  # what a function gives back is no decision to stop, unless a broken loss makes it
        elif asked := _asked_on_one_rank(project, module, loop, tests[0]):
            if _goes_together(project, module, loop, node):
                yield Decision(Form.LEAVES, node, tests[0], tests[0].test, None, asked)


def _loop(module: SourceModule, node: ast.AST) -> ast.For | ast.While | None:
    for up in module.ancestors(node):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            return None
        if isinstance(up, (ast.For, ast.While)):
            return up
    return None


def _guard_inside(project: Project, module: SourceModule, node: ast.AST, loop: ast.AST) -> Guard | None:
    """The rank test between the loop and the exit; one round the loop keeps the other ranks out of all of it."""
    guard = _guard(project, module, node)
    if guard is None or guard.kind in ("decorator", "exit"):
        return None
    return guard if any(up is loop for up in module.ancestors(guard.node)) else None


def _goes_together(project: Project, module: SourceModule, loop: ast.AST, node: ast.AST) -> bool:
    """True where the loop holds what every rank must reach: a backward pass, a collective, a call that comes to one."""
    for call in walk(loop):
        if not isinstance(call, ast.Call) or ranks_in_function(project, module, call) is not Ranks.ALL:
            continue
        if isinstance(node, ast.Continue) and call.lineno < node.lineno:
            continue  # a `continue` skips what stands below it
        if end_of(call.func) == "backward" or collective_at(module, call, project) or reached_by(project, module, call):
            return True
        if trains_inside(project, module, call):
            return True
    return False


def _all_leave(loop: ast.For | ast.While, test: ast.If) -> bool:
    """True where the ranks that are left go out of the loop in the same round, by the same test in its body."""
    others = (s for s in loop.body if isinstance(s, ast.If) and isinstance(s.body[-1], (ast.Break, ast.Return)))
    return any(s is not test and ast.dump(s.test) == ast.dump(test.test) for s in others)


def _backward_below(module: SourceModule, loop: ast.AST, node: ast.stmt) -> bool:
    return any(isinstance(c, ast.Call) and end_of(c.func) == "backward" and c.lineno > node.lineno for c in walk(loop))


def _is_local_number(
    project: Project, module: SourceModule, test: ast.If, loop: ast.For | ast.While
) -> bool:
    """True where the number in a test was not reduced over the ranks: no collective stands in the loop above it."""
    for call in walk(loop):
        if not isinstance(call, ast.Call) or not loop.lineno < call.lineno <= test.lineno:
            continue
        if collective_at(module, call, project) or reached_by(project, module, call):
            return False
        if any(w in end_of(call.func) for w in _SHARES) or _is_gathered_inside(project, module, call):
            return False
    return True


def tests_gathered_loss(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True for `if not isfinite(loss)` in a loop where the model gathers over the ranks before it makes the loss."""
    if not isinstance(node, ast.If) or not asks_number(node.test) or (loop := _loop(module, node)) is None:
        return False
    calls = (c for c in walk(loop) if isinstance(c, ast.Call) and c.lineno <= node.lineno)
    return any(_is_gathered_inside(project, module, c) for c in calls)


def _is_gathered_inside(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True for a call of a model whose `forward` gathers over the ranks: the loss of all features is the same on each."""
    if not isinstance(call.func, (ast.Name, ast.Attribute)) or not project.files_containing(b"gather"):
        return False
    return any(_gathers(site) for site in model_of(project, module, call.func).classes)


def _gathers(site: ClassSite) -> bool:
    """True where `forward` goes on with what all ranks have: `features = all_gather(features)`; it may fill a queue besides."""
    forward = site.methods().get("forward")
    return forward is not None and any(isinstance(n, ast.Assign) and _is_gathered_anew(n) for n in walk(forward))


def _is_gathered_anew(node: ast.Assign) -> bool:
    given = {t.id for target in node.targets for t in walk(target) if isinstance(t, ast.Name)}
    calls = [n for n in walk(node.value) if isinstance(n, ast.Call) and "gather" in end_of(n.func).lower()]
    return any(isinstance(a, ast.Name) and a.id in given for c in calls if end_of(c.func) != "gather" for a in c.args)


_SHARES = ("reduce", "gather", "broadcast", "sync")
_READS = frozenset({"get", "items", "keys", "values", "copy", "state_dict", "index", "count"})


def _asked_on_one_rank(project: Project, module: SourceModule, loop: ast.AST, test: ast.If) -> str:
    """The object that is asked whether to stop, where rank 0 alone tells it anything in this loop."""
    roots = {n.id for n in walk(test.test) if isinstance(n, ast.Name)}
    parts = [n for n in walk(test.test) if isinstance(n, ast.Attribute)]
    for root in sorted(r for r in roots if r not in module.imports and not hasattr(builtins, r)):
        told = [
            n for n in walk(loop)
            if isinstance(n, ast.Call) and dotted(n.func).partition(".")[0] == root and n.lineno < test.lineno and n.args
            and end_of(n.func) not in _READS
        ]  # fmt: skip
        set_here = [
            n for n in walk(loop)
            if isinstance(n, ast.Assign) and n.lineno < test.lineno
            and any(isinstance(t, ast.Name) and t.id == root for t in n.targets)
        ]  # fmt: skip
        touched: list[ast.expr | ast.stmt] = [*told, *set_here]
        fields = frozenset(n.attr for n in parts if isinstance(n.value, ast.Name) and n.value.id == root)
        if touched and all(_is_for_zero(project, module, n, fields) for n in touched):
            between = [
                c for c in walk(loop)
                if isinstance(c, ast.Call) and touched[-1].lineno < c.lineno <= test.lineno
                and (collective_at(module, c, project) or reached_by(project, module, c) or "broadcast" in end_of(c.func))
                and any(isinstance(n, ast.Name) and n.id == root for n in walk(c))
            ]  # fmt: skip
            if not between:
                return f"`{root}`, which rank 0 alone sets in line {touched[-1].lineno}"
    return ""


def _is_for_zero(project: Project, module: SourceModule, node: ast.expr | ast.stmt, fields: frozenset[str]) -> bool:
    """True where rank 0 alone comes, or where the object that is called goes on with it there alone."""
    if ranks_in_function(project, module, node) is Ranks.ZERO:
        return True
    return bool(fields) and isinstance(node, ast.Call) and told_on_one_rank(project, module, node, fields)


# Exceptions


def _waits_for_all(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True for a wait, or a collective of torch or DeepSpeed, of every rank; a context manager's two halves are a protocol."""
    found = collective_at(module, call, project)
    if found is None or found.grouped or not (found.waits_only or found.framework in ("torch", "deepspeed")):
        return False
    function = module.function_of(call)
    if function is not None and any(isinstance(n, ast.Yield) for n in walk(function)):
        return False
    return ranks_in_function(project, module, call) is Ranks.ALL


def _last_words(project: Project, module: SourceModule) -> Iterator[Decision]:
    """The first collective in each `finally`: a rank that raised runs it, the others are still in the body."""
    for attempt in module.nodes(ast.Try):
        if attempt.finalbody and not _waits_in(project, module, attempt.body):
            # who raises early waits in the `finally` for those that come there as well
            left(module, attempt.finalbody[0], "no wait for the other ranks is seen in the body of this `finally`")
            continue
        if any(_ends_at_once(h) for h in attempt.handlers) and left(module, attempt, "a handler ends the process at once"):
            continue
        for statement in attempt.finalbody:
            calls = [n for n in walk(statement) if isinstance(n, ast.Call)]
            found = next(((c, own) for c in calls if (own := _last_wait(project, module, c))), None)
            if found is not None:
                yield Decision(Form.FINALLY, module.statement_of(found[0]), attempt, None, None, found[1])
                break
            left(module, statement, "no call of this `finally` is known to wait for every rank")


def _ends_at_once(handler: ast.ExceptHandler) -> bool:
    """True for a handler that comes to `os._exit`, which runs no `finally`."""
    return any(isinstance(n, ast.Call) and dotted(n.func) == "os._exit" for n in walk(handler))


def _last_wait(project: Project, module: SourceModule, call: ast.Call) -> str:
    """What waits for all: the call itself, or what the function of the project that it calls always comes to; "" for nothing."""
    if _waits_for_all(project, module, call):
        return module.text_of(call.func)
    inside = wait_inside(project, module, call)
    if inside is None or not _waits_for_all(project, *inside) or ranks_in_function(project, module, call) is not Ranks.ALL:
        return ""
    home, wait = inside
    place = f"line {wait.lineno}" if home is module else f"{home.path}:{wait.lineno}"
    return f"{module.text_of(call.func)}(), which comes to {home.text_of(wait.func)} in {place},"


def _waits_in(project: Project, module: SourceModule, body: list[ast.stmt]) -> bool:
    """True where the statements come to a collective, or make calls that nobody here sees the inside of."""
    calls = [n for s in body for n in walk(s) if isinstance(n, ast.Call)]
    if any(collective_at(module, c, project) or reached_by(project, module, c) for c in calls):
        return True
    return any(not stays_here(module, c) and called_function(project, module, c) is None for c in calls)
