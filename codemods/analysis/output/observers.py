"""Which methods of a Lightning callback or module may be left to rank 0 as a whole, and on what assumption.

A method is left to rank 0 where it only makes output. What it keeps in `self` must be read by such methods alone, so the
answer is worked out for the whole class at once: a method falls out, and with it those whose state it reads.
"""

from __future__ import annotations

import ast

from codemods.analysis.class_index import ClassFacts, Role, class_facts
from codemods.analysis.hooks import HF_CALLBACK_HOOKS, LIGHTNING_HOOKS, OBSERVERS
from codemods.analysis.logged.pending_metrics import logged_by_a_callback, mixed_up_in_the_sanity_check
from codemods.analysis.names import dotted
from codemods.analysis.output.effect_kinds import FOLDERS
from codemods.analysis.output.effects import Effect, Effects, Kind, effects_of, effects_of_function, phrases
from codemods.analysis.output.file_readers import reader_on_every_rank, suffixes
from codemods.analysis.output.observer_helpers import is_helper
from codemods.analysis.output.rank_data import rank_local, tells_of_its_own
from codemods.analysis.output.unknown_calls import may_wait
from codemods.analysis.ranks.rank_guards import Ranks, decorated_ranks, ranks_at
from codemods.analysis.ranks.reach import ranks_entering
from codemods.analysis.ranks.uses import calls_of
from codemods.analysis.whole_body import whole_body
from codemods.api.findings import Applicability
from codemods.files.source import FunctionNode, SourceModule
from codemods.runtime.record import field, record
from codemods.store.project import Project

# Evaluation metrics are reduced before these run (measured; reading them under a guard, then a barrier, finishes). Not so
# what a callback logs in the same hook: a read on rank 0 alone, then a collective in the module's own hook, hangs (measured).
REDUCED_BEFORE = frozenset(
    {"on_validation_epoch_end", "on_validation_end", "on_test_epoch_end", "on_test_end", "on_fit_end"}
)  # fmt: skip
GATHER_FIRST = "rank 0 alone would lose the other ranks' part; gather it on every rank, then write"
ROLES = (Role.LIGHTNING_CALLBACK, Role.LIGHTNING_MODULE)


@record(frozen=False)
class Observer:
    """A method that may be left to rank 0. `told`: why it may not, where a person should know."""

    function: FunctionNode
    effects: Effects
    level: Applicability = Applicability.SAFE
    assumes: str = ""
    told: str = ""
    keeps: frozenset[str] = frozenset()
    needs: list[str] = field(default_factory=list)

    @property
    def is_hook(self) -> bool:
        return self.function.name in OBSERVERS


def observers(project: Project, module: SourceModule, node: ast.ClassDef) -> dict[str, Observer]:
    """The methods of a class that may be left to rank 0, by name; empty where the class is none of Lightning's."""
    return project.memo(("observers", module.path, node.lineno), lambda: _observers(project, module, node))


def covered(project: Project, module: SourceModule, effect: Effect) -> bool:
    """True for output that is made in a method which is left to rank 0 as a whole."""
    if effect.path != module.path:
        return False
    for function in module.functions:
        owner = module.parent(function)
        if isinstance(owner, ast.ClassDef) and function.lineno <= effect.line <= (function.end_lineno or 0):
            found = observers(project, module, owner).get(function.name)
            return found is not None and not found.told and found.level is Applicability.SAFE
    return False


def is_taken_as_a_whole(project: Project, module: SourceModule, function: FunctionNode) -> bool:
    """True where the method is judged as a whole: it may be left to rank 0, or why it may not is told of all of it."""
    owner = module.parent(function)
    made = observers(project, module, owner).get(function.name) if isinstance(owner, ast.ClassDef) else None
    return (made is not None and bool(made.told)) or is_left_to_rank_zero(project, module, function)


def is_left_to_rank_zero(
    project: Project, module: SourceModule, function: FunctionNode, seen: frozenset[int] = frozenset()
) -> bool:
    """True where the method may be left to rank 0 as a whole, or every method that calls it."""
    owner = module.parent(function)
    if not isinstance(owner, ast.ClassDef) or id(function) in seen:
        return False
    if transformers_body(project, module, function):
        return True
    found = observers(project, module, owner)
    if function.name in found:
        return not found[function.name].told
    if not found or function.name in LIGHTNING_HOOKS:
        return False
    callers = [s.module.method_of(s.call) for s in calls_of(project, module, function) or ()]
    inside = [c for c in callers if c is not None and c[0] is owner]
    return bool(callers) and len(inside) == len(callers) and all(
        is_left_to_rank_zero(project, module, c[1], seen | {id(function)}) for c in inside
    )


