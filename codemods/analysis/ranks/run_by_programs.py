"""Does a program of the project come to a place in a run of several processes? What no program runs puts out nothing.

Names are followed over the whole project: from a function to its calls, from a method to who makes objects of its class, up to
the files that are run. What is called by a framework, named in a string or a setting, or public in a package counts as run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from codemods.analysis.call_graph import called_function
from codemods.analysis.class_index import ClassSite, class_facts, has_many_heirs, subclasses
from codemods.analysis.distribution import is_own_test, is_test_module, ranks_in_file
from codemods.analysis.job_files.documented_starts import is_program, starts
from codemods.analysis.names import dotted, last
from codemods.analysis.other_names import reads_by_other_names
from codemods.analysis.ranks.alone_by_environment import is_alone_by_environment
from codemods.analysis.ranks.cannot_run import cannot_be_imported, is_behind_an_end
from codemods.analysis.ranks.closed_branches import is_asked_for_by_none, is_only_asked_for_by_none, led_past
from codemods.analysis.ranks.described_parts import is_only_a_part
from codemods.analysis.ranks.excluded_modes import is_in_mode_of_one
from codemods.analysis.ranks.failing_ranks import ranks_unless_one_fails
from codemods.analysis.ranks.fetched_functions import fetched_at
from codemods.analysis.ranks.fetched_names import may_be_fetched
from codemods.analysis.ranks.first_device import is_tied_to_first_device
from codemods.analysis.ranks.handed_zero import is_handed_zero
from codemods.analysis.ranks.hidden_packages import is_hidden
from codemods.analysis.ranks.idle_trainers import has_an_idle_trainer
from codemods.analysis.ranks.installed_commands import is_installed_command
from codemods.analysis.ranks.looked_up import is_looked_up
from codemods.analysis.ranks.lost_settings import has_lost_settings
from codemods.analysis.ranks.never_named import is_in_a_function_never_named, is_never_named
from codemods.analysis.ranks.one_device import has_trainers_of_one_device, trains_on_one_device
from codemods.analysis.ranks.outside_calls import (
    is_called_from_outside,
    is_found_by_its_base,
    is_hook,
    is_hook_of_a_fitted_module,
)
from codemods.analysis.ranks.pool_workers import is_of_a_pool
from codemods.analysis.ranks.prepared_loaders import prepares_a_loader
from codemods.analysis.ranks.registered import is_by_unused_key
from codemods.analysis.ranks.registered_models import makers_of
from codemods.analysis.ranks.several_processes import is_of_one_process
from codemods.analysis.ranks.spawned_by_fit import starts_ranks_in_fit
from codemods.analysis.ranks.superseded import is_superseded
from codemods.analysis.ranks.sure_failures import is_behind_a_failure
from codemods.analysis.ranks.unused import is_of_a_library, is_packaged, is_passed_over, is_run_by_name
from codemods.analysis.ranks.uses import MANY_FILES, Uses, means, only_names, uses_of
from codemods.analysis.switched_off import is_switched_off
from codemods.files.import_statements import stem_of
from codemods.files.left_alone import left
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.store.corpus import uses
from codemods.store.project import Project

_Asked = tuple[str, int, bool]  # path, line, whether the way to it shows several processes
_SPEAKS = lazy(
    r"rank\b|rank_?zero|rank0|RANK|WORLD_SIZE|[dD]istributed|DDP|[lL]ightning|\bpl\.|Accelerat|accelerat|Trainer|Fabric|process_group|spawn|launch|barrier|"
    r"init_dist|setup_dist"
)
# Training, and what several processes ask an accelerator for; also one that is handed on, to be asked elsewhere.
_SHARES = lazy(
    rb"backward\(|optimizer|num_processes|process_index|wait_for_everyone|gather|split_between|reduce\(|accumulate\(|\.train\(|"
    rb"[Ss]ampler|is_(?:local_)?main_process\s*:|\.rank|(?:[(,=]\s*)(?:self\.)?accelerator\s*[,)]"
)
_MOST_STEPS = 150  # functions and classes looked at for one question
# Decorators that hand nothing on: the function is still called by its name alone.
_PLAIN = frozenset(
    {"staticmethod", "classmethod", "property", "contextmanager", "no_grad", "inference_mode", "rank_zero_only", "wraps",
     "abstractmethod", "override", "overload"}
)  # fmt: skip


def is_run_by_nobody(project: Project, module: SourceModule, node: ast.AST, *, shared: bool = True, by_one: bool = False) -> bool:
    """True where the project has programs, and none of them comes to `node` in a run of several processes.

    shared: a program that makes an Accelerator and shares nothing out counts as one of one process. by_one: what rank 0 alone
    does in a run of several is run, too.
    Dear where a name stands in many files: to be asked of what would be reported.
    """
    why = _why_by_nobody(project, module, node, shared=shared, by_one=by_one)
    return why != "" and left(module, node, "no run of several processes comes here: {}", why)


def _why_by_nobody(project: Project, module: SourceModule, node: ast.AST, *, shared: bool, by_one: bool) -> str:
    """The reason of `is_run_by_nobody`; "" where somebody may come."""
    function = module.function_of(node)
    if trains_on_one_device(project, module, function):
        return "its Trainers have one device"
    if is_behind_an_end(module, node):
        return "the program ends above it, or the loop is left"
    if is_in_a_function_never_named(module, node):
        return "nothing names the function that it stands in"
    if cannot_be_imported(project, module):
        return "the file cannot be imported: it names what is not there"
    if is_behind_a_failure(project, module, node):
        return "what stands above it fails in every run"
    if is_hidden(project, module):
        return "no program is seen to import its package"
    if is_switched_off(project, module):
        return "a switch that is set to False for good keeps every run off the file"
    if is_alone_by_environment(module):
        return "the top of the file gives each process a group of its own"
    if is_in_mode_of_one(project, module, node):
        return "it stands in a mode that the program refuses on several processes"
    if has_an_idle_trainer(project, module, function):
        return "its Trainer is made and runs nothing"
    if starts_ranks_in_fit(project, module, function):
        return "the Trainer may start its ranks in `fit` alone, and no launcher starts the program"
    if is_of_a_pool(project, module, function):
        return "the workers of a pool run it"
    if not has_programs(project):
        return "the project's Trainers have one device" if has_trainers_of_one_device(project, module) else ""
    if shared and _shares_nothing(module):
        return "the file makes an Accelerator, and shares nothing out"
    if function is None or Search(project, by_one=by_one).comes_to(module, node, shown=False):
        return ""
    return "no program of several processes is seen to come to its function"


def is_shown_to_run(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True where each step from `node` up to a program of several processes is seen: calls, objects made, names in settings.

    Also where the project has no programs at all.
    """
    if not has_programs(project):
        return True
    return Search(project, presumed=False).comes_to(module, node, shown=False)


