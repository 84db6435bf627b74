"""Fields of the options that one launcher's branch sets and another's does not, though what starts the group reads them for all.

    if "RANK" in os.environ:
        args.rank, args.world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    elif "SLURM_PROCID" in os.environ:
        args.rank = int(os.environ["SLURM_PROCID"])
    dist.init_process_group("nccl", world_size=args.world_size, rank=args.rank)
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from codemods.analysis.bound_values import assigned
from codemods.analysis.class_index import find_class
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.positions import above, behind
from codemods.analysis.ranks.uses import CallSite, calls_of
from codemods.analysis.variance.exits import leaving_of
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_FIELDS = lazy(r"(?:global_|local_)?rank$|world_size$|gpu$|local_rank$|dist_url$|dist_backend$|device_id$|current_device$")
# What tells launchers apart: their variables, or an option that one of them hands over.
_OF_LAUNCHERS = lazy(r"environ|getenv|local_rank|launcher|cluster|slurm|SLURM", 2)
_ENDS = frozenset({"setattr", "exit", "_exit"})
_STARTS = frozenset({"init_process_group", "set_device"})


@record
class Unset:
    """field: `args.world_size`. test, arm: of the branch that leaves it out. set_in: where another branch sets it. read: where it
    is read for all.
    """

    field: str
    test: ast.expr
    arm: list[ast.stmt]
    set_in: ast.stmt
    read: ast.Attribute


def unset_fields(project: Project, module: SourceModule) -> Iterator[Unset]:
    for call in module.calls_named("init_process_group"):
        if not qualified(module, call.func).startswith("torch.distributed."):
            continue
        function = module.function_of(call)
        for chain in (s for s in above(module, module.statement_of(call)) if isinstance(s, ast.If)):
            yield from _of_chain(project, module, function, chain)


def _of_chain(
    project: Project, module: SourceModule, function: FunctionNode | None, chain: ast.If
) -> Iterator[Unset]:
    arms = list(_arms(chain))
    of_launchers = [test is not None and _OF_LAUNCHERS.search(module.text_of(test)) is not None for test, _ in arms]
    if sum(of_launchers) < 2:
        return
    told: set[str] = set()
    for read in _reads(module, behind(module, chain)):
        field = dotted(read)
        if field in told or not _FIELDS.search(read.attr) or "." in dotted(read.value) or not dotted(read.value):
            continue
        told.add(field)
        sets = [next((s for s in body if _sets(s, field)), None) for _, body in arms]
        given = next((s for s in sets if s is not None), None)
        open_arms = (arm for arm, s, own in zip(arms, sets, of_launchers, strict=True) if s is None and own)
        left = [(test, body) for test, body in open_arms if test is not None and _goes_on(body, dotted(read.value))]
        if given is None or not left or _is_set_elsewhere(project, module, function, chain, read):
            continue
        yield Unset(field, *left[0], given, read)


def _arms(chain: ast.If) -> Iterator[tuple[ast.expr | None, list[ast.stmt]]]:
    """The branches that are written out, with their tests."""
    node = chain
    while True:
        yield node.test, node.body
        if len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
            node = node.orelse[0]
            continue
        if node.orelse:
            yield None, node.orelse
        return


def _reads(module: SourceModule, behind: Sequence[ast.stmt]) -> Iterator[ast.Attribute]:
    """What the start of the group, and the choice of the device, read behind the branches; not under a further test."""
    for statement in behind:
        if not isinstance(statement, (ast.Expr, ast.Assign)):
            continue
        for call in (n for n in walk(statement) if isinstance(n, ast.Call) and last(dotted(n.func)) in _STARTS):
            for value in [*call.args, *(k.value for k in call.keywords)]:
                yield from (n for n in walk(value) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load))


def _sets(statement: ast.stmt, field: str) -> bool:
    return any(isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store) and dotted(n) == field for n in walk(statement))


def _goes_on(body: Sequence[ast.stmt], holder: str) -> bool:
    """True where a branch comes to the start, and hands the options to nobody who could set more of them."""
    if leaving_of(body) is not None or any(isinstance(n, ast.Raise) for s in body for n in walk(s)):
        return False
    for call in (n for s in body for n in walk(s) if isinstance(n, ast.Call)):
        given = [*call.args, *(k.value for k in call.keywords)]
        if any(isinstance(a, ast.Name) and a.id == holder for a in given) or last(dotted(call.func)) in _ENDS:
            return False
    return True


def _is_set_elsewhere(
    project: Project, module: SourceModule, function: FunctionNode | None, chain: ast.If, read: ast.Attribute
) -> bool:
    """True where an option, a setting, or another place of the program may give the field."""
    name = read.attr
    inside = {id(n) for n in walk(chain)}
    stored = (n for n in module.nodes(ast.Attribute) if n.attr == name and isinstance(n.ctx, ast.Store))
    if any(id(n) not in inside and dotted(n.value) not in ("self", "cls") for n in stored):
        return True
    callers = {s.module.path: s.module for s in calls_of(project, module, function) or ()} if function is not None else {}
    word = re.escape(name.encode()).replace(b"_", b"[-_]")
    stored_there = re.compile(rb"(?<!self)\." + word + rb"[ \t]*(?::[^=\n]+)?=(?!=)")
    option, key = re.compile(rb"--?" + word + rb"\b"), re.compile(rb"^[ \t]*[\"']?" + word + rb"[\"']?[ \t]*:", re.M)
    for spelled in {name, name.replace("_", "-")}:
        for path in project.files_containing(spelled.encode(), kinds=(".py", ".yaml", ".yml", ".json", ".toml", ".cfg")):
            data = project.read(path) or b""
            if option.search(data) if path.endswith(".py") else key.search(data):
                return True
            given = path.endswith(".py") and path != module.path and b"init_process_group(" not in data  # else a copy of this
            if given and stored_there.search(data):
                return True
    if function is not None and any(_is_set_by_class(project, s, name) for s in calls_of(project, module, function) or ()):
        return True
    callers.pop(module.path, None)
    near = [module, *callers.values()]
    if any(key.search(m.data) or re.search(rb"[\"']" + word + rb"[\"']", m.data) for m in near):
        return True
    return any(n.attr == name and isinstance(n.ctx, ast.Store) for m in near[1:] for n in m.nodes(ast.Attribute))


def _is_set_by_class(project: Project, site: CallSite, name: str) -> bool:
    """True where the caller hands over an object of a class of the project that has the field: `conf = Config()`."""
    for given in [*site.call.args, *(k.value for k in site.call.keywords)]:
        made = assigned(site.module, given, given.id) if isinstance(given, ast.Name) else [given]
        for call in made:
            kind = find_class(project, site.module, dotted(call.func)) if isinstance(call, ast.Call) else None
            if kind is not None and any(_gives(n, name) for n in walk(kind.node)):
                return True
    return False


def _gives(node: ast.AST, name: str) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return any(dotted(t) in (name, f"self.{name}") for t in targets)
