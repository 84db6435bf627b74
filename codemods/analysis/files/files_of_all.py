"""Files that every rank writes, moves or removes under one name, as far as calls show it: what no guard was found for."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bound_values import assigned
from codemods.analysis.call_graph import called_function
from codemods.analysis.files.before_fit import comes_first
from codemods.analysis.files.behind_first_mkdir import is_behind_first_mkdir, is_called_behind_first_mkdir
from codemods.analysis.files.beside_tracker import is_beside_tracker
from codemods.analysis.files.changed_files import MOVES, changed, is_log, modes_of_log
from codemods.analysis.files.dead_ways import is_dead
from codemods.analysis.files.every_rank import Way, way_of_every_rank
from codemods.analysis.files.file_calls import Act, FileCall, file_call
from codemods.analysis.files.file_paths import arguments_of, forms
from codemods.analysis.files.filled_on_demand import filled_on_demand, is_a_program_of_one, is_asked_for
from codemods.analysis.files.found_by_later_ranks import is_found_by_later_ranks
from codemods.analysis.files.own_draws import is_named_by_draw
from codemods.analysis.files.own_paths import callers_of, is_path_of_one, leads_to
from codemods.analysis.files.rotating_logs import rotates
from codemods.analysis.files.rounds_of_own import in_own_rounds
from codemods.analysis.files.shared_places import is_of_one_item
from codemods.analysis.files.taken_away import asking_round, is_a_person_asked, is_made_anew, made_of, puts_up_with_it
from codemods.analysis.files.written_saves import is_in_memory, saves_in
from codemods.analysis.model.signatures import defaults
from codemods.analysis.names import is_parameter, qualified
from codemods.analysis.output.effect_kinds import names_rank
from codemods.analysis.output.rank_values import under_such_a_name
from codemods.analysis.paths import origin_text
from codemods.analysis.ranks.missed_meetings import is_behind_an_error
from codemods.analysis.ranks.rank_guards import Ranks
from codemods.analysis.ranks.reach import ranks_reaching, to_a_launcher
from codemods.analysis.ranks.run_by_programs import is_run_by_nobody
from codemods.analysis.ranks.unused import is_never_run
from codemods.analysis.ranks.uses import CallSite, uses_of
from codemods.analysis.variance.analysis import variance
from codemods.analysis.variance.values import Cause
from codemods.files.left_alone import left
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_CLOCK = lazy(r"\b(?:now|today|utcnow)\(|\bstrftime\(|\btime\.(?:time|localtime|ctime)\(|\basctime\(|\brandom\b|token_hex|uuid")
_LOCKS = lazy(r"\b\w*(?<![bBcC])[lL]ock\(|\bacquire\(|try_acquire|[bB]aton|filelock|fcntl")
_OF_FRAMEWORKS = frozenset(
    {"fit", "train", "test", "validate", "predict", "run", "step", "update", "write", "setup", "build", "close"}
)
_SHARED_OUT = (b"split_between_processes",)
_JOINS = (b"Accelerator(", b"init_process_group(", b"Trainer(", b"Fabric(", b"PartialState(")  # whoever calls these is a rank


@record
class FileOfAll:
    """at: where the guard belongs, in `module`, and the path as it is named there. file: what is done, in `home`.

    way: how every rank comes there.
    """

    module: SourceModule
    at: ast.stmt
    path: ast.expr
    home: SourceModule
    file: FileCall
    way: Way

    @property
    def removes(self) -> bool:
        """True where the second rank no longer finds what it takes away."""
        return self.file.act is Act.REMOVES or qualified(self.home, self.file.call.func) in MOVES


def files_of_all(project: Project, module: SourceModule) -> tuple[FileOfAll, ...]:
    """One for each path of a function that every rank writes, moves or removes; those of DDP501 and DDP307 left out."""
    return project.memo(("files of all", module.path), lambda: tuple(_find(project, module)))


def _find(project: Project, module: SourceModule) -> Iterator[FileOfAll]:
    if any(module.holds(word) for word in _SHARED_OUT):
        return
    in_memory = any(module.holds(word) for word in (b"BytesIO", b"StringIO", b"TemporaryFile"))
    saves = {id(s.call) for s in saves_in(project, module)}
    once = set(_of_caches(project, module))  # DDP307 tells of these as one
    seen: set[tuple[int, str]] = set()
    for call in module.nodes(ast.Call):
        if id(call) in saves or id(call) in once or (found := changed(module, call)) is None:
            continue
        if in_memory and is_in_memory(module, found.path):
            continue
        key = (id(module.function_of(call)), " ".join(module.text_of(found.path).split()))
        if key in seen:
            continue
        way = _way(project, module, found)
        for each in (way, *_other_ways(project, module, found, way)) if way is not None else ():
            if any(is_behind_an_error(project, home, node) for home, node in each.frames):
                continue
            seen.add(key)
            home, at, path = _place(module, call, found.path, each)
            if is_in_memory(home, path):  # a buffer that the function is handed
                continue
            if not _is_nothing(path) and not _is_of_another_time(project, home, path, each):
                yield FileOfAll(home, at, path, module, found, each)


def _of_caches(project: Project, module: SourceModule) -> Iterator[int]:
    """The calls of functions that make sure of a file; of one that trains, those under the test for it."""
    for found in filled_on_demand(project, module):
        test = module.statement_of(found.asked.call)
        home: ast.AST = test if "backward(" in module.text_of(found.function) else found.function
        yield from (id(n) for n in walk(home) if isinstance(n, ast.Call))
        yield id(found.write.call)


def _other_ways(project: Project, module: SourceModule, found: FileCall, way: Way) -> Iterator[Way]:
    """The other callers that name a path which the function is only handed: each of them is a file of its own."""
    function = module.function_of(found.call)
    if function is None or len(way.frames) < 2 or not isinstance(found.path, ast.Name):
        return
    for site in callers_of(project, module, function):
        if site.call is way.frames[1][1] or found.path.id not in arguments_of(function, site.call):
            continue
        if not leads_to(project, site, function) and not _is_only_one(project, module, function):
            continue
        above = way_of_every_rank(project, site.module, site.call)
        other = Way(((module, found.call), *above.frames), above.shown) if above is not None else None
        if other is None or _is_left_to_some(project, site.module, site.call, above) or is_dead(project, other):
            continue
        if _is_run_so(project, module, found, other) and not is_run_by_nobody(project, site.module, site.call, shared=False):
            yield other


def _way(project: Project, module: SourceModule, found: FileCall) -> Way | None:
    """How every rank comes to a change of one and the same path; None where any of it is not shown."""
    call, statement = found.call, module.statement_of(found.call)
    removes = found.act is Act.REMOVES or qualified(module, call.func) in (*MOVES, "shutil.copytree")
    if removes and is_a_person_asked(project, module, call) and left(module, call, "a person is asked first"):
        return None
    if removes and puts_up_with_it(module, call) and not is_made_anew(project, module, found):
        left(module, call, "the call puts up with a path that is gone already")
        return None
    if is_behind_first_mkdir(module, call, [found.path]) and left(module, call, "the others end above it, as DDP204 says"):
        return None
    if not _is_for_good(module, found) and left(module, call, "it stands in a handler of errors, which are each rank's own"):
        return None
    if not removes and is_asked_for(module, call, found.path) and left(module, call, _ASKED, found.path):
        return None
    if is_beside_tracker(module, [found.path]) and left(module, call, "the path is a tracker's own"):
        return None
    if _CLOCK.search(made_of(module, found)) and left(module, call, "the path is made of the time: ranks may not share it"):
        return None
    if is_named_by_draw(project, module, found.path) and left(module, call, "each process draws the name for itself"):
        return None
    if is_of_one_item(project, module, found.path) and left(module, call, "the path is that of an item which one rank has"):
        return None
    if (way := way_of_every_rank(project, module, call)) is None and left(module, call, "not every rank is seen to come here"):
        return None
    if way is None or (_is_left_to_some(project, module, call, way) and left(module, call, "some callers keep ranks from it")):
        return None
    if under_such_a_name(project, module, statement) and left(module, call, _MAY_STAND):
        return None
    if in_own_rounds(project, module, [statement]) and left(module, call, "it is written for each item of a rank's own share"):
        return None
    if is_path_of_one(project, module, found.path) and left(module, call, _OWN, found.path):
        return None
    if not _is_one_path(project, module, found) and left(module, call, _OWN, found.path):
        return None
    if not _is_run_so(project, module, found, way) and left(module, call, "no run of several processes is shown to come here"):
        return None
    if is_dead(project, way) or is_called_behind_first_mkdir(project, module, call, [found.path]):
        left(module, call, "no run comes here, or the other ranks end above it")
        return None
    if is_run_by_nobody(project, module, call, shared=False):
        return None
    late = not removes and is_found_by_later_ranks(project, module, found, way)
    return None if late and left(module, call, "ranks that come later find the file, and leave it") else way


_ASKED = "it stands behind a test whether {} is there: a rank that finds it writes nothing"
_MAY_STAND = "it stands under a test whose name may stand for the rank"
_OWN = "the path {} is one of each rank's own"


def _is_left_to_some(project: Project, module: SourceModule, call: ast.Call, way: Way | None) -> bool:
    """True where some caller keeps ranks from the place; the way itself was looked at, and is the only one where each has one."""
    ranks = ranks_reaching(project, module, call)
    if ranks is not Ranks.UNKNOWN or way is None:
        return ranks.some
    below = ((home, home.function_of(node)) for home, node in way.frames[:-1])
    return len(way.frames) < 2 or any(f is None or len(callers_of(project, home, f)) != 1 for home, f in below)


def _is_for_good(module: SourceModule, found: FileCall) -> bool:
    """False in a handler of errors, which are each rank's own, unless all ranks fail at the very file that it is about."""
    below: ast.AST = found.call
    for up in module.ancestors(found.call):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return True
        if isinstance(up, ast.Try) and any(h is below for h in up.handlers):
            wanted = forms(module, found.path)
            reads = (file_call(module, n) for s in up.body for n in walk(s) if isinstance(n, ast.Call))
            return any(r is not None and r.act is Act.READS and wanted & forms(module, r.path) for r in reads)
        below = up
    return True


