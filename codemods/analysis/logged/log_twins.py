"""Other calls that log the same key in the same hook: Lightning refuses them unless their options agree."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from codemods.analysis.callers import entries, family_of
from codemods.analysis.class_index import ClassSite, class_facts
from codemods.analysis.logged.log_calls import LogCall, key_nodes
from codemods.analysis.names import dotted
from codemods.files.source import FunctionNode, SourceModule, once_a_module
from codemods.runtime.record import field, record
from codemods.store.project import Project
from codemods.store.tables import Table

T = TypeVar("T")


@record(frozen=False)
class Same:
    """The calls that log one key under the same hooks, each with its place among the log calls of the class and its kin.

    known: what is asked of all of them, by name. It is worked out once: a method may log a key thousands of times, and
    thousands of methods may.
    """

    project: Project
    known: Table[str, object]
    logs: dict[ast.Call, tuple[int, LogCall]] = field(default_factory=dict)

    def once(self, name: str, build: Callable[[], T]) -> T:
        if name not in self.known:
            with self.project.apart() as rest:
                found = build()
            self.known.put(name, found, rest)
        return self.known[name]  # type: ignore[return-value]


def twins(log: LogCall) -> list[Same]:
    """The calls that log one of the same keys in the same hook of one object, the call itself among them.

    Lightning refuses a key that is logged twice in a hook with different options (MisconfigurationException).
    """
    if not log.on_self:
        return []
    hooks = entries(log.project, log.facts, log.function).hooks
    out = []
    for key in {ast.unparse(k) for k in key_nodes(log)}:
        for same in _same(log, key):
            _, other = next(iter(same.logs.values()))
            if entries(other.project, other.facts, other.function).hooks & hooks and _run_together(log, other):
                out.append(same)
    return out


def _same(log: LogCall, key: str) -> list[Same]:
    start = log.facts.lineage[0]
    where = ("log calls of a key", start.module.path, start.node.lineno, key)
    return log.project.memo(where, lambda: _grouped(_by_key(log).get(key, ())))


def _grouped(found: Sequence[tuple[int, LogCall]]) -> list[Same]:
    """By the hooks of their methods; a method apart where another of its name may take its place (`_run_together`)."""
    methods = Counter(function.name for function in {log.function: None for _, log in found})
    out: dict[object, Same] = {}
    for place, log in found:
        alone = methods[log.function.name] > 1
        group = log.function if alone else entries(log.project, log.facts, log.function).hooks
        out.setdefault(group, Same(log.project, Table(log.project))).logs[log.call] = (place, log)
    return list(out.values())


def _by_key(log: LogCall) -> dict[str, list[tuple[int, LogCall]]]:
    start = log.facts.lineage[0]
    key = ("log calls", start.module.path, start.node.lineno)
    return log.project.memo(key, lambda: _gathered(_find_logs(log)))


def _gathered(found: Iterable[tuple[LogCall, frozenset[str]]]) -> dict[str, list[tuple[int, LogCall]]]:
    out: dict[str, list[tuple[int, LogCall]]] = {}
    for place, (log, keys) in enumerate(found):
        for key in keys:
            out.setdefault(key, []).append((place, log))
    return out


def _find_logs(log: LogCall) -> Iterator[tuple[LogCall, frozenset[str]]]:
    for site in family_of(log.project, log.facts):
        yield from _logs_of_class(log.project, site)


def _logs_of_class(project: Project, site: ClassSite) -> list[tuple[LogCall, frozenset[str]]]:
    """The log calls in the methods that stand in this class, with their keys."""
    key = ("log calls of a class", site.module.path, site.node.lineno)
    return project.memo(key, lambda: list(_find_in_class(project, site)))


def _find_in_class(project: Project, site: ClassSite) -> Iterator[tuple[LogCall, frozenset[str]]]:
    for call, function in _own_log_calls(site.module).get(site.node, ()):
        found = LogCall(site.module, project, call, class_facts(project, site.module, site.node), function)
        yield found, frozenset(ast.unparse(k) for k in key_nodes(found))


@once_a_module
def _own_log_calls(module: SourceModule) -> dict[ast.ClassDef, list[tuple[ast.Call, FunctionNode]]]:
    """`self.log` and `self.log_dict` of a file, by the class in whose methods they stand."""
    out: dict[ast.ClassDef, list[tuple[ast.Call, FunctionNode]]] = {}
    for call in module.calls_named("log", "log_dict"):
        place = module.method_of(call)
        if place is not None and isinstance(call.func, ast.Attribute) and dotted(call.func.value) == "self":
            out.setdefault(place[0], []).append((call, place[1]))
    return out


def _run_together(log: LogCall, other: LogCall) -> bool:
    """False where one of the two methods takes the place of the other: same name, and no call of the one above it."""
    if log.function is other.function or log.function.name != other.function.name:
        return True
    nearer = log if any(s.node is other.facts.lineage[0].node for s in log.facts.lineage[1:]) else other
    calls = (n for n in ast.walk(nearer.function) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute))
    return any(c.func.attr == log.function.name and isinstance(c.func.value, ast.Call) for c in calls)  # type: ignore[attr-defined]
