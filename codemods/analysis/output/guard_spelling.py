"""How the test for rank 0 is written at a place: the one the function uses already, else what its framework offers there."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import lru_cache

from codemods.analysis.class_index import ClassFacts, Role, class_facts, external_role
from codemods.analysis.functions import find_function
from codemods.analysis.hooks import HF_CALLBACK_HOOKS, LIGHTNING_HOOKS, OBSERVERS
from codemods.analysis.names import dotted, qualified
from codemods.analysis.output.natures import values_of
from codemods.analysis.ranks.rank_guards import Ranks, ranks_of_test, speaks_of_ranks
from codemods.findings import NeedImport
from codemods.imports import plan_rank_zero_only
from codemods.project import Project
from codemods.source import FunctionNode, SourceModule

_RANK_NAMES = frozenset({"rank", "global_rank", "world_rank"})
# A rank of -1 is how a run without a process group is written: `rank == 0` would silence it.
_MINUS_ONE = re.compile(r"rank\W{1,4}(in|not in|==|!=|>|>=|=)?\W{0,4}-1")
_TRAINERS = frozenset({"lightning.pytorch.Trainer", "pytorch_lightning.Trainer", "lightning.Trainer"})


@dataclass(frozen=True, slots=True)
class Spelling:
    """The text of the test, and the imports it takes."""

    test: str
    edits: tuple[NeedImport, ...] = ()


def guard_for(project: Project, module: SourceModule, statement: ast.stmt) -> Spelling | None:
    """The test that lets rank 0 alone into `statement`, with one process and with many; None where none is sure to work."""
    function = module.function_of(statement)
    if function is None:
        return _of_script(project, module, statement, None)
    owner = module.parent(function)
    if isinstance(owner, ast.ClassDef):
        if function.name.startswith("__"):
            return None
        facts = class_facts(project, module, owner)
        if (found := _in_class(module, facts, function)) is not None and _is_bound_to(function, found.test):
            return found
    if reused := _used_already(project, module, function, statement):
        return reused
    return _of_script(project, module, statement, function)


def has_guard(project: Project, module: SourceModule, function: FunctionNode) -> bool:
    """True where some place of the function has a test: no place knows more names than its last statement."""
    key = ("has guard", module.path, function.lineno, function.name)
    return project.memo(key, lambda: guard_for(project, module, _last_statement(function)) is not None)


def _last_statement(function: FunctionNode) -> ast.stmt:
    """The statement that begins last, not counting what is inside functions and classes."""
    found: ast.stmt = function.body[0]
    stack: list[ast.AST] = list(reversed(function.body))
    while stack:
        node = stack.pop()
        if isinstance(node, ast.stmt) and node.lineno > found.lineno:
            found = node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            for name in ("cases", "finalbody", "orelse", "handlers", "body"):
                block = getattr(node, name, None)
                stack += reversed(block) if isinstance(block, list) else ()
    return found


def _is_bound_to(function: FunctionNode, test: str) -> bool:
    """True unless the test speaks of `self` in a method that has none."""
    return not test.startswith("self.") or (bool(function.args.args) and function.args.args[0].arg == "self")


def _in_class(module: SourceModule, facts: ClassFacts, function: FunctionNode) -> Spelling | None:
    arguments = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
    if facts.unresolved:
        return None
    if facts.is_a(Role.LIGHTNING_CALLBACK):
        if function.name in LIGHTNING_HOOKS and len(arguments) > 1:
            return Spelling(f"{arguments[1]}.is_global_zero")
        return Spelling("trainer.is_global_zero") if "trainer" in arguments else None
    if facts.is_a(Role.LIGHTNING_MODULE):
        attached = function.name in OBSERVERS
        return Spelling("self.trainer.is_global_zero" if attached else "self.global_rank == 0")
    if facts.is_a(Role.HF_CALLBACK):
        if function.name in HF_CALLBACK_HOOKS and len(arguments) > 3:
            return Spelling(f"{arguments[2]}.is_world_process_zero")
        return Spelling("state.is_world_process_zero") if "state" in arguments else None
    if facts.is_a(Role.HF_TRAINER):
        return Spelling("self.is_world_process_zero()")
    if facts.is_a(Role.LIGHTNING_DATA_MODULE):  # its trainer is None outside a run; the rank itself is known from the import on
        planned = plan_rank_zero_only(module)
        return Spelling(f"{planned.name}.rank == 0", planned.edits) if planned else None
    return None


def _used_already(
    project: Project, module: SourceModule, function: FunctionNode, statement: ast.stmt
) -> Spelling | None:
    """A plain test for rank 0 that the function makes above the place, of names that are known there."""
    if not speaks_of_ranks(module, function):
        return None
    for node in _tests_of_zero(module).get(function, ()):
        test = node.test
        if node.lineno >= statement.lineno:
            continue
        roots = {n.id for n in ast.walk(test) if isinstance(n, ast.Name)}
        if roots and all(_is_known(project, module, function, r, statement) for r in roots) and _is_sure(module, test):
            return Spelling(module.text_of(test))
    return None


@lru_cache(maxsize=64)
def _tests_of_zero(module: SourceModule) -> dict[FunctionNode | None, list[ast.If]]:
    """The plain tests for rank 0 of a file by the function they stand in."""
    found: dict[FunctionNode | None, list[ast.If]] = {}
    for node in module.nodes(ast.If):
        if not isinstance(node.test, (ast.BoolOp, ast.UnaryOp)) and ranks_of_test(module, node.test) is Ranks.ZERO:
            found.setdefault(module.function_of(node), []).append(node)
    return found


def _is_known(
    project: Project, module: SourceModule, function: FunctionNode, name: str, statement: ast.stmt
) -> bool:
    if _is_argument(function, name) or name in module.imports or _bound_above(module, function, name, statement):
        return True
    return find_function(project, module, ast.Name(name, ast.Load()), statement) is not None


def _is_sure(module: SourceModule, test: ast.expr) -> bool:
    """False for a test that needs a process group: what calls `dist.get_rank()` may stand behind `is_initialized()`.

    And for one that never holds: a number beside the text of an environment variable.
    """
    for node in ast.walk(test):
        if isinstance(node, ast.Compare) and any(_is_text(module, side) for side in (node.left, *node.comparators)):
            if any(isinstance(side, ast.Constant) and isinstance(side.value, int) for side in node.comparators):
                return False
        if isinstance(node, ast.Call) and node.args:
            return False
        if isinstance(node, ast.Call) and qualified(module, node.func).startswith("torch."):
            return False
    return True


def _is_text(module: SourceModule, node: ast.expr, depth: int = 0) -> bool:
    """True for what may be the text of an environment variable: `os.environ["RANK"]` without `int(…)`."""
    if isinstance(node, ast.Subscript):
        return dotted(node.value).endswith("environ")
    if isinstance(node, ast.Call):
        return dotted(node.func).endswith(("environ.get", "getenv"))
    if isinstance(node, ast.BoolOp):
        return any(_is_text(module, value, depth) for value in node.values)
    if isinstance(node, (ast.Name, ast.Attribute)) and depth < 3:
        return any(_is_text(module, value, depth + 1) for value in values_of(module, node))
    return False


def _of_script(
    project: Project, module: SourceModule, statement: ast.stmt, function: FunctionNode | None
) -> Spelling | None:
    """By an accelerator, a Lightning or transformers Trainer, or a name of the rank that is bound above the place."""
    for name, value in _names_above(module, function, statement):
        made = qualified(module, value.func) if isinstance(value, ast.Call) else ""
        if made == "accelerate.Accelerator":
            return Spelling(f"{name}.is_main_process")
        if made in _TRAINERS:
            return Spelling(f"{name}.is_global_zero")
        if made and external_role(made) is Role.HF_TRAINER:
            return Spelling(f"{name}.is_world_process_zero()")
        if name in _RANK_NAMES and _is_global_rank(module, value):
            return Spelling(f"{name} == 0")
    if function is None:
        return None
    for argument in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs):
        written = ast.unparse(argument.annotation) if argument.annotation else ""
        if argument.arg == "accelerator" and ("accelerate" in module.imports or written.endswith("Accelerator")):
            return Spelling("accelerator.is_main_process")
        if argument.arg in _RANK_NAMES and _has_process_group(module) and not _MINUS_ONE.search(module.text):
            return Spelling(f"{argument.arg} == 0")
    return _by_attribute(module, function)


def _has_process_group(module: SourceModule) -> bool:
    return "torch.distributed" in module.text


def _by_attribute(module: SourceModule, function: FunctionNode) -> Spelling | None:
    if not isinstance(module.parent(function), ast.ClassDef) or not function.args.args:
        return None
    values = _own_accelerators(module).get(module.class_of(function), ()) if b"Accelerator" in module.data else ()
    if values and all(isinstance(v, ast.Call) and qualified(module, v.func) == "accelerate.Accelerator" for v in values):
        return Spelling("self.accelerator.is_main_process")
    return None


@lru_cache(maxsize=64)
def _own_accelerators(module: SourceModule) -> dict[ast.ClassDef | None, list[ast.expr]]:
    """The values that `self.accelerator` is given, by the class."""
    found: dict[ast.ClassDef | None, list[ast.expr]] = {}
    for assign in module.nodes(ast.Assign):
        if any(isinstance(t, ast.Attribute) and dotted(t) == "self.accelerator" for t in assign.targets):
            found.setdefault(module.class_of(assign), []).append(assign.value)
    return found


def _names_above(
    module: SourceModule, function: FunctionNode | None, statement: ast.stmt
) -> list[tuple[str, ast.expr]]:
    """Names bound once, in the body of the function itself (under no test), above the statement."""
    body = function.body if function is not None else module.tree.body
    out: list[tuple[str, ast.expr]] = []
    for line in body:
        if line.lineno >= statement.lineno:
            break
        if isinstance(line, ast.Assign) and len(line.targets) == 1 and isinstance(line.targets[0], ast.Name):
            name = line.targets[0]
            if len(values_of(module, name)) == 1:
                out.append((name.id, line.value))
    return out


def _is_global_rank(module: SourceModule, value: ast.expr) -> bool:
    text = module.text_of(value)
    if _is_text(module, value):
        return False
    if isinstance(value, ast.Call) and qualified(module, value.func) == "torch.distributed.get_rank":
        return True
    return "RANK" in text and "LOCAL" not in text and "-1" not in text and "environ" in text and isinstance(value, ast.Call)


def _is_argument(function: FunctionNode, name: str) -> bool:
    a = function.args
    return any(arg.arg == name for arg in (*a.posonlyargs, *a.args, *a.kwonlyargs))


def _bound_above(module: SourceModule, function: FunctionNode, name: str, statement: ast.stmt) -> bool:
    return any(n == name for n, _ in _names_above(module, function, statement))
