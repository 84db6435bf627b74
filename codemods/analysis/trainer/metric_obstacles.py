"""What stands against taking out a dead-looking `compute_metrics`: a loop overridden, the function handled, numbers wanted."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from posixpath import dirname

from codemods.analysis.importing import imported_files, names_of_imports
from codemods.analysis.names import dotted, last
from codemods.analysis.trainer.references import Mention, in_strings, in_text_files
from codemods.analysis.trainer.trainer_calls import DECISIVE, TrainerCall, constant, is_off, keyword, literals
from codemods.files.import_statements import stem_of
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.store.project import Project

# Keys that an evaluation has without any compute_metrics.
_OWN_KEYS = frozenset(
    f"{prefix}_{key}"
    for prefix in ("eval", "test")
    for key in ("loss", "runtime", "samples_per_second", "steps_per_second", "jit_compilation_time",
                "model_preparation_time", "samples", "mem_cpu_alloc_delta", "mem_gpu_alloc_delta")
)  # fmt: skip


def obstacles(trainer: TrainerCall, function: FunctionNode | None, *, loop_may_decide: bool = False) -> Iterator[str]:
    """What speaks against it. loop_may_decide: an overridden evaluation_loop may ask for predictions or not, as long as it calls
    super."""
    if trainer.opaque:
        yield f"the base {trainer.opaque[0]} of {trainer.lineage[0].name} is not in the project: it may use the function"
    for site in trainer.lineage:
        if "compute_metrics" in site.module.text_of(site.node):
            yield f"{site.name} handles compute_metrics itself"
    if (override := trainer.method("__init__")) and not _forwards_arguments(override[1]):
        yield f"{override[0].name}.__init__ does not simply hand the training arguments on"
    if reader := next(attribute_uses(trainer.project), None):
        yield f"{reader} uses the attribute compute_metrics"
    for name in ("evaluate", "predict", "prediction_loop"):
        if override := trainer.method(name):
            yield f"{override[0].name} overrides {name}"
    if (override := trainer.method("evaluation_loop")) and not _hands_on(override[1], loop_may_decide):
        yield f"{override[0].name} overrides evaluation_loop without handing prediction_loss_only on to it"
    if changed := next(_changed_elsewhere(trainer), ""):
        yield changed
    yield from _wanted(trainer, function)


def attribute_uses(project: Project) -> Iterator[Mention]:
    """`x.compute_metrics`, read or written; not that of a class with a method of that name which is no Trainer."""
    for path in project.files_containing(b".compute_metrics"):
        module = project.module(path)
        if module is None:
            yield Mention("unreadable", path, 0)
            continue
        for node in module.nodes(ast.Attribute):
            if node.attr != "compute_metrics":
                continue
            place = module.method_of(node) if dotted(node.value) == "self" else None
            own = place and any(isinstance(f, ast.FunctionDef) and f.name == "compute_metrics" for f in place[0].body)
            if not own:
                yield Mention("use", path, node.lineno)


def _super_calls(method: FunctionNode) -> list[ast.Call]:
    return [
        n for n in walk(method)
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == method.name
        and isinstance(n.func.value, ast.Call) and dotted(n.func.value.func) == "super"
    ]  # fmt: skip


def _forwards_arguments(method: FunctionNode) -> bool:
    """True for an `__init__` that hands `args` (or all it is given) to that of its base, unchanged."""
    packs = {a.arg for a in (method.args.vararg, method.args.kwarg) if a}
    for node in walk(method):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) and node.id in {"args", *packs}:
            return False
        if isinstance(node, ast.Constant) and node.value == "args":
            return False
    for call in _super_calls(method):
        given = [*call.args, *(k.value for k in call.keywords if k.arg in ("args", None))]
        if any(dotted(v.value if isinstance(v, ast.Starred) else v) in {"args", *packs} for v in given):
            return True
    return False


def _hands_on(method: FunctionNode, any_way: bool) -> bool:
    """True where the method calls that of its base class, and (unless `any_way`) with no prediction_loss_only of its own."""
    calls = _super_calls(method)
    if any_way:
        return bool(calls)
    written = {n.id for n in walk(method) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    for call in calls:
        value = keyword(call, "prediction_loss_only")
        if value is None and len(call.args) > 2 and not any(isinstance(a, ast.Starred) for a in call.args):
            value = call.args[2]
        handed = (
            value is None
            or constant(value) is True
            or (isinstance(value, ast.Name) and value.id == "prediction_loss_only")
        )
        if not handed or "prediction_loss_only" in written:
            return False
    return bool(calls)


def _changed_elsewhere(trainer: TrainerCall) -> Iterator[str]:
    """Training arguments that decide are set on an object, or a loop is called with an argument of its own."""
    within = reach(trainer.project, trainer.module)
    for word in sorted(DECISIVE - {"compute_metrics"}):
        for path in sorted(within.intersection(trainer.project.files_containing(word.encode()))):
            module = trainer.project.module(path)
            for node in module.nodes(ast.Attribute) if module else ():
                if node.attr == word and not isinstance(node.ctx, ast.Load):
                    yield f"{path}:{node.lineno} sets {word}"
            for call in module.nodes(ast.Call) if module and word == "prediction_loss_only" else ():
                if constant(keyword(call, word)) is False and not last(dotted(call.func)).endswith(
                    ("Arguments", "Config")
                ):
                    yield f"{path}:{call.lineno} passes prediction_loss_only=False"


def _wanted(trainer: TrainerCall, function: FunctionNode | None) -> Iterator[str]:
    """Somebody wants the numbers: then the code is broken, and removing the function is not the repair."""
    arguments = trainer.arguments.call
    if arguments is not None:
        best = keyword(arguments, "metric_for_best_model")
        names = literals(best) if best is not None else ()
        if names is None:
            yield "metric_for_best_model is no literal: it may name a metric that only this function gives"
        elif wanted := [n for n in names if n not in (None, "loss", "eval_loss")]:
            yield f"metric_for_best_model={wanted[0]!r} wants a metric that only this function gives, and will not get it"
        generate = keyword(arguments, "predict_with_generate")
        if last(trainer.kind) == "Seq2SeqTrainer" and generate is not None and not is_off(generate):
            yield "predict_with_generate asks for generated text, which only this function looks at"
    if reader := next(key_reads(trainer.project, trainer.module, returned_keys(function)), ""):
        yield reader


def returned_keys(function: FunctionNode | None) -> tuple[str, ...]:
    """The keys of the dictionaries that the function returns, () where they are not all literal."""
    keys: list[str] = []
    for node in walk(function) if function else ():
        if isinstance(node, ast.Return):
            if not isinstance(node.value, ast.Dict):
                return ()
            for key in node.value.keys:
                if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
                    return ()
                keys.append(key.value)
    return tuple(keys)


def meant_for_a_trainer(project: Project, module: SourceModule, function: FunctionNode) -> str:
    """The sign that the numbers of a function nobody refers to are wanted: then passing it on is what is missing."""
    for call in module.nodes(ast.Call):
        best = keyword(call, "metric_for_best_model")
        if best is not None and any(n not in (None, "loss", "eval_loss") for n in literals(best) or ("?",)):
            return f"metric_for_best_model (line {best.lineno}) names another metric than the loss"
    return next(key_reads(project, module, returned_keys(function)), "")


def key_reads(project: Project, module: SourceModule, keys: tuple[str, ...]) -> Iterator[str]:
    """Who reads a metric that only the function gives: by its exact key where that is known, else any that is not built in."""
    near = nearby(project, module)
    for key in keys:
        for word in (f"eval_{key}", f"test_{key}", f"eval/{key}"):
            if word.replace("/", "_") in _OWN_KEYS:
                continue
            strings = [m for m in in_strings(project, word) if m.path in near]
            for found in strings + in_text_files(project, word):
                yield f"{found} names {word!r}, which only this function gives"
    for path in () if keys else sorted(near.intersection(project.files_containing(b"eval_"))):
        reader = project.module(path)
        if reader is None:
            continue
        for node in reader.nodes(ast.Constant):
            if isinstance(node.value, str) and node.value.startswith("eval_") and node.value not in _OWN_KEYS:
                if _is_read_metric(reader, node):
                    yield f"{path}:{node.lineno} reads {node.value!r}"


def nearby(project: Project, module: SourceModule) -> frozenset[str]:
    """The Python files that a script works with: those beside it, and what it imports, directly or not."""
    folder = dirname(module.path)
    return imported_files(project, module) | {path for path in project.python_files if dirname(path) == folder}


def reach(project: Project, module: SourceModule) -> frozenset[str]:
    """The files an object made in this one can come to: what it imports, who imports it, and what those import."""

    def build() -> frozenset[str]:
        found = set(imported_files(project, module))
        queue = [module.path]
        seen = {module.path}
        while queue:
            stem = stem_of(queue.pop())
            for path in project.files_containing(os.fsencode(stem)):
                importer = project.module(path) if path not in seen else None
                if importer and any(last(name) == stem for name in names_of_imports(importer)):
                    seen.add(path)
                    queue.append(path)
                    found |= imported_files(project, importer)
        return frozenset(found)

    return project.memo(("reach", module.path), build)


def _is_read_metric(module: SourceModule, node: ast.Constant) -> bool:
    """True for `metrics["eval_x"]` and `logs.get("eval_x")`, not for a configuration's own `eval_batch_size`."""
    up = module.parent(node)
    holder: ast.expr | None = None
    if isinstance(up, ast.Subscript) and isinstance(up.ctx, ast.Load):
        holder = up.value
    elif isinstance(up, ast.Call) and isinstance(up.func, ast.Attribute) and up.func.attr == "get":
        holder = up.func.value
    text = module.text_of(holder).lower() if holder is not None else ""
    return any(word in text for word in ("metric", "result", "log", "history", "score", "output", "evaluat"))
