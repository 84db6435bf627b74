"""Files that whoever finds them missing writes in place: on several ranks at once, while others already read them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.class_index import class_facts
from codemods.analysis.distribution import ranks_in_file
from codemods.analysis.files.added_entries import is_against_false, is_log
from codemods.analysis.files.asked_paths import asked as asked_in
from codemods.analysis.files.asked_paths import is_question, text_of_path
from codemods.analysis.files.before_fit import is_made_above_fit
from codemods.analysis.files.dead_ways import is_dead
from codemods.analysis.files.every_rank import Way, is_for_some, way_of_every_rank
from codemods.analysis.files.file_calls import CHANGES, Act, FileCall, file_call, meets
from codemods.analysis.files.file_flow import Step, ranks_in_function, steps_in
from codemods.analysis.files.file_locks import is_under_lock
from codemods.analysis.files.file_paths import forms
from codemods.analysis.files.files_of_samples import is_dealt_out
from codemods.analysis.files.given_anew import means_another, values_above
from codemods.analysis.files.in_repository import lies_in_repository
from codemods.analysis.files.later_reads import handed_on, of_callers, of_what_is_returned
from codemods.analysis.files.let_in_first import may_be_let_in_first
from codemods.analysis.files.own_paths import callers_of, is_own_path
from codemods.analysis.files.read_by_methods import of_other_methods
from codemods.analysis.files.waits_for_files import waits_for_it
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.positions import behind
from codemods.analysis.ranks.rank_guards import Ranks
from codemods.analysis.ranks.reach import to_a_launcher
from codemods.analysis.ranks.uses import uses_of
from codemods.files.source import FunctionNode, SourceModule, line_of, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record, replace
from codemods.store.project import Project

# What goes on from a folder that is there already: the test over it says nothing about what is written there at the end.
_RESUMES = frozenset({"get_last_checkpoint", "listdir", "glob", "load_state_dict", "load_checkpoint", "restore"})
# The file appears whole: torch loads into another name first, since 1.2.
_MOVES = frozenset({"replace", "rename", "renames", "move", "link", "symlink", "download_url_to_file"})
_CALLERS_UP = 3
_OPEN = lazy(r"<[PNIE]:[^<>]*>")  # a part of a name that hangs on a variable


@record
class OnDemand:
    """asked: the test for the file. write: what fills it on a rank that does not find it. read: where it is used.

    by_zero: rank 0 alone writes it, in place, while the others may still be about to ask.
    loaded: asked is the load itself, whose error says that the file is missing.
    """

    function: FunctionNode
    asked: FileCall
    write: Step
    read: Step
    way: Way
    by_zero: bool = False
    loaded: bool = False


def filled_on_demand(project: Project, module: SourceModule) -> tuple[OnDemand, ...]:
    """One for each path that a function of the file asks for, writes in place and reads, on every rank."""
    return project.memo(("filled on demand", module.path), lambda: tuple(_find(project, module)))


def _find(project: Project, module: SourceModule) -> Iterator[OnDemand]:
    done: set[tuple[int, str, tuple[int, ...]]] = set()
    told: set[int] = set()
    for node in module.nodes(ast.If):
        function = module.function_of(node)
        if function is None or is_under_lock(module, node) or any(id(up) in told for up in module.ancestors(node)):
            continue  # what is made on the way to another file is told with that
        for asked in asked_in(project, module, node.test):
            key = id(function), text_of_path(module, asked.path), values_above(module, function, asked.path)
            found = _filled(project, module, function, node, asked) if key not in done else None
            if found is not None:
                done.add(key)
                told.add(id(node))
                yield found
                break


def _asked(module: SourceModule, test: ast.expr) -> Iterator[FileCall]:
    for call in (n for n in walk(test) if isinstance(n, ast.Call)):
        found = file_call(module, call)
        if found is not None and found.act is Act.ASKS:
            yield found


def _filled(
    project: Project, module: SourceModule, function: FunctionNode, node: ast.If, asked: FileCall
) -> OnDemand | None:
    wanted = forms(module, asked.path)
    missing = _where_missing(module, node, asked.call)
    if not wanted or not missing or _is_forbidden(missing) or _ends_there(missing) or is_log(project, module, node, wanted):
        return None
    steps = list(steps_in(project, module, list(missing)))
    made = [_named_as(s, wanted) for s in steps if s.act in (Act.WRITES, Act.FILLS) and _is_asked_for(s, wanted)]
    made = [s for s in made if not _appears_whole(s)]
    by_zero = all(s.ranks is Ranks.ZERO for s in made)
    if not made or not (by_zero or all(s.ranks is Ranks.ALL for s in made)) or any(moves(s) for s in made):
        return None
    everything = list(steps_in(project, module, list(function.body)))
    if by_zero and any(s.act is None for s in everything):
        return None  # it waits for the other ranks, so somebody has thought of them
    reads = [r for r in (*everything, *_of_readers(project, module, function)) if _reads(made, r)]
    reads = [r for r in reads if r.module is not module or not means_another(module, function, asked.path, node, r.call)]
    if by_zero:
        reads = [r for r in reads if r.ranks is not Ranks.ZERO]  # nobody else loads it
    checks = {id(s.call) for s in steps_in(project, module, [node])}  # whoever finds the file comes past them
    read = next((r for r in reads if id(r.call) not in checks), None)
    if read is None and not by_zero:
        read = _read_later(project, module, function, node, made, wanted)
    read = read or next(iter(reads), None)
    if by_zero and read is not None and not _is_left_to_zero(project, module, node, missing, read):
        return None
    if read is not None and not by_zero and any(s.act is None for s in everything):
        behind = steps[next(i for i, s in enumerate(steps) if s.call is made[0].call) + 1 :]
        if any(s.act is None for s in behind) or waits_for_it(project, module, function, node, read):
            return None
    if read is None or is_own_path(project, module, asked.path, whole=False) or is_thought_of(project, module, function):
        return None
    if lies_in_repository(project, module, asked.path) or is_dealt_out(project, module, function, asked.path):
        return None
    way = way_of_every_rank(project, module, node, loose=True)
    if way is None or is_made_above_fit(project, way, asked.path) or is_dead(project, way) or may_be_let_in_first(project, way):
        return None
    if read.module is not module:  # what another file reads by such a name may be another file
        read = next((r for r in reads if r.module is module), read)
    return OnDemand(function, asked, made[0], read, way, by_zero)


def _where_missing(module: SourceModule, node: ast.If, call: ast.Call) -> list[ast.stmt]:
    """The statements that run where the path is not there."""
    negated = False
    for up in module.ancestors(call):
        if (isinstance(up, ast.UnaryOp) and isinstance(up.op, ast.Not)) or is_against_false(up) or _is_not_in(up, call):
            negated = not negated
        if up is node:
            break
    if negated:
        return node.body
    if not _may_return(node.body[-1]):
        return node.orelse
    return [*node.orelse, *behind(module, node)]


def _is_not_in(test: ast.AST, listing: ast.Call) -> bool:
    """`name not in os.listdir(folder)`."""
    return isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.NotIn) and test.comparators[0] is listing


def _may_return(end: ast.stmt) -> bool:
    """True for `return path`, and for one that hangs on what is found: `if is_whole(path): return path`."""
    if isinstance(end, ast.If):
        return any(_may_return(arm[-1]) for arm in (end.body, end.orelse) if arm)
    return isinstance(end, ast.Return)


def _is_left_to_zero(project: Project, module: SourceModule, node: ast.If, missing: list[ast.stmt], read: Step) -> bool:
    """True where every rank asks, those that find nothing go on without the file, and rank 0 alone writes it.

    Where they read it behind the write, they wait for nobody: that is DDP302's.
    """
    arm = {id(n) for s in (*node.body, *node.orelse) if all(s is not m for m in missing) for n in walk(s)}
    inside = read.module is not module or id(read.call) in arm
    return inside and ranks_in_function(project, module, missing[0]) is Ranks.ALL


def _is_forbidden(missing: list[ast.stmt]) -> bool:
    """True where some callers may not make it: `if read_only: raise`. Which of them are ranks is not seen."""
    return any(isinstance(s, ast.If) and isinstance(s.test, ast.Name) and isinstance(s.body[-1], ast.Raise) for s in missing)


def _ends_there(missing: list[ast.stmt]) -> bool:
    """True where the program ends behind the writing: a later run reads it."""
    end = missing[-1]
    called = dotted(end.value.func) if isinstance(end, ast.Expr) and isinstance(end.value, ast.Call) else ""
    return last(called) in ("exit", "_exit", "quit")


def _is_asked_for(step: Step, wanted: frozenset[str]) -> bool:
    """True for a write of the path itself or below it, or one that fills the folder round it."""
    pairs = [(made, asked) for made in step.forms for asked in wanted]
    if step.act is Act.WRITES and any(_is_one_of(m, a) for m, a in pairs):
        return True
    if step.act is Act.FILLS:
        return any(m == a or m.startswith(f"{a}/") or a.startswith(f"{m}/") for m, a in pairs)
    return any(m == a or m.startswith(f"{a}/") for m, a in pairs)


def _is_one_of(made: str, asked: str) -> bool:
    """True for `data/<N:split>.bin` and `data/train.bin`: files of one folder, the name of one of them left open."""
    folder, slash, name = made.rpartition("/")
    other, _, wanted = asked.rpartition("/")
    if not slash or folder != other or name == wanted or not name or not wanted:
        return False
    return any(_OPEN.search(o) and not _OPEN.search(w) and _fits(o, w) for o, w in ((name, wanted), (wanted, name)))


def _fits(open_name: str, name: str) -> bool:
    """False for a name without a fixed ending: `<N:name>` may be any file."""
    fixed = _OPEN.split(open_name)
    return "." in fixed[-1] and re.fullmatch("[^/]+".join(map(re.escape, fixed)), name) is not None


def _named_as(step: Step, wanted: frozenset[str]) -> Step:
    """A write of the very path that is asked for, by all names of that path."""
    if step.act is Act.WRITES and any(m == a or _is_one_of(m, a) for m in step.forms for a in wanted):
        return replace(step, forms=step.forms | wanted)
    return step


def _read_later(
    project: Project, module: SourceModule, function: FunctionNode, node: ast.If, made: list[Step], wanted: frozenset[str]
) -> Step | None:
    """Who reads it where the function makes sure of it and no more."""
    if not any(s.act is Act.WRITES and s.forms >= wanted for s in made):
        return None
    found = handed_on(module, function, node, wanted)
    if found is not None and isinstance(found.call, ast.Return):
        found = next(of_what_is_returned(project, module, function), found)
    if found is None:
        found = next((step for said, step in of_callers(project, module, function, made[0]) if _reads(said, step)), None)
    return found or next((step for step in of_other_methods(project, module, function, wanted) if _reads(made, step)), None)


def _appears_whole(step: Step) -> bool:
    """gdown loads into a name of its own beside the file, and renames that at the end; to resume, it takes that of another."""
    if not isinstance(step.call, ast.Call) or qualified(step.module, step.call.func) != "gdown.download":
        return False
    return not any(k.arg in ("resume", None) for k in step.call.keywords)


def moves(step: Step) -> bool:
    call = step.call
    return isinstance(call, ast.Call) and last(qualified(step.module, call.func)) in _MOVES


def _reads(made: list[Step], read: Step) -> bool:
    if read.act is None or read.act in CHANGES or read.act is Act.ASKS or is_question(read.module, read.call):
        return False
    pairs = [(s.act, m, u) for s in made for m in s.forms for u in read.forms]
    return any(act is not None and meets(act, m, read.act, u) for act, m, u in pairs)


def _of_readers(project: Project, module: SourceModule, function: FunctionNode) -> Iterator[Step]:
    """What the methods of a data set read later, where a constructor fills the files."""
    owner = module.parent(function)
    if not isinstance(owner, ast.ClassDef) or function.name != "__init__":
        return
    facts = class_facts(project, module, owner)
    for name in ("__getitem__", "__iter__", "__len__"):
        if (method := facts.method(name)) is not None:
            yield from steps_in(project, method[0].module, list(method[1].body))


def is_thought_of(project: Project, module: SourceModule, function: FunctionNode, up: int = _CALLERS_UP) -> bool:
    """True where some caller lets rank 0 in first or alone: the others find the files then."""
    for site in callers_of(project, module, function):
        alone = is_a_program_of_one(project, site.module) or _is_started_too(project, module, function, site.module)
        if is_for_some(project, site.module, site.call) and not alone:
            return True
        outer = site.module.function_of(site.call)
        if up > 0 and outer is not None and outer is not function and is_thought_of(project, site.module, outer, up - 1):
            return True
    return False


def is_a_program_of_one(project: Project, module: SourceModule) -> bool:
    """True for a script that shows nothing of several processes: what it does comes before no other program's ranks."""
    return b"__main__" in module.data and ranks_in_file(project, module) is None


