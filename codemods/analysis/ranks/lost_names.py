"""Names that only a run with several processes reads, and that nothing binds: it ends there with NameError.

Either the name is one of several processes itself (`dist`, `DDP`, a project's `get_rank`), or only such a run comes to the read:
below a test of the rank or for several processes, or beside a call of torch.distributed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.conditions import conjuncts
from codemods.analysis.handlers import handler_over
from codemods.analysis.names import dotted, family, last, qualified
from codemods.analysis.positions import position
from codemods.analysis.ranks.brought_names import Brought, brought_elsewhere
from codemods.analysis.ranks.collectives import PACKAGES, TORCH
from codemods.analysis.ranks.rank_guards import guards_over, ranks_at
from codemods.analysis.ranks.rank_sets import Ranks
from codemods.analysis.ranks.run_by_programs import is_run_by_nobody
from codemods.analysis.ranks.several_processes import several_processes
from codemods.analysis.unbound_names import is_unbound
from codemods.data.rank_names import GLOBAL_NAMES, LOCAL_NAMES, ZERO_FLAGS
from codemods.files.left_alone import left
from codemods.files.source import SourceModule, once_a_module
from codemods.runtime.record import record
from codemods.store.project import Project

_CATCHING = ("NameError", "Exception", "BaseException")
_OF_PROCESSES = ("torch.distributed", "torch.nn.parallel.distributed", "torch.nn.parallel.DistributedDataParallel",
                 "torch.utils.data.distributed", "torch.utils.data.DistributedSampler", "torch.multiprocessing")  # fmt: skip
_QUESTIONS = frozenset({"get_rank", "get_world_size", "is_initialized", "is_available", "destroy_process_group", "get_backend",
                        "ReduceOp", "group"})  # fmt: skip
# What an object is that nobody imports, told from what is asked of it.
_BY_MEMBERS = {"dist": TORCH | _QUESTIONS, "hvd": PACKAGES["horovod"] | {"init", "rank", "size", "local_rank"}}
_HELPERS = GLOBAL_NAMES | LOCAL_NAMES | ZERO_FLAGS | TORCH | {"get_rank", "get_world_size"}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_PARTING = (*_FUNCTIONS, ast.If, ast.IfExp, ast.BoolOp, ast.Try, ast.Lambda)
_MOST_FILES = 200


@record
class LostName:
    """name: a read that ends with NameError. others: the lines of further reads. brought: how other files have it, if they agree.

    alone: only rank 0 comes there. because: why a run of several processes is meant.
    """

    name: ast.Name
    others: tuple[int, ...]
    brought: Brought | None
    alone: bool
    because: str


def lost_names(project: Project, module: SourceModule) -> Iterator[LostName]:
    reads: dict[str, list[ast.Name]] = {}
    for name in module.nodes(ast.Name):
        if isinstance(name.ctx, ast.Load) and is_unbound(module, name) and not _is_annotation(module, name):
            reads.setdefault(name.id, []).append(name)
    for word, names in reads.items():
        if _is_given_from_outside(project, module, word):
            continue
        names = [n for n in names if not _is_of_a_test(module, n)]
        brought = brought_elsewhere(project, module, word)
        for name in names:
            because, alone = _why(project, module, name, brought)
            if not because and left(module, name, "nothing shows that only runs of several processes come to {}", name):
                continue
            if not because or handler_over(module, name, _CATCHING) is not None or is_run_by_nobody(
                project, module, name, by_one=True
            ):  # fmt: skip
                continue
            others = tuple(sorted({n.lineno for n in names} - {name.lineno}))
            yield LostName(name, others, brought, alone, because)
            break


def _is_of_a_test(module: SourceModule, name: ast.Name) -> bool:
    owner = module.class_of(name)
    return owner is not None and any(last(dotted(base)) == "TestCase" for base in owner.bases)


def _is_annotation(module: SourceModule, name: ast.Name) -> bool:
    below: ast.AST = name
    for up in module.ancestors(name):
        if isinstance(up, ast.arg) or (isinstance(up, ast.AnnAssign) and below is up.annotation):
            return True
        if isinstance(up, _FUNCTIONS):
            return below is up.returns
        below = up
    return False


def _why(project: Project, module: SourceModule, name: ast.Name, brought: Brought | None) -> tuple[str, bool]:
    """What shows that only a run with several processes comes to the read, "" where nothing does; whether rank 0 comes alone."""
    if _is_of_processes(project, module, name, brought):
        return f"what is asked of `{name.id}` belongs to runs with several processes", False
    nearest = _nearest(module, name)
    guards = [g for g in guards_over(module, name, project=project) if g.ranks.some]
    if guards and (isinstance(nearest, _FUNCTIONS) or any(g.node is nearest for g in guards)):
        ranks = ranks_at(module, name, project=project)
        return f"it is read by {ranks.value}", ranks in (Ranks.ZERO, Ranks.LOCAL_ZERO)
    arm = _arm(module, nearest, name)
    if nearest is not None and (nearest, arm) in _calling(module):
        return "torch.distributed is called on the same way", False
    if isinstance(nearest, ast.If) and arm != "test":
        several = several_processes(module, nearest.test)
        if several is not None and several is (arm == "body"):
            return f"a run with several processes comes there, by the test in line {nearest.lineno}", False
        if arm == "body" and any(several_processes(module, part) for part in conjuncts(nearest.test)):
            return f"only a run with several processes may come there, by the test in line {nearest.lineno}", False
    return "", False


def _nearest(module: SourceModule, node: ast.AST) -> ast.AST | None:
    """The function round a node, or what stands between and may keep it from being reached."""
    found = (u for u in module.ancestors(node) if isinstance(u, _PARTING))
    return next((u for u in found if not _lets_through(u)), None)


def _lets_through(node: ast.AST) -> bool:
    return (isinstance(node, ast.Try) and not node.handlers) or (isinstance(node, ast.If) and isinstance(node.test, ast.Constant))


def _arm(module: SourceModule, holder: ast.AST | None, node: ast.AST) -> str:
    """Which part of a test the node stands in; "body" of anything else."""
    if not isinstance(holder, ast.If):
        return "body"
    below = next(up for up in (node, *module.ancestors(node)) if module.parent(up) is holder)
    place = position(module, below)
    return place.name if place is not None else "test"


@once_a_module
def _calling(module: SourceModule) -> frozenset[tuple[ast.AST, str]]:
    """The functions, and the arms of tests, that call torch.distributed, or Horovod, themselves: one process alone ends there."""
    found: set[tuple[ast.AST, str]] = set()
    for call in module.nodes(ast.Call):
        name = qualified(module, call.func)
        if name.startswith(("torch.distributed.", "horovod.")) and last(name) not in ("is_initialized", "is_available"):
            holder = _nearest(module, call)
            if isinstance(holder, (*_FUNCTIONS, ast.If)) and (arm := _arm(module, holder, call)) != "test":
                found.add((holder, arm))
    return frozenset(found)


def _is_of_processes(project: Project, module: SourceModule, name: ast.Name, brought: Brought | None) -> bool:
    above = module.parent(name)
    member = above.attr if isinstance(above, ast.Attribute) else ""
    called = isinstance(above, ast.Call) and above.func is name
    if brought is not None and (brought.dotted == "torch.distributed" or not brought.path):
        return member in _BY_MEMBERS.get(name.id, ()) or (called and name.id not in _BY_MEMBERS)
    if brought is not None and (brought.dotted.startswith(_OF_PROCESSES) or family(brought.dotted) == "horovod"):
        return True
    if member:
        return brought is None and member in _BY_MEMBERS.get(name.id, ())
    return called and name.id in _HELPERS and bool(project.files_defining(name.id))


def _is_given_from_outside(project: Project, module: SourceModule, name: str) -> bool:
    """True where another file may put the name into this one, or into the built-ins: `train.logger = …`."""
    given = re.compile(rb"(?<!self)\." + re.escape(name.encode()) + rb"\s*=[^=]")
    stem = module.path.rpartition("/")[2].removesuffix(".py").encode(errors="surrogateescape")
    for path in project.files_containing(f".{name}".encode())[:_MOST_FILES]:
        data = project.read(path) or b""
        if (stem in data or b"builtin" in data) and given.search(data) is not None:
            return True
    return False
