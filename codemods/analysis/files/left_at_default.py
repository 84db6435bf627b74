"""A parameter that nobody gives: no call of that name in the project hands it over, and no framework does.

`def predict(self, batch, verbose=False)`, `def setup(self, stage=None, from_table=True)`. Whose method a call runs need not be
known where none of them gives it.
"""

from __future__ import annotations

import ast
import re

from codemods.analysis.bindings import attribute_bindings
from codemods.analysis.class_index import ClassFacts, ClassSite, class_facts, subclasses
from codemods.analysis.hooks import HF_CALLBACK_HOOKS, LIGHTNING_HOOKS
from codemods.analysis.model.signatures import defaults
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.uses import HandedOn, uses_of
from codemods.files.import_statements import stem_of
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.store.project import Project

# What Lightning and transformers hand to hooks by these names, if the hook takes them.
_OF_HOOKS = frozenset(
    {"trainer", "pl_module", "stage", "batch", "batch_idx", "batch_nb", "dataloader_idx", "optimizer", "optimizer_idx",
     "optimizer_closure", "outputs", "output", "hiddens", "checkpoint", "epoch", "args", "state", "control", "model", "logs",
     "metrics", "device", "loss", "using_lbfgs", "using_native_amp", "on_tpu", "scheduler", "metric", "gradient_clip_val",
     "gradient_clip_algorithm", "dataset", "unused", "prefix"}
)  # fmt: skip
_KNOWN = frozenset(
    {"staticmethod", "classmethod", "no_grad", "inference_mode", "override", "rank_zero_only", "abstractmethod", "contextmanager",
     "autocast", "lru_cache", "cache", "typechecked", "record"}
)  # fmt: skip
_COMMANDS = (b"typer.", b"hydra.utils.call", b"auto_cli", b"defopt")


def left_at_default(project: Project, module: SourceModule, function: FunctionNode, name: str) -> ast.Constant | None:
    """The value of a parameter that keeps it in every call; None where it may get another one, or the source does not show it."""
    default = defaults(function).get(name)
    if not isinstance(default, ast.Constant):
        return None
    key = ("left at default", module.path, function.lineno, function.name, name)
    return default if project.keep(key, lambda: _is_left(project, module, function, name)) else None


def is_made_a_command(project: Project, module: SourceModule, function: FunctionNode) -> bool:
    """True where the arguments may come from a command line, by a decorator or a package that makes one of each function."""
    if not all(map(_is_known, function.decorator_list)) or any(project.files_containing(word) for word in _COMMANDS):
        return True
    files = map(project.module, project.files_containing(b"fire.Fire"))
    return any(file is None or _fires(project, file, module, function) for file in files)


def _fires(project: Project, file: SourceModule, module: SourceModule, function: FunctionNode) -> bool:
    """True where `fire.Fire(Trainer)` may make a command of the function: by its own name, its class's, an heir's or its file's.

    Without arguments, or with a name that is no function, class or import (`fire.Fire(trainer)`), all that the file names counts.
    """
    calls = file.calls_named("Fire")
    handed = [n for c in calls for a in (*c.args, *(k.value for k in c.keywords)) for n in walk(a)]
    named = {n.attr if isinstance(n, ast.Attribute) else n.id for n in handed if isinstance(n, (ast.Attribute, ast.Name))}
    given = {n.name for n in file.tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))} | {"dict", *file.imports}
    open_names = [n.id for n in handed if isinstance(n, ast.Name) and n.id not in given]
    if open_names or not calls or not all(c.args or c.keywords for c in calls):
        named |= {*re.findall(r"\w+", file.text)}
        if file is module or "*" in file.imports:
            return True
    named |= {last(i.dotted) for name in named for i in file.imports.get(name, ())}
    owner = module.parent(function)
    kin = (ClassSite(module, owner), *subclasses(project, ClassSite(module, owner))) if isinstance(owner, ast.ClassDef) else ()
    return not named.isdisjoint({function.name, stem_of(module.path), *(s.node.name for s in kin)})


def _is_left(project: Project, module: SourceModule, function: FunctionNode, name: str) -> bool:
    if function.name == "forward" or function.name.startswith("__"):
        return False
    used = uses_of(project, module, function).outside_tests()
    if used.more or any(_may_be_method(h, module, function) for h in used.handed_on) or not (
        used.calls or _is_hook(project, module, function, name)
    ):
        return False
    if _is_of_framework(project, module, function) and not _is_hook(project, module, function, name):
        return False
    place = _position(module, function, name)
    return not any(_may_give(site.call, name, place) for site in used.calls)


def _may_be_method(found: HandedOn, module: SourceModule, function: FunctionNode) -> bool:
    """False for a plain name, and for a field of another class, that is called as the method is."""
    if not isinstance(module.parent(function), ast.ClassDef):
        return True
    if isinstance(found.node, ast.Name):
        return False
    bound = isinstance(found.node, ast.Attribute) and attribute_bindings(found.module, found.node)
    return not bound or found.module.class_of(found.node) is module.parent(function)


def _is_hook(project: Project, module: SourceModule, function: FunctionNode, name: str) -> bool:
    """True for a hook whose framework hands over arguments of its own, and this is none of them."""
    if function.name not in LIGHTNING_HOOKS | HF_CALLBACK_HOOKS or name in _OF_HOOKS:
        return False
    facts = _facts(project, module, function)
    return facts is not None and bool(facts.external)


def _is_of_framework(project: Project, module: SourceModule, function: FunctionNode) -> bool:
    """True for a hook, which others than the project call."""
    facts = _facts(project, module, function)
    hook = function.name in LIGHTNING_HOOKS | HF_CALLBACK_HOOKS
    return facts is not None and (bool(facts.unresolved) or (hook and bool(facts.external)))


def _facts(project: Project, module: SourceModule, function: FunctionNode) -> ClassFacts | None:
    owner = module.parent(function)
    return class_facts(project, module, owner) if isinstance(owner, ast.ClassDef) else None


def _is_known(decorator: ast.expr) -> bool:
    """False for a decorator that may make a command of the function, or call it in its own way."""
    return last(dotted(decorator.func if isinstance(decorator, ast.Call) else decorator)) in _KNOWN


def _position(module: SourceModule, function: FunctionNode, name: str) -> int | None:
    """How many arguments a call may give by their places before this one is among them."""
    names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
    if name not in names:
        return None
    bound = isinstance(module.parent(function), ast.ClassDef) and names[0] in ("self", "cls")
    return names.index(name) - bound


def _may_give(call: ast.Call, name: str, place: int | None) -> bool:
    spread = any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords)
    return spread or any(k.arg == name for k in call.keywords) or (place is not None and len(call.args) > place)
