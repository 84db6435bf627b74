"""Data sets whose constructor fills files that their other methods read, on every rank at once."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import ClassFacts, class_facts
from codemods.analysis.files.file_calls import CHANGES, Act, file_call, meets
from codemods.analysis.files.file_flow import Step, steps_in
from codemods.analysis.files.own_paths import is_own_path
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.rank_guards import Ranks
from codemods.files.source import FunctionNode, SourceModule
from codemods.runtime.record import record
from codemods.store.project import Project

_DATA_SETS = frozenset({"Dataset", "IterableDataset", "VisionDataset", "InMemoryDataset"})
_READERS = ("__getitem__", "__iter__", "__len__", "__getitems__", "get")


@record
class SharedCache:
    """call: what in the constructor fills the files. write, read: the places."""

    call: ast.stmt
    write: Step
    read: Step


def shared_caches(project: Project, module: SourceModule) -> Iterator[SharedCache]:
    """The first such call of each data set of the file."""
    for owner in module.nodes(ast.ClassDef):
        facts = class_facts(project, module, owner)
        if not any(last(name) in _DATA_SETS for name in facts.external):
            continue
        constructor = module.methods_of(owner).get("__init__")
        if constructor is None:
            continue
        reads = list(_reads(project, facts))
        if reads and (found := _filled(project, module, constructor, reads)):
            yield found


def _reads(project: Project, facts: ClassFacts) -> Iterator[Step]:
    for name in _READERS:
        method = facts.method(name)
        if method is not None:
            steps = steps_in(project, method[0].module, list(method[1].body))
            yield from (s for s in steps if s.act is not None and s.act not in CHANGES and s.act is not Act.ASKS)


def _filled(project: Project, module: SourceModule, constructor: FunctionNode, reads: list[Step]) -> SharedCache | None:
    read_in = [(s, list(steps_in(project, module, [s]))) for s in constructor.body]
    if any(step.act is None for _, steps in read_in for step in steps):
        return None  # it waits for the other ranks, so somebody has thought of them
    asked = frozenset[str]().union(*(s.forms for _, steps in read_in for s in steps if s.act is Act.ASKS))
    for statement, steps in read_in:
        for step in steps:
            if step.act not in (Act.WRITES, Act.FILLS) or step.ranks is not Ranks.ALL:
                continue
            if step.forms & asked or _is_own(project, step):
                continue  # `filled_on_demand` judges what is only written where it is missing
            if (read := next((r for r in reads if _meet(step, r)), None)) is not None:
                return SharedCache(_call_in(module, constructor, statement, step), step, read)
    return None


def _is_own(project: Project, step: Step) -> bool:
    """True for a file that is the rank's own by what a caller hands over."""
    found = file_call(step.module, step.call) if isinstance(step.call, ast.Call) else None
    return found is not None and is_own_path(project, step.module, found.path, whole=False)


def _meet(write: Step, read: Step) -> bool:
    assert write.act is not None and read.act is not None
    pairs = [(made, used) for made in write.forms for used in read.forms]
    return any(meets(write.act, made, read.act, used) or _same_folder(made, used) for made, used in pairs)


def _same_folder(made: str, used: str) -> bool:
    """True for `<S:root>/a_<N:i>.npz` and `<S:root>/a_<P:index>.npz`: files of one folder that is named by the object."""
    folder, slash, _ = made.rpartition("/")
    return bool(slash) and folder == used.rpartition("/")[0] and "<S:" in folder


def _call_in(module: SourceModule, constructor: FunctionNode, statement: ast.stmt, step: Step) -> ast.stmt:
    """The innermost statement of the constructor that comes to the write."""
    if step.module is module and any(up is constructor for up in module.ancestors(step.call)):
        return module.statement_of(step.call)
    inner = [
        module.statement_of(c) for c in ast.walk(statement)
        if isinstance(c, ast.Call) and isinstance(c.func, ast.Attribute) and dotted(c.func.value) == "self"
    ]  # fmt: skip
    return inner[-1] if inner else statement
