"""DDP210: a name that only rank 0 has, used on every rank."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import attribute_bindings, bindings_in
from codemods.analysis.distribution import is_test_module
from codemods.analysis.output.guard_edits import guard_edit
from codemods.analysis.output.kept_for_zero import kept_for_zero
from codemods.analysis.output.rank_values import under_such_a_name
from codemods.analysis.ranks.each_node import guards_of_each_node
from codemods.analysis.ranks.lost_keys import LostKey, lost_keys
from codemods.analysis.ranks.made_on_zero import Made, made_on_zero
from codemods.analysis.ranks.made_uses import hides_test, is_asked_for, uses_of_made
from codemods.analysis.ranks.partial_uses import PartialUse, given_to_others, partial_uses
from codemods.analysis.ranks.rank_guards import Ranks, ranks_at
from codemods.analysis.ranks.reached_collectives import reached_by
from codemods.analysis.ranks.run_by_programs import is_run_by_nobody
from codemods.analysis.ranks.used_on_all import all_used_on_all, is_set_elsewhere
from codemods.analysis.short_texts import shortened
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Edit, Evidence, Finding
from codemods.data.printed_errors import WAITING
from codemods.data.rank_words import PROCESSES, RANK_TEST, SPAWNED_TEST
from codemods.files.source import SourceModule, line_of, walk
from codemods.runtime.record import replace
from codemods.store.project import Project


class ValueOfOneRank(DdpCodemod):
    """A name or attribute that only rank 0 has, used on every rank.

    ## What it does
    Reports an attribute that a class sets under a test of the rank and nowhere else, and of a name of that kind, of a function
    or of the file itself, a name that is imported there among them, where every rank comes to a place that uses it. A call of
    it goes under the same test (unsafe), and so does what is made of it and read by rank 0 alone. Reports as well what is None
    on the other ranks (`writer = Writer() if rank == 0 else None`, a function that gives back its result on rank 0 alone) and is
    used on all of them as if it were there, here or in a function that it is handed to; a call goes under `is not None` (unsafe).
    And a key that rank 0 alone puts into a dict, where every rank reads it.

    ## Why it matters
    The other ranks end there with AttributeError, TypeError, KeyError, UnboundLocalError or NameError, and rank 0 waits for them
    until the time-out. With one process nothing shows.

    ## Example
    ```python
    import torch.distributed as dist


    class Loop:
        def __init__(self, model):
            if dist.get_rank() == 0:
                self.average = Average(model)

        def load(self, data):
            self.average.load_state_dict(data)
    ```

    ## Use instead
    ```python
    import torch.distributed as dist


    class Loop:
        def __init__(self, model):
            if dist.get_rank() == 0:
                self.average = Average(model)

        def load(self, data):
            if dist.get_rank() == 0:
                self.average.load_state_dict(data)
    ```

    ## Safety
    Unsafe: the other ranks end at that line as it stands, and one process runs the same code; but the call must be rank 0's
    alone. Where it waits for the other ranks, the value belongs on all of them.

    ## Refuses
    - A name that has a value on the other ranks too; one that another import may bring, or a star import: of a file of the
      project that has it, of one that is not there, of a package that gives names of anybody.
    - A name of the file in functions that no call of the file leads every rank to.
    - Of what is None there, uses under a test that may stand for the rank (a flag, a field, what a call says), and fields in
      methods of which no call is seen that lets every rank in.
    - A function that raises or ends the process on the other ranks, is a generator, or stands under another decorator; and what
      no program of the project runs on several ranks.
    - Uses that stand under a test of the rank, of the name itself, or in a `try` that lets the rank go on; functions only rank 0
      calls. A handler that raises again, or shows the error of work in which the ranks meet, keeps nobody going.
    - Attributes that a base class, another file or `setattr` may set; names that a `del`, a `global` or a loop binds as well.
    - Uses whose value goes on to something that another rank may read, or in whose making the ranks meet, reported: the use may
      belong under the test, or the value on every rank.
    - Keys of a dict that is stored, sent or handed to what is not seen, or into which every rank may put the same key.
    - A value that stands in for a parameter (`path if path else self.folder`) which each call gives; uses behind a return where
      the attribute is not there (`if not hasattr(…): return`).
    - Names whose test is the same as the one they are used under, whatever else it asks.
    - Of names of each node's first process, uses under a test for that process.
    - A repository's own tests.

    ## References
    Two-process runs of guarded assignments on torch 2.13 (UnboundLocalError and AttributeError on rank 1, rank 0 left waiting).
    """

    code = "DDP210"
    severity = "crash"
    ends_each_run = True
    subject = "Use what rank 0 alone has on rank 0 alone"
    must_show = "Both processes get past the line."
    printed = ("object has no attribute", "'NoneType' object", "UnboundLocalError", "KeyError", *WAITING)
    names_end_of_others = True
    TRIGGERS = ((b"rank", b"main_process", b"process_index", b"process_zero", b"global_zero", b"is_ma"), PROCESSES)
    SITES = (RANK_TEST, SPAWNED_TEST)
    READS_TESTS = False

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        done: set[tuple[int, str]] = set()
        used: list[tuple[Made, list[ast.expr]]] = []
        for made in made_on_zero(project, module):
            key = (id(made.home), made.name)
            if key in done:
                continue
            done.add(key)
            if uses := list(all_used_on_all(project, module, made)):
                if not is_run_by_nobody(project, module, uses[0], by_one=True):
                    used.append((made, uses))
            elif (on_node := _used_on_each_node(module, project, made)) is not None:
                yield self._tell_of_nodes(module, made, on_node)
        yield from self._tell_of_names(project, module, used)
        for found in partial_uses(project, module):
            if not is_run_by_nobody(project, module, found.node):
                yield self._tell_of_none(project, module, found)
        for found in given_to_others(project, module):
            if not self.concerns(found.module.data) and not is_run_by_nobody(project, found.module, found.node):
                yield self._tell_of_given(module, found)
        for lost in lost_keys(project, module):
            if not is_run_by_nobody(project, lost.module, lost.read):
                yield self._tell_of_key(module, lost)

    def _tell_of_names(
        self, project: Project, module: SourceModule, used: list[tuple[Made, list[ast.expr]]]
    ) -> Iterator[Finding]:
        """One finding for what a function reads of one test for rank 0 and has no fix: the others end at the first."""
        first: dict[tuple[int, str, str], Finding] = {}
        more: dict[tuple[int, str, str], list[str]] = {}
        for made, uses in sorted(used, key=lambda pair: line_of(pair[1][0])):
            found = self._tell(project, module, made, uses)
            key = id(module.function_of(uses[0])), made.test, made.error
            if found.fix is not None:
                yield found
            elif key in first:
                more.setdefault(key, []).append(f"{made.name} in line {line_of(uses[0])}")
            else:
                first[key] = found
                more.setdefault(key, []).extend(_in_lines(module, uses))
        for key, found in first.items():
            also = f" (also {', '.join(more[key][:4])})" if more.get(key) else ""
            yield replace(found, message=found.message + also)

    def _tell(self, project: Project, module: SourceModule, made: Made, uses: list[ast.expr]) -> Finding:
        use = uses[0]
        where = f"{made.name} is there on rank 0 only (line {made.line})"
        message = f"{where}, and every rank uses it here: the others end with {made.error}"
        set_where = f"{made.name} is set under a test of the rank and nowhere {'above' if made.until else 'else'}"
        evidence = [Evidence("static", set_where, module.path, made.line)]
        statement = module.statement_of(use)
        place = _place_for_test(project, module, made, statement)
        meets = _meets(project, module, statement)
        if place is not None and not _can_be_kept(project, module, made, uses):
            place = None  # the other ranks would end a few lines below
        if place is None or not made.test or meets or hides_test(module, made, use):
            reason = "put what uses it under the same test, or give the other ranks a value too"
            if meets:
                reason = "give the other ranks a value too: what uses it waits for them"
            return self.finding(module, use, message, reason=reason, evidence=evidence)
        edits = [guard_edit(project, module, place, place, made.test)]
        reason = "assumes that what is done with it is rank 0's alone, and waits for no other rank"
        unsafe = Applicability.UNSAFE
        return self.finding(module, use, message, level=unsafe, edits=edits, reason=reason, evidence=evidence)

    def _tell_of_nodes(self, module: SourceModule, made: Made, use: ast.AST) -> Finding:
        where = f"{made.name} is there on rank 0 of the run only (line {made.line})"
        message = f"{where}, and the first process of every node uses it here: that of a second node ends with {made.error}"
        text = f"{made.name} is set under a test for rank 0 of the run and nowhere else"
        evidence = [Evidence("static", text, module.path, made.line)]
        reason = "ask here for rank 0 of the run, as the test does that the value is made under"
        return self.finding(module, use, message, reason=reason, evidence=evidence)

    def _tell_of_none(self, project: Project, module: SourceModule, found: PartialUse) -> Finding:
        evidence = [Evidence("static", f"rank 0 gets {found.shown} here, and the others None", *found.made)]
        if found.inside is not None:
            evidence.append(Evidence("static", f"every rank needs it here: the others end with {found.error}", *found.place))
        edits, reason = _kept_from_none(project, module, found)
        level = Applicability.UNSAFE if edits else Applicability.DISPLAY
        message = found.message(module)
        return self.finding(module, found.node, message, level=level, edits=edits, reason=reason, evidence=evidence)

    def _tell_of_key(self, module: SourceModule, found: LostKey) -> Finding:
        """A key of a dict, told where this file reads it or hands the dict on."""
        home, node = (found.module, found.read) if found.through is None else found.through
        put = found.put.module.path, line_of(found.put.node)
        place = f"line {put[1]}" if put[0] == module.path else "{}:{}".format(*put)
        read = f"`{shortened(found.module.text_of(found.read))}`"
        message = f"rank 0 alone puts this key in ({place}), and every rank reads {read} here: the others end with KeyError"
        evidence = [Evidence("static", "the key is put in under a test of the rank, and by nothing else", *put)]
        if found.through is not None:
            where = f"{found.module.path}:{found.read.lineno}"
            message = (
                f"every rank hands this dict on to be read in {where}, {read}, a key that rank 0 alone puts in ({place}): the "
                "others end with KeyError"
            )
            evidence.append(Evidence("static", "every rank reads the key here", found.module.path, found.read.lineno))
        reason = "work the value out on every rank, or send them that of rank 0 (`broadcast_object_list`)"
        return self.finding(home, node, message, reason=reason, evidence=evidence)

    def _tell_of_given(self, module: SourceModule, found: PartialUse) -> Finding:
        """A result of a function of this file that another file needs on every rank, where nothing speaks of ranks."""
        message = f"rank 0 alone is given this, and {found.where} needs it on every rank: the others end with {found.error}"
        evidence = [Evidence("static", "every rank needs the result here", found.module.path, found.node.lineno)]
        reason = "give the others a value too, or ask there whether there is one"
        return self.finding(module, found.partial.node, message, reason=reason, evidence=evidence)


def _kept_from_none(project: Project, module: SourceModule, found: PartialUse) -> tuple[list[Edit], str]:
    """The use under a test of the value itself, where it stands alone and waits for nobody."""
    if found.by_node:
        return [], "ask here for rank 0 of the run, as the test does that the value is made under"
    if found.inside is not None:
        return [], f"ask in {found.where} whether there is one, or give the other ranks a value too"
    statement = module.statement_of(found.node)
    meets = any(isinstance(n, ast.Call) and reached_by(project, module, n) is not None for n in walk(statement))
    alone = isinstance(statement, ast.Expr) and module.is_whole(statement) and not isinstance(found.node, ast.Call)
    if not alone or meets:
        return [], "put what uses it under a test of the value itself, or give the other ranks a value too"
    edit = guard_edit(project, module, statement, statement, f"{found.value} is not None")
    return [edit], "assumes that what is done with it is rank 0's alone, and waits for no other rank"


def _meets(project: Project, module: SourceModule, place: ast.stmt) -> bool:
    return any(isinstance(n, ast.Call) and reached_by(project, module, n) is not None for n in walk(place))


def _place_for_test(project: Project, module: SourceModule, made: Made, statement: ast.stmt) -> ast.stmt | None:
    """What goes under the test so that the statement is rank 0's alone; None where more hangs on it."""
    if isinstance(statement, ast.Expr) and module.is_whole(statement):
        return statement
    return kept_for_zero(project, module, statement) if made.test else None


