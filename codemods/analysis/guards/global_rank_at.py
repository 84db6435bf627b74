"""How a test of the local rank is written of the global one: by what the place has at hand."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import attribute_bindings
from codemods.analysis.call_graph import called_function
from codemods.analysis.class_index import Role, class_facts
from codemods.analysis.conditions import is_main_block
from codemods.analysis.distribution import is_test_file
from codemods.analysis.guards.entry_points import group_name, starts_group
from codemods.analysis.names import dotted, family, qualified
from codemods.analysis.output.global_ranks import is_text
from codemods.analysis.output.natures import values_of
from codemods.analysis.output.run_before import bound_above
from codemods.analysis.output.script_guards import rank_of_settings
from codemods.analysis.ranks.rank_guards import Ranks, ranks_of_test
from codemods.files.source import SourceModule, walk
from codemods.rewriting.imports import in_scope
from codemods.store.project import Project

_NAMES = ("global_rank", "rank", "world_rank")
_FLAGS = {"is_local_main_process": "is_main_process", "is_local_process_zero": "is_world_process_zero",
          "local_process_index": "process_index"}  # fmt: skip


def global_test(
    project: Project, module: SourceModule, node: ast.If, operand: ast.expr, *, holds: bool
) -> tuple[ast.expr, str] | None:
    """(a part of the operand, what stands for it there) so that it asks for the global rank; None where nothing tells that."""
    if (asked := _local(operand)) is None:
        return None
    if (twin := _twin(project, module, operand)) is not None:
        return twin
    other = _counterpart(project, module, asked) or _at_hand(module, node)
    if isinstance(asked, ast.BinOp):  # `rank % gpus_per_node`
        other = module.text_of(asked.left)
    if other is not None:
        return asked, other
    name = group_name(module, node)
    if not name or not _asks_group(module, name):
        return _of_environment(module, asked)
    equal = "==" if holds else "!="
    if starts_always(project):
        return (asked, f"{name}.get_rank()") if _is_beside_zero(operand) else (operand, f"{name}.get_rank() {equal} 0")
    word = f"not {name}.is_initialized() or" if holds else f"{name}.is_initialized() and"
    return operand, f"{word} {name}.get_rank() {equal} 0"


def _of_environment(module: SourceModule, asked: ast.expr) -> tuple[ast.expr, str] | None:
    """RANK beside a local rank that is LOCAL_RANK: who sets one sets both."""
    name = in_scope(module, lambda dotted_name: dotted_name == "os")
    if name is None or not isinstance(asked, ast.Name):
        return None
    values = [v for v in values_of(module, asked) if not (isinstance(v, ast.Constant) and v.value == 0)]
    if not values or not all(f"{name}.environ" in module.text_of(v) and "LOCAL_RANK" in module.text_of(v) for v in values):
        return None
    return asked, f'int({name}.environ.get("RANK", {asked.id}))'


def _twin(project: Project, module: SourceModule, operand: ast.expr) -> tuple[ast.expr, str] | None:
    """`is_master` beside `is_local_master` of the project, where that asks for the global rank."""
    call = operand.operand if isinstance(operand, ast.UnaryOp) else operand
    site = called_function(project, module, call) if isinstance(call, ast.Call) and not call.args else None
    if site is None or not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    wanted = call.func.attr.replace("local_", "", 1)
    other = next((f for f in site.module.functions if f.name == wanted and site.module.class_of(f) is None), None)
    if wanted == call.func.attr or other is None:
        return None
    end = other.body[-1]
    value = end.value if isinstance(end, ast.Return) else None
    if value is None or ranks_of_test(site.module, value, project=project) is not Ranks.ZERO:
        return None
    return call.func, f"{module.text_of(call.func.value)}.{wanted}"


def _is_beside_zero(operand: ast.expr) -> bool:
    """True for `local_rank == 0` and `local_rank != 0`."""
    if not isinstance(operand, ast.Compare) or not isinstance(operand.ops[0], (ast.Eq, ast.NotEq)):
        return False
    right = operand.comparators[0]
    return isinstance(right, ast.Constant) and right.value == 0


def _local(operand: ast.expr) -> ast.expr | None:
    """The expression of the local rank, or the flag, within the operand."""
    if isinstance(operand, ast.UnaryOp) and isinstance(operand.op, ast.Not):
        return _local(operand.operand)
    if isinstance(operand, ast.Compare):
        return operand.left if len(operand.ops) == 1 else None
    return operand.func if isinstance(operand, ast.Call) and isinstance(operand.func, ast.Attribute) else operand


def _counterpart(project: Project, module: SourceModule, asked: ast.expr) -> str | None:
    """The member of the same object that tells the global rank: a framework's own."""
    if not isinstance(asked, ast.Attribute):
        return None
    if asked.attr in _FLAGS:
        return f"{module.text_of(asked.value)}.{_FLAGS[asked.attr]}"
    if asked.attr != "local_rank" or not _in_lightning(project, module, asked):
        return None
    holder = dotted(asked.value)
    if holder.rpartition(".")[2] in ("trainer", "pl_module", "fabric"):
        return f"{holder}.global_rank"
    owner = module.class_of(asked)
    if holder == "self" and owner is not None and not attribute_bindings(module, asked):
        return "self.global_rank" if class_facts(project, module, owner).is_a(Role.LIGHTNING_MODULE) else None
    return None


