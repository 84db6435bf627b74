"""The test that an accelerator answers: one that is bound above the place, handed over, or an attribute of the object."""

from __future__ import annotations

import ast

from codemods.analysis.functions import find_function
from codemods.analysis.model.signatures import defaults, parameters
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.output.global_ranks import RANK_NAMES
from codemods.analysis.output.minus_one import writes_minus_one
from codemods.analysis.output.natures import values_of
from codemods.analysis.output.run_before import bound_above
from codemods.analysis.output.set_attributes import is_sure_to_be_set
from codemods.analysis.output.spelled_test import Spelling
from codemods.analysis.ranks.given_numbers import is_given_a_number, is_left_at_its_default
from codemods.analysis.trainer.parsed_arguments import are_parsed_training_arguments
from codemods.files.source import FunctionNode, SourceModule, once_a_module, walk_scope
from codemods.store.project import Project

_FLAG = "accelerator.is_main_process"
ACCELERATOR = "accelerate.Accelerator"


def made_by(project: Project, module: SourceModule, name: str, value: ast.expr) -> str:
    """The class of what a name is bound to, "" where nothing shows it; through a helper of the project for accelerators."""
    if not isinstance(value, ast.Call):
        return ""
    made = qualified(module, value.func)
    if last(dotted(value.func)) == "parse_args_into_dataclasses" and module.holds(b"transformers"):
        return "transformers.TrainingArguments" if are_parsed_training_arguments(project, module, name, value) else ""
    if "accelerator" in name and made != ACCELERATOR and (found := find_function(project, module, value.func, value)):
        home, helper = found
        given = [v for r in walk_scope(helper) if isinstance(r, ast.Return) for v in _parts(r.value)]
        if any(_is_accelerator(home, v) for v in given):
            return ACCELERATOR
    return made


def _parts(value: ast.expr | None) -> list[ast.expr]:
    return list(value.elts) if isinstance(value, ast.Tuple) else [value] if value is not None else []


def _is_accelerator(module: SourceModule, value: ast.expr) -> bool:
    made = [value, *(values_of(module, value) if isinstance(value, ast.Name) else ())]
    return any(isinstance(v, ast.Call) and qualified(module, v.func) == ACCELERATOR for v in made)


def of_argument(project: Project, module: SourceModule, function: FunctionNode) -> Spelling | None:
    for argument in sure_arguments(function):
        written = ast.unparse(argument.annotation) if argument.annotation else ""
        if argument.arg == "accelerator" and (_imports(module, "accelerate") or written.endswith("Accelerator")):
            return Spelling(_FLAG, printer="accelerator.print")
        if argument.arg == "fabric" and (_imports(module, "lightning") or written.endswith("Fabric")):
            return Spelling("fabric.is_global_zero", printer="fabric.print")
        if argument.arg in RANK_NAMES and module.holds(b"torch.distributed") and not writes_minus_one(module):
            number = is_given_a_number(project, module, function, argument.arg)
            if not number and not is_left_at_its_default(project, module, function, argument.arg):
                return Spelling(f"{argument.arg} == 0")
    return None


def print_of_accelerator(
    project: Project, module: SourceModule, statement: ast.stmt, function: FunctionNode | None
) -> str:
    """`accelerator.print` of an Accelerator that is bound above the place, or handed over; "" where there is none."""
    if not module.holds(b"ccelerat"):
        return ""
    for name, value in bound_above(module, function, statement):
        if made_by(project, module, name, value) == ACCELERATOR:
            return f"{name}.print"
    given = of_argument(project, module, function) if function is not None else None
    return given.printer if given is not None and given.test == _FLAG else ""


def sure_arguments(function: FunctionNode) -> list[ast.arg]:
    """The arguments that are never None, as far as the signature shows it."""
    given = defaults(function)
    return [a for a in parameters(function, bound=False) if not _may_be_none(a, given.get(a.arg))]


def _may_be_none(argument: ast.arg, default: ast.expr | None) -> bool:
    if isinstance(default, ast.Constant) and default.value is None:
        return True
    written = ast.unparse(argument.annotation) if argument.annotation else ""
    return "Optional" in written or "None" in written


def _imports(module: SourceModule, *roots: str) -> bool:
    return any(i.dotted.startswith(roots) for found in module.imports.values() for i in found)


def of_attribute(project: Project, module: SourceModule, function: FunctionNode, statement: ast.stmt) -> Spelling | None:
    if not isinstance(module.parent(function), ast.ClassDef) or not function.args.args or function.name == "__init__":
        return None
    owner = module.class_of(function)
    values = _own_accelerators(module).get(owner, ()) if module.holds(b"self.accelerator") else ()
    made = all(isinstance(v, ast.Call) and qualified(module, v.func) == ACCELERATOR for v in values)
    if not values or not (made or owner in _asking_accelerators(module)):
        return None
    if not is_sure_to_be_set(project, module, statement, "accelerator"):
        return None
    return Spelling(f"self.{_FLAG}", printer="self.accelerator.print")


@once_a_module
def _asking_accelerators(module: SourceModule) -> frozenset[ast.ClassDef | None]:
    """The classes that ask an accelerator of theirs whether this is the main process: whoever made it, it can answer."""
    return frozenset(module.class_of(n) for n in module.nodes(ast.Attribute) if dotted(n) == f"self.{_FLAG}")


@once_a_module
def _own_accelerators(module: SourceModule) -> dict[ast.ClassDef | None, list[ast.expr]]:
    """The values that `self.accelerator` is given, by the class."""
    found: dict[ast.ClassDef | None, list[ast.expr]] = {}
    for assign in module.nodes(ast.Assign):
        if any(isinstance(t, ast.Attribute) and dotted(t) == "self.accelerator" for t in assign.targets):
            found.setdefault(module.class_of(assign), []).append(assign.value)
    return found
