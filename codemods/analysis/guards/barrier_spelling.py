"""The barrier to write at a place: in the spelling of the framework that is at hand there."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import Binding, bindings_in, bindings_of
from codemods.analysis.class_index import Role, class_facts
from codemods.analysis.frameworks import lightning_pin
from codemods.analysis.hooks import LIGHTNING_HOOKS
from codemods.analysis.names import dotted, family, is_parameter, last, qualified
from codemods.analysis.ranks.collectives import trainer_of
from codemods.api.findings import Applicability
from codemods.files.source import FunctionNode, SourceModule, line_of, walk
from codemods.rewriting.imports import in_scope
from codemods.runtime.record import record
from codemods.store.project import Project

SAFE, UNSAFE, DISPLAY = Applicability.SAFE, Applicability.UNSAFE, Applicability.DISPLAY
_ROLES = (Role.LIGHTNING_MODULE, Role.LIGHTNING_CALLBACK, Role.LIGHTNING_DATA_MODULE)
# Hooks that run before the processes are together, or on one of them.
_TOO_EARLY = frozenset({"prepare_data", "configure_callbacks", "state_dict", "load_state_dict", "__init__"})


@record
class Barrier:
    """The statement, how far it may be trusted, and why no further. No code: there is no spelling."""

    code: str
    level: Applicability
    reason: str = ""


def barrier_for(project: Project, module: SourceModule, anchor: ast.stmt, function: FunctionNode | None) -> Barrier:
    """The barrier to put behind the statement `anchor`: a guard, or a call."""
    asked: ast.AST = anchor.test if isinstance(anchor, ast.If) else anchor
    if holder := _holder(module, asked, "accelerator"):
        return Barrier(f"{holder}.wait_for_everyone()", SAFE)
    if holder := _holder(module, asked, "fabric"):
        return Barrier(f"{holder}.barrier()", SAFE)
    if function is not None and (trainer := _hook_trainer(project, module, anchor, function)):
        return _strategy(project, module, trainer)
    if holder := _holder(module, asked, "trainer"):
        return _of_script(project, module, asked, anchor, function, holder)
    if holder := _at_hand(module, anchor, function, "accelerator", "wait_for_everyone"):
        return Barrier(f"{holder}.wait_for_everyone()", SAFE)
    if holder := _at_hand(module, anchor, function, "fabric", "barrier"):
        return Barrier(f"{holder}.barrier()", SAFE)
    if (name := in_scope(module, lambda dotted_name: dotted_name == "torch.distributed")) and not _hidden(module, anchor, name):
        return _of_torch(module, asked, anchor, function, name)
    if (name := in_scope(module, lambda dotted_name: dotted_name == "torch")) and not _hidden(module, anchor, name):
        return _of_torch(module, asked, anchor, function, f"{name}.distributed")
    return Barrier("", DISPLAY, "no spelling of a barrier is at hand here")


def _hidden(module: SourceModule, anchor: ast.stmt, name: str) -> bool:
    """True where a parameter of the function bears the name of the import."""
    return is_parameter(module, name.partition(".")[0], anchor)


def _holder(module: SourceModule, asked: ast.AST, wanted: str) -> str:
    """`self.accelerator` of a guard on `self.accelerator.is_main_process`, also through a name the test was bound to."""
    seen: list[ast.AST] = [asked]
    for name in [n for n in walk(asked) if isinstance(n, ast.Name)]:
        seen += [b.value for b in bindings_of(module, name) if b.value is not None and not b.part]
    for expression in seen:
        for node in walk(expression):
            if isinstance(node, ast.Attribute) and last(dotted(node.value)).lstrip("_") == wanted:
                return dotted(node.value)
    return ""


def _at_hand(module: SourceModule, anchor: ast.stmt, function: FunctionNode | None, wanted: str, method: str) -> str:
    """An object of that name which the function is given, has bound above the anchor, or asks for the same kind of thing."""
    if function is None or is_parameter(module, wanted, anchor):
        above = [b for b in bindings_in(module, function, wanted) if b.parameter or line_of(b.node) < line_of(anchor)]
        return wanted if (above and function is not None) or _made_above(module, above) else ""
    if _made_above(module, [b for b in bindings_in(module, function, wanted) if line_of(b.node) < line_of(anchor)]):
        return wanted
    for node in walk(function):
        if isinstance(node, ast.Attribute) and node.attr in (method, "is_main_process", "is_global_zero", "print", "device"):
            if dotted(node.value) == f"self.{wanted}":
                return f"self.{wanted}"
    return ""


def _made_above(module: SourceModule, bound: list[Binding]) -> bool:
    """True where one of the bindings makes an Accelerator or a Fabric; the module's own name is one as well."""
    return any(
        isinstance(b.value, ast.Call) and last(qualified(module, b.value.func)) in ("Accelerator", "Fabric") for b in bound
    )