def _is_started_too(project: Project, module: SourceModule, function: FunctionNode, caller: SourceModule) -> bool:
    """True where the caller also gives the function to `mp.spawn`: a test over its call is for a run of one process."""
    return any(p.module is caller and to_a_launcher(p) for p in uses_of(project, module, function).handed_on)


def is_asked_for(module: SourceModule, node: ast.AST, path: ast.expr) -> bool:
    """True under a test for the very path, or behind an exit that is taken where it is there: a cache, filled once."""
    wanted = forms(module, path)
    function = module.function_of(node)
    tests = (n for n in walk(function) if isinstance(n, ast.If)) if function is not None else module.nodes(ast.If)
    asked = ((n, a) for n in tests for a in _asked(module, n.test) if wanted & forms(module, a.path))
    return any(line_of(a.call) < line_of(node) and _decides_over(n, node) for n, a in asked)


def is_left_to_the_first(module: SourceModule, node: ast.AST, path: ast.expr) -> bool:
    """True in a loop that goes on to the next item where the file is there: whoever comes first makes it, for all."""
    wanted = forms(module, path)
    for loop in (up for up in module.ancestors(node) if isinstance(up, (ast.For, ast.AsyncFor, ast.While))):
        for test in (n for n in loop.body if isinstance(n, ast.If) and line_of(n) < line_of(node)):
            asked = any(wanted & forms(module, a.path) for a in _asked(module, test.test))
            if asked and isinstance(test.body[-1], ast.Continue):
                return True
    return False


def _decides_over(test: ast.If, node: ast.AST) -> bool:
    """True where the place stands in an arm of the test, or behind one that is left, or sets what is asked for later."""
    line = line_of(node)
    if test.lineno <= line <= (test.end_lineno or test.lineno):
        return True
    for arm in (test.body, test.orelse):
        if arm and isinstance(arm[-1], (ast.Return, ast.Raise, ast.Continue, ast.Break)):
            return True
    return not any(isinstance(n, ast.Call) and last(dotted(n.func)) in _RESUMES for s in test.body for n in walk(s))
