"""What the project does with its data and its Trainer that can leave a rank without validation batches, or read metrics alone."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from codemods.analysis.names import last, qualified
from codemods.analysis.rank_guards import ranks_at
from codemods.project import Project
from codemods.source import SourceModule

_METRIC_VIEWS = ("callback_metrics", "logged_metrics", "progress_bar_metrics")


@dataclass(frozen=True, slots=True)
class Place:
    """A line somewhere in the project, and what stands there."""

    text: str
    path: str
    line: int


def uneven_data(project: Project) -> Place | None:
    """The place that shows data Lightning does not split evenly: an iterable data set, sharding switched off, an own sampler."""
    return project.memo("uneven data", lambda: _uneven(project))


def _uneven(project: Project) -> Place | None:
    for word in (b"IterableDataset", b"webdataset", b"IterableDataPipe", b"nvidia.dali"):
        for path in project.files_containing(word):
            module = project.module(path)
            if module is None or _is_test(path):
                continue
            if place := _iterable(module):
                return place
    for keyword in ("use_distributed_sampler", "replace_sampler_ddp"):
        for path in project.files_containing(keyword.encode()):
            module = project.module(path)
            for call in module.nodes(ast.Call) if module else ():
                for k in call.keywords:
                    if k.arg == keyword and not (isinstance(k.value, ast.Constant) and k.value.value is True):
                        return Place(f"{keyword}={ast.unparse(k.value)}", path, k.value.lineno)
    return _own_sampler(project)


def _iterable(module: SourceModule) -> Place | None:
    for node in module.nodes(ast.ClassDef):
        bases = [qualified(module, b) for b in node.bases]
        if any(last(b) in ("IterableDataset", "IterableDataPipe", "IterDataPipe") for b in bases):
            return Place(f"{node.name} is an iterable data set", module.path, node.lineno)
    for name in module.imported_modules:
        if name.partition(".")[0] == "webdataset":
            return Place("webdataset streams its samples", module.path, 1)
    return None


def _own_sampler(project: Project) -> Place | None:
    for path in project.files_containing(b"sampler"):
        module = project.module(path)
        if module is None or _is_test(path):
            continue
        for call in module.calls_named("DataLoader"):
            function = module.function_of(call)
            if function is None or not any(w in function.name for w in ("val", "test", "eval")):
                continue
            for keyword in call.keywords:
                if keyword.arg in ("sampler", "batch_sampler") and not isinstance(keyword.value, ast.Constant):
                    return Place(f"{function.name} has its own {keyword.arg}", path, call.lineno)
    return None


def _is_test(path: str) -> bool:
    return path.startswith(("tests/", "test/")) or "/tests/" in path


def guarded_metric_read(project: Project) -> Place | None:
    """A hook that reads `trainer.callback_metrics` & co. on some ranks only: with a pending reduction it is a collective."""
    return project.memo("guarded metric read", lambda: _guarded_read(project))


def _guarded_read(project: Project) -> Place | None:
    for view in _METRIC_VIEWS:
        for path in project.files_containing(view.encode()):
            module = project.module(path)
            for node in module.nodes(ast.Attribute) if module else ():
                if node.attr == view and module is not None and ranks_at(module, node).some:
                    return Place(f"{view} is read on some ranks only", path, node.lineno)
    return None


def monitors(project: Project) -> dict[str, Place]:
    """Every key that a `monitor=` or `"monitor":` names, with the first place."""
    return project.memo("monitors", lambda: _monitors(project))


def _monitors(project: Project) -> dict[str, Place]:
    found: dict[str, Place] = {}
    for path in project.files_containing(b"monitor"):
        module = project.module(path)
        if module is None:
            continue
        for call in module.nodes(ast.Call):
            for keyword in call.keywords:
                if keyword.arg == "monitor" and isinstance(keyword.value, ast.Constant):
                    name = last(qualified(module, call.func)) or "a call"
                    found.setdefault(str(keyword.value.value), Place(f"{name}(monitor=…)", path, keyword.value.lineno))
        for mapping in module.nodes(ast.Dict):
            for key, value in zip(mapping.keys, mapping.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == "monitor" and isinstance(value, ast.Constant):
                    found.setdefault(str(value.value), Place("a learning-rate scheduler's monitor", path, value.lineno))
    return found
