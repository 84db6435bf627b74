"""Files under a test for rank 0 that asks torch.distributed before anybody has started the group: it is true on every rank."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_of
from codemods.analysis.call_graph import called_function
from codemods.analysis.distribution import is_test_file
from codemods.analysis.files.changed_files import changed
from codemods.analysis.files.file_calls import Act, FileCall
from codemods.analysis.files.own_paths import is_own_path, leads_to
from codemods.analysis.guards.before_group import group_comes_later
from codemods.analysis.paths import origin_text
from codemods.analysis.ranks.rank_guards import Ranks, guards_over, ranks_at
from codemods.analysis.ranks.uses import CallSite, uses_of
from codemods.files.source import SourceModule, walk, walk_scope
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_DEPTH = 4
# What may have started the group above, whoever wrote it.
_MAY_START = lazy(
    r"\b\w*(?:init|setup|set_up|launch|spawn|prepare|start)\w*\(|\w*(?:Trainer|TrainingArguments|State|Fabric|Accelerator)\(|"
    r"parse_(?:args_into|json|yaml|dict)\w*\("
)
_FOR_ONE = lazy(r"\brank\b[^\n=]*= 0\b|return 0\b|else 0\b|return True|not [\w.]*is_initialized\(\) or")  # the answer without one
_CLOCK = lazy(r"\b(?:now|today|utcnow)\(|\bstrftime\(|\btime\.(?:time|localtime|ctime)\(|\basctime\(|\brandom\b|token_hex|uuid")


@record
class TooEarly:
    """file: what every rank writes, under the test by `helper`. site: the call above the start. start: what starts the group."""

    file: FileCall
    helper: str
    site: CallSite
    start: str


def guarded_too_early(project: Project, module: SourceModule) -> Iterator[TooEarly]:
    if not module.holds(b"rank") and not module.holds(b"main"):
        return
    for call in module.nodes(ast.Call):
        found = changed(module, call) if module.function_of(call) is not None else None
        if found is None or found.act is not Act.WRITES or ranks_at(module, call, project=project) is not Ranks.ZERO:
            continue
        helper = _helper_over(project, module, call)
        if helper and (early := _early(project, module, found)) is not None:
            yield TooEarly(found, helper, *early)


def _helper_over(project: Project, module: SourceModule, call: ast.Call) -> str:
    """The function of the project that all tests for the rank round the call ask, and that answers 0 without a group."""
    asked = [g.node.test for g in guards_over(module, call, project=project) if isinstance(g.node, ast.If) and g.ranks.some]
    helpers = [_asked_of(project, module, test) for test in asked]
    return helpers[0] if helpers and all(helpers) else ""


def _asked_of(project: Project, module: SourceModule, test: ast.expr) -> str:
    values: list[ast.expr] = [test]
    for name in (n for n in walk(test) if isinstance(n, ast.Name)):
        values += [b.value for b in bindings_of(module, name) if b.value is not None]
    for asked in (n for v in values for n in walk(v) if isinstance(n, ast.Call)):
        site = called_function(project, module, asked)
        text = site.module.text_of(site.node) if site is not None else ""
        of_group = "is_initialized" in text and "get_rank(" in text and "environ" not in text and "getenv" not in text
        if of_group and _FOR_ONE.search(text):
            return module.text_of(asked)
    return ""


def _early(project: Project, module: SourceModule, file: FileCall) -> tuple[CallSite, str] | None:
    """The first call of the function, and what starts the group below it, where that is so of every call."""
    function = module.function_of(file.call)
    used = uses_of(project, module, function).outside_tests() if function is not None else None
    if function is None or used is None or used.more or used.handed_on or not used.calls:
        return None
    if is_own_path(project, module, file.path) or any(_CLOCK.search(_origins(s)) for s in used.calls):
        return None  # each process has a file of its own
    starts = [_start_below(project, site) for site in used.calls if leads_to(project, site, function)]
    if len(starts) != len(used.calls) or not all(starts):
        return None
    return used.calls[0], starts[0]


def _origins(site: CallSite) -> str:
    given = (*site.call.args, *(k.value for k in site.call.keywords))
    return " ".join(origin_text(site.module, value) for value in given)


def _start_below(project: Project, site: CallSite) -> str:
    if is_test_file(site.module.path) or _may_be_started(project, site.module, site.call, _DEPTH):
        return ""
    start = group_comes_later(project, site.module, site.call)
    return "" if "." in start.partition("(")[0] else start  # `trainer.fit()` of Lightning, which may start the processes, too


def _may_be_started(project: Project, module: SourceModule, node: ast.expr, depth: int) -> bool:
    """True where something above the place, or above a call that leads there, may start a group."""
    function = module.function_of(node)
    scope = function if function is not None else module.tree
    above = (n for n in walk_scope(scope) if isinstance(n, ast.Call) and n is not node and n.lineno <= node.lineno)
    if any(_MAY_START.search(f"{module.text_of(c.func)}(") for c in above):
        return True
    if function is None:
        return False
    used = uses_of(project, module, function).outside_tests()
    if depth == 0 or used.more or used.handed_on:
        return True
    return any(_may_be_started(project, s.module, s.call, depth - 1) for s in used.calls)
