"""Where a project seeds the random numbers of its processes, and whether with the same number on every rank."""

from __future__ import annotations

import ast

from codemods.analysis.distribution import is_test_file
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.ranks.rank_sources import rank_source
from codemods.analysis.variance.analysis import variance
from codemods.analysis.variance.values import Cause
from codemods.project import Project
from codemods.record import record
from codemods.source import SourceModule, walk

# Calls that fix the process's own random numbers.
SEEDERS = frozenset({"manual_seed", "manual_seed_all", "seed_everything", "set_seed", "seed"})
_WORDS = (b"manual_seed", b"seed_everything", b"set_seed", b".seed(")


@record
class Seed:
    """A call that seeds. own: it seeds a generator object, not the numbers that everything draws from.

    of_rank: it is seen to differ between the ranks. value: the expression of the seed.
    """

    module: SourceModule
    call: ast.Call
    value: ast.expr | None
    own: bool
    of_rank: bool


@record
class Seeds:
    """Every seed of a project, outside of its tests."""

    found: tuple[Seed, ...]

    @property
    def any(self) -> bool:
        return bool(self.found)

    @property
    def of_ranks(self) -> bool:
        return any(s.of_rank for s in self.found)


def seeds_of(project: Project) -> Seeds:
    return project.memo("seeds", lambda: Seeds(tuple(_all(project))))


def _all(project: Project) -> list[Seed]:
    paths = {p for word in _WORDS for p in project.files_containing(word) if not is_test_file(p)}
    out: list[Seed] = []
    for path in sorted(paths):
        module = project.module(path)
        for call in module.calls_named(*SEEDERS) if module is not None else ():
            if module is not None and (seed := _seed(project, module, call)) is not None:
                out.append(seed)
    return out


def _seed(project: Project, module: SourceModule, call: ast.Call) -> Seed | None:
    name = qualified(module, call.func)
    value = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg in ("seed", None)), None)
    if last(name) == "seed" and not name.startswith(("random.", "numpy.random.", "torch.")):
        return None
    if not name:  # `torch.Generator().manual_seed(0)`
        return Seed(module, call, value, True, depends_on_rank(project, module, call, value))
    plain = name.startswith(("torch.", "random.", "numpy.random.", "lightning", "pytorch_lightning", "accelerate", "transformers"))
    holder = dotted(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    own = not plain and last(name) == "manual_seed" and bool(holder)
    specific = any(k.arg == "device_specific" and not _is_false(k.value) for k in call.keywords)
    return Seed(module, call, value, own, specific or depends_on_rank(project, module, call, value))


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not node.value


def depends_on_rank(project: Project, module: SourceModule, call: ast.Call, value: ast.expr | None) -> bool:
    """True where the first argument of a call differs between the ranks, as far as it is seen."""
    if value is None:
        return False
    if any(rank_source(module, n, project) is not None for n in walk(value) if isinstance(n, (ast.Name, ast.Attribute, ast.Call))):
        return True
    found = variance(project).argument(module, call, 0)
    return found.cause is Cause.RANK or found.differs