def _is_one_path(project: Project, module: SourceModule, found: FileCall) -> bool:
    """True unless the ranks are seen to name it differently."""
    names = [n for n in walk(found.path) if isinstance(n, (ast.Name, ast.Attribute))]
    parts = [n for n in names if not _is_written_out(module, n)]
    causes = {variance(project).value(module, p).cause for p in (*parts, *([found.path] if parts == names else []))}
    chosen = made_of(module, found) != origin_text(module, found.path)  # the clock is in the other arm
    return not causes & {Cause.RANK, Cause.DATA} and (chosen or Cause.PLACE not in causes)


def _is_written_out(module: SourceModule, part: ast.expr) -> bool:
    """True for a name that one text is given to, whatever test that stands under: who comes here has that one."""
    values = assigned(module, part, part.id) if isinstance(part, ast.Name) else []
    return len(values) == 1 and isinstance(values[0], ast.Constant)


# The way there


def _is_run_so(project: Project, module: SourceModule, found: FileCall, way: Way) -> bool:
    functions = [(home, f) for home, node in way.frames if (f := home.function_of(node)) is not None]
    if not _is_shown_to_run(project, way):
        return False
    if any(_is_masked(project, home, f) or _LOCKS.search(home.text_of(f)) for home, f in functions):
        return False
    if functions and (is_never_run(project, *functions[-1]) or _is_left_to_others(project, *functions[-1])):
        return False
    if functions and not any(functions[-1][0].holds(word) for word in _JOINS):
        home, above = functions[-1][0], callers_of(project, *functions[-1])
        if above and all(site.module is not home and is_a_program_of_one(project, site.module) for site in above):
            return False  # scripts that export or show something: no rank comes there
    return _is_given(module, found, way) and not _is_added_to(module, found, way) and not _is_filled_once(module, found, way)


