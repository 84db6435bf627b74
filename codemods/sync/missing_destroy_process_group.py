"""DDP304: nobody takes the process group down."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator

from codemods.analysis.call_graph import called_function
from codemods.analysis.distribution import is_test_file, is_test_module
from codemods.analysis.guards.always_exits import always_exits
from codemods.analysis.guards.destroyed_groups import is_destroyed
from codemods.analysis.guards.entry_points import Entry, entries, group_name, main_block, starts_group
from codemods.analysis.guards.group_above import has_group_above, has_group_below
from codemods.analysis.guards.left_with_group import ends_at_once, exits_with_group, is_exit, is_plain_exit
from codemods.analysis.guards.own_group_question import asked_at_start, own_group_question
from codemods.analysis.job_files.said_torch import said_torch
from codemods.analysis.loading.endless_loops import ends_in_a_loop_for_ever
from codemods.analysis.loading.endless_streams import trains_for_ever
from codemods.analysis.model.signatures import defaults
from codemods.analysis.names import family
from codemods.analysis.ranks.failing_statements import statement_fails
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Edit, Evidence, Finding, InsertAfter, InsertBefore
from codemods.data.printed_errors import WAITING
from codemods.files.left_alone import left
from codemods.files.source import SourceModule, walk_scope
from codemods.rewriting.imports import in_scope, plan_statement
from codemods.store.project import Project

_OWNERS = frozenset({"lightning", "accelerate", "deepspeed", "ray", "composer", "ignite"})
_MANY = 12
_WARNS = (2, 4)  # the first torch whose NCCL group warns at the exit
_NO_PLACE = "its end is not reached on every way, or computes what is returned: the place has to be chosen"

_AT_ONCE = "os._exit() ends the process at once: NCCL warns of nothing there"


class MissingDestroyProcessGroup(DdpCodemod):
    """A process group is started, and nobody takes it down.

    ## What it does
    Finds `init_process_group`, follows the calls up to the function that a script (or a process that it starts) runs, and, where
    nothing that this program comes to calls `destroy_process_group`, puts the destruction behind its last statement; under
    `is_initialized()` where the start depends on something. Where that function can be left early, the end of the script's
    `if __name__ == "__main__":` block takes it. Where the program leaves in front of its end with several processes alone
    (`if distributed: exit()`), the destruction stands in front of that exit.

    ## Why it matters
    NCCL's resources are left to the interpreter's exit: since torch 2.4 there is a warning each time, and a rank that exits while
    another still waits shows up there as a broken connection instead of the error that came first.

    ## Example
    ```python
    import torch.distributed as dist


    def main():
        dist.init_process_group("nccl")
        train()


    if __name__ == "__main__":
        main()
    ```

    ## Use instead
    ```python
    import torch.distributed as dist


    def main():
        dist.init_process_group("nccl")
        train()
        dist.destroy_process_group()


    if __name__ == "__main__":
        main()
    ```

    ## Safety
    Safe: it runs when everything else is done. Where a run may have started no group, it asks for one first: by the test of
    its start, which still holds, by a function of the project that answers just that, or by torch's own. It is put into no
    `finally`, as after an error on one rank the destruction may wait for the others, and a barrier is not put in front of it.

    ## Refuses
    - Says nothing in a repository's own tests.
    - Says nothing where the pins, or what a README, an image or an install script names, allow no torch that warns (2.4), of
      programs that no such torch runs (they import `torch._six` or `torchtext`, go through `iter(loader).next()`, or flatten the
      hits of a top-5 by `correct[:k].view(-1)`), and of ways to the start
      whose calls do not fit the functions.
    - Says nothing where the program destroys its group: in the script, or in a function of a file that it imports and names.
    - Says nothing of a training over a stream that begins anew for ever (`WebDataset(…, resampled=True)`) and is bounded nowhere,
      nor of one in a `while True:` that is left under an option alone which nothing gives.
    - Says nothing of a group whose backend is written down and is not NCCL (`"gloo"`, `"mpi"`), and of one that is
      written down as a group of one process (`world_size=1`).
    - Says nothing of a program that ends with `os._exit(...)`: no destructor is run there, and NCCL warns of nothing.
    - Says nothing where no script is seen to run it: a library leaves the group to whoever started it.
    - Says nothing in files that use Lightning, Accelerate, DeepSpeed or Ray, which own the group.
    - Reports an entry whose end is not reached (a function that it calls ends with `exit()`), or computes what it returns: the
      place has to be chosen.
    - Reports a script that does not import torch.

    ## References
    The warnings of ProcessGroupNCCL since torch 2.4; with gloo, torch 2.13 is silent.
    """

    code = "DDP304"
    severity = "noise"
    subject = "Destroy the process group at the end"
    must_show = "Both processes end with status 0, and NCCL prints no warning about resources that may leak."
    printed = ("Process group cannot be None", *WAITING)
    TRIGGERS = ((b"init_process_group",),)
    SITES = (re.compile(rb"init_process_group[ \t]*\("),)
    READS_TESTS = False

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        if said_torch(project, module, elsewhere=False).surely_below(_WARNS):
            return
        for start, entry in project.memo("group entries", lambda: _starts(project)):
            if start[0].path != module.path or _is_owned(entry.module) or is_destroyed(project, entry.module):
                continue
            if trains_for_ever(project, entry.module.path):  # it is ended from outside
                continue
            if ends_at_once(entry.module, _last(entry)) and left(entry.module, _last(entry), _AT_ONCE):
                continue
            at, before, _ = _end(entry)
            if at is not None and not before and statement_fails(project, entry.module, at):
                left(entry.module, at, "every run of several processes fails in this statement")
                continue
            if at is not None and not before and ends_in_a_loop_for_ever(project, entry.module, at):
                left(entry.module, at, "it trains in a loop that no option of the repository's runs ends")
                continue
            yield self._told(project, *start, entry)

    def _told(self, project: Project, starting: SourceModule, start: ast.Call, entry: Entry) -> Finding:
        module = entry.module
        at, before, reason = _end(entry)
        if at is not None and not before and _ends_the_program(project, module, at):
            at, reason = None, _NO_PLACE
        name = group_name(module, at) if at is not None else ""
        if at is not None and not name:
            reason = "the script does not import torch: the import and the call have to be written"
        edits: list[Edit] = []
        safe: list[Evidence] = []
        if at is not None and name:
            started = has_group_above(project, module, at) if before else has_group_below(project, module, at)
            destroys = f"{name}.destroy_process_group()"
            edit = InsertBefore if before else InsertAfter
            test = "" if started or before or starting is not module else asked_at_start(module, start, at)
            brought = _plan_destruction(module) if started or test else ()
            destroys = "destroy_process_group()" if brought else destroys
            code = destroys if started else _asked(project, entry, name, destroys, test)
            safe = [_of_place(entry, at, before=before), _of_group(starting, start, code, started=started)]
            edits = [edit(module.path, module.span(at), code), *brought]
        anchor: ast.AST = at if at is not None else (entry.function or start)
        return self.finding(
            module,
            anchor,
            "the process group is never destroyed: the program ends here, and since torch 2.4 NCCL warns at each exit that its "
            "resources may leak",
            level=Applicability.SAFE if edits else Applicability.DISPLAY,
            edits=edits,
            evidence=[
                Evidence("static", f"{starting.text_of(start.func)} starts it", starting.path, start.lineno),
                Evidence("static", "nothing that the program comes to calls destroy_process_group"),
                *safe,
            ],
            reason=reason,
        )


def _of_place(entry: Entry, at: ast.stmt, *, before: bool) -> Evidence:
    """Why nothing that needs the group comes behind it."""
    module, function = entry.module, entry.function
    if before:
        end = "the return" if isinstance(at, ast.Return) else "the exit"
        return Evidence("safe", f"{end} stands right behind it, and nothing else", module.path, at.lineno)
    whose = f"of `{function.name}`" if function is not None and at is function.body[-1] else "of the script"
    return Evidence("safe", f"it stands behind the last statement {whose}", module.path, at.lineno)


def _of_group(starting: SourceModule, start: ast.Call, code: str, *, started: bool) -> Evidence:
    """Why there is a group to destroy, or what is asked first."""
    if started:
        return Evidence("safe", "each run that comes there has started the group", starting.path, start.lineno)
    return Evidence("safe", f"not every run starts a group, so `{code.partition(chr(10))[0].rstrip(':')}` is asked first")


def _plan_destruction(module: SourceModule) -> tuple[Edit, ...]:
    """The import of the destruction beside that of the start, in a file that brings in the start by its name alone."""
    imported = module.imports.get("init_process_group", ())
    alone = len(imported) == 1 and imported[0].module == "torch.distributed" and in_scope(module, _is_distributed) is None
    if not alone or "destroy_process_group" in module.text:
        return ()
    return plan_statement(module, "from torch.distributed import destroy_process_group", "torch.distributed")


def _asked(project: Project, entry: Entry, name: str, destroys: str, test: str) -> str:
    """The destruction under the question whether there is a group to destroy: by the test of the start, by the project's own
    function, else by torch's.
    """
    if test := test or own_group_question(project, entry.module):
        return f"if {test}:\n{_step(entry)}{destroys}"
    available = "" if in_scope(entry.module, _is_distributed) else f"{name}.is_available() and "
    return f"if {available}{name}.is_initialized():\n{_step(entry)}{destroys}"


_Start = tuple[SourceModule, ast.Call]


def _starts(project: Project) -> list[tuple[_Start, Entry]]:
    """Each entry of the repository's scripts with the first start of a group that it comes to."""
    found: dict[tuple[str, int], tuple[_Start, Entry]] = {}
    for path in project.files_containing(b"init_process_group"):
        module = project.module(path) if not is_test_file(path) else None
        for call in module.calls_named("init_process_group") if module else ():
            if module is None or not starts_group(module, call) or _is_without_nccl(module, call) or _is_of_one(call):
                continue
            for entry in entries(project, module, call)[:_MANY]:
                if entry.function is not None or _is_script(project, entry):
                    key = entry.module.path, entry.function.lineno if entry.function else 0
                    found.setdefault(key, ((module, call), entry))
    return list(found.values())


