"""Are the items that a loop goes over the rank's own, or the same for all ranks?"""

from __future__ import annotations

import ast
import re

from codemods.analysis.bound_values import assigned
from codemods.analysis.files.named_by_items import OWN_ITEMS
from codemods.analysis.loading.origins import all_known, origins
from codemods.analysis.loading.samplers import loader_of
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.output.output_runs import Run
from codemods.analysis.output.rank_data import sees_batches
from codemods.analysis.variance.analysis import variance
from codemods.analysis.variance.paths import unpacked
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_EPOCHS = lazy(r"epoch|round|stage", re.IGNORECASE)
_LISTINGS = frozenset({"listdir", "scandir", "iterdir", "glob", "iglob", "rglob", "walk"})
_SAME_ITEMS = (
    "every rank goes through the same items: let rank 0 alone write, with a barrier behind the loop if another rank reads it"
)
_SOME_ITEMS = (
    "where each rank has a share of the items, put the rank into the name, or gather them and let rank 0 write; where every rank "
    "has all of them, let rank 0 alone write"
)
_GIVE_SAMPLERS = frozenset({"lightning", "pytorch_lightning", "lightning_fabric"})
_FROM_THE_NET = lazy(r"requests\.|urllib|httpx\.|aiohttp\.")


def is_of_a_share(module: SourceModule, function: FunctionNode | ast.Module, run: Run) -> bool:
    """True in a loop, and in a function that is handed batches."""
    if not isinstance(function, ast.Module) and sees_batches(function):
        return True
    loops = [up for up in module.ancestors(run.first) if isinstance(up, (ast.For, ast.AsyncFor, ast.While))]
    return any(not (isinstance(up, ast.For) and _is_counted(module, up)) for up in loops)


def advice_for_items(project: Project, module: SourceModule, run: Run) -> str:
    """What is to be done about a run of a loop whose items may be each rank's own."""
    if _is_fetched(module, run):
        return "let rank 0 fetch it, and put a barrier behind the loop, before another rank reads it"
    if _goes_over_a_listing(module, run):
        return "all ranks go through the same files: let rank 0 do it, and a barrier behind the loop"
    loops = [up for up in module.ancestors(run.first) if isinstance(up, (ast.For, ast.AsyncFor))]
    if not loops or any(variance(project).value(module, loop.iter).differs for loop in loops):
        return OWN_ITEMS
    return _SAME_ITEMS if all(is_dealt_to_nobody(project, module, loop.iter) for loop in loops) else _SOME_ITEMS


def is_dealt_to_nobody(project: Project, module: SourceModule, items: ast.expr) -> bool:
    """True for loaders of torch that are seen to be made without a sampler, where no framework gives them one."""
    made = origins(project, module, unpacked(items))
    loaders = [loader_of(o) for o in made]
    names = (n for m in (module, *(o.module for o in made)) for n in m.imported_modules)
    if not all_known(made) or any(n.partition(".")[0] in _GIVE_SAMPLERS for n in names):
        return False
    return all(x is not None and not x.hides and x.sampler is None and x.batch_sampler is None for x in loaders)


def _goes_over_a_listing(module: SourceModule, run: Run) -> bool:
    """True in a loop over what lies in a folder, or over what stands in the source: the same for all ranks."""
    for up in module.ancestors(run.first):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        if isinstance(up, ast.For):
            items = [up.iter, *(assigned(module, up.iter, up.iter.id) if isinstance(up.iter, ast.Name) else ())]
            calls = (n for i in items for n in walk(i) if isinstance(n, ast.Call))
            if any(isinstance(i, (ast.List, ast.Tuple)) for i in items) or any(last(dotted(c.func)) in _LISTINGS for c in calls):
                return True
    return False


def _is_fetched(module: SourceModule, run: Run) -> bool:
    """True for what the run writes of an answer from the net: `file.write(response.content)` of `requests.get(url)`."""
    names = (n for s in run.statements for n in walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
    values = (v for n in names for v in assigned(module, n, n.id))
    return any(isinstance(v, ast.Call) and _FROM_THE_NET.match(qualified(module, v.func)) for v in values)


def _is_counted(module: SourceModule, loop: ast.For) -> bool:
    """True for `for epoch in range(args.epochs)`: every rank makes the same rounds."""
    items = loop.iter
    if not isinstance(items, ast.Call) or last(dotted(items.func)) != "range" or not isinstance(loop.target, ast.Name):
        return False
    return bool(_EPOCHS.search(loop.target.id) or _EPOCHS.search(module.text_of(items)))