def transformers_body(project: Project, module: SourceModule, function: FunctionNode) -> list[ast.stmt]:
    """The statements of a `TrainerCallback` hook that may go under one guard as a whole; none where they may not."""
    owner = module.parent(function)
    body = plain_body(function)
    if function.name not in HF_CALLBACK_HOOKS or not isinstance(owner, ast.ClassDef) or not body:
        return []
    if not class_facts(project, module, owner).is_a(Role.HF_CALLBACK) or len(function.args.args) < 4:
        return []
    if any(ranks_at(module, s, project=project).some for s in body):
        return []
    if not (module.is_whole(body[0]) and module.is_whole(body[-1])):
        return []
    effects = effects_of(project, module, body)
    if not effects.only_output or any(e.own for e in effects.output):
        return []
    if all(e.kind is Kind.TRACKER for e in effects.output):
        return []
    files = any(e.kind is Kind.FILE for e in effects.output)
    return [] if not files and tells_of_its_own(project, module, function, body) else body


def plain_body(function: FunctionNode) -> list[ast.stmt]:
    """The body without its docstring and without a last `return` that hands back nothing or `control`."""
    body = list(function.body)
    if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        body = body[1:]
    if body and isinstance(body[-1], ast.Return):
        if body[-1].value is None or isinstance(body[-1].value, (ast.Name, ast.Constant)):
            body = body[:-1]
    return body


def _observers(project: Project, module: SourceModule, node: ast.ClassDef) -> dict[str, Observer]:
    facts = class_facts(project, module, node)
    if not any(facts.is_a(role) for role in ROLES):
        return {}
    found: dict[str, Observer] = {}
    for function in node.body:
        if isinstance(function, ast.FunctionDef) and (made := _judge(project, module, facts, function)) is not None:
            found[function.name] = made
    _settle(project, module, node, found)
    return found


def _judge(project: Project, module: SourceModule, facts: ClassFacts, function: FunctionNode) -> Observer | None:
    hook = function.name in OBSERVERS
    if decorated_ranks(module, function, project=project).some or (function.name in LIGHTNING_HOOKS and not hook):
        return None
    if function.name.startswith("__") or not (hook or _is_called_for_nothing(module, facts.lineage[0].node, function)):
        return None
    effects = effects_of_function(project, module, function)
    output = effects.output
    if not output or effects.returns or any(e.own for e in output):
        return None
    if all(e.kind is Kind.TRACKER or _creates_folder(e) for e in output):
        return None
    if not hook and not is_helper(project, module, function, effects):
        return None
    made = Observer(function, effects)
    state = effects.of(Kind.STATE)
    made.keeps = frozenset(e.text for e in state if not e.guarded)
    if any(not _is_own_attribute(e.text) for e in state):
        return None
    rest = effects.besides(Kind.STATE)
    if function.name in REDUCED_BEFORE and logged_by_a_callback(project, function.name) is None:
        if effects.of(Kind.METRICS):
            made.told = mixed_up_in_the_sanity_check(project, module, function)
        rest = tuple(e for e in rest if e.kind is not Kind.METRICS)
    if rest and (any(e.kind is not Kind.UNKNOWN for e in rest) or not _only_beside_output(project, module, function)):
        return None
    if rest and hook and _has_plain_output(project, module, function):
        return None
    if rest:
        made.level = Applicability.UNSAFE
        made.assumes = f"assumes that nothing the other ranks need is done where it {phrases(rest)}"
    if facts.unresolved:
        made.level = Applicability.UNSAFE
        made.assumes = made.assumes or f"assumes that the base class {facts.unresolved[0]} adds nothing to this hook"
    if any(e.kind is Kind.FILE for e in output):
        if not made.told and (own := rank_local(project, module, function, function.body)):
            made.told = f"{own}: {GATHER_FIRST}"
        if made.told:
            return made
        reader = reader_on_every_rank(project, module, function, suffixes(module, function))
        if reader:
            made.level = Applicability.UNSAFE
            made.assumes = made.assumes or f"assumes that the other ranks do not read what it writes: {reader} may"
    elif tells_of_its_own(project, module, function, function.body):
        return None  # no repetition: the lines are judged one by one
    return made if made.told or not any(may_wait(project, e) for e in rest) else None


