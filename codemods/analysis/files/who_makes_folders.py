"""Who comes to a line that makes a folder: one rank, no rank of several, each with a sample of its own, those who ask for it."""

from __future__ import annotations

import ast
import re

from codemods.analysis.distribution import is_test_module, ranks_in_file, ranks_in_importers
from codemods.analysis.files.every_rank import way_of_every_rank
from codemods.analysis.files.folders_of_several import holds_several
from codemods.analysis.files.sample_folders import is_folder_of_the_sample
from codemods.analysis.model.signatures import bind, defaults
from codemods.analysis.output.effects import names_rank
from codemods.analysis.paths import origin_text
from codemods.analysis.ranks.rank_guards import Ranks
from codemods.analysis.ranks.reach import called_by_framework, ranks_reaching
from codemods.analysis.ranks.run_by_programs import is_run_by_nobody
from codemods.analysis.ranks.uses import CallSite, constructions, uses_of
from codemods.analysis.variance.analysis import variance
from codemods.analysis.variance.values import Cause
from codemods.files.source import SourceModule
from codemods.store.project import Project

_ROUND_FILES = re.compile(r"\b(?:dirname|os\.path\.split)\(|\.parent\b")
_FETCHES = ("urlretrieve", "urlopen", "download", "download_url", "download_file", "snapshot_download", "wget")


def is_made_by_one(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True in the constructor of an object that only one rank makes, or a program of one process."""
    function, owner = module.function_of(call), module.class_of(call)
    if function is None or owner is None or function.name != "__init__":
        return False
    made = constructions(project, module, owner)
    sites = made.outside_tests().calls if made is not None else ()
    return bool(sites) and all(
        ranks_reaching(project, s.module, s.call).some or is_run_by_nobody(project, s.module, s.call) for s in sites
    )


def comes_alone(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True where no way is seen on which every rank comes."""
    if is_run_by_nobody(project, module, call):
        return True
    asking = _asking_for_it(project, module, call)
    if asking is not None:
        return not any(way_of_every_rank(project, s.module, s.call) is not None for s in asking)
    return way_of_every_rank(project, module, call) is None and not is_in_hook(project, module, call)


def _asking_for_it(project: Project, module: SourceModule, call: ast.Call) -> list[CallSite] | None:
    """The calls that ask for the folder where a parameter that is off by itself decides over it: `if mkdir: path.mkdir()`."""
    function = module.function_of(call)
    given = defaults(function) if function is not None else {}
    off = {name for name, value in given.items() if isinstance(value, ast.Constant) and not value.value}
    tests = (up.test for up in module.ancestors(call) if isinstance(up, ast.If))
    asked = next((t.id for t in tests if isinstance(t, ast.Name) and t.id in off), None)
    if function is None or asked is None:
        return None
    method = isinstance(module.parent(function), ast.ClassDef)
    calls = uses_of(project, module, function).outside_tests().calls
    return [s for s in calls if asked in (bind(function, s.call, bound=method) or {asked: s.call})]


def asks_for_rank(module: SourceModule, call: ast.Call) -> bool:
    """True under a test of something called rank, which a helper may be handed by those that know the processes."""
    return any(isinstance(up, ast.If) and names_rank(module.text_of(up.test)) for up in module.ancestors(call))


def is_asked_for(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """False in a helper that no file of several processes calls: its callers test, show or prepare on one."""
    function = module.function_of(call)
    if function is None or not isinstance(module.parent(function), ast.Module):
        return True
    used = uses_of(project, module, function)
    if used.more:
        return True
    outside = used.outside_tests()
    users = [*(s.module for s in outside.calls), *(h.module for h in outside.handed_on)]
    return any(not is_test_module(m) and (ranks_in_file(project, m) or ranks_in_importers(project, m)) for m in users)


def is_in_hook(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True in a hook, which its framework calls on every rank: the file of an heir need not speak of processes."""
    function = module.function_of(call)
    return function is not None and called_by_framework(project, module, function) is Ranks.ALL


def is_of_own_data(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True for a folder that is named after what this rank alone has: a sample of its batch, its rank.

    The folder round such a file (`os.path.dirname(out)`) is not, unless it bears the name of the same sample: samples of several
    ranks lie in it. Nor is one in which the file has a name of its own: `join(root, kind, name)`.
    """
    cause = variance(project).argument(module, call, 0).cause if call.args else Cause.SAME
    if cause is Cause.DATA and _ROUND_FILES.search(origin_text(module, call.args[0])):
        return is_folder_of_the_sample(module, call.args[0])
    if cause is Cause.DATA and holds_several(project, module, call.args[0]):
        return False
    return cause in (Cause.RANK, Cause.DATA)


def fetches(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True in a function in which every rank goes on to fetch a file: that race stays, and DDP307 tells it."""
    function = module.function_of(call)
    if function is None or not isinstance(module.parent(function), ast.Module):
        return False
    fetching = (c for c in module.calls_named(*_FETCHES) if module.function_of(c) is function)
    return any(not ranks_reaching(project, module, c).some for c in fetching)
