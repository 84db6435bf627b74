"""The barrier to write at a place: in the spelling of the framework that is at hand there."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from codemods.analysis.bindings import bindings_of
from codemods.analysis.class_index import Role, class_facts
from codemods.analysis.frameworks import lightning_pin
from codemods.analysis.hooks import LIGHTNING_HOOKS
from codemods.analysis.names import dotted, family, last
from codemods.analysis.ranks.collectives import trainer_of
from codemods.findings import Applicability
from codemods.imports import in_scope
from codemods.project import Project
from codemods.source import FunctionNode, SourceModule, walk

SAFE, UNSAFE, DISPLAY = Applicability.SAFE, Applicability.UNSAFE, Applicability.DISPLAY
_ROLES = (Role.LIGHTNING_MODULE, Role.LIGHTNING_CALLBACK, Role.LIGHTNING_DATA_MODULE)
# Hooks that run before the processes are together, or on one of them.
_TOO_EARLY = frozenset({"prepare_data", "configure_callbacks", "state_dict", "load_state_dict", "__init__"})


@dataclass(frozen=True, slots=True)
class Barrier:
    """The statement, how far it may be trusted, and why no further. No code: there is no spelling."""

    code: str
    level: Applicability
    reason: str = ""


def barrier_for(project: Project, module: SourceModule, guard: ast.If, function: FunctionNode | None) -> Barrier:
    """The barrier to put behind `guard`."""
    if holder := _holder(module, guard, "accelerator"):
        return Barrier(f"{holder}.wait_for_everyone()", SAFE)
    if holder := _holder(module, guard, "fabric"):
        return Barrier(f"{holder}.barrier()", SAFE)
    if function is not None and (trainer := _hook_trainer(project, module, guard, function)):
        return _strategy(project, module, trainer)
    if holder := _holder(module, guard, "trainer"):
        return _of_script(project, module, guard, function, holder)
    if name := in_scope(module, lambda dotted_name: dotted_name == "torch.distributed"):
        return _of_torch(module, guard, name)
    return Barrier("", DISPLAY, "no spelling of a barrier is at hand here")


def _holder(module: SourceModule, guard: ast.If, wanted: str) -> str:
    """`self.accelerator` of a guard on `self.accelerator.is_main_process`, also through a name the test was bound to."""
    seen: list[ast.expr] = [guard.test]
    for name in [n for n in walk(guard.test) if isinstance(n, ast.Name)]:
        seen += [b.value for b in bindings_of(module, name) if b.value is not None and not b.part]
    for expression in seen:
        for node in walk(expression):
            if isinstance(node, ast.Attribute) and last(dotted(node.value)).lstrip("_") == wanted:
                return dotted(node.value)
    return ""


def _hook_trainer(project: Project, module: SourceModule, guard: ast.If, function: FunctionNode) -> str:
    """How a hook of Lightning spells its trainer, "" outside of hooks."""
    place = module.method_of(guard)
    if place is None or place[1] is not function or function.name in _TOO_EARLY or function.name not in LIGHTNING_HOOKS:
        return ""
    facts = class_facts(project, module, place[0])
    if not any(facts.is_a(role) for role in _ROLES):
        return ""
    if any(a.arg == "trainer" for a in function.args.args):
        return "trainer"
    return "self.trainer" if not facts.is_a(Role.LIGHTNING_CALLBACK) else ""


def _strategy(project: Project, module: SourceModule, trainer: str) -> Barrier:
    code = f"{trainer}.strategy.barrier()"
    pin = lightning_pin(project, near=module.path)
    shown = b".strategy." in module.data or any(name.partition(".")[0] == "lightning" for name in module.imported_modules)
    if pin is not None and pin.surely_below((1, 6)):
        return Barrier("", DISPLAY, "before Lightning 1.6 a barrier is trainer.training_type_plugin.barrier()")
    if shown or (pin is not None and pin.surely_at_least((1, 6))):
        return Barrier(code, SAFE)
    return Barrier(code, UNSAFE, "assumes Lightning 1.6 or newer, which has trainer.strategy; the project does not pin it")


def _of_script(project: Project, module: SourceModule, guard: ast.If, function: FunctionNode | None, holder: str) -> Barrier:
    """Outside of hooks: behind `fit` the processes are together, before it they are not."""
    scope: ast.AST = function or module.tree
    runs = [
        n for n in walk(scope)
        if isinstance(n, ast.Call) and dotted(n.func) in (f"{holder}.fit", f"{holder}.validate", f"{holder}.test")
    ]  # fmt: skip
    lightning = any(family(name) == "lightning" for name in module.imported_modules)
    node = next((n for n in walk(guard.test) if isinstance(n, ast.Attribute) and dotted(n.value) == holder), None)
    made = trainer_of(module, node.value, project) if node is not None else ""
    if made == "transformers" or (not made and not lightning):
        assumed = "assumes a trainer of transformers with an accelerator"
        return Barrier(f"{holder}.accelerator.wait_for_everyone()", UNSAFE, assumed)
    if any(run.lineno < guard.lineno for run in runs):
        return _strategy(project, module, holder)
    return Barrier("", DISPLAY, "whether the trainer runs already is not shown: before fit() its barrier is silently nothing")


def _of_torch(module: SourceModule, guard: ast.If, name: str) -> Barrier:
    text = module.text_of(guard.test)
    if f"{name}.get_rank()" in text and "is_initialized" not in text:
        return Barrier(f"{name}.barrier()", UNSAFE, "assumes that the process group exists here, as the guard does")
    unit = module.lines[guard.body[0].lineno - 1][: guard.body[0].col_offset].removeprefix(
        module.lines[guard.lineno - 1][: guard.col_offset]
    )
    inner = unit if unit and not unit.strip() else "    "
    code = f"if {name}.is_initialized():\n{inner}{name}.barrier()"
    return Barrier(code, UNSAFE, "assumes that every rank comes here once the group exists")
