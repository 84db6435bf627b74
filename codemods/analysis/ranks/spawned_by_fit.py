"""Does Lightning start the ranks of a program inside `fit` alone? What stands outside it is run by one process then.

`strategy="ddp_spawn"`, `DDPStrategy(start_method="spawn")`, and what several devices meant below Lightning 2.0 where no strategy
was named (`AcceleratorConnector._choose_strategy` of 1.9; `strategy="ddp"` and 2.0 start the whole script anew for each rank).
A Trainer may be made by a function that is called, and by `from_argparse_args`, whose options stand in commands.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bound_values import assigned
from codemods.analysis.call_graph import FunctionSite, called_function
from codemods.analysis.distribution import is_test_file
from codemods.analysis.job_files.given_settings import keys_below, set_values
from codemods.analysis.loading.spawned import spawns_in
from codemods.analysis.names import dotted, family, last, qualified
from codemods.analysis.ranks.given_devices import call_gives_several
from codemods.analysis.ranks.launched_texts import names_a_launcher
from codemods.analysis.ranks.old_lightning import PARSED, is_before_two
from codemods.analysis.ranks.parsed_strategies import is_given_no_strategy
from codemods.analysis.ranks.spawning_strategies import spawns_by
from codemods.analysis.ranks.uses import calls_of
from codemods.files.source import FunctionNode, SourceModule, walk_scope
from codemods.files.text_file import PYTHON_KINDS
from codemods.store.project import Project

_CLIMBS = 2
_STEPS = 2
_NAMING = ("strategy", "accelerator", "distributed_backend", "plugins")


def starts_ranks_in_fit(project: Project, module: SourceModule, function: FunctionNode | None) -> bool:
    """True where every Trainer that `function` (or the script) makes may spawn its ranks, and no launcher starts the program.

    Also where functions that it calls make them, and for a function that only such ones call. A program that spawns other ranks
    there is started by no launcher.
    """
    return _does(project, module, function, _CLIMBS)


def _does(project: Project, module: SourceModule, function: FunctionNode | None, climbs: int) -> bool:
    if _starts_its_own(project, module, function) and _makes_spawning(project, module, function):
        return True
    if not _spawning_files(project):
        return False
    if module.path in _spawning_files(project) and _makes_spawning(project, module, function):
        return True
    if function is not None and _is_handed_spawning(project, module, function):
        return True
    if function is None or not climbs or module.parent(function) is not module.tree:
        return False
    sites = calls_of(project, module, function)
    return bool(sites) and all(_does(project, s.module, s.module.function_of(s.call), climbs - 1) for s in sites or ())


def _is_handed_spawning(project: Project, module: SourceModule, function: FunctionNode) -> bool:
    """True where functions that it calls make the Trainers, and each of these may spawn its ranks; a rank makes no Trainer."""
    site = FunctionSite(module, function)
    key = ("Trainers made below", module.path, function.lineno)
    made = project.memo(key, lambda: tuple(_made_below(project, site, _STEPS)))
    return bool(made) and all(_spawns(project, home, call) for home, call in made)


def _made_below(project: Project, site: FunctionSite, steps: int) -> Iterator[tuple[SourceModule, ast.Call]]:
    yield from ((site.module, c) for c in _trainers(site.module, site.node))
    for call in (n for n in walk_scope(site.node) if isinstance(n, ast.Call)) if steps else ():
        called = called_function(project, site.module, call)
        if called is not None and called.node is not site.node:
            yield from _made_below(project, called, steps - 1)


def _starts_its_own(project: Project, module: SourceModule, function: FunctionNode | None) -> bool:
    """True beside `mp.spawn(run, …)`: no launcher starts a program that starts its ranks itself, and calls `run` nowhere."""
    spawned = [s.worker.node.name for s in spawns_in(project, module, function)] if module.holds(b"spawn(") else []
    return bool(spawned) and not module.calls_named(*spawned)


def _spawning_files(project: Project) -> frozenset[str]:
    """The files of the project in which such a Trainer is made; none where a launcher starts the processes."""

    def build() -> frozenset[str]:
        named = {*project.files_calling("Trainer"), *project.files_calling(PARSED)}
        found = [p for p in sorted(named) if p.endswith(PYTHON_KINDS) and not is_test_file(p)]
        modules = [m for p in found if (m := project.module(p)) is not None]
        calls = [(m, c) for m in modules for c in m.calls_named("Trainer", PARSED) if _is_lightning(m, c)]
        made = frozenset(m.path for m, c in calls if _spawns(project, m, c))
        return made if made and not names_a_launcher(project) else frozenset()

    return project.keep("files whose Trainer spawns", build)


def _makes_spawning(project: Project, module: SourceModule, function: FunctionNode | None) -> bool:
    made = _trainers(module, function)
    return bool(made) and all(_spawns(project, module, call) for call in made)


def _trainers(module: SourceModule, function: FunctionNode | None) -> list[ast.Call]:
    """The calls right in a function, or at the top of the script, that make a Trainer of Lightning."""
    named = module.calls_named("Trainer", PARSED)
    return [c for c in named if module.function_of(c) is function and _is_lightning(module, c)]


def _is_lightning(module: SourceModule, call: ast.Call) -> bool:
    if family(qualified(module, call.func)) != "lightning":
        return False
    return not _is_parsed(call) or dotted(call.func).endswith(f"Trainer.{PARSED}")  # data modules have such a method, too


def _is_parsed(call: ast.Call) -> bool:
    return last(dotted(call.func)) == PARSED


def _spawns(project: Project, module: SourceModule, call: ast.Call) -> bool:
    if any(k.arg is None and not _names_no_strategy(project, module, k.value) for k in call.keywords):
        return any(spawns_by(project, module, v) for k in call.keywords if k.arg is None for v in _in_table(module, k.value))
    named = {k.arg: k.value for k in call.keywords if k.arg in _NAMING}
    given = {name: value for name, value in named.items() if not _is_left_off(project, module, value)}
    if any(spawns_by(project, module, value) for value in given.values()):
        return True
    texts = [_text(module, v) for v in given.values()]
    if any(t is None for t in texts):
        return False
    if any(k.arg == "num_nodes" and not (isinstance(k.value, ast.Constant) and k.value.value == 1) for k in call.keywords):
        return False  # several nodes had "ddp" for their default
    if set(given) - {"accelerator"} or texts not in ([], ["gpu"], ["auto"], ["cuda"]):
        return False
    if _is_parsed(call) and not is_given_no_strategy(project, several=call_gives_several(project, module, call)):
        return False
    return is_before_two(project, module, (last(dotted(call.func)), *(k.arg for k in call.keywords)))


def _in_table(module: SourceModule, table: ast.expr) -> Iterator[ast.expr]:
    """What a dict that is handed on by `**` has for its strategy: where it is written out, and where a key is set later."""
    tables = assigned(module, table, table.id) if isinstance(table, ast.Name) else [table]
    for made in tables:
        if isinstance(made, ast.Dict):
            pairs = zip(made.keys, made.values, strict=True)
            yield from (v for k, v in pairs if isinstance(k, ast.Constant) and k.value in _NAMING)
        elif isinstance(made, ast.Call) and dotted(made.func) == "dict":
            yield from (k.value for k in made.keywords if k.arg in _NAMING)
    for node in module.nodes(ast.Assign):
        target = node.targets[0]
        if isinstance(target, ast.Subscript) and dotted(target.value) and dotted(target.value) == dotted(table):
            if isinstance(target.slice, ast.Constant) and target.slice.value in _NAMING:
                yield node.value


def _is_left_off(project: Project, module: SourceModule, value: ast.expr) -> bool:
    """True for `None`, and for a setting (`configs["training"]["strategy"]`) that all settings of the program leave empty."""
    if isinstance(value, ast.Constant):
        return value.value is None
    key = _key(value)
    values = set_values(project, module.path, key) if key else ()
    return bool(values) and not any(values)


def _names_no_strategy(project: Project, module: SourceModule, value: ast.expr) -> bool:
    """True for `**configs["debug"]` where the settings have no strategy below that key, and for a dict that is written out."""
    if isinstance(value, ast.Name):
        made = assigned(module, value, value.id)
        changed = [n for n in module.reads_of(value.id) if not isinstance(module.parent(n), ast.keyword)]
        return bool(made) and not changed and all(_is_without_strategy(table) for table in made)
    key = _key(value)
    keys = keys_below(project, module.path, key) if key else None
    return keys is not None and not keys & set(_NAMING)


def _is_without_strategy(table: ast.expr) -> bool:
    if isinstance(table, ast.IfExp):  # `{"limit_train_batches": 10} if debug else {}`
        return _is_without_strategy(table.body) and _is_without_strategy(table.orelse)
    keys = table.keys if isinstance(table, ast.Dict) else [None]
    return all(isinstance(k, ast.Constant) and k.value not in _NAMING for k in keys)


def _key(value: ast.expr) -> str:
    """The last key of `configs["a"]["b"]` and `cfg.a.b`; "" for anything else."""
    if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Constant) and isinstance(value.slice.value, str):
        return value.slice.value
    return value.attr if isinstance(value, ast.Attribute) else ""


def _text(module: SourceModule, value: ast.expr) -> str | None:
    """The text that an argument surely is; None where it is not seen."""
    found = [value] if isinstance(value, ast.Constant) else assigned(module, value, dotted(value))
    texts = {v.value for v in found if isinstance(v, ast.Constant) and isinstance(v.value, str)}
    return texts.pop() if len(texts) == 1 and len(found) == 1 else None
