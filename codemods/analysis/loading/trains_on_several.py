"""Do several ranks train with what a file draws and another one seeds?"""

from __future__ import annotations

from codemods.analysis.distribution import is_test_file, ranks_in_file
from codemods.analysis.loading.programs import wrap_in
from codemods.analysis.loading.same_program import reached
from codemods.files.source import SourceModule
from codemods.store.project import Project

_SHARED_OUT = (b"strategy", b"num_nodes", b"ddp")


def runs_on_several(project: Project, draw: SourceModule, seed: SourceModule) -> bool:
    """True where several ranks train: a wrap in raw torch, Accelerate, Fabric, or Lightning with several devices."""
    files = [draw, seed]
    if any(wrap_in(m) is not None for m in files) or any(wrap_in(f) for f in _importing(project, draw)):
        return True
    if _is_wrapped_below(project, seed):
        return True
    names = {n for m in files for n in m.imported_modules}
    if any(n.partition(".")[0] == "accelerate" or "fabric" in n for n in names):
        return any(ranks_in_file(project, m) is not None for m in files)
    if any(n.partition(".")[0] in ("lightning", "pytorch_lightning") for n in names):
        return any(project.files_containing(word) for word in _SHARED_OUT)
    return False


def _is_wrapped_below(project: Project, seed: SourceModule) -> bool:
    """True where a file that the program of the seed imports wraps the model, such as one that prepares all the models."""
    wrapping = {p for p in project.files_containing(b"DistributedDataParallel") if not is_test_file(p)}
    near = wrapping & reached(project, seed.path) if wrapping else set()
    return any((other := project.module(p)) is not None and wrap_in(other) is not None for p in sorted(near))


def _importing(project: Project, module: SourceModule) -> list[SourceModule]:
    stem = module.path.removesuffix(".py").rpartition("/")[2]
    near = (project.module(p) for p in project.files_importing(stem)[:10] if not is_test_file(p))
    return [m for m in near if m is not None]
