"""Checkpoints whose names hold numbers that each rank has for itself, and that are asked for as the best one.

Rank 0 alone writes the file; the other ranks keep the name that they have made of their own number.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.logged.log_calls import LogCall, as_any_log_call, epoch_level, key_nodes, reached
from codemods.analysis.logged.sync_twins import judge
from codemods.analysis.names import qualified
from codemods.analysis.ranks.rank_guards import ranks_at
from codemods.files.source import SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_KEY = lazy(r"\{([^{}:]+)(?::[^{}]*)?\}")
_SAME = frozenset({"epoch", "step"})
_RUNS = ("test", "validate", "predict")


@record
class NamedCheckpoint:
    """made: the `ModelCheckpoint`. key: in its name, logged unreduced by `log`. asked: the call that is given the best one."""

    made: ast.Call
    key: str
    log: LogCall
    asked: ast.Call


def named_checkpoints(project: Project, module: SourceModule) -> Iterator[NamedCheckpoint]:
    asked = next(_asked_for_best(project, module), None) if module.holds(b"ModelCheckpoint(") else None
    if asked is None:
        return
    for made in module.calls_named("ModelCheckpoint"):
        if "lightning" not in qualified(module, made.func):
            continue
        for key in _keys(made):
            if (log := _unreduced(project, key)) is not None:
                yield NamedCheckpoint(made, key, log, asked)
                break


def _asked_for_best(project: Project, module: SourceModule) -> Iterator[ast.Call]:
    for call in module.calls_named(*_RUNS):
        given = next((k.value for k in call.keywords if k.arg == "ckpt_path"), None)
        if isinstance(given, ast.Constant) and given.value == "best" and not ranks_at(module, call, project=project).some:
            yield call


def _keys(made: ast.Call) -> list[str]:
    name = next((k.value for k in made.keywords if k.arg == "filename"), None)
    parts = name.values if isinstance(name, ast.JoinedStr) else [name]
    text = "".join(str(p.value) if isinstance(p, ast.Constant) else "" for p in parts)
    return [key for key in _KEY.findall(text) if key not in _SAME]


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
