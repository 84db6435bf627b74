"""Objects of Accelerate and Fabric: which expression holds one, how it was made, and what it was told.

A name alone is no proof: Lightning has a flag `accelerator`. It counts where the file works with Accelerate.
"""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_of
from codemods.analysis.loading.origins import Origin, all_known, origins
from codemods.analysis.names import dotted, family, last, qualified
from codemods.files.source import SourceModule
from codemods.runtime.record import record
from codemods.store.project import Project

_PLUGIN = "gradient_accumulation_plugin"
_STEPS = "num_steps"


@record
class Made:
    """A call that makes an Accelerator (or a Fabric)."""

    module: SourceModule
    call: ast.Call

    def keyword(self, name: str) -> ast.expr | None:
        return next((k.value for k in self.call.keywords if k.arg == name), None)

    @property
    def hides(self) -> bool:
        """True where `**options` may say more."""
        return any(k.arg is None for k in self.call.keywords) or any(isinstance(a, ast.Starred) for a in self.call.args)

    def may_hold(self, *names: str) -> bool:
        """True where `**options` may hold one of these: not where all that is put into the options has other names."""
        if any(isinstance(a, ast.Starred) for a in self.call.args):
            return True
        hidden = [k.value for k in self.call.keywords if k.arg is None]
        return any((keys := _keys(self.module, node)) is None or keys & set(names) for node in hidden)


def _keys(module: SourceModule, node: ast.expr) -> set[str] | None:
    """The keys of a dictionary of options that is filled in this file; None where there may be others."""
    if isinstance(node, ast.Dict):
        return {str(k.value) for k in node.keys if isinstance(k, ast.Constant)} if _is_plain(node) else None
    if not isinstance(node, ast.Name) or not (bound := bindings_of(module, node)):
        return None
    keys: set[str] = set()
    for binding in bound:
        if not isinstance(binding.value, ast.Dict) or binding.part or not _is_plain(binding.value):
            return None
        keys |= {str(k.value) for k in binding.value.keys if isinstance(k, ast.Constant)}
    for use in module.reads_of(node.id):
        up = module.parent(use)
        if isinstance(up, ast.Subscript) and isinstance(up.ctx, ast.Store):
            if not isinstance(up.slice, ast.Constant):
                return None
            keys.add(str(up.slice.value))
        elif isinstance(up, ast.Attribute):
            return None
    return keys


def _is_plain(node: ast.Dict) -> bool:
    return all(isinstance(k, ast.Constant) for k in node.keys)


def is_accelerator(project: Project, module: SourceModule, node: ast.expr) -> bool:
    """True for an object of accelerate.Accelerator: by how it is made, or by its name in a file that works with Accelerate."""
    name = last(dotted(node)).lower()
    if "accelerat" not in name:
        return bool(name) and module.holds(b"Accelerator(") and bool(made_by(project, module, node))
    if made_by(project, module, node):
        return True
    if any(m.partition(".")[0] in ("lightning", "pytorch_lightning", "lightning_fabric") for m in module.imported_modules):
        return False
    return works_with_accelerate(project, module)


def works_with_accelerate(project: Project, module: SourceModule) -> bool:
    """True where the file, or one of the project that it stands beside, imports Accelerate."""
    if any(m.partition(".")[0] == "accelerate" for m in module.imported_modules):
        return True
    return bool(project.files_importing("accelerate"))


def made_by(project: Project, module: SourceModule, node: ast.expr) -> tuple[Made, ...]:
    """The calls of accelerate.Accelerator that make the object; empty where one of its makers is not seen."""
    found = origins(project, module, node)
    made = tuple(m for o in found if (m := _accelerator(o)) is not None)
    return made if len(made) == len(found) and all_known(found) else ()


def is_fabric(project: Project, module: SourceModule, node: ast.expr) -> bool:
    """True for an object of Lightning's Fabric: by its name in a file that imports it, or by how it is made."""
    if not module.holds(b"abric"):
        return False
    if made_as_fabric(project, module, node):
        return True
    imported = any("fabric" in m or family(m) == "lightning" for m in module.imported_modules)
    return imported and last(dotted(node)) == "fabric"


def made_as_fabric(project: Project, module: SourceModule, node: ast.expr) -> bool:
    """True where a call that makes the object is seen, and makes a Fabric."""
    return any(_named(o, "Fabric") for o in origins(project, module, node))


def accumulation(project: Project, made: Made) -> tuple[SourceModule, ast.expr] | None:
    """The number of accumulation steps that an Accelerator is told, and the file in which it stands; None without one."""
    if (given := made.keyword("gradient_accumulation_steps")) is not None:
        return made.module, given
    if (plugin := made.keyword(_PLUGIN)) is not None:
        return _of_plugin(project, made.module, plugin, "GradientAccumulationPlugin", _STEPS)
    if (engine := made.keyword("deepspeed_plugin")) is not None:
        return _of_plugin(project, made.module, engine, "DeepSpeedPlugin", "gradient_accumulation_steps")
    return None


def accumulating(project: Project, module: SourceModule, block: ast.With) -> ast.Call | None:
    """The `accelerator.accumulate(...)` that the block stands under; None where the Accelerator is known to take one step."""
    for item in block.items:
        call = item.context_expr
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "accumulate":
            continue
        if not is_accelerator(project, module, call.func.value):
            return None
        for made in made_by(project, module, call.func.value):
            given = accumulation(project, made)
            if (given is None and not made.hides) or (given is not None and is_one(given[1])):
                return None
        return call
    return None


def is_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 1


def _of_plugin(
    project: Project, module: SourceModule, node: ast.expr, kind: str, name: str
) -> tuple[SourceModule, ast.expr] | None:
    for origin in origins(project, module, node):
        if _named(origin, kind) and isinstance(origin.node, ast.Call):
            given = next((k.value for k in origin.node.keywords if k.arg == name), None)
            if given is not None:
                return origin.module, given
    return None


def _accelerator(origin: Origin) -> Made | None:
    if not _named(origin, "Accelerator") or not isinstance(origin.node, ast.Call):
        return None
    name = qualified(origin.module, origin.node.func)
    return Made(origin.module, origin.node) if name.startswith("accelerate.") else None


def _named(origin: Origin, name: str) -> bool:
    if not origin.known or origin.path or not isinstance(origin.node, ast.Call):
        return False
    return last(qualified(origin.module, origin.node.func)) == name
