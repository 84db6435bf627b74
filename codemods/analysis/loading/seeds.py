"""Where a project seeds the random numbers of its processes, and whether with the same number on every rank."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.call_graph import called_function
from codemods.analysis.conditions import is_main_block
from codemods.analysis.distribution import is_test_file
from codemods.analysis.loading.origins import origins
from codemods.analysis.loading.same_program import callers, same_program, whole_program
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.ranks.rank_sources import rank_source
from codemods.analysis.ranks.uses import uses_of
from codemods.analysis.variance.paths import is_false
from codemods.files.source import FunctionNode, SourceModule, walk, walk_scope
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.file_facts import file_fact
from codemods.store.project import Project

# Calls that fix the process's own random numbers.
SEEDERS = frozenset({"manual_seed", "manual_seed_all", "seed_everything", "set_seed", "seed"})
# Numbers that each process has for itself.
_OWN = frozenset(
    {"time", "time_ns", "randint", "randrange", "urandom", "getpid", "initial_seed", "monotonic", "perf_counter", "randbits"}
)
_WORDS = (b"manual_seed", b"seed_everything", b"set_seed", b".seed(")
_HANDS = lazy(rb"\w*seed\w*[ \t]*\(")


@record
class Seed:
    """A call that seeds. own: it seeds a generator object, not the numbers that everything draws from.

    value: the expression of the seed. helper: what a function of the project that is handed the seed calls with it.
    """

    module: SourceModule
    call: ast.Call
    value: ast.expr | None
    own: bool
    helper: str = ""


def seeds_in(module: SourceModule) -> tuple[Seed, ...]:
    """The seeds of a file."""
    found = (seed_at(module, call) for call in module.calls_named(*SEEDERS))
    return tuple(s for s in found if s is not None)


def handed_seeds(project: Project, module: SourceModule) -> tuple[Seed, ...]:
    """The calls of a file that hand a seed to a function of the project, which seeds the process with it."""
    return project.memo(("handed seeds", module.path), lambda: tuple(_handed(project, module)))


def _handed(project: Project, module: SourceModule) -> Iterator[Seed]:
    for call in module.nodes(ast.Call):
        if "seed" not in last(dotted(call.func)).lower() or last(dotted(call.func)) == "manual_seed":
            continue
        site = called_function(project, module, call)
        if site is None:
            continue
        for seed in seeds_in(site.module):
            if not seed.own and site.module.function_of(seed.call) is site.node and isinstance(seed.value, ast.Name):
                value = argument_of(site.node, seed.value.id, call)
                if value is not None and not is_rank_added(project, site.module, site.node, seed.value.id):
                    yield Seed(module, call, value, False, qualified(seed.module, seed.call.func))


def is_rank_added(project: Project, module: SourceModule, function: FunctionNode, name: str) -> bool:
    """True where the function itself puts the rank into the seed that it is handed."""
    for node in walk_scope(function):
        if isinstance(node, (ast.Assign, ast.AugAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(dotted(t) == name for t in targets) and names_the_rank(project, module, node.value):
                return True
    return False


def argument_of(function: FunctionNode, name: str, call: ast.Call) -> ast.expr | None:
    """What a call gives for a parameter; its default where it gives none."""
    names = [a.arg for a in function.args.args]
    if name not in names:
        return None
    given = next((k.value for k in call.keywords if k.arg == name), None)
    at = names.index(name)
    if given is None and at < len(call.args):
        given = call.args[at]
    back = at - len(names) + len(function.args.defaults)
    return given if given is not None else function.args.defaults[back] if back >= 0 else None


def is_in_helper(project: Project, seed: Seed) -> bool:
    """True for a seed that a function is handed by others, who are asked instead."""
    function = seed.module.function_of(seed.call)
    if seed.helper or function is None or not isinstance(seed.value, ast.Name) or "seed" not in function.name.lower():
        return False
    return seed.value.id in [a.arg for a in function.args.args] and bool(callers(project, seed.module, function))


def is_unused(project: Project, seed: Seed) -> bool:
    """True for a function that sets up what it is handed, and that nobody calls."""
    function = seed.module.function_of(seed.call)
    if function is None or not isinstance(seed.value, ast.Name) or seed.module.reads_of(function.name):
        return False
    if seed.value.id not in [a.arg for a in function.args.args] or isinstance(seed.module.parent(function), ast.ClassDef):
        return False
    loops = any(isinstance(n, (ast.For, ast.While)) for n in walk_scope(function))
    return not loops and not callers(project, seed.module, function)


def is_seeded(project: Project, stream: str = "") -> bool:
    """True where anything outside of tests fixes the numbers that everything draws from. stream: those of this library alone.

    A helper of a framework fixes those of all libraries, and so may one that is imported and says "seed".
    """
    if not stream:
        return project.keep("is seeded", lambda: any(not s.own for m in _files(project) for s in seeds_in(m)))
    return project.keep(("is seeded", stream), lambda: any(_fixes(project, m, stream) for m in _files(project)))


def _fixes(project: Project, module: SourceModule, stream: str) -> bool:
    if any(not s.own and stream_of(_seeder(s)) in ("", stream) for s in seeds_in(module)):
        return True
    named = (c for c in module.nodes(ast.Call) if "seed" in last(dotted(c.func)).lower())
    others = [c for c in named if last(dotted(c.func)) not in SEEDERS]
    return any(dotted(c.func).partition(".")[0] in module.imports and called_function(project, module, c) is None for c in others)


def stream_of(name: str) -> str:
    """The library whose numbers a call of this full name draws or seeds: "random", "numpy", "torch"; empty where it is none."""
    return next((library for library in ("random", "numpy", "torch") if name.startswith(f"{library}.")), "")


def seeds_of_stream(project: Project, path: str, stream: str) -> tuple[Seed, ...]:
    """What fixes the numbers of one library in the programs of a file. A helper of a framework fixes those of all three.

    What seeds the workers of a loader is left out: it begins after the data set is made.
    """

    def build() -> tuple[Seed, ...]:
        found: list[Seed] = []
        for module in _files(project, near=path):
            found += [s for s in seeds_in(module) if not s.own and not is_in_helper(project, s)]
            found += handed_seeds(project, module)
        return tuple(s for s in found if not _is_of_worker(s) and stream_of(_seeder(s)) in ("", stream))

    return project.memo(("seeds of a stream", path, stream), build)


def _seeder(seed: Seed) -> str:
    return seed.helper or qualified(seed.module, seed.call.func)


def _is_of_worker(seed: Seed) -> bool:
    function = seed.module.function_of(seed.call)
    return (function is not None and "worker" in function.name) or "worker" in seed.module.text_of(seed.call)


def seeded_by_rank(project: Project, path: str, *, of_process: bool = False) -> bool:
    """True where a seed in the program of a file differs between the ranks. of_process: that of a generator does not count."""
    return project.keep(("seeded by rank", path, of_process), lambda: _by_rank(project, path, of_process=of_process))


def _by_rank(project: Project, path: str, *, of_process: bool) -> bool:
    files = list(_files(project, near=path))
    seeds = [s for m in files for s in seeds_in(m) if not is_in_helper(project, s)]
    seeds = [s for s in seeds if not (of_process and _is_of_new_generator(s))]
    seeds += [s for m in files for s in handed_seeds(project, m)]
    return any(_is_plainly_of_rank(project, s) for s in seeds) or any(
        depends_on_rank(project, s.module, s.value, clocks=False) for s in seeds
    )


def _files(project: Project, near: str = "") -> Iterator[SourceModule]:
    """The files that seed, or those of them in the programs of one."""
    words = {p for word in _WORDS for p in project.files_containing(word)}
    for path in sorted(p for p in words | _handing(project) if not is_test_file(p)):
        module = project.module(path) if not near or same_program(project, path, near) else None
        if module is not None:
            yield module


@file_fact
def _hands_seed(path: str, data: bytes) -> bool:
    del path
    return _HANDS.search(data) is not None


def _handing(project: Project) -> frozenset[str]:
    """The files that call something by a name with "seed" in it."""

    def build() -> frozenset[str]:
        return frozenset(p for p in project.files_containing(b"seed") if project.fact(_hands_seed, p))

    return project.keep("files that hand seeds", build)


def _is_of_new_generator(seed: Seed) -> bool:
    """True for `torch.Generator().manual_seed(seed + rank)`: what everything else draws is not changed by it."""
    made = seed.call.func.value if isinstance(seed.call.func, ast.Attribute) else None
    return seed.own and isinstance(made, ast.Call) and qualified(seed.module, made.func) == "torch.Generator"


def is_of_rank(project: Project, seed: Seed) -> bool:
    """True for a seed that is seen to differ between the ranks."""
    return _is_plainly_of_rank(project, seed) or depends_on_rank(project, seed.module, seed.value)


def is_of_another_program(project: Project, seed: Seed, path: str) -> bool:
    """True for a seed that is set only where its file is the program itself, which never comes to the file at `path`."""
    if path in whole_program(project, seed.module.path):
        return False
    if _in_main_block(seed.module, seed.call):
        return True
    function = seed.module.function_of(seed.call)
    if function is None:
        return False
    uses = uses_of(project, seed.module, function).outside_tests()
    if uses.more or uses.handed_on or not uses.calls:
        return False
    return all(s.module is seed.module and _in_main_block(s.module, s.call) for s in uses.calls)


def _in_main_block(module: SourceModule, node: ast.AST) -> bool:
    return any(is_main_block(up) for up in module.ancestors(node))


def _is_plainly_of_rank(project: Project, seed: Seed) -> bool:
    if any(k.arg == "device_specific" and not is_false(k.value) for k in seed.call.keywords):
        return True
    return seed.value is not None and names_the_rank(project, seed.module, seed.value)


def seed_at(module: SourceModule, call: ast.Call) -> Seed | None:
    """What a call of one of the SEEDERS seeds; None for a name of theirs that is something else's."""
    name = qualified(module, call.func)
    value = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg in ("seed", None)), None)
    if last(name) == "seed" and not name.startswith(("random.", "numpy.random.", "torch.")):
        return None
    if not name:  # `torch.Generator().manual_seed(0)`
        return Seed(module, call, value, True)
    plain = name.startswith(
        ("torch.", "random.", "numpy.random.", "lightning", "pytorch_lightning", "accelerate", "transformers")
    )
    holder = dotted(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    own = not plain and last(name) == "manual_seed" and bool(holder)
    return Seed(module, call, value, own)


def depends_on_rank(project: Project, module: SourceModule, value: ast.expr | None, *, clocks: bool = True) -> bool:
    """True where a seed differs between the processes, as far as its names are followed: by the rank or, with `clocks`, by a
    number that each process has for itself.
    """
    if value is None or isinstance(value, ast.Constant):
        return False
    if _differs(project, module, value, clocks):
        return True
    for node in walk(value):
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
            if any(_differs(project, o.module, o.node, clocks) for o in origins(project, module, node)):
                return True
            if _is_raised(project, module, node, clocks):
                return True
    return False


def _differs(project: Project, module: SourceModule, value: ast.expr, clocks: bool) -> bool:
    if names_the_rank(project, module, value):
        return True
    return clocks and is_own_number(value)


def is_own_number(value: ast.expr) -> bool:
    """True for a number that each process has for itself: its clock, a draw, the number of the process."""
    return any(last(dotted(n.func)) in _OWN for n in walk(value) if isinstance(n, ast.Call))


def _is_raised(project: Project, module: SourceModule, node: ast.Name | ast.Attribute, clocks: bool) -> bool:
    """True for `args.seed += rank`, and `args.seed = args.seed + rank`, anywhere in the file."""
    name = dotted(node)
    for augmented in module.nodes(ast.AugAssign):
        if dotted(augmented.target) == name and names_the_rank(project, module, augmented.value):
            return True
    given = [a for a in module.nodes(ast.Assign) if any(dotted(t) == name for t in a.targets)] if "." in name else []
    return any(_differs(project, module, a.value, clocks) for a in given)


def names_the_rank(project: Project, module: SourceModule, value: ast.expr) -> bool:
    """True where the rank stands in an expression."""
    nodes = [n for n in walk(value) if isinstance(n, (ast.Name, ast.Attribute, ast.Call))]
    return any(rank_source(module, n, project) is not None for n in nodes)
