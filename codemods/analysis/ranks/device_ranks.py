"""Devices that are chosen by the number of a process among all nodes, and how the number on its own node is asked for there."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from codemods.analysis.distribution import is_test_file
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.device_numbers import numbers_of_devices, process_index, says_where
from codemods.analysis.ranks.local_at_hand import at_hand
from codemods.analysis.ranks.local_of_options import local_of_options
from codemods.analysis.ranks.local_variables import asked_local_rank
from codemods.analysis.ranks.misnamed_ranks import (
    bound_as_local,
    chooses_a_device,
    handed_as_local,
    is_handed_on,
    read_otherwise,
)
from codemods.analysis.ranks.proven_rank import is_proven_global, local_beside, worked_out
from codemods.analysis.ranks.rank_sets import Ranks
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.analysis.ranks.spawned import spawns
from codemods.analysis.ranks.values_behind import Value
from codemods.analysis.width_kept import is_too_wide
from codemods.api.findings import Edit, InsertBefore, ReplaceExpression
from codemods.files.left_alone import left
from codemods.files.source import FunctionNode, SourceModule, line_of, walk
from codemods.rewriting.imports import plan_plain
from codemods.runtime.record import record
from codemods.store.project import Project

_Place = tuple[ast.expr, tuple[Edit, ...]]  # where the global rank stands, and what writes the local one there
_NEW, _MANY = ("local_rank", "gpu", "gpu_index"), 2
_LAUNCHED = (b"torchrun", b"distributed.launch", b"distributed.run", b"LOCAL_RANK")


@record
class DeviceRank:
    """node: the first place that is told; edits: what stands for the global rank at all of its places.

    told: why no edit is right, where there is none.
    """

    node: ast.expr
    rank: ast.expr
    edits: tuple[Edit, ...]
    told: str = ""


def device_ranks(project: Project, module: SourceModule) -> Iterator[DeviceRank]:
    """The devices of the file that are chosen by the global rank; those of one name that lies about its rank together."""
    misnamed: dict[tuple[int, str], tuple[ast.expr, list[_Place]]] = {}
    plain: dict[tuple[FunctionNode | None, str], list[_Place]] = {}
    told: set[tuple[FunctionNode | None, str]] = set()
    for rank in dict.fromkeys(numbers_of_devices(project, module)):
        if ranks_reaching(project, module, rank) is Ranks.ZERO and left(module, rank, "rank 0 alone comes here"):
            continue
        edits = _repair(project, module, rank)
        if not edits:
            if (reason := _without_launcher(project, module, rank)) and (key := _name_at(module, rank)) not in told:
                told.add(key)
                yield DeviceRank(rank, rank, (), reason)
            continue
        if (handed := handed_as_local(project, module, rank)) is not None:
            if (key := _name_at(module, rank)) not in told:
                told.add(key)
                yield DeviceRank(rank, rank, (), _of_another_file(rank, handed))
            continue
        source = bound_as_local(module, rank)
        if source is None:
            plain.setdefault(_name_at(module, rank), []).append((rank, edits))
        else:
            misnamed.setdefault((id(source), last(dotted(rank))), (source, []))[1].append((rank, edits))
    for rank in _given_elsewhere(module, plain):
        plain[module.function_of(rank), rank.id].append((rank, _repair(project, module, rank)))
    for places in plain.values():  # one name is one thing to tell, however often it is asked
        edits = _bound_once(module, places) or tuple(dict.fromkeys(e for _, edits in places for e in edits))
        yield DeviceRank(places[0][0], places[0][0], edits)
    for source, places in misnamed.values():
        yield _misnamed(project, module, source, places)


def _name_at(module: SourceModule, rank: ast.expr) -> tuple[FunctionNode | None, str]:
    return module.function_of(rank), module.text_of(rank)


def _of_another_file(rank: ast.expr, handed: Value) -> str:
    place = f"{handed.module.path}:{line_of(handed.node)}"
    return f"`{last(dotted(rank))}` is the global rank from {place} on: take LOCAL_RANK there, for all that is chosen by the name"


def _without_launcher(project: Project, module: SourceModule, rank: ast.expr) -> str:
    """What to do where the project numbers the processes of all nodes itself: no variable holds the number on the node."""
    if (found := worked_out(project, module, rank)) is None:
        return ""
    local = found.module.text_of(found.local)
    place = f"{found.module.path}:{line_of(found.local)}"
    return f"the number on the node is `{local}` in {place}, of which the global one is made there: choose the device by that one"


def _given_elsewhere(module: SourceModule, known: Mapping[tuple[FunctionNode | None, str], object]) -> list[ast.Name]:
    """`device=rank` of any function, beside places where the same name is a GPU for sure."""
    given = (k.value for call in module.nodes(ast.Call) for k in call.keywords if k.arg == "device")
    names = (g for g in given if isinstance(g, ast.Name) and (module.function_of(g), g.id) in known)
    return [name for name in names if not says_where(module, name)]


def _bound_once(module: SourceModule, places: list[_Place]) -> tuple[Edit, ...]:
    """`local_rank` bound above the first of several places that would read the environment each, or above one that would be too
    wide a line then; () where there is no room.

    All of them stand in one block then, behind what binds the global rank. Where that has the name already, it is `gpu`.
    """
    rank = places[0][0]
    function = module.function_of(rank)
    reads = [e for _, edits in places for e in edits if isinstance(e, ReplaceExpression) and ".environ.get(" in e.code]
    if (len(places) < _MANY and not any(is_too_wide(module, e) for e in reads)) or len(reads) < len(places) or not dotted(rank):
        return ()
    home = _common_block(module, [module.statement_of(place) for place, _ in places])
    near = walk(function) if function is not None else walk(module.tree)
    taken = {n.arg if isinstance(n, ast.arg) else n.id for n in near if isinstance(n, (ast.arg, ast.Name))}
    new = next((name for name in _NEW if name not in taken), None)
    if home is None or new is None:
        return ()
    named: list[ast.expr] = [*module.nodes(ast.Name), *module.nodes(ast.Attribute)]
    bound = [n for n in named if isinstance(getattr(n, "ctx", None), ast.Store) and dotted(n) == dotted(rank)]
    if any(n.lineno >= home.lineno for n in bound if module.function_of(n) is function):
        return ()
    value = reads[0].code.replace("'", '"')
    imports = tuple(e for _, edits in places for e in edits if e not in reads)
    places_named = tuple(ReplaceExpression(e.path, e.span, new) for e in reads)
    return (InsertBefore(module.path, module.span(home), f"{new} = {value}"), *places_named, *dict.fromkeys(imports))


def _common_block(module: SourceModule, statements: list[ast.stmt]) -> ast.stmt | None:
    """The first statement of the innermost block that holds them all which is, or holds, one of them."""
    ways = [[up for up in (s, *module.ancestors(s)) if isinstance(up, ast.stmt)][::-1] for s in statements]
    for depth, level in enumerate(zip(*ways, strict=False), 1):
        if len({id(up) for up in level}) > 1 or any(len(way) == depth for way in ways):
            first = min(level, key=lambda up: up.lineno)
            return first if len({id(module.block_of(up)) for up in level}) == 1 else None
    return None


def _misnamed(project: Project, module: SourceModule, source: ast.expr, places: list[_Place]) -> DeviceRank:
    """The name gets the local rank where all that reads it means that; each place alone where nothing else gets the name.

    Where it goes further and something asks for the one process of all nodes by it (`if args.local_rank == 0:`), no single
    change is right.
    """
    rank, name = places[0][0], last(dotted(places[0][0]))
    inline = _bound_once(module, places) or tuple(e for _, edits in places for e in edits)
    further = _goes_further(module, source, [place for place, _ in places])
    if further is None:
        return DeviceRank(source, rank, inline)
    if (other := read_otherwise(project, name, module.function_of(source))) is not None:
        reason = (
            f"`{name}` is read elsewhere too (line {line_of(further)}): bind it to LOCAL_RANK, and ask for the global rank in "
            f"{other[0]}:{other[1]}, where the one process of all nodes is meant"
        )
        return DeviceRank(source, rank, (), reason)
    return DeviceRank(source, rank, _at_the_source(project, module, source) or inline)


def _at_the_source(project: Project, module: SourceModule, source: ast.expr) -> tuple[Edit, ...]:
    """The local rank in the place of the global one that `local_rank` is bound to."""
    if (planned := plan_plain(module, "os")) is None or "\n" in module.text_of(source):
        return ()
    text = asked_local_rank(project, module, source, planned.name)
    return ReplaceExpression(module.path, module.span(source), text), *planned.edits


def _goes_further(module: SourceModule, source: ast.expr, places: list[ast.expr]) -> ast.AST | None:
    """Where the misnamed rank leaves the places that are seen: in an attribute, by `f(local_rank=local_rank)`."""
    if isinstance(places[0], ast.Attribute):
        return module.statement_of(source)
    function = module.function_of(source)
    reads = [n for n in module.reads_of(places[0].id) if isinstance(n, ast.Name)] if isinstance(places[0], ast.Name) else []
    others = [n for n in reads if module.function_of(n) is function and not any(n is place for place in places)]
    return next((module.statement_of(n) for n in others if is_handed_on(module, n)), None)


def _repair(project: Project, module: SourceModule, rank: ast.expr) -> tuple[Edit, ...]:
    """What writes the local rank in the place of the global one; nothing where the processes are those of one node."""
    span = module.span(rank)
    if (index := process_index(module, rank)) is not None:
        return _index_of_the_node(module, rank, index)
    written = module.text_of(rank)
    if (name := at_hand(project, module, rank)) is not None:
        return (ReplaceExpression(module.path, span, name),) if name != written else ()
    if _spawns_its_ranks(project, module) or worked_out(project, module, rank) is not None:
        return ()
    if (beside := local_of_options(project, module, rank) or local_beside(project, module, rank)) is not None:
        return (ReplaceExpression(module.path, span, beside),) if beside != written else ()
    if not _has_group(module) and not is_proven_global(project, module, rank):
        return ()
    if (planned := plan_plain(module, "os")) is None or "\n" in written:
        return ()
    text = asked_local_rank(project, module, rank, planned.name)
    return ReplaceExpression(module.path, span, _quoted(module, rank, text)), *planned.edits


def _index_of_the_node(module: SourceModule, rank: ast.expr, index: ast.Attribute) -> tuple[Edit, ...]:
    """`local_process_index` where the name is bound if it chooses devices alone, else at the place."""
    written = f"{module.text_of(index.value)}.local_process_index"
    if isinstance(rank, ast.Name):
        home = module.function_of(rank)
        if module.function_of(index) is not home:
            return ()
        reads = (n for n in module.reads_of(rank.id) if module.function_of(n) is home)
        if all(chooses_a_device(module, n) for n in reads):
            return (ReplaceExpression(module.path, module.span(index), written),)
        if not dotted(index.value):
            return ()
    return (ReplaceExpression(module.path, module.span(rank), written),)


def _quoted(module: SourceModule, rank: ast.expr, text: str) -> str:
    """Inside of an f-string in double quotes the key takes single ones."""
    up = module.parent(rank)
    text_round_it = module.parent(up) if isinstance(up, ast.FormattedValue) else None
    written = module.text_of(text_round_it) if isinstance(text_round_it, ast.expr) else ""
    return text.replace('"', "'") if written.rstrip().endswith('"') else text


def _spawns_its_ranks(project: Project, module: SourceModule) -> bool:
    """True where `mp.spawn` starts the ranks, as far as the project shows: it counts the processes of one node."""
    if spawns(module):
        return True
    words = (b"mp.spawn", b"multiprocessing.spawn", b"start_processes(")
    files = {p for word in words for p in project.files_containing(word) if not is_test_file(p)}
    elsewhere = any((other := project.module(p)) is not None and spawns(other) for p in sorted(files))
    return elsewhere and not any(project.files_containing(word) for word in _LAUNCHED)


def _has_group(module: SourceModule) -> bool:
    return module.holds(b"torch.distributed") or any(i.dotted == "torch.distributed" for f in module.imports.values() for i in f)
