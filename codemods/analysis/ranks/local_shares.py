"""Places that deal out work, or join the process group, by the number of a process on its node where all nodes count."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Sequence
from enum import Enum

from codemods.analysis.distribution import is_test_file
from codemods.analysis.guards.entry_points import starts_group
from codemods.analysis.loading.drawn_lists import draws_its_own_list
from codemods.analysis.loading.same_program import same_program, whole_program
from codemods.analysis.names import dotted, end_of, last, qualified
from codemods.analysis.ranks.counted_among import (
    Among,
    environment,
    index_among,
    index_of,
    is_lightning,
    sets_environment,
    size_among,
    size_beside,
)  # fmt: skip
from codemods.analysis.ranks.rank_sources import shows_processes
from codemods.analysis.ranks.started_in_a_loop import is_started_in_one_loop
from codemods.analysis.ranks.values_behind import values_behind
from codemods.analysis.ranks.worked_out_ranks import worked_out_rank
from codemods.data.rank_names import LOCAL_NAMES
from codemods.files.import_statements import stem_of
from codemods.files.left_alone import left
from codemods.files.source import SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.file_facts import file_fact
from codemods.store.project import Project

_ONE_MACHINE = lazy(rb"tcp://(?:127\.0\.0\.1|localhost)|environ\[[\"']MASTER_ADDR[\"']\]\s*=\s*[\"'](?:127\.0\.0\.1|localhost)")
_SETS_ADDRESS = lazy(rb"environ\[[\"']MASTER_ADDR[\"']\]\s*=\s*[\"'](?:127\.0\.0\.1|localhost)")
_EQUAL = lazy(rb"\bassert\s+[\w.]*local_rank\s*==\s*[\w.]*get_rank\(\)|\bassert\s+[\w.]*get_rank\(\)\s*==\s*[\w.]*local_rank\b")
# The project starts its processes itself, by the launcher's name in a list of arguments.
_STARTS_ITSELF = lazy(
    rb"[\"']-m[\"']\s*,\s*[\"']torch\.distributed\.(?:launch|run)[\"']|[\"']torchrun[\"']\s*,\s*f?[\"']--"
)
_WORDS = lazy(r"rank|world|replica|process|shard")


class Use(Enum):
    """What the local number is used for."""

    GROUP = "init_process_group"
    SAMPLER = "a sampler"
    SHARE = "a share of the data"
    SLOT = "a place among the tensors of all processes"


@record
class LocalShare:
    """index: the number of the process, as it is handed over in `module`. size: the number of processes beside it.

    among: what the size counts. use: what both are used for, at `place`. whole: what the function calls the global rank.
    shared: the index stands where a variable is bound that is read for other things too.
    """

    module: SourceModule
    index: ast.expr
    counted: Among
    size: ast.expr | None
    among: Among | None
    use: Use
    place: tuple[str, int]
    whole: str = ""
    shared: bool = False


@record
class Pair:
    """An index and a number of processes that stand together."""

    index: ast.expr
    size: ast.expr | None
    use: Use
    at: ast.AST


def local_shares(project: Project, module: SourceModule) -> Iterator[LocalShare]:
    """The wrong ones whose index is handed over in `module`, wherever it is used."""
    seen: set[int] = set()
    for home, pair in _pairs_of_project(project):
        if home is not module and not _may_be_given_by(project, module, home):
            continue
        for found in _judged(project, home, pair):
            if found.module is module and id(found.index) not in seen:
                seen.add(id(found.index))
                yield found


def _may_be_given_by(project: Project, module: SourceModule, home: SourceModule) -> bool:
    stem = stem_of(home.path)
    return os.fsencode(stem) in module.data


def _pairs_of_project(project: Project) -> list[tuple[SourceModule, Pair]]:
    return project.memo("process shares", lambda: list(_all_pairs(project)))


_SPEAKS = (
    b"Sampler", b"init_process_group", b"islice", b"shard", b"split_dataset_by_node", b"world_size", b"num_replicas",
    b"all_gather(",
)  # fmt: skip
# where an index and a number of processes can stand together: what `_pairs` looks at, in bytes
_SITES = lazy(
    rb"init_process_group|Sampler\w*\(|islice\(|split_dataset_by_node|\bshard\s*\(|\bnum_shards\s*="
    rb"|\[[^\]\n:]*:[^\]\n:]*:\s*[^\W\d]|%\s*[^\W\d][\w.()\[\]]*\s*\)?\s*[!=]=|\[[\w.]*(?:local|LOCAL)\w*\][ ]*=[^=]"
)


@file_fact
def _may_share_out(path: str, data: bytes) -> bool:
    del path
    return _SITES.search(data) is not None


def _all_pairs(project: Project) -> Iterator[tuple[SourceModule, Pair]]:
    for path in sorted({p for word in _SPEAKS for p in project.files_containing(word)}):
        yield from _pairs_of_file(project, path)


def _pairs_of_file(project: Project, path: str) -> Sequence[tuple[SourceModule, Pair]]:
    def build() -> list[tuple[SourceModule, Pair]]:
        if is_test_file(path) or not project.fact(_may_share_out, path) or (module := project.module(path)) is None:
            return []
        shown = shows_processes(module)
        return [(module, p) for p in _pairs(module) if shown or _WORDS.search(f"{end_of(p.index)} {_text(p.size)}")]

    return project.memo(("process shares", path), build)


def _text(node: ast.expr | None) -> str:
    return end_of(node) if node is not None else ""


def _pairs(module: SourceModule) -> Iterator[Pair]:
    for call in module.nodes(ast.Call):
        given = {k.arg: k.value for k in call.keywords if k.arg}
        end = last(qualified(module, call.func)) or end_of(call.func)
        if end == "init_process_group" and starts_group(module, call) and "rank" in given:
            yield Pair(given["rank"], given.get("world_size"), Use.GROUP, call)
        elif end.endswith("Sampler") and "rank" in given:
            yield Pair(given["rank"], given.get("num_replicas", given.get("world_size")), Use.SAMPLER, call)
        elif end == "DistributedSampler" and len(call.args) > 2:
            yield Pair(call.args[2], call.args[1], Use.SAMPLER, call)
        elif end == "islice" and len(call.args) == 4:
            yield Pair(call.args[1], call.args[3], Use.SHARE, call)
        elif end == "split_dataset_by_node" and "rank" in given and "world_size" in given:
            yield Pair(given["rank"], given["world_size"], Use.SHARE, call)
        elif end == "shard" and "index" in given and "num_shards" in given:
            yield Pair(given["index"], given["num_shards"], Use.SHARE, call)
        elif "num_shards" in given and (index := given.get("shard_id", given.get("shard_index"))) is not None:
            yield Pair(index, given["num_shards"], Use.SHARE, call)  # DALI's readers, and what hands the two on to one
    yield from _slots(module)
    for piece in module.nodes(ast.Slice):
        if piece.lower is not None and piece.step is not None and not isinstance(piece.step, (ast.Constant, ast.UnaryOp)):
            yield Pair(piece.lower, piece.step, Use.SHARE, piece)
    for test in module.nodes(ast.Compare):
        if len(test.ops) == 1 and isinstance(test.ops[0], (ast.Eq, ast.NotEq)) and isinstance(test.left, ast.BinOp):
            if isinstance(test.left.op, ast.Mod) and not isinstance(test.left.right, ast.Constant):
                yield Pair(test.comparators[0], test.left.right, Use.SHARE, test)


def _slots(module: SourceModule) -> Iterator[Pair]:
    """`parts[i] = own` behind `all_gather(parts, own)`: the tensors of all processes stand in the order of their ranks."""
    for assign in module.nodes(ast.Assign):
        target = assign.targets[0]
        if len(assign.targets) != 1 or not isinstance(target, ast.Subscript) or isinstance(target.slice, ast.Slice):
            continue
        own = ast.dump(assign.value), module.function_of(assign)
        for call in module.calls_named("all_gather"):
            if qualified(module, call.func) != "torch.distributed.all_gather" or len(call.args) != 2 or call.keywords:
                continue
            if (ast.dump(call.args[1]), module.function_of(call)) == own and dotted(call.args[0]) == dotted(target.value) != "":
                yield Pair(target.slice, None, Use.SLOT, assign)


def _judged(project: Project, module: SourceModule, pair: Pair) -> Iterator[LocalShare]:
    place = module.path, getattr(pair.at, "lineno", getattr(pair.index, "lineno", 0))
    if pair.use is Use.SAMPLER and isinstance(pair.at, ast.Call) and draws_its_own_list(project, module, pair.at):
        left(module, pair.at, "each process draws a list of its own there: no whole is dealt out")
        return
    if pair.size is not None and pair.use is not Use.GROUP and (whole := worked_out_rank(module, pair.index, pair.size)):
        if not is_for_one_node(project, module.path):
            yield LocalShare(module, pair.index, Among.NODE, pair.size, Among.WORLD, pair.use, place, whole)
        return
    values = values_behind(project, module, pair.index)
    local = [(v, a) for v in values if (a := index_of(project, v)) is not None and a.one_node]
    if not local:
        return
    # what is given both numbers works without a group, as a run with one process comes there
    ways = len(values if pair.size is None else values_behind(project, module, pair.index, constants=True))
    for value, counted in local:
        among = size_beside(project, module, pair.size, value) if pair.size is not None else None
        if pair.size is None and pair.use in (Use.SAMPLER, Use.SLOT):
            among = Among.WORLD  # it asks the group
        if _is_wrong(project, module, pair, counted, among):
            home, index, shared = value.given_in, value.given, False
            if index is pair.index and len(local) < ways:  # one of several ways to start the program: the others are right
                home, index = value.module, value.node
                shared = _is_read_elsewhere(home, index, pair.index)
            yield LocalShare(home, index, counted, pair.size, among, pair.use, place, shared=shared)


def _is_read_elsewhere(module: SourceModule, value: ast.expr, index: ast.expr) -> bool:
    """True for `local_rank = int(os.environ["LOCAL_RANK"])` of which the device is made, too."""
    bound = module.statement_of(value)
    names = {t.id for t in bound.targets if isinstance(t, ast.Name)} if isinstance(bound, ast.Assign) else set()
    function = module.function_of(bound)
    return any(n is not index and module.function_of(n) is function for name in names for n in module.reads_of(name))


def _is_wrong(project: Project, module: SourceModule, pair: Pair, counted: Among, among: Among | None) -> bool:
    of_trainer = dotted(pair.index).endswith("trainer.local_rank") and is_lightning(module)  # its group is its own
    if not of_trainer and (is_for_one_node(project, module.path) or sets_environment(project, "LOCAL_RANK")):
        return False
    if counted is Among.SPAWNED:
        return among is Among.PRODUCT and not _spawns_all(project, module, pair)
    if among is Among.NODE:  # by a variable of the launcher: `device_count()` is how one machine is written
        return pair.use is Use.SAMPLER and pair.size is not None and _is_of_launcher(project, module, pair.size)
    return among in (Among.WORLD, Among.PRODUCT)


def _is_of_launcher(project: Project, module: SourceModule, size: ast.expr) -> bool:
    return any(environment(v.module, v.node) for v in values_behind(project, module, size))


def _spawns_all(project: Project, module: SourceModule, pair: Pair) -> bool:
    """True where one spawn starts as many processes as there are in all: `nprocs` is that number."""
    assert pair.size is not None
    sizes = {ast.unparse(v.node) for v in values_behind(project, module, pair.size)}
    for path in project.files_containing(b"nprocs"):
        other = project.module(path)
        for call in other.calls_named("spawn", "start_processes") if other is not None else ():
            for given in (k.value for k in call.keywords if k.arg == "nprocs"):
                assert other is not None
                if sizes & {ast.unparse(v.node) for v in values_behind(project, other, given)}:
                    return True
    return False


def is_for_one_node(project: Project, path: str | None = None) -> bool:
    """True where the programs of a file join their processes by an address of this machine, or number all by their place on it.

    Or where their samplers have one share for each GPU of the machine, by the global rank.

    Or where the project asserts that the number on the node is the rank: on a second node it would end there. Without a path
    any program of the project counts: where the harm is that of files, siblings for one machine show how it is run.
    """
    return project.keep(("is for one node", path), lambda: _is_for_one_node(project, path))


def _is_for_one_node(project: Project, path: str | None) -> bool:
    if any(_EQUAL.search(project.read(p) or b"") for p in project.files_containing(b"get_rank()") if not is_test_file(p)):
        return True
    if any(_starts_one_node(project, p) for w in (b"torch.distributed.", b"torchrun") for p in project.files_containing(w)):
        return True
    joining = _joining_one_node(project)
    return bool(joining) and (path is None or not _is_of_another_program(project, path, joining))


def _is_of_another_program(project: Project, path: str, joining: frozenset[str]) -> bool:
    """True for a file whose programs make a group of their own: a script beside them that joins one machine is another run."""
    if any(_share_a_program(project, path, other) for other in joining):
        return False
    groups = (p for p in project.files_containing(b"init_process_group") if p not in joining and not is_test_file(p))
    return any(
        starts_group(module, call) and same_program(project, path, own)
        for own in sorted(groups)
        if (module := project.module(own)) is not None
        for call in module.calls_named("init_process_group")
    )


def _share_a_program(project: Project, one: str, other: str) -> bool:
    return same_program(project, one, other) or other in whole_program(project, one) or one in whole_program(project, other)


def _joining_one_node(project: Project) -> frozenset[str]:
    """The files that make a group of the processes of one machine, or whose samplers have a share for each GPU of it."""
    paths = (p for p in project.files_containing(b"init_process_group") if not is_test_file(p))
    return project.keep(
        "join one node", lambda: frozenset((*(p for p in paths if _joins_one_node(project, p)), *_dealing_by_gpus(project)))
    )


def _dealing_by_gpus(project: Project) -> Iterator[str]:
    """The files that give a sampler of torch a share for each GPU of one machine, by the global rank: it refuses the rank on a
    second one."""
    for module, pair in _pairs_of_project(project) if project.files_containing(b"device_count(") else ():
        if pair.use is not Use.SAMPLER or pair.size is None or not isinstance(pair.at, ast.Call):
            continue
        if not qualified(module, pair.at.func).startswith("torch.utils.data.") or _is_of_launcher(project, module, pair.size):
            continue
        index = index_among(project, module, pair.index)
        if (index is None or not index.one_node) and size_among(project, module, pair.size) is Among.NODE:
            yield from {module.path, *(v.module.path for v in values_behind(project, module, pair.size))}


def _joins_one_node(project: Project, path: str) -> bool:
    if (module := project.module(path)) is None:
        return False
    if _ONE_MACHINE.search(module.data) and _joins_here(module):
        return True
    for pair in _pairs(module):
        if pair.use is not Use.GROUP or pair.size is None:
            continue
        if is_started_in_one_loop(project, module, pair.index, pair.size):
            return True
        index, size = index_among(project, module, pair.index), size_among(project, module, pair.size)
        # A `local_rank` that nothing shows the source of is the rank of the group here: there is one such process in all.
        local = index.one_node if index is not None else end_of(pair.index).lstrip("_") in LOCAL_NAMES
        if local and size not in (Among.WORLD, Among.PRODUCT):
            return True
    return False


def _joins_here(module: SourceModule) -> bool:
    """True where an address of this machine is a value: a text that stands alone shows one of several ways to start."""
    if _SETS_ADDRESS.search(module.data):
        return True
    values = (n.value for n in module.nodes(ast.Constant) if not isinstance(module.parent(n), ast.Expr))
    return any(isinstance(v, str) and _ONE_MACHINE.search(v.encode()) is not None for v in values)


def _starts_one_node(project: Project, path: str) -> bool:
    """True for a file that runs the launcher and names no nodes: it starts the processes of this machine."""
    return not is_test_file(path) and project.fact(_runs_the_launcher, path)


@file_fact
def _runs_the_launcher(path: str, data: bytes) -> bool:
    del path
    return _STARTS_ITSELF.search(data) is not None and b"nnode" not in data
