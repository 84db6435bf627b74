"""Questions to a person, and debuggers, that every rank of a run comes to."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.call_graph import called_function
from codemods.analysis.class_index import Role, class_facts
from codemods.analysis.distribution import is_test_file, ranks_in_file, ranks_in_importers
from codemods.analysis.guards.entry_points import starts_group
from codemods.analysis.job_files.torch_commands import torch_commands
from codemods.analysis.loading.same_program import whole_program
from codemods.analysis.names import dotted, end_of, last, qualified
from codemods.analysis.ranks.rank_guards import Ranks, ranks_at
from codemods.analysis.ranks.reach import ranks_reaching, to_a_launcher
from codemods.analysis.ranks.run_by_programs import is_run_by_nobody
from codemods.analysis.ranks.spawned import is_spawned
from codemods.analysis.ranks.uses import uses_of
from codemods.analysis.wrapped.forward_methods import methods_of_forward
from codemods.analysis.wrapped.lightning_runs import runs_on_several
from codemods.data.rank_variance import NOT_A_NUMBER
from codemods.files.source import FunctionNode, SourceModule, walk, walk_scope
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

DEPTH = 5
_ASKS = frozenset({"input", "getpass.getpass", "click.confirm", "click.prompt", "click.pause", "typer.confirm", "typer.prompt"})
_STOPS = frozenset({"breakpoint", "pdb.set_trace", "ipdb.set_trace", "pudb.set_trace", "IPython.embed", "code.interact"})
NAMES = frozenset(last(n) for n in _ASKS | _STOPS)
_KNOWS = lazy(r"isatty|interactive|debug|non_?tty", re.I)
# Makes the process one of several: the group, or what joins it.
_JOINS = frozenset({"DistributedDataParallel", "FullyShardedDataParallel", "Accelerator", "Fabric", "PartialState"})


@record
class Question:
    """call: what asks. stops: it is a debugger. why: what shows that several processes come here, and where.

    by_data: a test of what a model works on leads here, so that one rank may come alone.
    """

    call: ast.Call
    stops: bool
    why: str
    place: tuple[str, int]
    by_data: bool = False


def questions(project: Project, module: SourceModule) -> Iterator[Question]:
    """The questions of a file that each rank asks."""
    for call in module.calls_named(*NAMES):
        name = qualified(module, call.func)
        if name not in _ASKS | _STOPS or _is_own(project, module, call) or _is_wanted(module, call):
            continue
        if ranks_reaching(project, module, call) is not Ranks.ALL or (name in _STOPS and _is_switched(module, call)):
            continue
        if (shown := _in_a_rank(project, module, module.function_of(call), ())) is not None:
            yield Question(call, name in _STOPS, *shown)
        elif name in _STOPS and (shown := _in_a_network(project, module, call)) is not None:
            yield Question(call, True, *shown, by_data=True)


def _is_own(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True where the name is a function of the project, or a value."""
    name = dotted(call.func)
    if called_function(project, module, call) is not None:
        return True
    return "." not in name and any(
        n.id == name and isinstance(n.ctx, ast.Store) for n in module.nodes(ast.Name)
    )


def _is_wanted(module: SourceModule, call: ast.Call) -> bool:
    """True under a test for a terminal or for debugging, and where the missing terminal is met: `except EOFError`."""
    below: ast.AST = call
    for up in module.ancestors(call):
        if isinstance(up, (ast.If, ast.IfExp, ast.While)) and _KNOWS.search(module.text_of(up.test)):
            return True
        if isinstance(up, ast.Try) and any(s is below for s in up.body) and up.handlers:
            return True
        if isinstance(up, ast.ExceptHandler):
            return True  # after an error a person looks at that rank
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return _KNOWS.search(module.text_of(up)[:4000]) is not None
        below = up
    return False


def _is_switched(module: SourceModule, call: ast.Call) -> bool:
    """True where a setting leads to a debugger, above it or by an exit further up: who turns that on wants it."""
    below: ast.AST = call
    for up in module.ancestors(call):
        if isinstance(up, ast.If) and below is not up.test and _is_setting(up.test):
            return True
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            tests = (s for s in up.body if isinstance(s, ast.If) and s.lineno < call.lineno)
            exits = (s for s in tests if isinstance(s.body[-1], ast.Return))
            return any(isinstance(s.test, ast.UnaryOp) and _is_setting(s.test.operand) for s in exits)
        below = up
    return False


def _is_setting(test: ast.expr) -> bool:
    return "." in dotted(test) if isinstance(test, ast.Attribute) else isinstance(test, ast.Name)


Shown = tuple[str, tuple[str, int]]


