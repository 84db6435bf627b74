"""Checkpoints whose names hold numbers that each rank has for itself, and that are asked for as the best one.

Rank 0 alone writes the file; the other ranks keep the name that they have made of their own number.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.bound_values import assigned
from codemods.analysis.distribution import is_test_file
from codemods.analysis.handlers import tries_over
from codemods.analysis.logged.log_calls import LogCall, as_any_log_call, epoch_level, key_nodes, reached
from codemods.analysis.logged.sync_twins import judge
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.analysis.ranks.run_by_programs import is_run_by_nobody
from codemods.files.source import SourceModule
from codemods.files.text_entries import tables
from codemods.files.text_file import TextFile
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_KEY = lazy(r"\{([^{}:]+)(?::[^{}]*)?\}")
_SAME = frozenset({"epoch", "step"})
_CONFIGS = (".yaml", ".yml")
_RUNS = ("test", "validate", "predict")


@record
class NamedCheckpoint:
    """made: the `ModelCheckpoint`. key: in its name, logged unreduced by `log`. asked: the call that is given the best one.

    by: how it is asked for.
    """

    made: ast.Call
    key: str
    log: LogCall
    asked: ast.Call
    by: str


def named_checkpoints(project: Project, module: SourceModule) -> Iterator[NamedCheckpoint]:
    if not module.holds(b"ModelCheckpoint(") or not (module.holds(b"best_model_path") or module.holds(b"ckpt_path")):
        return
    calls = module.calls_named("ModelCheckpoint")
    for made in calls:
        if "lightning" not in qualified(module, made.func):
            continue
        found = ((key, log) for key in _keys(project, made) if (log := _unreduced(project, key)) is not None)
        key, log = next(found, ("", None))
        if log is None:
            continue
        for asked, by in _asked_for_best(module, made, first=made is calls[0]):
            if _is_of_every_rank(project, module, asked):
                yield NamedCheckpoint(made, key, log, asked, by)
                break


def _asked_for_best(module: SourceModule, made: ast.Call, *, first: bool) -> Iterator[tuple[ast.Call, str]]:
    """What each rank looks for by its own name: `ckpt_path="best"`, and loads of `kept.best_model_path`."""
    for call in module.calls_named(*_RUNS):
        given = next((k.value for k in call.keywords if k.arg == "ckpt_path"), None)
        if isinstance(given, ast.Constant) and given.value == "best":
            yield call, 'ckpt_path="best"'
        elif given is not None and _is_path_of(module, given, made, first=first):
            yield call, module.text_of(given)
    for call in module.calls_named("load_from_checkpoint", "load") if module.holds(b"best_model_path") else ():
        loads = last(dotted(call.func)) == "load_from_checkpoint" or qualified(module, call.func) == "torch.load"
        path = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "checkpoint_path"), None)
        if loads and path is not None and _is_path_of(module, path, made, first=first):
            yield call, module.text_of(path)


def _is_path_of(module: SourceModule, node: ast.expr, made: ast.Call, *, first: bool) -> bool:
    """True for `kept.best_model_path` of the `ModelCheckpoint`, or of the first one of the Trainer, and for a name of it."""
    if isinstance(node, ast.Name):
        given = assigned(module, node, node.id)
        return len(given) == 1 and not isinstance(given[0], ast.Name) and _is_path_of(module, given[0], made, first=first)
    if not isinstance(node, ast.Attribute) or node.attr != "best_model_path":
        return False
    holder = node.value
    if isinstance(holder, ast.Attribute) and holder.attr == "checkpoint_callback" and "trainer" in dotted(holder).lower():
        return first
    return any(value is made for value in assigned(module, holder, dotted(holder)))


def _is_of_every_rank(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """False where rank 0 alone comes there, where the file is asked for first, and where the ranks live within `fit` alone."""
    if ranks_reaching(project, module, call).some or any(tries_over(module, call)):
        return False
    tests = (module.text_of(up.test) for up in module.ancestors(call) if isinstance(up, (ast.If, ast.IfExp)))
    return not any("exist" in test or "is_file" in test or "isfile" in test for test in tests) and not is_run_by_nobody(
        project, module, call
    )


def _keys(project: Project, made: ast.Call) -> list[str]:
    """The keys that the name of the file holds, whichever of the configurations gives it."""
    name = next((k.value for k in made.keywords if k.arg == "filename"), None)
    parts = name.values if isinstance(name, ast.JoinedStr) else [name]
    texts = ["".join(str(p.value) if isinstance(p, ast.Constant) else "" for p in parts)]
    if isinstance(name, ast.Attribute):
        texts = _configured(project, name) or texts
    first, *others = [[key for key in _KEY.findall(text) if key not in _SAME] for text in texts]
    return [key for key in first if all(key in keys for keys in others)]


def _configured(project: Project, name: ast.Attribute) -> list[str]:
    """The texts that YAML files give `config.checkpoint.filename`: those under `checkpoint`, unless a statement sets it."""
    *above, section, key = ["", *dotted(name).split(".")]
    if not above or not any(above):
        return []  # `args.filename`: of whom, no file says
    put = re.compile(rb"\." + re.escape(key.encode()) + rb"\s*=[^=]")
    if any(put.search(project.read(path) or b"") for path in project.files_containing(f".{key}".encode())):
        return []
    found: list[str] = []
    for path in project.files_containing(section.encode(), kinds=_CONFIGS):
        file = project.module(path) if not is_test_file(path) else None
        for table in tables(file) if isinstance(file, TextFile) else ():
            entry = table.entry(key)
            if entry is not None and any(use[-1:] == (section,) for use in table.uses):
                found.append(entry.value)
    return found


def _unreduced(project: Project, key: str) -> LogCall | None:
    """The call that logs the key for an epoch, where that is found to want a reduction; None where any other logs it."""
    found: list[LogCall] = []
    for path in project.files_containing(key.encode()):
        module = project.module(path)
        for call in module.calls_named("log", "log_dict") if module is not None else ():
            log = as_any_log_call(module, project, call) if module is not None else None
            if log is not None and any(isinstance(n, ast.Constant) and n.value == key for n in key_nodes(log)):
                found.append(log)
    kinds = [(reached(log), judge(log)) for log in found]
    ends = [entries is not None and epoch_level(log, entries) for log, (entries, _) in zip(found, kinds, strict=True)]
    return found[0] if found and all(ends) and all(verdict is not None for _, verdict in kinds) else None