def _is_of_one(call: ast.Call) -> bool:
    """True for `world_size=1`, the group that a tool of one process has to have: no rank leaves others behind."""
    size = next((k.value for k in call.keywords if k.arg == "world_size"), None)
    return isinstance(size, ast.Constant) and size.value == 1


def _is_without_nccl(module: SourceModule, call: ast.Call) -> bool:
    """True where backends are named, and NCCL is none of them: a process leaves gloo and MPI without a warning.

    By the call itself, or by the default of a parameter in a file that never speaks of NCCL.
    """
    backend = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "backend"), None)
    function = module.function_of(call)
    if isinstance(backend, ast.Name) and function is not None and not module.holds(b"nccl") and not module.holds(b"NCCL"):
        backend = defaults(function).get(backend.id)
    named = backend.value if isinstance(backend, ast.Constant) else None
    return isinstance(named, str) and "nccl" not in named.lower()


def _is_distributed(name: str) -> bool:
    return name == "torch.distributed"


def _is_owned(module: SourceModule) -> bool:
    return any(family(name) in _OWNERS for name in module.imported_modules)


def _is_script(project: Project, entry: Entry) -> bool:
    """True for a file whose program stands at its top level, and which no other file imports."""
    stem = entry.module.path.rpartition("/")[2].removesuffix(".py")
    name = re.escape(os.fsencode(stem))
    imported = re.compile(rb"import[ \t(]+(?:[\w.]+[ \t]*,[ \t]*)*" + name + rb"\b|from[ \t]+[\w.]*\b" + name + rb"[ \t]+import")
    return not any(
        imported.search(project.read(p) or b"") for p in project.files_containing(os.fsencode(stem)) if p != entry.module.path
    )


