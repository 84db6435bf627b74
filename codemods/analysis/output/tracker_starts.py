"""The places where a project starts a run of Weights & Biases, and on which ranks a run is there afterwards."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bound_values import assigned
from codemods.analysis.distribution import is_own_test, ranks_in_file
from codemods.analysis.files.every_rank import is_for_some, starts_processes, way_of_every_rank
from codemods.analysis.literals import is_none
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.output.effects import names_rank
from codemods.analysis.output.observers import is_left_to_rank_zero
from codemods.analysis.ranks.rank_guards import Ranks
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.analysis.ranks.uses import calls_of
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.corpus import calls
from codemods.store.project import Project

# What asks whether this process has a run: the same as a test of the rank, where only rank 0 starts one.
_ASKS_FOR_RUN = lazy(r"wandb\.run\b|^(?:not )?wandb\b(?!\.)|\bis_main|\bis_master|_logger\b|\bdisabled\b")
_MAY_BE_RANK = lazy(r"main|master|chief|zero|primary|root|lead|_ref_|gpu|device")
_OFF = lazy(r"[\"'](?:disabled|dryrun)[\"']")


@record
class RunStart:
    """A `wandb.init(...)`, whether every rank comes there, whether it is one for each rank on purpose, and under a test.

    each_has_one: every rank holds a run behind it, be it one that is switched off: `wandb.log` is no error there.
    """

    module: SourceModule
    call: ast.Call
    everywhere: bool
    on_purpose: bool
    guarded: bool
    each_has_one: bool


def runs_of(project: Project) -> list[RunStart]:
    """Every `wandb.init(...)` of the project's own code."""
    return project.memo("wandb runs", lambda: _find_runs(project))


def _find_runs(project: Project) -> list[RunStart]:
    found = []
    for path in project.files_containing(b"wandb"):
        data = project.read(path) or b""
        if is_own_test(project, path) or not calls(data, b"init") or (module := project.module(path)) is None:
            continue
        for call in module.calls_named("init"):
            if qualified(module, call.func) == "wandb.init":
                found.append(_start(project, module, call))
    return found


def _start(project: Project, module: SourceModule, call: ast.Call) -> RunStart:
    text = module.text_of(call)
    mode = next((k.value for k in call.keywords if k.arg == "mode"), None)
    reaching = ranks_reaching(project, module, call)
    grouped = any(k.arg == "group" and not is_none(k.value) for k in call.keywords) or names_rank(text)
    on_purpose = grouped and reaching is not Ranks.ZERO  # rank 0 alone starts one run, whatever group it is put in
    decided = isinstance(mode, ast.IfExp) or _is_off(mode) or _is_decided_above(module, call, mode)
    decided = decided or _is_decided_by_environment(project) or (module.holds(b"WANDB_MODE") and names_rank(module.text))
    home = module.function_of(call)
    known = ranks_in_file(project, module) is not None or way_of_every_rank(project, module, call) is not None
    reached = known and not reaching.some
    if home is not None and _is_class_method(module, home):
        reached = reached and not is_left_to_rank_zero(project, module, home)
    asked = asks_for_run(module, module.statement_of(call))
    among = asked or _is_kept_to_some(project, module, call)
    kept = decided or among
    reached = reached and not is_for_some(project, module, call) and not _is_of_the_starter(project, module, home)
    each = (reached and not among and not _is_off(mode)) or (_is_off(mode) and _is_for_the_others(module, call, reaching))
    return RunStart(module, call, reached and not kept, on_purpose, kept, each)


def _is_of_the_starter(project: Project, module: SourceModule, home: FunctionNode | None) -> bool:
    """True in the function that starts the processes of the run, and in one that such functions alone call."""
    if starts_processes(project, module, home):
        return True
    sites = calls_of(project, module, home) if home is not None else None
    return bool(sites) and all(starts_processes(project, s.module, s.module.function_of(s.call)) for s in sites or ())


def _is_off(mode: ast.expr | None) -> bool:
    return isinstance(mode, ast.Constant) and mode.value == "disabled"


def _is_decided_above(module: SourceModule, call: ast.Call, mode: ast.expr | None) -> bool:
    """True where the mode is a variable, or a key of the dict of keywords, that is "disabled" on one of its ways."""
    if mode is not None:
        values = assigned(module, mode, dotted(mode)) if dotted(mode) else []
        stores = _stores(module, dotted(mode)) if isinstance(mode, ast.Attribute) else []
        return any(isinstance(v, ast.IfExp) or len(values) > 1 or v in stores for v in (*values, *stores) if _says_off(module, v))
    tables = [k.value for k in call.keywords if k.arg is None]
    return any(_says_off(module, v) for table in tables for v in _modes_of_table(module, table))


