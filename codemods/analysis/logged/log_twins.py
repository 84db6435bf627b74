"""Other calls that log the same key in the same hook: Lightning refuses them unless their options agree."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.callers import entries, family_of
from codemods.analysis.class_index import class_facts
from codemods.analysis.logged.log_calls import LogCall, key_nodes
from codemods.analysis.names import dotted


def twins(log: LogCall) -> Iterator[LogCall]:
    """Other calls that log one of the same keys in the same hook of one object.

    Lightning refuses a key that is logged twice in a hook with different options (MisconfigurationException).
    """
    if not log.on_self:
        return
    own = {ast.unparse(k) for k in key_nodes(log)}
    hooks = entries(log.project, log.facts, log.function).hooks
    for other, keys in _logs_of_family(log):
        if other.call is log.call or not own & keys:
            continue
        if entries(other.project, other.facts, other.function).hooks & hooks and _run_together(log, other):
            yield other


def _logs_of_family(log: LogCall) -> list[tuple[LogCall, frozenset[str]]]:
    start = log.facts.lineage[0]
    key = ("log calls", start.module.path, start.node.lineno)
    return log.project.memo(key, lambda: list(_find_logs(log)))


def _find_logs(log: LogCall) -> Iterator[tuple[LogCall, frozenset[str]]]:
    for site in family_of(log.project, log.facts):
        for call in site.module.calls_named("log", "log_dict"):
            owner = site.module.method_of(call)
            if owner is not None and owner[0] is site.node and isinstance(call.func, ast.Attribute):
                if dotted(call.func.value) == "self":
                    found = LogCall(site.module, log.project, call, class_facts(log.project, site.module, site.node), owner[1])
                    yield found, frozenset(ast.unparse(k) for k in key_nodes(found))


def _run_together(log: LogCall, other: LogCall) -> bool:
    """False where one of the two methods takes the place of the other: same name, and no call of the one above it."""
    if log.function is other.function or log.function.name != other.function.name:
        return True
    nearer = log if any(s.node is other.facts.lineage[0].node for s in log.facts.lineage[1:]) else other
    calls = (n for n in ast.walk(nearer.function) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute))
    return any(c.func.attr == log.function.name and isinstance(c.func.value, ast.Call) for c in calls)  # type: ignore[attr-defined]