def _is_shown_to_run(project: Project, way: Way) -> bool:
    """True where each call on the way runs the very function: `save` and `push_to_hub` are methods of many objects."""
    for (home, node), (above, site) in zip(way.frames, way.frames[1:], strict=False):
        function = home.function_of(node)
        if function is None or not isinstance(site, ast.Call):
            return False
        if not leads_to(project, CallSite(above, site), function) and not _is_only_one(project, home, function):
            return False
    return True


def _is_only_one(project: Project, module: SourceModule, function: FunctionNode) -> bool:
    """True for a method of which the project has one of that name, and that no framework's objects have."""
    common = function.name in _OF_FRAMEWORKS or function.name.startswith(("save", "load", "push", "log"))
    if common or not isinstance(module.parent(function), ast.ClassDef):
        return False
    defining = project.files_containing(f"def {function.name}(".encode())
    return list(defining) == [module.path] and sum(f.name == function.name for f in module.functions) == 1


def _is_masked(project: Project, module: SourceModule, function: FunctionNode) -> bool:
    """True under a decorator of the project that asks for the rank, or one that no source is seen of and that says so."""
    for mark in function.decorator_list:
        call = mark if isinstance(mark, ast.Call) else ast.Call(mark, [], [])
        site = called_function(project, module, ast.copy_location(call, mark))
        if names_rank(site.module.text_of(site.node) if site is not None else module.text_of(mark)):
            return True
    return False