def _can_be_kept(project: Project, module: SourceModule, made: Made, uses: list[ast.expr]) -> bool:
    """False where the function of the first use has another that cannot go under the test."""
    function = module.function_of(uses[0])
    statements = [module.statement_of(use) for use in uses[1:] if module.function_of(use) is function]
    return all(_place_for_test(project, module, made, s) is not None and not _meets(project, module, s) for s in statements)


def _in_lines(module: SourceModule, uses: list[ast.expr]) -> list[str]:
    """Further places to which every rank comes: the next of each function."""
    first: dict[int, int] = {}
    for use in uses:
        if (line := line_of(use)) != line_of(uses[0]):
            first.setdefault(id(module.function_of(use)), line)
    return [f"in line {line}" for line in first.values()]


def _used_on_each_node(module: SourceModule, project: Project, made: Made) -> ast.AST | None:
    """The first use under a plain test for the first process of a node, of what the main process of the run has."""
    for node in uses_of_made(module, made) if not made.until else ():
        tests = {id(g.node) for g in guards_of_each_node(project, module, node) if g.ranks.some}
        if not tests:
            continue
        statement, own = module.statement_of(node), made.name.startswith("self.")
        if not _is_of_the_run(project, module, made, node) or (own and is_set_elsewhere(project, module, made)):
            return None
        if under_such_a_name(project, module, statement) or is_asked_for(project, module, node, made.name, apart=tests):
            continue
        if own or statement.lineno > made.line:
            return node
    return None


def _is_of_the_run(project: Project, module: SourceModule, made: Made, use: ast.expr) -> bool:
    """True where each binding stands under a test for rank 0 of the run, and none under one for a node's first process."""
    if isinstance(use, ast.Attribute):
        bound = attribute_bindings(module, use)
    else:
        assert not isinstance(made.home, ast.ClassDef)
        bound = bindings_in(module, made.home if not isinstance(made.home, ast.Module) else None, made.name)
    return bool(bound) and all(ranks_at(module, b.node, project=project) is Ranks.ZERO for b in bound)