def _shares_nothing(module: SourceModule) -> bool:
    """True for a file that makes an `Accelerator`, and neither trains, nor shares out its work, nor puts results together.

    Each process would do all of it: such a program looks at samples, and is run as one.
    """
    return module.holds(b"Accelerator(") and _SHARES.search(module.data) is None and not prepares_a_loader(module)


def has_programs(project: Project) -> bool:
    """False for a folder of classes and functions alone: somebody else's program runs those."""
    return project.keep("has programs", lambda: _find_a_program(project))


def _find_a_program(project: Project) -> bool:
    """A file with the block of a program, or one without that a command starts and that speaks of ranks."""
    if not all(is_no_program(project, p) for p in project.files_containing(b"__main__")):
        return True
    started = (s.path for s in starts(project) if s.path)
    return any(_SPEAKS.search((project.read(p) or b"").decode("utf-8", "replace")) for p in started)


def is_no_program(project: Project, path: str) -> bool:
    """True for tests, and for what lies in a folder of old files that nothing else names: nobody starts it."""
    return is_own_test(project, path) or is_superseded(project, path)


class Search:
    """One question, with what has been seen to be run on the way to its answer.

    presumed: what stands for a use that is not seen: too many places of a name, a decorator, a base that nobody can look into.
    """

    def __init__(self, project: Project, *, presumed: bool = True, by_one: bool = False) -> None:
        self._project = project
        self._presumed = presumed
        self._by_one = by_one
        self._run: set[_Asked] = set()
        self._above: set[_Asked] = set()  # asked about, with no answer yet: a way round in a circle leads nowhere
        self._steps = 0

    def comes_to(self, module: SourceModule, node: ast.AST, *, shown: bool) -> bool:
        """shown: what the way has come through so far speaks of several processes."""
        if is_test_module(module) or is_of_one_process(module, node) or is_behind_an_end(module, node):
            return False
        if cannot_be_imported(self._project, module) or is_tied_to_first_device(self._project, module):
            return False
        if is_hidden(self._project, module) or is_superseded(self._project, module.path):
            return False
        if is_switched_off(self._project, module) or is_alone_by_environment(module):
            return False
        if is_in_mode_of_one(self._project, module, node):
            return False
        if is_behind_a_failure(self._project, module, node) or is_asked_for_by_none(self._project, module, node):
            return False
        function = module.function_of(node)
        if trains_on_one_device(self._project, module, function) or has_trainers_of_one_device(self._project, module):
            return False
        if function is not None and is_handed_zero(self._project, module, function):
            return False
        if function is not None and has_lost_settings(self._project, module, function):
            return False
        if function is None:
            return self._ends_at(module, shown)
        led = led_past(self._project, module, function, node)
        return self._is_run(module, function, shown) and (led is None or self._is_led(module, function, led, shown))

    def _is_led(self, module: SourceModule, function: FunctionNode, led: Uses, shown: bool) -> bool:
        """True where one of the calls whose arguments lead to the place is run."""
        shown = shown or _SPEAKS.search(module.text_of(function)) is not None
        self._steps += 1
        if self._steps > _MOST_STEPS or (self._presumed and self._is_public(module, function.name)):
            return True
        others = [(s.module, s.call) for s in led.calls if s.module.function_of(s.call) is not function]
        coming = (place for place in others if self._by_one or not self._is_for_some(*place))
        return any(self.comes_to(*place, shown=shown) for place in coming)

    def _ends_at(self, module: SourceModule, shown: bool) -> bool:
        """The way up has come to the top of a file that is run: do several processes run it?"""
        return shown or self._starts_several(module)

    def _is_run(self, module: SourceModule, function: FunctionNode | ast.ClassDef, shown: bool) -> bool:
        shown = shown or _SPEAKS.search(module.text_of(function)) is not None
        key = (module.path, function.lineno, shown)
        if key in self._run:
            return True
        if self._steps > _MOST_STEPS:
            return self._presumed
        if key in self._above:
            return False
        self._steps += 1
        self._above.add(key)
        if isinstance(function, ast.ClassDef):
            found = self._is_made(ClassSite(module, function), shown)
        else:
            found = self._is_called(module, function, shown)
        self._above.discard(key)
        if found:
            self._run.add(key)
        return found

    def _starts_several(self, module: SourceModule) -> bool:
        """False for a program that does not speak of several processes, nor do the functions that it calls: it prepares data."""
        project = self._project
        importing = project.files_importing(stem_of(module.path))
        imported = not is_program(project, module.path) and any(p != module.path for p in importing)
        if imported or ranks_in_file(project, module):
            return True
        called = (called_function(project, module, call) for call in module.nodes(ast.Call))
        return any(f is not None and _SPEAKS.search(f.module.text_of(f.node)) for f in called)

    def _is_called(self, module: SourceModule, function: FunctionNode, shown: bool) -> bool:
        owner, outer = module.parent(function), module.function_of(function)
        if any(last(dotted(d.func if isinstance(d, ast.Call) else d)) not in _PLAIN for d in function.decorator_list):
            if self._presumed:
                return True  # who it is registered with may call it
        if isinstance(owner, ast.ClassDef):
            return self._is_method_run(module, owner, function, shown)
        if outer is not None:
            return not is_never_named(module, function) and self._is_run(module, outer, shown)
        if any(self.comes_to(home, call, shown=shown) for home, call in makers_of(self._project, module, function)):
            return True
        if is_run_by_name(module) and self._is_found_by_name(module, of_the_file=True):
            return True
        if is_installed_command(self._project, module, function) and self._ends_at(module, shown):
            return True
        if self._has_calls(module, function, shown):
            return True
        if self._presumed and self._is_public(module, function.name):
            return True
        if function.name != "main" or is_passed_over(self._project, module, function):
            return False
        return not self._is_left_to_one(module, function) and self._ends_at(module, shown)

    def _is_left_to_one(self, module: SourceModule, function: FunctionNode) -> bool:
        """True where the project calls the function, and only in the branch that runs of several processes do not take."""
        calls = uses_of(self._project, module, function).outside_tests().calls
        return bool(calls) and all(is_of_one_process(s.module, s.call) for s in calls)

    def _is_found_by_name(self, module: SourceModule, *, of_the_file: bool = False) -> bool:
        """What the command line or a setting names may be run by whoever starts the file, or any that looks it up."""
        return True

    def _is_method_run(self, module: SourceModule, owner: ast.ClassDef, function: FunctionNode, shown: bool) -> bool:
        facts = class_facts(self._project, module, owner)
        site = facts.lineage[0]
        if not is_hook(function.name) and is_only_asked_for_by_none(self._project, module, function):
            return False
        if self._presumed and (facts.opaque or has_many_heirs(self._project, site)):
            return True
        reached = is_called_from_outside(self._project, facts, function.name) or may_be_fetched(module, function.name)
        if reached and not is_hook(function.name) and self._has_dead_calls_alone(module, function):
            return False
        having = self._having(site, function)
        if reached and is_hook_of_a_fitted_module(facts, function.name):
            having = [s for s in having if not is_only_a_part(self._project, s)]
        if not reached and not self._has_calls(module, function, shown):
            return False
        return any(self._is_run(s.module, s.node, shown) for s in having)

    def _has_dead_calls_alone(self, module: SourceModule, function: FunctionNode) -> bool:
        """True for a method that the project itself calls, and behind a `return` or `raise` only: no framework knows of it."""
        used = uses_of(self._project, module, function)
        if used.more or used.handed_on or not used.calls:
            return False
        return all(is_behind_an_end(s.module, s.call) for s in used.calls)

    def _having(self, site: ClassSite, function: FunctionNode) -> list[ClassSite]:
        """The classes whose objects run this method: not those that define it anew without a call of it."""
        found = [site]
        for heir in subclasses(self._project, site):
            facts = class_facts(self._project, heir.module, heir.node)
            given = facts.method(function.name)
            if given is None or given[1] is function or _calls_above(given[1], function.name):
                found.append(heir)
        return found

    def _has_calls(self, module: SourceModule, function: FunctionNode, shown: bool) -> bool:
        used = uses_of(self._project, module, function)
        if used.more and self._presumed:
            return True
        method = isinstance(module.parent(function), ast.ClassDef)
        places = [*((s.module, s.call, s.call.func) for s in used.calls), *((h.module, h.node, h.node) for h in used.handed_on)]
        if not method:
            places += ((f.module, f.call, f.call) for f in fetched_at(self._project, module, function))
        for other, node, named in places:
            if (method or _may_be_plain(other, named)) and (self._by_one or not self._is_for_some(other, node)):
                if self.comes_to(other, node, shown=shown):
                    return True
        return self._presumed and is_looked_up(self._project, module, function) and self._is_found_by_name(module)

    def _is_for_some(self, module: SourceModule, node: ast.AST) -> bool:
        return ranks_unless_one_fails(self._project, module, node).some

    def _is_made(self, site: ClassSite, shown: bool) -> bool:
        """True where a program makes objects of the class itself, or may find it by its name."""
        module, node = site.module, site.node
        project = self._project
        if self._presumed and (node.decorator_list or node.keywords or is_found_by_its_base(project, site)):
            return True
        if self._presumed and self._is_public(module, node.name):
            return True
        if is_looked_up(self._project, module, node) and self._is_found_by_name(module):
            return True
        users = project.files_using(node.name, most=MANY_FILES)
        if users is None:
            return self._presumed
        outer = module.function_of(node)
        if outer is not None and not self._is_run(module, outer, shown):
            return False
        for other, read in _reads(project, site, users):
            if _is_inside(other, read, node) or only_names(other, read, made_by_methods=True):
                continue
            if not means(project, other, read, site) or is_by_unused_key(project, other, read):
                continue
            if self.comes_to(other, read, shown=shown):
                return True
        return False

    def _is_public(self, module: SourceModule, name: str) -> bool:
        """True for a name that an installed package hands out at its top."""
        if not is_packaged(self._project, module.path):
            return False
        top, folder = "", module.path.rpartition("/")[0]
        while folder and f"{folder}/__init__.py" in self._project.files:
            top, folder = f"{folder}/__init__.py", folder.rpartition("/")[0]
        if not top:  # a folder without an `__init__.py` is no package: its files are scripts, but for one beside the set-up
            return f"{folder}/setup.py".lstrip("/") in self._project.files and is_of_a_library(self._project, module.path)
        return uses(self._project.read(top) or b"", name.encode())