def _is_left_to_others(project: Project, module: SourceModule, function: FunctionNode) -> bool:
    """True for a function that nobody calls and that is handed on: who runs it, and where, is not seen."""
    used = uses_of(project, module, function).outside_tests()
    return bool(used.handed_on) and not used.calls and not any(to_a_launcher(place) for place in used.handed_on)


def _is_given(module: SourceModule, found: FileCall, way: Way) -> bool:
    """False where the path is a parameter that is None unless it is given, and the calls on the way do not give it."""
    function = module.function_of(found.call)
    names = [n for n in walk(found.path) if isinstance(n, ast.Name) and function is not None and is_parameter(module, n.id, n)]
    if function is None or not names or len(way.frames) < 2 or not isinstance(way.frames[1][1], ast.Call):
        return True
    given = arguments_of(function, way.frames[1][1])
    left = defaults(function)
    return all(n.id in given or not _is_nothing(left.get(n.id)) for n in names) and not any(
        _is_nothing(given.get(n.id)) for n in names
    )


def _is_added_to(module: SourceModule, found: FileCall, way: Way) -> bool:
    """True for a log whose opener is told by the caller on the way to add to it: `make_log(path, mode="a")`."""
    function = module.function_of(found.call)
    if function is None or len(way.frames) < 2 or not isinstance(way.frames[1][1], ast.Call):
        return False
    if rotates(module, found.call):
        return False  # it is moved away, whatever is added to it
    given = arguments_of(function, way.frames[1][1])
    modes = [given.get(m.id) for m in modes_of_log(found.call) if isinstance(m, ast.Name)] if is_log(module, found.call) else []
    return any(isinstance(m, ast.Constant) and m.value != "w" for m in modes)


def _is_filled_once(module: SourceModule, found: FileCall, way: Way) -> bool:
    """True where a caller on the way asks for the very file first: DDP307 tells of such caches."""
    home, named = module, found.path
    for (_, below), (above, site) in zip(way.frames, way.frames[1:], strict=False):
        function = home.function_of(below)
        given = arguments_of(function, site) if function is not None and isinstance(site, ast.Call) else {}
        if not isinstance(named, ast.Name) or named.id not in given:
            return False
        home, named = above, given[named.id]
        if is_asked_for(home, site, named):
            return True
    return False


def _is_of_another_time(project: Project, home: SourceModule, path: ast.expr, way: Way) -> bool:
    """True where a caller names the file after the clock above `fit`, which starts the other processes seconds later."""
    return _CLOCK.search(origin_text(home, path)) is not None and comes_first(project, way)


def _is_nothing(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and value.value in (None, False, "")


# Where it is told


def _place(module: SourceModule, call: ast.Call, path: ast.expr, way: Way) -> tuple[SourceModule, ast.stmt, ast.expr]:
    """(file, statement, path as it is written there): the call that names the path, where the function is only handed one.

    And the call of a function of the same file that only writes: the guard goes round it.
    """
    home, node, named = module, call, path
    for (_, below), (above, site) in zip(way.frames, way.frames[1:], strict=False):
        function = home.function_of(below)
        given = arguments_of(function, site) if function is not None and isinstance(site, ast.Call) else {}
        if not isinstance(named, ast.Name) or named.id not in given or not isinstance(site, ast.Call):
            break
        home, node, named = above, site, given[named.id]
    if node is call and len(way.frames) > 1 and module.class_of(call) is None:
        above, site = way.frames[1]
        if above is module and above.function_of(site) is not None and isinstance(above.statement_of(site), ast.Expr):
            return above, above.statement_of(site), path
    return home, asking_round(home, node) or home.statement_of(node), named
