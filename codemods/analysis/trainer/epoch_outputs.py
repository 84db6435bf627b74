"""The hooks of Lightning 1 that were handed the outputs of all steps of an epoch, written for Lightning 2."""

from __future__ import annotations

import ast

from codemods.analysis.class_index import ClassFacts, ClassSite, subclasses
from codemods.analysis.mention_places import name_of
from codemods.analysis.names import dotted
from codemods.analysis.trainer.lightning_trainers import Change
from codemods.api.findings import DropParameter, Edit, InsertAfter, InsertBefore, RenameName
from codemods.files.source import FunctionNode, walk_scope
from codemods.store.project import Project

NEW_NAMES = {
    "training_epoch_end": "on_train_epoch_end",
    "validation_epoch_end": "on_validation_epoch_end",
    "test_epoch_end": "on_test_epoch_end",
}
_STEPS = {"training_epoch_end": "training_step", "validation_epoch_end": "validation_step", "test_epoch_end": "test_step"}


def new_hook(project: Project, site: ClassSite, facts: ClassFacts, hook: FunctionNode) -> Change:
    """The hook without its outputs, and the step that keeps them; refusals where the class is not that plain."""
    module, name = site.module, hook.name
    why = _why_no_rename(project, site, facts, hook)
    if why:
        return Change((), refusals=(why,))
    parameter = hook.args.args[1].arg
    renamed: list[Edit] = [
        RenameName(module.path, name_of(module, hook), NEW_NAMES[name]),
        DropParameter(module.path, module.span(hook), parameter),
    ]
    own = hook.args.args[0].arg
    if not any(isinstance(n, ast.Name) and n.id == parameter for s in hook.body for n in ast.walk(s)):
        return Change(tuple(renamed), (f"assumes that nothing else calls {name}",))
    kept, why = _kept_outputs(project, site, facts, hook, own, parameter)
    if why:
        return Change((), refusals=(why,))
    doubt = f"assumes that {_STEPS[name]} runs with one loader, and that nobody else calls it"
    return Change((*renamed, *kept), (doubt,))


def _why_no_rename(project: Project, site: ClassSite, facts: ClassFacts, hook: FunctionNode) -> str:
    new = NEW_NAMES[hook.name]
    heirs = subclasses(project, site)
    if any(new in s.methods() for s in (*facts.lineage, *heirs)):
        return f"there is a hook {new} as well: put both into it"
    if facts.unresolved:
        return f"the base class {facts.unresolved[0]} is not in the repository"
    a = hook.args
    if len(a.args) != 2 or a.posonlyargs or a.kwonlyargs or a.vararg or a.kwarg or a.defaults or hook.decorator_list:
        return "its parameters, or decorators, are not those of the hook"
    other = next((s.name for s in (*facts.lineage[1:], *heirs) if hook.name in s.methods()), "")
    if other:
        return f"{other} defines it as well: both have to change together"
    called = _mentioned(project, hook.name)
    return f"{called} calls it" if called else ""


def _mentioned(project: Project, name: str) -> str:
    """A place that reads the method by its name."""
    for path in sorted(project.files_containing(f".{name}".encode())):
        module = project.module(path) if path.endswith(".py") else None
        for node in module.reads_of(name) if module is not None else ():
            if isinstance(node, ast.Attribute):
                return f"{path}:{node.lineno}"
    return ""


def _kept_outputs(
    project: Project, site: ClassSite, facts: ClassFacts, hook: FunctionNode, own: str, parameter: str
) -> tuple[list[Edit], str]:
    """The edits by which the step keeps what it returns, or why there are none."""
    module, step_name = site.module, _STEPS[hook.name]
    if hook.name == "training_epoch_end":
        return [], "keep detached values in training_step, in a list of the module, and clear it in on_train_epoch_end"
    by_hand = f"keep what {step_name} returns in a list of the module, and clear it in {NEW_NAMES[hook.name]}"
    methods = site.methods()
    step, made = methods.get(step_name), methods.get("__init__")
    attribute = f"{step_name}_outputs"
    if step is None or made is None:
        return [], f"{by_hand}: the class itself has no {step_name if step is None else '__init__'}"
    if any(f"{step_name}_end" in s.methods() for s in facts.lineage):
        return [], f"{by_hand}: {step_name}_end returns them"
    if any(step_name in s.methods() for s in subclasses(project, site)):
        return [], f"{by_hand}: an heir has a {step_name} of its own"
    if any(a.arg in ("dataloader_idx", "dataloader_id", "loader_idx") for a in step.args.args) or len(step.args.args) > 3:
        return [], f"{by_hand}: of several loaders, the outputs were a list for each"
    if attribute in module.text or (called := _mentioned(project, step_name)):
        return [], f"{by_hand}: {attribute + ' is there already' if attribute in module.text else f'{called} calls it'}"
    returns = [n for n in walk_scope(step) if isinstance(n, ast.Return)]
    yields = any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in walk_scope(step))
    if len(returns) != 1 or returns[0] is not step.body[-1] or not isinstance(returns[0].value, ast.Name) or yields:
        return [], f"{by_hand}: it does not end in one return of a name"
    start = next((s for s in made.body if _is_super_init(s)), None)
    if start is None or not module.is_whole(start) or not step.args.args or not made.args.args:
        return [], f"{by_hand}: its __init__ does not call super().__init__()"
    value = module.text_of(returns[0].value)
    held = f"{own}.{attribute}"
    first = _first_statement(hook)
    return [
        InsertAfter(module.path, module.span(start), f"{made.args.args[0].arg}.{attribute} = []"),
        InsertBefore(module.path, module.span(returns[0]), f"{step.args.args[0].arg}.{attribute}.append({value})"),
        InsertBefore(module.path, module.span(first), f"{parameter} = {held}\n{held} = []"),
    ], ""


def _first_statement(function: FunctionNode) -> ast.stmt:
    """The first one behind the docstring."""
    says = ast.get_docstring(function) is not None and len(function.body) > 1
    return function.body[1 if says else 0]


def _is_super_init(statement: ast.stmt) -> bool:
    call = statement.value if isinstance(statement, ast.Expr) else None
    func = call.func if isinstance(call, ast.Call) else None
    if not isinstance(func, ast.Attribute) or func.attr != "__init__":
        return False
    return (isinstance(func.value, ast.Call) and dotted(func.value.func) == "super") or dotted(func.value) != ""