def _is_called_for_nothing(module: SourceModule, owner: ast.ClassDef, function: FunctionNode) -> bool:
    """False where no method of the class calls it as a statement: a helper of observing hooks is called so, and told cheaply."""
    calls = (c for c in module.calls_named(function.name) if isinstance(module.parent(c), ast.Expr))
    return any((place := module.method_of(c)) is not None and place[0] is owner for c in calls)


def _creates_folder(effect: Effect) -> bool:
    """Folders are wanted on every node, and other ranks may write into them."""
    return effect.kind is Kind.FILE and effect.called in FOLDERS


def _is_own_attribute(text: str) -> bool:
    return text.startswith("self.") and text.count(".") == 1


def _only_beside_output(project: Project, module: SourceModule, function: FunctionNode) -> bool:
    """True where every statement that calls something unknown is there for its output."""
    for statement in whole_body(function):
        done = effects_of(project, module, [statement])
        if done.of(Kind.UNKNOWN) and not done.output:
            return False
    return True


def _has_plain_output(project: Project, module: SourceModule, function: FunctionNode) -> bool:
    """True where a statement of the body only makes output: a test round that needs no assumption."""
    plain = [s for s in whole_body(function) if isinstance(s, (ast.Expr, ast.With, ast.For))]
    return any(effects_of(project, module, [s]).only_output for s in plain)


# The class as a whole


def _settle(project: Project, module: SourceModule, node: ast.ClassDef, found: dict[str, Observer]) -> None:
    """Take out methods whose state somebody else reads, until none is left; tie those together that share state."""
    while True:
        gone = [n for n, o in found.items() if not o.told and not _state_stays_inside(project, module, node, o, found)]
        if not gone:
            break
        for name in gone:
            del found[name]
    for made in found.values():  # a method that sets state may be left to rank 0 only if those that read it are
        for needed in made.needs:
            if needed in found and found[needed].level is not Applicability.SAFE:
                made.level = Applicability.UNSAFE
                made.assumes = made.assumes or f"{found[needed].function.name} reads what it sets, and {found[needed].assumes}"


def _state_stays_inside(
    project: Project, module: SourceModule, node: ast.ClassDef, made: Observer, found: dict[str, Observer]
) -> bool:
    made.needs = []
    for name in made.keeps:
        attribute = name.removeprefix("self.")
        for path in project.files_containing(f".{attribute}".encode()):
            other = project.module(path)
            for read in other.nodes(ast.Attribute) if other else ():
                if other is None or read.attr != attribute or not isinstance(read.ctx, ast.Load):
                    continue
                if not _is_allowed(project, other, node, read, found, made):
                    return False
    return True


def _is_allowed(
    project: Project, module: SourceModule, node: ast.ClassDef, read: ast.Attribute, found: dict[str, Observer], made: Observer
) -> bool:
    """True for a read that only rank 0 makes, or that has nothing to do with this class."""
    place = module.method_of(read)
    if dotted(read.value) == "self" and place is not None and place[0] is not node:
        return not any(s.node is node for s in class_facts(project, module, place[0]).lineage)
    if place is None or place[0] is not node or dotted(read.value) != "self":
        return _is_of_something_else(module, node)
    if ranks_at(module, read, project=project) is Ranks.ZERO:
        return True
    name = place[1].name
    if name == made.function.name:
        return True
    if name in found and not found[name].told:
        made.needs.append(name)
        return True
    if _is_change_only(module, read):
        return name == "__init__"
    if name in LIGHTNING_HOOKS or name.startswith("__"):
        return False
    if ranks_entering(project, module, place[1]) is Ranks.ZERO:
        return True
    callers = {(s.module.method_of(s.call) or (None, None))[1] for s in calls_of(project, module, place[1]) or ()}
    inside = all(c is not None and c.name in found and not found[c.name].told for c in callers)
    if callers and inside:
        made.needs += [c.name for c in callers if c is not None]
        return True
    return False


def _is_of_something_else(module: SourceModule, node: ast.ClassDef) -> bool:
    """True for a file that does not speak of the class, so what it reads under that name belongs to another."""
    return not module.holds(node.name.encode())


def _is_change_only(module: SourceModule, read: ast.Attribute) -> bool:
    up = module.parent(read)
    return isinstance(up, ast.Attribute) and isinstance(module.parent(up), ast.Call)
