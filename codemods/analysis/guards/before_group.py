"""Is there no process group yet at a place? Its start, or the `fit` of Lightning that starts it, stands further down.

`dist.is_initialized()` is False there on every rank: a test that asks it first is true on all of them, and a barrier under it is
nothing. So it goes for what a script builds before `trainer.fit`, whatever started the processes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.call_graph import FunctionSite, called_function
from codemods.analysis.class_index import Role, class_facts, external_role, find_class
from codemods.analysis.distribution import is_test_file
from codemods.analysis.files.own_paths import callers_of, leads_to
from codemods.analysis.guards.barrier_spelling import STARTS
from codemods.analysis.guards.entry_points import starts_group
from codemods.analysis.guards.imported_again import imports_again
from codemods.analysis.names import dotted, family, last, qualified
from codemods.analysis.ranks.collectives import trainer_of
from codemods.analysis.ranks.leaving import leaves
from codemods.analysis.ranks.object_class import answers_of_its_own, class_of_object
from codemods.analysis.ranks.reach import called_by_framework
from codemods.files.source import FunctionNode, SourceModule, line_of, walk_scope
from codemods.store.project import Project

_CLIMBS = 4
_STEPS_DOWN = 3
_STARTED_BY = ("init_process_group", "Accelerator")
_PLAIN = ("ModelConfig", "PPOConfig")  # of trl: fields alone, in its early releases at least
_PARSES = ("parse_args_into_dataclasses", "parse_dict", "parse_json_file", "parse_yaml_file")  # of transformers' parser
_STARTING_WORDS = (b"init_process_group", b"TrainingArguments")
RUNS = ("fit", "validate", "test", "predict")


def is_of_group(test: str) -> bool:
    """True for the text of a test that asks torch.distributed."""
    return "is_initialized()" in test or "get_rank()" in test


def group_comes_later(project: Project, module: SourceModule, node: ast.AST) -> str:
    """What starts the group below the place, or below a call that leads to it, with where it stands; "" where none is seen."""
    return _later(project, module, node, frozenset())


def ends_before_group(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True in a branch that returns or ends the program above the start of the group: a task of its own, for one process.

    `if args.task == "convert": convert(args); return`, with `init_distributed_mode(args)` behind it.
    """
    starts = [call.lineno for call, _ in _starting(project, module, module.function_of(node))]
    below = node
    for up in module.ancestors(node) if starts else ():
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        if isinstance(up, ast.If) and below is not up.test:
            block = up.body if any(s is below for s in up.body) else up.orelse
            if leaves(block) and min(starts) > (block[-1].end_lineno or block[-1].lineno):
                return True
        below = up
    return False


def _later(project: Project, module: SourceModule, node: ast.AST, seen: frozenset[int]) -> str:
    function = module.function_of(node)
    below = ""
    for call, what in _starting(project, module, function):
        if call.lineno < line_of(node):
            return ""
        if call.lineno > line_of(node) and not below:
            below = f"{what} starts it ({module.path}:{call.lineno})"
    if below:
        return below
    if function is None and (again := imports_again(module, node)) is not None:
        return f"the function that `spawn` is handed starts it ({again.path}:{again.line})"
    if function is None or id(function) in seen or len(seen) >= _CLIMBS:
        return ""
    if function.name != "__init__" and called_by_framework(project, module, function) is not None:
        return ""
    for site in callers_of(project, module, function):
        if is_test_file(site.module.path) or not leads_to(project, site, function):
            continue
        if found := _later(project, site.module, site.call, seen | {id(function)}):
            return found
    return ""


def _starting(project: Project, module: SourceModule, function: FunctionNode | None) -> Iterator[tuple[ast.Call, str]]:
    """The calls of a function, in the order of their lines, after which there is a group."""
    key = ("starts groups", module.path, getattr(function, "lineno", 0))
    yield from project.memo(key, lambda: tuple(_find_starting(project, module, function)))


def _find_starting(project: Project, module: SourceModule, function: FunctionNode | None) -> Iterator[tuple[ast.Call, str]]:
    scope = function if function is not None else module.tree
    calls = [n for n in walk_scope(scope) if isinstance(n, ast.Call)]
    for call in sorted(calls, key=lambda c: (c.lineno, c.col_offset)):
        if what := starts_at(project, module, call):
            yield call, what


def starts_at(project: Project, module: SourceModule, call: ast.Call) -> str:
    """What the call is named by if there is a group after it, whatever tests stand round the start; "" for any other call."""
    end = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if end in STARTS or starts_group(module, call) or makes_training_arguments(project, module, call):
        return f"{end}()"
    if end in RUNS and isinstance(call.func, ast.Attribute) and any(family(n) == "lightning" for n in module.imported_modules):
        return f"{module.text_of(call.func)}()" if trainer_of(module, call.func.value, project) == "lightning" else ""
    site = (called_function(project, module, call) or _of_object(project, module, call)) if end else None
    return f"{end}()" if site is not None and starts_inside(project, site, _STEPS_DOWN) else ""


def _of_object(project: Project, module: SourceModule, call: ast.Call) -> FunctionSite | None:
    """The method of `strategy.setup()`, where `strategy` is made above from one class of the project."""
    func = call.func
    if not isinstance(func, ast.Attribute) or not isinstance(func.value, ast.Name) or func.value.id in module.imports:
        return None
    if func.value.id in ("self", "cls") or not project.files_containing(b"init_process_group"):
        return None
    made = class_of_object(project, module, func.value)
    if made is None or not answers_of_its_own(project, made, func.attr):
        return None
    method = class_facts(project, made.module, made.node).method(func.attr)
    return FunctionSite(method[0].module, method[1]) if method is not None else None


def makes_training_arguments(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True where transformers makes its training arguments: they look for their device then, and start the group for that."""
    end = last(dotted(call.func))
    if end in _PARSES:
        return b"TrainingArguments" in module.data and module.holds(b"HfArgumentParser")
    if not end.endswith(("Arguments", "Args", "Config")) or end in _PLAIN:
        return False
    if external_role(qualified(module, call.func)) is Role.HF_ARGUMENTS:
        return True
    made = find_class(project, module, dotted(call.func))
    return made is not None and class_facts(project, made.module, made.node).is_a(Role.HF_ARGUMENTS)


def starts_inside(project: Project, site: FunctionSite, steps: int = _STEPS_DOWN) -> bool:
    """True for a function that starts the group, itself or by those that it calls, whatever tests stand round it."""
    key = ("starts inside", site.module.path, site.node.lineno, steps)
    return project.keep(key, lambda: _finds_start(project, site, steps))


def _finds_start(project: Project, site: FunctionSite, steps: int) -> bool:
    module, function = site.module, site.node
    if any(module.function_of(c) is function for c in module.calls_named(*_STARTED_BY)):
        return True
    calls = [n for n in walk_scope(function) if isinstance(n, ast.Call)]
    if any(makes_training_arguments(project, module, c) for c in calls):
        return True
    if not steps or not any(project.files_containing(word) for word in _STARTING_WORDS):
        return False
    called = (called_function(project, module, c) for c in calls)
    return any(s is not None and s.node is not function and starts_inside(project, s, steps - 1) for s in called)