def _end(entry: Entry) -> tuple[ast.stmt | None, bool, str]:
    """(the statement, whether to stand in front of it, why there is no place)."""
    module, function = entry.module, entry.function
    if exits := exits_with_group(module, function or module.tree):  # what has a group never comes to the end
        plain = len(exits) == 1 and is_plain_exit(exits[0])
        return (exits[0], True, "") if plain else (None, False, _NO_PLACE)
    final = _last(entry)
    if function is None:
        return _end_of_script(module, final)
    leaves = [n for n in walk_scope(function) if isinstance(n, ast.Return) and n is not final]
    if not leaves:
        if is_exit(final):
            return _end_of_script(module, final)
        if isinstance(final, ast.Return):
            if final.value is None or isinstance(final.value, (ast.Name, ast.Constant, ast.Attribute)):
                return final, True, ""
        elif not isinstance(final, (ast.Raise, ast.While)) and module.is_whole(final):
            return final, False, ""
    if entry.call is not None and (block := main_block(module, entry.call)) is not None:
        last_one = block.body[-1]
        if module.is_whole(last_one) and not isinstance(last_one, (ast.Raise, ast.Return)) and not block.orelse:
            return last_one, False, ""
    return None, False, _NO_PLACE


def _last(entry: Entry) -> ast.stmt:
    """The last statement of what is run: of the function, or of the script."""
    if entry.function is not None:
        return entry.function.body[-1]
    block = main_block(entry.module, entry.call) if entry.call is not None else None
    return (block or _program(entry.module)).body[-1]


