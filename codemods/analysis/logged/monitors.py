"""What decides by a logged key: the callbacks and schedulers that monitor it, where they belong to the model that logs it."""

from __future__ import annotations

import ast
import re

from codemods.analysis.callers import family_of
from codemods.analysis.class_index import ClassFacts, ClassSite, Role, class_facts, subclasses
from codemods.analysis.distribution import is_test_file
from codemods.analysis.logged.monitored_schedulers import entries_of, reader_of
from codemods.analysis.logged.pending_metrics import Place
from codemods.analysis.names import last, qualified
from codemods.files.source import SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_MONITOR = lazy(rb"\bmonitor[ \t]*=(?!=)|[\"']monitor[\"']")


def monitors(project: Project) -> dict[str, list[Place]]:
    """Every key that a `monitor=`, a `"monitor":` or a line of YAML names, with its places."""
    return project.keep("monitors", lambda: _monitors(project))


def watcher_of(project: Project, key: str, facts: ClassFacts) -> Place | None:
    """What decides by a key that a class logs: in its own file, or in a script or configuration that names the class.

    A monitor of the same name in a script of another model says nothing of this one; where the project has one model, it counts.
    """
    found = monitors(project)
    places = [*found.get(key, []), *found.get(f"{key}_step", []), *found.get(f"{key}_epoch", [])]
    if not places:
        return None
    kin = family_of(project, facts)
    at_home = [p for p in places if _stands_in(project, p, kin)]
    if at_home:
        return at_home[0]
    above = {id(s.node) for s in facts.lineage[1:]}  # a script that names a base makes no object of the class
    made = [s for s in kin if id(s.node) not in above]
    named = re.compile(rb"\b(?:%b)\b" % b"|".join(re.escape(s.name.encode()) for s in made))
    naming = (p for p in places if not _is_in_a_class(project, p) and named.search(project.read(p.path) or b""))
    return next(naming, None) or (places[0] if _is_the_only_model(project, kin) else None)


def _stands_in(project: Project, place: Place, kin: tuple[ClassSite, ...]) -> bool:
    """True in one of the classes, and beside them in their file."""
    beside = place.path in {s.module.path for s in kin} and not _is_in_a_class(project, place)
    return beside or any(
        s.module.path == place.path and s.node.lineno <= place.line <= (s.node.end_lineno or s.node.lineno) for s in kin
    )


def _is_in_a_class(project: Project, place: Place) -> bool:
    """True in the body of a LightningModule: its own scheduler's monitor."""
    module = project.module(place.path) if place.path.endswith(".py") else None
    classes = module.nodes(ast.ClassDef) if module is not None else ()
    inside = [c for c in classes if c.lineno <= place.line <= (c.end_lineno or c.lineno)]
    return module is not None and any(class_facts(project, module, c).is_a(Role.LIGHTNING_MODULE) for c in inside)


def _is_the_only_model(project: Project, kin: tuple[ClassSite, ...]) -> bool:
    """True where each LightningModule of the project is one of these classes."""
    known = {(s.module.path, s.node.lineno) for s in kin}
    return project.keep("lightning modules", lambda: _models(project)) <= known


def _models(project: Project) -> set[tuple[str, int]]:
    found = set()
    for path in project.files_containing(b"LightningModule"):
        module = None if is_test_file(path) else project.module(path)
        for node in module.nodes(ast.ClassDef) if module else ():
            if module is not None and class_facts(project, module, node).is_a(Role.LIGHTNING_MODULE):
                start = ClassSite(module, node)
                found |= {(s.module.path, s.node.lineno) for s in (start, *subclasses(project, start))}
    return found


def _spelling_out(project: Project, path: str) -> SourceModule | None:
    """The file, if its bytes show a monitor."""
    return project.module(path) if _MONITOR.search(project.read(path) or b"") else None


_YAML = lazy(r"^\s*(?:-\s*)?monitor:\s*[\"']?([^\s\"'#]+)", re.M)


def _monitors(project: Project) -> dict[str, list[Place]]:
    found: dict[str, list[Place]] = {}
    for path in project.files_containing(b"monitor"):
        module = None if is_test_file(path) else _spelling_out(project, path)
        if module is not None:
            _in_python(project, module, found)
    for path in project.files_containing(b"monitor:", kinds=(".yaml", ".yml")):
        text = (project.read(path) or b"").decode("utf-8", "replace")
        for match in _YAML.finditer(text):
            line = text.count("\n", 0, match.start(1)) + 1
            found.setdefault(match.group(1), []).append(Place(f"`monitor: {match.group(1)}`", path, line))
    return found


def _in_python(project: Project, module: SourceModule, found: dict[str, list[Place]]) -> None:
    for call in module.nodes(ast.Call):
        for keyword in call.keywords:
            if keyword.arg == "monitor" and isinstance(keyword.value, ast.Constant):
                text = _reader(project, module, call)
                if text is not None:
                    found.setdefault(str(keyword.value.value), []).append(Place(text, module.path, keyword.value.lineno))
    for mapping in module.nodes(ast.Dict):
        value = (entries := entries_of(mapping)).get("monitor")
        if isinstance(value, ast.Constant) and (text := reader_of(project, module, entries, mapping)) is not None:
            key = str(value.value)
            found.setdefault(key, []).append(Place(text or f"`monitor: {key}`", module.path, value.lineno))


def _reader(project: Project, module: SourceModule, call: ast.Call) -> str | None:
    """What reads the monitor that a call is given; None for that of a scheduler which goes by no number, and of a checkpoint
    which keeps no best ones (`save_top_k=0`).
    """
    given = {k.arg: k.value for k in call.keywords if k.arg is not None}
    kept = given.get("save_top_k")
    if last(qualified(module, call.func)) == "ModelCheckpoint" and isinstance(kept, ast.Constant) and kept.value == 0:
        return None
    of_scheduler = reader_of(project, module, given, call) if given.keys() & {"scheduler", "lr_scheduler"} else ""
    return of_scheduler if of_scheduler != "" else f"{last(qualified(module, call.func)) or 'a call'}(monitor=…)"
