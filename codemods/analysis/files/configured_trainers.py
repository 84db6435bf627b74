"""What stands behind `fit` of a Lightning Trainer that a setting makes: `trainer: Trainer = instantiate(cfg.trainer)`.

No call of `Trainer(` is there to be seen. Whether it runs several processes is said by the strategy that it is given, there or
in a setting of the project.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_of
from codemods.analysis.names import family, last, qualified
from codemods.api.findings import Evidence
from codemods.files.source import FunctionNode, SourceModule, line_of
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_MADE = b"instantiate("
_STRATEGIES = lazy(
    rb"^[^#\n]*\bstrategy:\s*[\"']?(?:ddp|fsdp|deepspeed)"
    rb"|^[^#\n]*\b_target_:\s*[\"']?[\w.]*(?:DDP|FSDP|DeepSpeed)Strategy\b",
    re.MULTILINE,
)
_OF_SEVERAL = lazy(r"^[\"'](?:ddp|fsdp|deepspeed)|\b(?:DDP|FSDP|DeepSpeed)Strategy\(")
_SETTINGS = (".yaml", ".yml")


def behind_fit(project: Project, module: SourceModule, function: FunctionNode | None, node: ast.AST) -> Evidence | None:
    """The `fit` above `node`, in its function, by which the ranks of a run have started."""
    if function is None or not module.holds(_MADE) or not module.holds(b".fit("):
        return None
    for fit in module.calls_named("fit"):
        if module.function_of(fit) is not function or fit.lineno >= line_of(node) or not _leads_on(module, fit, node):
            continue
        for made in _made_by_settings(module, fit):
            if (several := _several(project, module, made)) is not None:
                return several
    return None


def _leads_on(module: SourceModule, fit: ast.Call, node: ast.AST) -> bool:
    """True where whoever comes to `node` has come through `fit`: alone in its block, or round the place too.

    `if cfg.get("train"): trainer.fit(…)` counts: a run that skips it starts its ranks elsewhere or not at all.
    """
    statement = module.statement_of(fit)
    block = module.block_of(statement)
    holder = module.parent(statement)
    inside = any(s is up for s in block for up in (module.statement_of(node), *module.ancestors(node)))
    plain = isinstance(holder, ast.If) and any(s is statement for s in holder.body) and not holder.orelse
    plain = plain and not isinstance(block[-1], (ast.Return, ast.Raise, ast.Continue, ast.Break))
    return inside or plain


def _made_by_settings(module: SourceModule, fit: ast.Call) -> Iterator[ast.Call]:
    """The `instantiate(…)` that makes the object, where its annotation says that it is a Trainer of Lightning."""
    if not isinstance(fit.func, ast.Attribute) or not isinstance(fit.func.value, ast.Name):
        return
    bound = bindings_of(module, fit.func.value)
    if len(bound) != 1:
        return
    made = bound[0].node
    if not isinstance(made, ast.AnnAssign) or not isinstance(made.value, ast.Call):
        return
    kind = qualified(module, made.annotation)
    if last(kind) == "Trainer" and family(kind) == "lightning" and last(qualified(module, made.value.func)) == "instantiate":
        yield made.value


def _several(project: Project, module: SourceModule, made: ast.Call) -> Evidence | None:
    """What gives the Trainer a strategy of several processes."""
    given = {k.arg: k.value for k in made.keywords}
    devices = given.get("devices")
    if isinstance(devices, ast.Constant) and devices.value in (1, "1"):
        return None
    if "strategy" in given:
        spoken = _OF_SEVERAL.search(module.text_of(given["strategy"]))
        text = "the Trainer that is made from the settings is given a strategy of several processes"
        return Evidence("static", text, module.path, made.lineno) if spoken else None
    return project.keep("strategies of settings", lambda: _in_settings(project))


def _in_settings(project: Project) -> Evidence | None:
    for path in sorted({p for w in (b"strategy:", b"Strategy") for p in project.files_containing(w, kinds=_SETTINGS)}):
        data = project.read(path) or b""
        if found := _STRATEGIES.search(data):
            line = data.count(b"\n", 0, found.start()) + 1
            return Evidence("static", "the settings give the Trainer a strategy of several processes", path, line)
    return None
