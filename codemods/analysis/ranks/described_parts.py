"""What settings say of the objects of a class: that they are parts of another object, that an argument of theirs is off.

Latent diffusion and its many heirs describe a model so (`target:`, `params:`), Hydra and the Lightning CLI by other words. A
Trainer calls the hooks of the outermost module alone: what is described as an argument of another object runs none of its own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from codemods.analysis.class_index import ClassSite, subclasses
from codemods.analysis.distribution import is_own_test
from codemods.analysis.model.config_flags import CLASS_KEYS
from codemods.analysis.model.signatures import defaults, has_parameter
from codemods.analysis.ranks.unused import ELSEWHERE
from codemods.analysis.ranks.uses import MANY_FILES, means, only_names
from codemods.files.source import FunctionNode
from codemods.files.text_file import YAML_KINDS, TextFile
from codemods.runtime.record import record
from codemods.store.project import Project

if TYPE_CHECKING:
    import yaml

_ARGUMENTS = ("params", "init_args", "kwargs", "args")  # where the arguments stand, if not beside the class
_DEEPEST = 30
_MOST_FILES = 60  # composing a file takes milliseconds


@record
class Described:
    """One mapping that names a class. inner: it is an argument of another object that is described round it."""

    inner: bool
    arguments: dict[str, yaml.Node]


def is_only_a_part(project: Project, site: ClassSite) -> bool:
    """True where settings describe objects of the class as arguments of other objects only, and no program makes one itself."""

    def ask() -> bool:
        found = _described(project, site) or []
        return bool(found) and all(d.inner for d in found) and not _is_made_by_a_program(project, site)

    return project.keep(("only a part", site.module.path, site.node.lineno), ask)


def is_configured_off(project: Project, site: ClassSite, function: FunctionNode, name: str) -> bool:
    """True where all descriptions of the class and of its heirs leave an argument of `__init__` off, and nobody else makes one.

    function: the `__init__` that takes it.
    """
    default = defaults(function).get(name)
    kin = (site, *subclasses(project, site))
    found: list[Described] = []
    for one in kin:
        described = _described(project, one)
        if described is None or _is_made_by_a_program(project, one):
            return False
        found += described
    if not found:
        return False
    left_off = isinstance(default, ast.Constant) and not default.value
    off = all(_is_off(d.arguments[name]) if name in d.arguments else left_off for d in found)
    return off and not any(_hands_over(s, name) for s in kin if s is not site)


def _described(project: Project, site: ClassSite) -> list[Described] | None:
    """Every description of an object of the class; None where a file speaks of it in a way that is not read."""
    return project.keep(("described", site.module.path, site.node.lineno), lambda: _find(project, site))


def _find(project: Project, site: ClassSite) -> list[Described] | None:
    paths = project.files_containing(f".{site.name}".encode(), kinds=(*ELSEWHERE, ".json"))
    if len(paths) > _MOST_FILES or any(not p.endswith(YAML_KINDS) for p in paths):
        return None
    found: list[Described] = []
    for path in paths:
        file = project.module(path)
        if not isinstance(file, TextFile) or not file.documents:
            return None
        for root in file.documents:
            found += _below(site, root, False, 0)
    return found


def _below(site: ClassSite, node: yaml.Node, inner: bool, depth: int) -> Iterator[Described]:
    if depth > _DEEPEST:
        return
    if node.id == "mapping":
        values = {str(k.value): v for k, v in node.value if k.id == "scalar"}
        named = next((str(values[k].value) for k in CLASS_KEYS if k in values and values[k].id == "scalar"), "")
        if named and _is_name_of(site, named):
            yield Described(inner, _arguments(values))
        below = inner or "." in named
        for value in values.values():
            yield from _below(site, value, below, depth + 1)
    elif node.id == "sequence":
        for value in node.value:
            yield from _below(site, value, inner, depth + 1)


def _arguments(values: dict[str, yaml.Node]) -> dict[str, yaml.Node]:
    held = next((values[k] for k in _ARGUMENTS if k in values and values[k].id == "mapping"), None)
    return {str(k.value): v for k, v in held.value if k.id == "scalar"} if held is not None else values


def _is_name_of(site: ClassSite, dotted_name: str) -> bool:
    """True for `pkg.nets.Net` where the class stands in `…/pkg/nets.py`."""
    home, _, name = dotted_name.rpartition(".")
    path = site.module.path.removesuffix(".py").removesuffix("/__init__")
    return name == site.name and bool(home) and f"/{path}".endswith("/" + home.replace(".", "/"))


def _is_off(node: yaml.Node) -> bool:
    return node.id == "scalar" and not node.style and str(node.value).lower() in ("false", "no", "off", "null", "~", "", "0")


def _is_made_by_a_program(project: Project, site: ClassSite) -> bool:
    """True where Python makes an object of the class, but for an attribute of another one, or hands the class on."""

    def ask() -> bool:
        users = project.files_using(site.name, most=MANY_FILES)
        if users is None:
            return True
        for path in users:
            module = project.module(path) if not is_own_test(project, path) else None
            for read in module.reads_of(site.name) if module is not None else ():
                if module is None or only_names(module, read) or any(up is site.node for up in module.ancestors(read)):
                    continue
                if means(project, module, read, site) and not isinstance(module.parent(read), ast.ClassDef):
                    return True
        return False

    return project.keep(("made by a program", site.module.path, site.node.lineno), ask)


def _hands_over(heir: ClassSite, name: str) -> bool:
    """True where an heir's `__init__` hands the argument on by its name, or takes it for itself."""
    init = heir.methods().get("__init__")
    if init is None:
        return False
    return has_parameter(init, name) or any(isinstance(n, ast.keyword) and n.arg == name for n in ast.walk(init))
