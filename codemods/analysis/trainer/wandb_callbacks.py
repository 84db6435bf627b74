"""Heirs of transformers' WandbCallback, which starts its run on the first process alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import class_facts
from codemods.analysis.names import dotted, family, last
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_ASKS = lazy(r"process_zero|rank|is_main|\.run\b|_wandb\b", 2)
_STATE = 2  # `on_evaluate(self, args, state, control, **kwargs)`
_REPORTS = frozenset({"log", "log_artifact", "save", "alert"})


def reports_of_heirs(project: Project, module: SourceModule) -> Iterator[tuple[ast.Call, str]]:
    """(`self._wandb.log(...)` of a hook that no test stands over, the name of the hook's state), in the order of the file."""
    for call in module.calls_named(*_REPORTS):
        if not dotted(call.func).startswith("self._wandb."):
            continue
        place = module.method_of(call)
        if place is None or not _is_heir(project, module, place[0]) or module.function_of(call) is not place[1]:
            continue
        names = [a.arg for a in place[1].args.args]
        if not place[1].name.startswith("on_") or len(names) <= _STATE or _is_tested(module, place[1], call):
            continue
        if not any(isinstance(n, ast.Name) and n.id == names[_STATE] and isinstance(n.ctx, ast.Store) for n in walk(place[1])):
            yield call, names[_STATE]


def _is_heir(project: Project, module: SourceModule, node: ast.ClassDef) -> bool:
    """True for a class that leaves it to transformers to start the run."""
    facts = class_facts(project, module, node)
    bases = [n for n in facts.external if last(n) == "WandbCallback" and family(n) == "transformers"]
    return bool(bases) and not facts.unresolved and facts.method("setup") is None


def _is_tested(module: SourceModule, hook: FunctionNode, call: ast.Call) -> bool:
    """True where a test of the process or of the run stands over the call, or lets others out above it; and in a `try`."""
    for up in module.ancestors(call):
        if up is hook:
            break
        if isinstance(up, ast.Try) or (isinstance(up, (ast.If, ast.IfExp)) and _ASKS.search(module.text_of(up.test))):
            return True
    tests = (n for n in walk(hook) if isinstance(n, ast.If) and n.lineno < call.lineno and _ASKS.search(module.text_of(n.test)))
    return any(isinstance(n, ast.Return) for t in tests for n in walk(t))
