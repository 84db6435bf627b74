"""How the project feeds its evaluation: data that ranks may get unevenly."""

from __future__ import annotations

import ast
import os
import re

from codemods.analysis.distribution import is_test_file
from codemods.analysis.logged.pending_metrics import Place
from codemods.analysis.names import last, qualified
from codemods.files.import_statements import stem_of
from codemods.files.source import SourceModule, called_name
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_STREAMS = (b"IterableDataset", b"webdataset", b"IterableDataPipe", b"IterDataPipe", b"nvidia.dali", b"streaming=True")
_STREAM_BASES = frozenset({"IterableDataset", "IterableDataPipe", "IterDataPipe"})
# What the bytes must show before a file is parsed for it: many more speak of such data than make them.
_STREAM = rb"(?:IterableDataset|IterableDataPipe|IterDataPipe)"
_MAKES_A_STREAM = lazy(
    rb"class[ \t]+\w+[^\n(]*\([^)]*" + _STREAM + rb"|" + _STREAM + rb"[ \t]+as\b|(?:import|from)[ \t][^\n]*webdataset"
    rb"|streaming[ \t]*=[ \t]*True"
)
_SAMPLER = lazy(rb"sampler[ \t]*=(?!=)")
_NOT_CODE = ("docs/", "doc/", "third_party/")


def uneven_data(project: Project, near: str) -> Place | None:
    """What shows data that Lightning does not split evenly, where it may feed the class in the file `near`.

    An iterable data set, sharding switched off, an evaluation loader with a sampler of its own. A data set that only its own
    script uses says nothing of the other scripts of a repository.
    """
    for place, name in project.keep("uneven data", lambda: _uneven(project)):
        if place.path == near or _shared(project, place.path, name) or _uses(project, place.path, near):
            return place
    return None


def _shared(project: Project, path: str, name: str) -> bool:
    """True where another file takes the data from there: by the class's name, by an import, by a configuration's path."""
    config = (".yaml", ".yml", ".json")
    if name:
        return any(p != path for p in project.files_containing(name.encode(), kinds=(".py", *config)))
    return project.keep(("taken from", path), lambda: _is_imported(project, path, config))


def _is_imported(project: Project, path: str, config: tuple[str, ...]) -> bool:
    stem = stem_of(path)
    if project.files_containing(os.fsencode(f".{stem}."), kinds=config):
        return True
    for other in project.files_containing(os.fsencode(stem)):
        module = project.module(other) if other != path else None
        for found in module.imports.values() if module else ():
            for item in found:
                resolved = project.resolve(item.dotted, other) if stem in item.dotted else None
                if resolved is not None and resolved.path == path:
                    return True
    return False


def _uses(project: Project, path: str, near: str) -> bool:
    """True where the script at `path` imports the module, or one of the classes, of the file `near`."""
    script, module = project.module(path), project.module(near)
    if script is None or module is None:
        return True
    stem = stem_of(near)
    wanted = {stem, *(c.name for c in module.nodes(ast.ClassDef))}
    return any(wanted & set(item.dotted.split(".")) for found in script.imports.values() for item in found)


def _uneven(project: Project) -> list[tuple[Place, str]]:
    """(place, class name where a class shows it)."""
    found: list[tuple[Place, str]] = []
    for path in sorted({p for word in _STREAMS for p in project.files_containing(word)}):
        module = _shown(project, path, _MAKES_A_STREAM) if not _aside(path) else None
        found += _iterable(module) if module else []
    for keyword in ("use_distributed_sampler", "replace_sampler_ddp"):
        for path in project.files_containing(keyword.encode()):
            module = None if _aside(path) else project.module(path)
            for call in module.nodes(ast.Call) if module else ():
                for k in call.keywords if called_name(call) != "setup_dataloaders" else ():  # there it is Fabric's, of one loader
                    if k.arg == keyword and not (isinstance(k.value, ast.Constant) and k.value.value is True):
                        found.append((Place(f"{keyword}={ast.unparse(k.value)}", path, k.value.lineno), ""))
    return [*found, *((place, "") for place in _own_samplers(project, evaluation=True))]


def _iterable(module: SourceModule) -> list[tuple[Place, str]]:
    found = []
    for node in module.nodes(ast.ClassDef):
        if any(last(qualified(module, b)) in _STREAM_BASES for b in node.bases):
            found.append((Place(f"{node.name} is an iterable data set", module.path, node.lineno), node.name))
    if any(name.partition(".")[0] == "webdataset" for name in module.imported_modules):
        found.append((Place("webdataset streams its samples", module.path, 1), ""))
    for call in module.calls_named("load_dataset"):
        if any(k.arg == "streaming" and isinstance(k.value, ast.Constant) and k.value.value is True for k in call.keywords):
            found.append((Place("load_dataset(streaming=True) streams its samples", module.path, call.lineno), ""))
    return found


def own_batches(project: Project) -> Place | None:
    """A loader whose batches a class of the project makes: ranks may get different numbers of them."""
    return project.keep("own batches", lambda: next(iter(_own_samplers(project, evaluation=False)), None))


def _own_samplers(project: Project, *, evaluation: bool) -> list[Place]:
    found = []
    for path in project.files_containing(b"sampler"):
        aside = _aside(path) or b"DataLoader(" not in (project.read(path) or b"")
        module = None if aside else _shown(project, path, _SAMPLER)
        for call in module.calls_named("DataLoader") if module else ():
            function = module.function_of(call) if module else None
            named = function is not None and any(w in function.name for w in ("val", "test", "eval"))
            wanted = ("sampler", "batch_sampler") if evaluation else ("batch_sampler",)
            for keyword in call.keywords:
                set_here = keyword.arg in wanted and not isinstance(keyword.value, ast.Constant)
                if set_here and (named or not evaluation):
                    found.append(Place(f"a DataLoader has its own {keyword.arg}", path, call.lineno))
    return found


def _shown(project: Project, path: str, pattern: re.Pattern[bytes]) -> SourceModule | None:
    """The file, if its bytes match."""
    return project.module(path) if pattern.search(project.read(path) or b"") else None


def _aside(path: str) -> bool:
    return is_test_file(path) or path.startswith(_NOT_CODE)