def _in_lightning(project: Project, module: SourceModule, node: ast.AST) -> bool:
    if any(family(name) == "lightning" for name in module.imported_modules):
        return True
    owner = module.class_of(node)
    return owner is not None and any(family(n) == "lightning" for n in class_facts(project, module, owner).external)


def _at_hand(module: SourceModule, node: ast.If) -> str | None:
    """What the global rank is called: a name bound above, a field of the object that its constructor sets, a setting."""
    function = module.function_of(node)
    for name, value in bound_above(module, function, node):
        if name in _NAMES and is_global(module, value):
            return name
    owner = module.class_of(node)
    for name in _NAMES if owner is not None and function is not None and function.name != "__init__" else ():
        if _is_global_field(module, owner, f"self.{name}"):
            return f"self.{name}"
    return rank_of_settings(module, node)


def _is_global_field(module: SourceModule, owner: ast.ClassDef | None, name: str) -> bool:
    """True where the constructor alone gives the field its value, a global rank, under no test."""
    given = [
        (a, a.value) for a in module.nodes(ast.Assign)
        if module.class_of(a) is owner and any(isinstance(t, ast.Attribute) and dotted(t) == name for t in a.targets)
    ]  # fmt: skip
    if len(given) != 1:
        return False
    function = module.function_of(given[0][0])
    made = function is not None and function.name == "__init__" and any(s is given[0][0] for s in function.body)
    return made and is_global(module, given[0][1])


def is_global(module: SourceModule, node: ast.expr) -> bool:
    """True for what is shown to be the rank among all processes: `dist.get_rank()`, `RANK`, and a name of either."""
    if isinstance(node, ast.Call):
        if qualified(module, node.func) == "torch.distributed.get_rank" and not node.args and not node.keywords:
            return True
        if dotted(node.func) == "int" and len(node.args) == 1:
            if is_global(module, node.args[0]):
                return True
            keys = {n.value for n in walk(node) if isinstance(n, ast.Constant)}
            return is_text(module, node.args[0]) and "RANK" in keys
        return False
    if isinstance(node, ast.IfExp):  # `dist.get_rank() if dist.is_initialized() else 0`
        arms = [a for a in (node.body, node.orelse) if not (isinstance(a, ast.Constant) and a.value == 0)]
        return bool(arms) and all(is_global(module, a) for a in arms)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):  # `rank % world_size` is the rank
        return _is_world_size(module, node.right) and is_global(module, node.left)
    if not isinstance(node, ast.Name):
        return False
    values = [v for v in values_of(module, node) if not (isinstance(v, ast.Constant) and v.value == 0)]
    return bool(values) and all(not isinstance(v, ast.Name) and is_global(module, v) for v in values)


def _is_world_size(module: SourceModule, node: ast.expr) -> bool:
    values = [node] if isinstance(node, ast.Call) else values_of(module, node)
    return bool(values) and all(
        isinstance(v, ast.Call) and qualified(module, v.func) == "torch.distributed.get_world_size" for v in values
    )


def _asks_group(module: SourceModule, name: str) -> bool:
    """True where the file uses torch.distributed, and does not only import it."""
    uses = (n for n in module.nodes(ast.Attribute) if dotted(n.value) == name)
    return any(n.attr in ("get_rank", "init_process_group", "barrier", "all_reduce", "get_world_size") for n in uses)


def starts_always(project: Project) -> bool:
    """True where the project starts its process group, and never under a condition."""
    return project.keep("starts group always", lambda: _starts_always(project))


def _starts_always(project: Project) -> bool:
    started = False
    for path in project.files_containing(b"init_process_group"):
        if is_test_file(path) or (module := project.module(path)) is None:
            continue
        for call in module.calls_named("init_process_group"):
            if not starts_group(module, call):
                continue
            started = True
            for up in module.ancestors(call):
                if isinstance(up, (ast.If, ast.IfExp, ast.Try)) and not is_main_block(up):
                    return False
    return started