def _in_a_rank(
    project: Project, module: SourceModule, function: FunctionNode | None, above: tuple[int, ...]
) -> Shown | None:
    """What shows that a function runs in one process of several: it, or who calls it, joins the others."""
    if function is None:
        return _joins(project, module, module.tree, ()) or _by_a_command(project, module)
    if id(function) in above or len(above) >= DEPTH:
        return None
    if found := _joins(project, module, function, ()):
        return found
    if is_spawned(project, module, function):
        return f"{function.name}() is started for each process", (module.path, function.lineno)
    if (found := _by_a_trainer(project, module, function)) is not None:
        return found
    uses = uses_of(project, module, function).outside_tests()
    for place in uses.handed_on:
        if to_a_launcher(place):
            return f"{function.name}() is started for each process", (place.module.path, place.node.lineno)
    for site in uses.calls[:12]:
        if is_test_file(site.module.path):
            continue
        outer = site.module.function_of(site.call)
        if outer is None and site.module.class_of(site.call) is not None:
            continue
        if ranks_at(site.module, site.call, project=project) is not Ranks.ALL:
            continue  # one of them asks
        if found := _in_a_rank(project, site.module, outer, (*above, id(function))):
            return found
    return None


def _by_a_command(project: Project, module: SourceModule) -> Shown | None:
    """The command that starts the script as several processes."""
    commands = (c for c in torch_commands(project) if c.several and c.script == module.path)
    return next(((f"{c.launcher} starts several processes of this script", (c.path, c.line)) for c in commands), None)


def _by_a_trainer(project: Project, module: SourceModule, function: FunctionNode) -> Shown | None:
    """The Trainer of several devices that calls a hook of Lightning on each rank."""
    owner = module.parent(function)
    if not isinstance(owner, ast.ClassDef) or not function.name.startswith(("on_", "training_", "validation_", "test_")):
        return None
    facts = class_facts(project, module, owner)
    several = runs_on_several(project) if facts.is_a(Role.LIGHTNING_MODULE) or facts.is_a(Role.LIGHTNING_CALLBACK) else None
    return (f"the Trainer calls {function.name}() on each rank", (several[0].path, several[1].lineno)) if several else None


def _in_a_network(project: Project, module: SourceModule, call: ast.Call) -> Shown | None:
    """What shows that several processes run the `forward` or the step in which a test of its numbers leads to a debugger.

    So in a method that `forward` comes to.
    """
    function, owner = module.function_of(call), module.class_of(call)
    if function is None or owner is None or not _asks_for_numbers(module, call, function):
        return None
    facts = class_facts(project, module, owner)
    network = facts.is_a(Role.NN_MODULE)
    if not network and not facts.is_a(Role.LIGHTNING_MODULE):
        return None
    if function.name not in _OF_NETWORKS and not (network and _is_of_forward(project, module, owner, function)):
        return None
    evidence = ranks_in_file(project, module) or ranks_in_importers(project, module)
    shown = (evidence.text, (evidence.path, evidence.line)) if evidence is not None else _of_a_started_program(project, module)
    return None if shown is None or is_run_by_nobody(project, module, call) else shown


def _of_a_started_program(project: Project, module: SourceModule) -> Shown | None:
    """The command that starts a program of this file as several processes, which wraps a network for them."""
    for command in torch_commands(project):
        program = whole_program(project, command.script) if command.several else frozenset()
        if module.path in program and any(b"DistributedDataParallel(" in (project.read(path) or b"") for path in program):
            return f"{command.launcher} starts several processes of a program with this file", (command.path, command.line)
    return None


def _is_of_forward(project: Project, module: SourceModule, owner: ast.ClassDef, function: FunctionNode) -> bool:
    """True for a method of the network that its `forward` comes to."""
    return any(method is function for method in methods_of_forward(project, module, owner))


_OF_NETWORKS = frozenset({"forward", "training_step", "validation_step", "test_step", "predict_step"})
_NUMBERS = NOT_A_NUMBER | {"any", "all", "max", "min", "sum", "mean", "item"}


def _asks_for_numbers(module: SourceModule, call: ast.Call, function: FunctionNode) -> bool:
    """True under a test that calls for numbers of a tensor: `if torch.isnan(h).any():`."""
    for up in module.ancestors(call):
        if up is function:
            return False
        if isinstance(up, ast.If):
            called = (n.func for n in walk(up.test) if isinstance(n, ast.Call))
            return any(isinstance(f, ast.Attribute) and f.attr in _NUMBERS for f in called)
    return False


def _joins(project: Project, module: SourceModule, body: ast.AST, above: tuple[tuple[str, int, int], ...]) -> Shown | None:
    """Where code joins the other processes: itself, or through what it calls; what it starts is another process."""
    for node in _calls(body):
        name = last(qualified(module, node.func)) or end_of(node.func)
        if starts_group(module, node) or (name in _JOINS and name[:1].isupper() and _is_frameworks(module, node)):
            return f"{module.text_of(node.func)}() makes it one process of several", (module.path, node.lineno)
    for node in _calls(body):
        site = called_function(project, module, node)
        if site is not None and site.key not in above and len(above) < 3:
            if found := _joins(project, site.module, site.node, (*above, site.key)):
                return found
    return None


def _calls(body: ast.AST) -> Iterator[ast.Call]:
    return (n for n in (walk_scope(body) if not isinstance(body, ast.Module) else _top(body)) if isinstance(n, ast.Call))


def _top(body: ast.Module) -> Iterator[ast.AST]:
    for statement in body.body:
        if not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield from walk(statement)


def _is_frameworks(module: SourceModule, call: ast.Call) -> bool:
    name = qualified(module, call.func)
    return name.partition(".")[0] in ("torch", "accelerate", "lightning", "lightning_fabric", "pytorch_lightning")