def _ends_the_program(project: Project, module: SourceModule, statement: ast.stmt) -> bool:
    """True for a call of a function of the project that ends with `exit()`: nothing behind it is run."""
    call = statement.value if isinstance(statement, (ast.Expr, ast.Assign)) else None
    if not isinstance(call, ast.Call):
        return False
    if (called := called_function(project, module, call)) is not None:
        return always_exits(project, called.module, called.node)
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    homes = [m for p in project.files_containing(f"def {name}(".encode()) if (m := project.module(p)) is not None] if name else []
    named = [(home, f) for home in homes for f in home.functions if f.name == name]
    return len(named) == 1 and always_exits(project, *named[0])


def _program(module: SourceModule) -> ast.Module | ast.If:
    """The block that a file ends with, `if __name__ == "__main__":`, or the file: who imports the file keeps its group."""
    end = module.tree.body[-1]
    inner = end.body[0] if isinstance(end, ast.If) and not end.orelse else None
    return end if isinstance(end, ast.If) and inner is not None and main_block(module, inner) is end else module.tree


def _end_of_script(module: SourceModule, final: ast.stmt) -> tuple[ast.stmt | None, bool, str]:
    if is_exit(final):
        return (final, True, "") if is_plain_exit(final) else (None, False, _NO_PLACE)
    if isinstance(final, (ast.Raise, ast.While)) or not module.is_whole(final):
        return None, False, _NO_PLACE
    return final, False, ""


def _step(entry: Entry) -> str:
    """One step of indentation, as the function or the block at the end of the script takes it."""
    outer: ast.AST | None = entry.function or (main_block(entry.module, entry.call) if entry.call is not None else None)
    outer = outer or _program(entry.module)
    block = getattr(outer, "body", None)
    if isinstance(outer, ast.stmt) and isinstance(block, list):
        head = entry.module.lines[outer.lineno - 1][: outer.col_offset]
        step: str = entry.module.lines[block[0].lineno - 1][: block[0].col_offset].removeprefix(head)
        if step and not step.strip():
            return step
    return "    "