def _says_off(module: SourceModule, value: ast.expr) -> bool:
    return bool(_OFF.search(module.text_of(value)))


def _stores(module: SourceModule, name: str) -> list[ast.expr]:
    """What is assigned to `name`, an attribute of anything."""
    return [a.value for a in module.nodes(ast.Assign) if any(dotted(target) == name for target in a.targets)]


def _modes_of_table(module: SourceModule, table: ast.expr) -> Iterator[ast.expr]:
    """What stands under "mode" in a dict of keywords, where it is made and where it is changed."""
    name = dotted(table)
    for made in [table, *(assigned(module, table, name) if name else [])]:
        for part in walk(made):
            if isinstance(part, ast.Dict):
                yield from (v for k, v in zip(part.keys, part.values, strict=True) if _is_text(k, "mode"))
            elif isinstance(part, ast.Call) and last(dotted(part.func)) == "dict":
                yield from (k.value for k in part.keywords if k.arg == "mode")
    if not name:
        return
    for assign in module.nodes(ast.Assign):
        for target in assign.targets:
            if isinstance(target, ast.Subscript) and dotted(target.value) == name and _is_text(target.slice, "mode"):
                yield assign.value
    for update in module.calls_named("update", "setdefault"):
        if isinstance(update.func, ast.Attribute) and dotted(update.func.value) == name:
            yield from (k.value for k in update.keywords if k.arg == "mode")
            yield from (v for a in update.args if isinstance(a, ast.Dict) for v in a.values)


def _is_decided_by_environment(project: Project) -> bool:
    """True where a file of the project sets WANDB_MODE by rank: the client of those ranks is switched off."""
    paths = project.files_containing(b"WANDB_MODE")
    return project.memo("WANDB_MODE by rank", lambda: any(_sets_mode(project, path) for path in paths))


def _sets_mode(project: Project, path: str) -> bool:
    module = project.module(path) if not is_own_test(project, path) else None
    for text in module.nodes(ast.Constant) if module is not None else ():
        if module is None or not _is_text(text, "WANDB_MODE"):
            continue
        statement = module.statement_of(text)
        tests = [up.test for up in module.ancestors(text) if isinstance(up, (ast.If, ast.IfExp))]
        tests += [n.test for n in walk(statement) if isinstance(n, ast.IfExp)]
        if ranks_reaching(project, module, statement).some or any(_may_be_of_rank(module.text_of(t)) for t in tests):
            return True
    return False


def _is_for_the_others(module: SourceModule, call: ast.Call, reaching: Ranks) -> bool:
    """True where rank 0 has another run: `if main: wandb.init(…) else: wandb.init(mode="disabled")`."""
    if reaching in (Ranks.OTHERS, Ranks.LOCAL_OTHERS):
        return True
    starts = [c for c in module.calls_named("init") if c is not call and qualified(module, c.func) == "wandb.init"]
    for up in module.ancestors(call):
        if isinstance(up, ast.If) and _may_be_of_rank(module.text_of(up.test)):
            return any(up in module.ancestors(c) for c in starts)
    return False


def _may_be_of_rank(text: str) -> bool:
    return "__name__" not in text and bool(names_rank(text) or _MAY_BE_RANK.search(text))


def _is_text(node: ast.expr | None, text: str) -> bool:
    return isinstance(node, ast.Constant) and node.value == text


def _is_kept_to_some(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True under a test that may be of the rank, at the call or at a call of its function."""
    home = module.function_of(call)
    sites = calls_of(project, module, home) or () if home is not None else ()
    places = [(module, call), *((s.module, s.call) for s in sites)]
    if any(ranks_reaching(project, m, c).some for m, c in places):
        return True
    tests = ((m, up.test) for m, c in places for up in m.ancestors(c) if isinstance(up, (ast.If, ast.IfExp)))
    texts = [m.text_of(test) for m, test in tests]
    return any(_may_be_of_rank(text) for text in texts)


def _is_class_method(module: SourceModule, function: FunctionNode) -> bool:
    return isinstance(module.parent(function), ast.ClassDef)


def asks_for_run(module: SourceModule, statement: ast.stmt) -> bool:
    """True under a test that asks for the run itself, or for a logger that only rank 0 has."""
    tests = [up.test for up in module.ancestors(statement) if isinstance(up, ast.If)]
    if isinstance(statement, ast.If):
        tests.append(statement.test)
    return any(_ASKS_FOR_RUN.search(module.text_of(test)) for test in tests)
