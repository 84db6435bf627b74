"""Modules behind an argument of forward that has a default: does any call of the project hand that argument over?"""

from __future__ import annotations

import ast

from codemods.analysis.class_index import class_facts
from codemods.analysis.distribution import is_test_file
from codemods.analysis.model.flag_setting import Framework, Wrapper
from codemods.analysis.model.flow_values import Cause
from codemods.analysis.model.model_usage import Usage, Verdict
from codemods.analysis.model.signatures import defaults, parameters
from codemods.analysis.model.training_loop import usage_in_loop
from codemods.files.source import walk
from codemods.files.text_file import PYTHON_KINDS
from codemods.runtime.record import replace
from codemods.store.project import Project


def without_argument(project: Project, wrapper: Wrapper, usage: Usage) -> Usage | None:
    """The verdict by the training that the wrapper stands in, where no call hands such an argument over; None unless a module
    never takes part then."""
    if wrapper.framework is not Framework.TORCH or not _only_by_argument(usage) or _handed_over(project, usage):
        return None
    found = usage_in_loop(project, wrapper.module, wrapper.call, usage.site)
    if found is None or found.verdict is not Verdict.NEVER:
        return None
    text = next(d.text for d in usage.skipped if d.cause is Cause.ARGUMENT)
    return replace(found, assumptions=(f"no training asks for what `{text}` lets in", *found.assumptions))


def _only_by_argument(usage: Usage) -> bool:
    """True where an argument of forward, and nothing else that differs from step to step, leaves a module out."""
    causes = {decision.cause for decision in usage.skipped if decision.cause.varies}
    return usage.verdict is Verdict.SOMETIMES and causes == {Cause.ARGUMENT}


def _handed_over(project: Project, usage: Usage) -> bool:
    """True where some call outside of tests may hand one of these arguments over: by its name, or where that cannot be seen."""
    found = class_facts(project, usage.site.module, usage.site.node).method(usage.entry.method)
    if found is None:
        return True
    forward = found[1]
    named = defaults(forward)
    tests = [_parsed(d.text) for d in usage.skipped if d.cause is Cause.ARGUMENT]
    asked = {n.id for test in tests for n in walk(test) if isinstance(n, ast.Name)} & set(named)
    if not asked or forward.args.kwarg is not None or forward.args.vararg is not None:
        return True
    order = [a.arg for a in parameters(forward, bound=True)]
    return any(_hands(project, name, order.index(name), named[name]) for name in asked)


def _parsed(text: str) -> ast.AST:
    try:
        return ast.parse(text, mode="eval")
    except SyntaxError:
        return ast.Module([], [])


def _hands(project: Project, name: str, place: int, default: ast.expr) -> bool:
    """True for a call with `name=…` that is not its default, anywhere in the project; `place` counts for calls of forward."""
    for path in project.files_containing(name.encode()):
        module = project.module(path) if path.endswith(PYTHON_KINDS) and not is_test_file(path) else None
        for keyword in module.nodes(ast.keyword) if module is not None else ():
            if keyword.arg == name and ast.dump(keyword.value) != ast.dump(default):
                return True
        for call in module.calls_named("forward") if module is not None else ():
            if len(call.args) > place:
                return True
    return False
