"""DDP112: the result of a reduction or gather that is thrown away."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.accelerators import is_accelerator, is_fabric
from codemods.analysis.averages.divided_above import divided_above
from codemods.analysis.averages.divided_behind import is_divided_behind
from codemods.analysis.averages.scale import At
from codemods.analysis.averages.unawaited import collectives_nobody_awaits
from codemods.analysis.averages.unread import Unread, sums_nobody_reads
from codemods.analysis.bindings import bindings_in
from codemods.analysis.distribution import is_test_module
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.ranks.collectives import OUT_OF_PLACE
from codemods.analysis.ranks.rank_guards import ranks_at
from codemods.analysis.ranks.run_by_programs import is_run_by_nobody
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, DropKeyword, Edit, Evidence, Finding, RemoveStatement, ReplaceLines, Span
from codemods.files.sites import Site
from codemods.files.source import SourceModule, ends_above
from codemods.store.project import Project

_ACCELERATE = frozenset({"reduce", "gather", "gather_for_metrics", "pad_across_processes"})
_FABRIC = frozenset({"all_reduce", "all_gather"})
_IN_PLACE = ("all_reduce", "broadcast", "all_gather")
_FUNCTIONS = tuple(f"accelerate.utils.{n}" for n in ("reduce", "gather", "pad_across_processes"))
_UNSAFE, _DISPLAY = Applicability.UNSAFE, Applicability.DISPLAY


class DroppedReduction(DdpCodemod):
    """The result of a reduction or gather that is thrown away.

    ## What it does
    Finds `accelerator.reduce(x)`, `accelerator.gather(x)`, `fabric.all_gather(x)` and the like as statements of their own, whose
    result nobody takes, and assigns it to the name that was handed in where that is read further down. Finds the opposite, too:
    `x = torch.distributed.all_reduce(x)`, which works in place and returns None, and takes the assignment away; it reports such
    a call whose None goes elsewhere. Finds a sum in place that nobody reads behind it, because the rank's own number was taken
    above, and a collective with `async_op=True` whose handle is thrown away.

    ## Why it matters
    These functions reduce a copy and return it, unlike `torch.distributed.all_reduce`, which works in place. The ranks wait for
    each other, and each goes on with its own number, which is then shown as that of all. A sum that comes behind the line that
    takes the number is as good as none. A collective that nobody waits for may still be running when its tensor is read: on a
    GPU the next kernel does not wait for it, and the number is that of this rank, of all of them, or of a part.

    ## Example
    ```python
    from accelerate import Accelerator


    def count_errors(accelerator: Accelerator, model, loader, errors):
        for x, y in loader:
            errors += (model(x) != y).sum()
        accelerator.reduce(errors, reduction="sum")
        return errors.item()
    ```

    ## Use instead
    ```python
    from accelerate import Accelerator


    def count_errors(accelerator: Accelerator, model, loader, errors):
        for x, y in loader:
            errors += (model(x) != y).sum()
        errors = accelerator.reduce(errors, reduction="sum")
        return errors.item()
    ```

    ## Safety
    Unsafe: the name holds the number of all ranks from there on, and what is behind it changes with it. One process alone has the
    same number as before. `async_op=True` is taken out, and the call waits, as others may do elsewhere. A sum that nothing
    needs is taken out. There is no fix where the own number was taken above: what is to be shown is a choice.

    ## Refuses
    - Says nothing of `torch.distributed.all_reduce` and its kin as statements whose tensor may be read by anybody: a field, a
      parameter, an entry, a name that was handed on, returned or is read in another round; nor where a function returns what
      they return, or of a result that is taken of `torch.distributed.nn` or `torch.distributed._functional_collectives`,
      whose functions return it.
    - Says nothing of a sum that nobody reads where the tensor is turned into a number behind it, as its neighbours are.
    - Says nothing of a handle where the function or one that calls it waits in another way: for a stream, in a later collective.
    - Says nothing under a test of the rank, where a rank may only take part for the others.
    - Says nothing of `fabric.all_reduce`, which puts the result back into the tensor.
    - Says nothing of an object that is not shown to be an Accelerator or a Fabric (`functools.reduce`, Lightning's own flag).
    - Reports an argument that is no plain name of the function, that is not read below, and that a `with` or a loop hands out.
    - Reports a sum of what was divided above by a number of the rank's own batch, and is not divided by the number of processes
      behind: it would grow with the ranks.
    - A repository's own tests.

    ## References
    Accelerate 1.15, `accelerate/utils/operations.py`: `reduce` works on `tensor.clone()`; Lightning 2.6,
    `Fabric.all_reduce`: "applied in-place".
    Runs on two processes: the number stays that of the rank; of a sum that nobody waits for, the own number is read.
    """

    code = "DDP112"
    severity = "data"
    subject = "Take the result of a reduction"
    must_show = "The number that is shown is the same on both processes, and that of all data."
    printed = ()
    TRIGGERS = ((b"ccelerat", b"abric", b"distributed.nn", b"reduce(", b"broadcast(", b"all_gather(", b"async_op"),)
    SITES = (Site(rb"(?m)(?:^|;)\s*[\w.]*\b(reduce|gather\w*|pad_across_processes|all_reduce|all_gather)\(", b"reduce(",
                  b"gather", b"pad_across_processes("),
             Site(rb"[=(\[,+*/-][ \t]*[\w.]*\b(all_reduce|broadcast|all_gather)\(", b"all_reduce(", b"broadcast(",
                  b"all_gather("),
             Site(rb"\basync_op[ \t]*=[ \t]*True", b"async_op"))  # fmt: skip
    READS_TESTS = False

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        for statement in module.nodes(ast.Expr):
            call = statement.value
            if not isinstance(call, ast.Call) or not _is_a_copy(project, module, call):
                continue
            if ranks_at(module, call, project=project).some or not (call.args or call.keywords):
                continue
            yield self._tell(module, statement, call)

        for call in module.calls_named(*_IN_PLACE):
            name = qualified(module, call.func)
            if not name.startswith("torch.distributed.") or name.startswith(OUT_OF_PLACE) or not _is_taken(module, call):
                continue
            edits = _without_target(module, call)
            yield self.finding(
                module,
                call,
                f"`{module.text_of(call.func)}` works in place and returns None: what takes its result holds None",
                level=_UNSAFE if edits else _DISPLAY,
                edits=edits,
                reason="assumes that the tensor is meant, which holds the number of all ranks behind the call"
                if edits
                else "keep the tensor under a name, call it on that, and take the tensor",
            )

        yield from self._in_vain(module, project)

    def _in_vain(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        for found in sums_nobody_reads(project, module):
            if not ranks_at(module, found.call, project=project).some and not is_run_by_nobody(project, module, found.call):
                yield self._unread(module, found)
        for call in collectives_nobody_awaits(project, module) if module.holds(b"async_op") else ():
            if not is_run_by_nobody(project, module, call):
                yield self.finding(
                    module,
                    call,
                    f"nobody waits for `{module.text_of(call.func)}`: its handle is thrown away, and what it fills may be read "
                    "before the ranks are done with it",
                    level=_UNSAFE,
                    edits=[DropKeyword(module.path, module.span(call), "async_op")],
                    reason="assumes that nobody waits for the device elsewhere; or keep the handle, and call `wait()` on it",
                )

    def _unread(self, module: SourceModule, found: Unread) -> Finding:
        statement = module.statement_of(found.call)
        if found.taken is not None:
            return self.finding(
                module,
                found.call,
                f"nobody reads `{found.name}` behind this sum over the ranks: the number that goes on was taken above, and is "
                "that of this rank alone",
                evidence=[Evidence("static", "the own number is taken here", module.path, found.taken.lineno)],
                reason=f"reduce a copy (`{found.name}.detach().clone()`) in front of that line, and take the copy there",
            )
        whole = module.is_whole(statement)
        return self.finding(
            module,
            found.call,
            f"nobody reads `{found.name}` behind this sum over the ranks: they wait for each other for nothing",
            level=_UNSAFE if whole else _DISPLAY,
            edits=[RemoveStatement(module.path, module.span(statement))] if whole else [],
            reason="assumes that nothing counts on the ranks waiting for each other here" if whole else "take it out",
            severity="noise",
        )

    def _tell(self, module: SourceModule, statement: ast.Expr, call: ast.Call) -> Finding:
        assert isinstance(call.func, (ast.Attribute, ast.Name))
        name = call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id
        edits, reason = _repair(module, statement, call)
        return self.finding(
            module,
            call,
            f"`{name}` returns what the ranks have together, and nobody takes it: each rank goes on with its own number",
            level=_UNSAFE if edits else _DISPLAY,
            edits=edits,
            reason=reason,
        )


def _is_taken(module: SourceModule, call: ast.Call) -> bool:
    """True where the result goes into a name that is read, a list, or a calculation; `async_op` gives a handle."""
    if any(k.arg in ("async_op", None) for k in call.keywords) or len(call.args) > 3:
        return False
    up = module.parent(call)
    while isinstance(up, ast.IfExp):
        up = module.parent(up)
    if isinstance(up, (ast.ListComp, ast.BinOp, ast.List, ast.Tuple)):
        return not isinstance(module.parent(up), ast.Expr)
    if not isinstance(up, ast.Assign) or len(up.targets) != 1 or not isinstance(up.targets[0], ast.Name):
        return False
    name, function, end = up.targets[0].id, module.function_of(call), up.end_lineno or up.lineno
    reads = [n for n in module.reads_of(name) if module.function_of(n) is function and getattr(n, "lineno", 0) > end]
    return bool(reads) and not any(isinstance(a := module.parent(n), ast.Attribute) and a.attr == "wait" for n in reads)


def _without_target(module: SourceModule, call: ast.Call) -> list[Edit]:
    """`dist.all_reduce(x)` of `x = dist.all_reduce(x)`."""
    up = module.parent(call)
    if not isinstance(up, ast.Assign) or up.value is not call or not call.args or not isinstance(up.targets[0], ast.Name):
        return []
    same = isinstance(call.args[0], ast.Name) and call.args[0].id == up.targets[0].id
    if not same or not module.is_whole(up) or last(dotted(call.func)) == "all_gather":
        return []
    start, value = module.span(up), module.span(call)
    if start.line != value.line:
        return []
    lines = module.lines[start.line - 1 : start.end_line]
    written = f"{lines[0][: start.column]}{lines[0][value.column :]}{''.join(lines[1:])}"
    return [ReplaceLines(module.path, Span(start.line, 0, start.end_line + 1, 0), written)]


def _is_a_copy(project: Project, module: SourceModule, call: ast.Call) -> bool:
    name = qualified(module, call.func)
    if name in _FUNCTIONS or name.startswith(OUT_OF_PLACE):
        return name.rpartition(".")[2] in _ACCELERATE | _FABRIC
    if not isinstance(call.func, ast.Attribute):
        return False
    method, holder = call.func.attr, call.func.value
    if method in _ACCELERATE and is_accelerator(project, module, holder):
        return True
    return method == "all_gather" and is_fabric(project, module, holder)  # its all_reduce works in place on tensors


def _adds(module: SourceModule, call: ast.Call) -> bool:
    """True where the reduction is a sum, as it is by default."""
    if last(dotted(call.func)) not in ("reduce", "all_reduce"):
        return False
    rest = " ".join(module.text_of(a) for a in (*call.args[1:], *(k.value for k in call.keywords))).lower()
    return not any(word in rest for word in ("mean", "avg", "max", "min", "none"))


def _repair(module: SourceModule, statement: ast.Expr, call: ast.Call) -> tuple[list[Edit], str]:
    given = call.args[0] if call.args else None
    function = module.function_of(call)
    told = f"take the result: `x = {module.text_of(call.func)}(x)`"
    if not isinstance(given, ast.Name) or function is None or not module.is_whole(statement):
        return [], told
    bound = bindings_in(module, function, given.id)
    if not bound or any(isinstance(b.node, (ast.For, ast.AsyncFor)) for b in bound):
        return [], told
    if not any(ends_above(statement, n) and module.function_of(n) is function for n in module.reads_of(given.id)):
        return [], f"{told}; `{given.id}` is not read below, so the caller's is meant"
    if _adds(module, call) and not is_divided_behind(At(module, call)):
        if (division := divided_above(module, call, given)) is not None:
            own = f"line {division.lineno} divides `{given.id}` by a number of this rank"
            return [], f"{own}: the sum would grow with the ranks; divide by the number of all samples, and take the result"
    span = module.span(statement)
    lines = module.lines[span.line - 1 : span.end_line]
    written = f"{lines[0][: span.column]}{given.id} = {lines[0][span.column :]}{''.join(lines[1:])}"
    edit = ReplaceLines(module.path, Span(span.line, 0, span.end_line + 1, 0), written)
    return [edit], f"assumes that `{given.id}` is meant to hold the number of all ranks from here on"
