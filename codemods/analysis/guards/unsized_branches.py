"""An arm that takes the rank from Slurm, and leaves the number of processes as it was: `init_distributed_mode`, copied widely."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.guards.entry_points import starts_group
from codemods.analysis.names import dotted
from codemods.files.source import SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_RANK, _SIZE = "SLURM_PROCID", "SLURM_NTASKS"
_ONE = lazy(rb"add_argument\(\s*[\"']--world[_-]size[\"'][^)]*?default\s*=\s*1\s*[,)]")
_GIVEN = (b"--world_size ", b"--world_size=", b"--world-size ", b"--world-size=")
_JOBS = (".sh", ".slurm", ".sbatch", ".yaml", ".yml", ".json")


@record
class UnsizedBranch:
    """branch: the `if` of the arm. rank: the statement that takes the rank. size: what the group is told. code: what lacks."""

    branch: ast.If
    rank: ast.Assign
    size: str
    code: str


def unsized_branches(project: Project, module: SourceModule) -> Iterator[UnsizedBranch]:
    for call in module.calls_named("init_process_group"):
        given = {k.arg: dotted(k.value) for k in call.keywords}
        rank, size = given.get("rank", ""), given.get("world_size", "")
        function = module.function_of(call)
        if not starts_group(module, call) or not rank or not size or function is None:
            continue
        for branch in module.nodes(ast.If):
            if module.function_of(branch) is not function or branch.lineno > call.lineno:
                continue
            taken = _given_in(branch.body, rank)
            if taken is None or _RANK not in module.text_of(taken.value) or _sets(branch.body, size):
                continue
            if _beside(module, branch, rank, size) and _stays_one(project):
                text = module.text_of(taken.value)
                code = f"{size} = {text.replace(_RANK, _SIZE)}" if text.count(_RANK) == 1 and "\n" not in text else ""
                yield UnsizedBranch(branch, taken, size, code)


def _given_in(body: list[ast.stmt], name: str) -> ast.Assign | None:
    found = (s for s in body if isinstance(s, ast.Assign) and len(s.targets) == 1)
    return next((s for s in found if dotted(s.targets[0]) == name), None)


def _sets(body: list[ast.stmt], size: str) -> bool:
    """True where the arm sets the number, reads that of Slurm, or calls something that may."""
    for node in (n for s in body for n in walk(s)):
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store) and dotted(node) == size:
            return True
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in (_SIZE, "SLURM_NPROCS", "WORLD_SIZE"):
            return True
        if isinstance(node, ast.Call) and size.partition(".")[0] in {dotted(a) for a in node.args}:
            return True
    return False


def _beside(module: SourceModule, branch: ast.If, rank: str, size: str) -> bool:
    """True where another arm of the chain sets both, and nothing outside of it sets the number."""
    chain: list[ast.If] = [branch]
    while isinstance(up := module.parent(chain[-1]), ast.If) and up.orelse == [chain[-1]]:
        chain.append(up)
    while len(chain[0].orelse) == 1 and isinstance(lower := chain[0].orelse[0], ast.If):
        chain.insert(0, lower)
    arms = [c.body for c in chain if c is not branch]
    if not any(_given_in(arm, rank) and _given_in(arm, size) for arm in arms):
        return False
    inside = {id(n) for c in chain for n in walk(c)}
    function = module.function_of(branch)
    stores = (n for n in module.nodes(ast.Attribute) if isinstance(n.ctx, ast.Store) and dotted(n) == size)
    return not any(id(n) not in inside and module.function_of(n) is function for n in stores)


def _stays_one(project: Project) -> bool:
    """True where the number is an option that is 1, and nothing that starts jobs gives it."""

    def build() -> bool:
        if project.files_containing(b".num_tasks") or not any(
            _ONE.search(project.read(p) or b"") for p in project.files_containing(b"world")
        ):
            return False
        return not any(project.files_containing(word, kinds=_JOBS) for word in _GIVEN)

    return project.keep("world size stays one", build)