def _hook_trainer(project: Project, module: SourceModule, anchor: ast.stmt, function: FunctionNode) -> str:
    """How a hook of Lightning spells its trainer, "" outside of hooks."""
    place = module.method_of(anchor)
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
    shown = module.holds(b".strategy.") or any(name.partition(".")[0] == "lightning" for name in module.imported_modules)
    if pin is not None and pin.surely_below((1, 6)):
        return Barrier("", DISPLAY, "before Lightning 1.6 a barrier is trainer.training_type_plugin.barrier()")
    if shown or (pin is not None and pin.surely_at_least((1, 6))):
        return Barrier(code, SAFE)
    return Barrier(code, UNSAFE, "assumes Lightning 1.6 or newer, which has trainer.strategy; the project does not pin it")


def _of_script(
    project: Project, module: SourceModule, asked: ast.AST, anchor: ast.stmt, function: FunctionNode | None, holder: str
) -> Barrier:
    """Outside of hooks: behind `fit` the processes are together, before it they are not."""
    scope: ast.AST = function or module.tree
    runs = [
        n for n in walk(scope)
        if isinstance(n, ast.Call) and dotted(n.func) in (f"{holder}.fit", f"{holder}.validate", f"{holder}.test")
    ]  # fmt: skip
    lightning = any(family(name) == "lightning" for name in module.imported_modules)
    node = next((n for n in walk(asked) if isinstance(n, ast.Attribute) and dotted(n.value) == holder), None)
    made = trainer_of(module, node.value, project) if node is not None else ""
    if made == "transformers" or (not made and not lightning):
        assumed = "assumes a trainer of transformers with an accelerator"
        return Barrier(f"{holder}.accelerator.wait_for_everyone()", UNSAFE, assumed)
    if any(run.lineno < anchor.lineno for run in runs):
        return _strategy(project, module, holder)
    return Barrier("", DISPLAY, "whether the trainer runs already is not shown: before fit() its barrier is silently nothing")


def _of_torch(module: SourceModule, asked: ast.AST, anchor: ast.stmt, function: FunctionNode | None, name: str) -> Barrier:
    if late := _group_starts_below(module, anchor, function):
        return Barrier("", DISPLAY, f"the process group starts further down (line {late}): a barrier here would wait for nobody")
    text = module.text_of(asked)
    if f"{name}.get_rank()" in text and "is_initialized" not in text:
        return Barrier(f"{name}.barrier()", UNSAFE, "assumes that the process group exists here, as the guard does")
    inner = _indent(module, anchor)
    code = f"if {name}.is_initialized():\n{inner}{name}.barrier()"
    return Barrier(code, UNSAFE, "assumes that every rank comes here once the group exists")


STARTS = frozenset(
    {"init_process_group", "init_distributed", "init_distributed_mode", "init_dist", "setup_distributed", "init_ddp", "setup_ddp",
     "Accelerator", "Fabric", "initialize_distributed", "ddp_setup", "dist_init", "init_distributed_device"}
)  # fmt: skip


def _group_starts_below(module: SourceModule, anchor: ast.stmt, function: FunctionNode | None) -> int:
    """The line below the anchor in which the same function (or the module) starts the process group; 0 where none does."""
    for call in module.calls_named(*STARTS):
        if module.function_of(call) is function and call.lineno > anchor.lineno:
            return call.lineno
    return 0


def _indent(module: SourceModule, anchor: ast.stmt) -> str:
    """One step of indentation, as the guard or the function round the anchor takes it."""
    outer: ast.AST | None = anchor if isinstance(anchor, ast.If) else module.parent(anchor)
    block = getattr(outer, "body", None)
    if isinstance(outer, ast.stmt) and isinstance(block, list) and block:
        head = module.lines[outer.lineno - 1][: outer.col_offset]
        step: str = module.lines[block[0].lineno - 1][: block[0].col_offset].removeprefix(head)
        if step and not step.strip():
            return step
    return "    "
