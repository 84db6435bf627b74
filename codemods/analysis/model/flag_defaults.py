"""The default behind `args.x` and `config.x`: an argparse option or a dataclass field of the project, where there is only one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_file
from codemods.analysis.model.setting_values import given_in_jobs
from codemods.analysis.names import last, qualified
from codemods.files.source import SourceModule
from codemods.runtime.record import record, replace
from codemods.store.project import Project


@record
class Default:
    """A constant that holds unless somebody gives another.

    kept_by: what has to be so for it to hold. otherwise: a job file that gives another, with its line. switch: what the
    option comes to where it is given without a value.
    """

    value: bool
    module: SourceModule
    node: ast.Constant
    text: str
    kept_by: str
    otherwise: str = ""
    switch: bool | None = None


def default_of(project: Project, module: SourceModule, value: ast.expr) -> Default | None:
    """The default of the attribute that is read, None where the project has none or several."""
    if not isinstance(value, ast.Attribute) or not isinstance(value.value, (ast.Name, ast.Attribute)):
        return None
    name = value.attr
    return project.memo(("default of", name, module.path), lambda: _default_of(project, module, name))


def _default_of(project: Project, module: SourceModule, name: str) -> Default | None:
    here = list(_in_file(module, name))
    if here:
        return _beside_jobs(project, here[0], name) if len(here) == 1 else None
    words = (name.encode(), name.replace("_", "-").encode())
    paths = sorted({p for word in words for p in project.files_containing(word) if p != module.path and not is_test_file(p)})
    found: list[Default | None] = []
    for path in paths:
        other = project.module(path)
        found += _in_file(other, name) if other is not None else []
    return _beside_jobs(project, found[0], name) if len(found) == 1 else None


def _beside_jobs(project: Project, default: Default | None, name: str) -> Default | None:
    """The default, and the first script that starts the program with another value."""
    if default is None or "the default of -" not in default.text:
        return default
    given = [(value, place) for value, place in given_in_jobs(project, name) if isinstance(value, bool | int)]
    if default.switch is not None:  # an option without a value: giving it is what switches
        given = [(default.switch, place) for _, place in given]
    other = next((place for value, place in given if bool(value) is not default.value), "")
    same = next((place for value, place in given if bool(value) is default.value), "")
    if other:
        return replace(default, otherwise=f"{default.text}, {other} gives {not default.value}")
    return replace(default, text=f"{default.text}, as in {same}") if same else default


def _in_file(module: SourceModule, name: str) -> Iterator[Default | None]:
    """Every place that gives the option or field; None for one whose value is no constant."""
    for call in module.calls_named("add_argument"):
        names = [str(a.value).lstrip("-").replace("-", "_") for a in call.args if isinstance(a, ast.Constant)]
        given = {k.arg: k.value for k in call.keywords}
        dest = given.get("dest")
        if name not in ([str(dest.value)] if isinstance(dest, ast.Constant) else names):
            continue
        option = next((str(a.value) for a in call.args if isinstance(a, ast.Constant)), name)
        action = given.get("action")
        kind = action.value if isinstance(action, ast.Constant) else ""
        switch = {"store_true": True, "store_false": False}.get(str(kind))
        found = _constant(module, given.get("default"), f"the default of {option}", f"no command line gives {option}")
        yield replace(found, switch=switch) if found is not None else None
    for field in module.nodes(ast.AnnAssign):
        if isinstance(field.target, ast.Name) and field.target.id == name and module.class_of(field) is not None:
            owner = module.class_of(field)
            if owner is None or module.function_of(field) is not None:
                continue
            text = f"the default of {owner.name}.{name}"
            yield _constant(module, _field_default(module, field.value), text, f"nobody gives {owner.name}.{name} another value")


def _field_default(module: SourceModule, value: ast.expr | None) -> ast.expr | None:
    """The default of a dataclass field, `field(default=…)` included."""
    if isinstance(value, ast.Call) and last(qualified(module, value.func)) in ("field", "Field"):
        return next((k.value for k in value.keywords if k.arg == "default"), value.args[0] if value.args else None)
    return value


def _constant(module: SourceModule, value: ast.expr | None, text: str, kept_by: str) -> Default | None:
    if not isinstance(value, ast.Constant) or not isinstance(value.value, bool):
        return None
    return Default(value.value, module, value, f"{text} ({value.value})", kept_by)