def _reads(project: Project, site: ClassSite, users: Iterable[str]) -> Iterator[tuple[SourceModule, ast.Name | ast.Attribute]]:
    """Where these files read the class by its name, and where others do by another one."""
    for path in users:
        other = project.module(path) if not is_own_test(project, path) else None
        yield from ((other, read) for read in other.reads_of(site.name)) if other is not None else ()
    yield from ((r.module, r.node) for r in reads_by_other_names(project, site.module, site.node))


def _may_be_plain(module: SourceModule, named: ast.expr) -> bool:
    """False for an attribute of an object, `model.train`: a plain function is an attribute of what was imported alone.

    Out of a table, `TASKS[name](cfg)`, comes either.
    """
    return not isinstance(named, ast.Attribute) or dotted(named).partition(".")[0] in module.imports


def _calls_above(function: FunctionNode, name: str) -> bool:
    """True for a method that calls the one it takes the place of: `super().name(…)`, `Base.name(self, …)`."""
    heads = (n for n in walk(function) if isinstance(n, ast.Attribute) and n.attr == name)
    return any(not isinstance(h.value, ast.Name) or h.value.id != "self" for h in heads)


def _is_inside(module: SourceModule, node: ast.AST, owner: ast.ClassDef) -> bool:
    return any(up is owner for up in module.ancestors(node))
