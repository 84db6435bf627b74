"""BatchNorm that joins its statistics over the replicas of DataParallel, wrapped in DDP: there it works on each rank's share.

Such a class learns of its replicas by `__data_parallel_replicate__`, which a wrapper of DataParallel calls, and DDP never.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from posixpath import dirname

from codemods.analysis.conditions import is_main_block
from codemods.analysis.distribution import is_test_file
from codemods.analysis.loading.same_program import whole_program
from codemods.analysis.names import last, qualified
from codemods.files.source import SourceModule
from codemods.runtime.record import record
from codemods.store.project import Project

MARK = b"__data_parallel_replicate__"
_WRAPS = "DistributedDataParallel"
_OTHERWISE = (b"convert_sync_batchnorm", b"DataParallelWithCallback(", b"patch_replication_callback(", b"convert_syncbn_model")


@record
class ReplicaNorm:
    """node: the wrap, or the call that puts the layers into the model above it. used: what stands in the model, and where."""

    node: ast.Call
    used: str
    path: str
    line: int


def replica_norms(project: Project, module: SourceModule) -> Iterator[ReplicaNorm]:
    """The first wrap of a file whose program has such layers, and neither another conversion nor that DataParallel."""
    wraps = [c for c in module.nodes(ast.Call) if qualified(module, c.func).startswith("torch.") and _is_wrap(module, c)]
    homes = _homes(project) if wraps else frozenset()
    if not homes:
        return
    program = [p for p in sorted(whole_program(project, module.path)) if dirname(p) not in homes and not is_test_file(p)]
    if any(word in (project.read(p) or b"") for p in program for word in _OTHERWISE):
        return
    for path in (module.path, *(p for p in program if p != module.path)):
        file = project.module(path)
        used = _first_use(project, file, homes) if file is not None else None
        if used is None or file is None:
            continue
        wrap = next((w for w in wraps if file is not module or _is_behind(module, w, used)), None)
        if wrap is None or (file is not module and _tests(file, used)):
            return
        converted = file is module and last(qualified(file, used.func)).startswith("convert")
        yield ReplicaNorm(used if converted else wrap, file.text_of(used.func), path, used.lineno)
        return


def _is_behind(module: SourceModule, wrap: ast.Call, used: ast.Call) -> bool:
    """True for a wrap that is made wherever the layers are, below them or in another function."""
    apart = module.function_of(wrap) is not module.function_of(used)
    return _tests(module, used) <= _tests(module, wrap) and (apart or used.lineno <= wrap.lineno)


def _tests(module: SourceModule, node: ast.AST) -> set[ast.AST]:
    return {up for up in module.ancestors(node) if isinstance(up, (ast.If, ast.IfExp)) and not is_main_block(up)}


def _is_wrap(module: SourceModule, call: ast.Call) -> bool:
    return last(qualified(module, call.func)) == _WRAPS


def _homes(project: Project) -> frozenset[str]:
    """The folders of such classes, in which they are only defined."""

    def build() -> frozenset[str]:
        paths = (p for p in project.files_containing(MARK) if not is_test_file(p))
        return frozenset(dirname(p) for p in paths if dirname(p) and b"BatchNorm" in (project.read(p) or b""))

    return project.keep("norms of replicas", build)


def _first_use(project: Project, module: SourceModule, homes: frozenset[str]) -> ast.Call | None:
    """The first call of a name that the file imports from one of the folders."""
    for call in module.nodes(ast.Call):
        name = qualified(module, call.func)
        if "BatchNorm" not in name and not last(name).startswith("convert"):
            continue
        found = project.resolve(name, module.path) if "." in name else None
        if found is not None and dirname(found.path) in homes:
            return call
    return None
