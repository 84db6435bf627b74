"""Has the program put a `print` of its own in the place of Python's? Then the other ranks are quiet already, or speak on purpose.

`builtins.print = lambda *a: None` on all ranks but one, or a wrapper that asks for the rank, as DETR's `setup_for_distributed`;
also `sys.stdout = open(os.devnull, "w")` on all ranks but one, as in MONAI's tutorials, and a file for each.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_file
from codemods.analysis.loading.same_program import reached
from codemods.analysis.names import dotted, qualified
from codemods.analysis.output.effect_kinds import names_rank
from codemods.analysis.output.muted_blocks import OF_OTHERS, goes_nowhere, is_in_muted_block
from codemods.analysis.paths import origin_text
from codemods.analysis.ranks.rank_guards import ranks_at
from codemods.analysis.ranks.uses import uses_of
from codemods.files.source import FunctionNode, SourceModule
from codemods.store.project import Project

_BUILTINS = frozenset({"builtins", "__builtin__", "__builtins__"})
_DEPTH = 3  # functions that call the one that does it


def is_muted(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True in a file of a program that replaces `print`: it does so itself, or is imported by a file that has it done.

    Also in a project whose own launcher gives each process a file for what it prints, and in a block that keeps the others quiet.
    """
    path = module.path
    if project.keep("a file for each process", lambda: _is_launched_into_files(project)):
        return True
    if project.keep(("muted print", path), lambda: any(path in reached(project, p) for p in _doing_so(project))):
        return True
    return is_in_muted_block(project, module, node, "sys.stdout")


def is_quiet_bar(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True in a block that leads the standard error of the other ranks away."""
    return is_in_muted_block(project, module, call, "sys.stderr")


def has_quiet_bars(project: Project, path: str) -> bool:
    """True for a file of a program that leads the standard error of the other ranks away, to which progress bars are drawn.

    Also of one that gives `disable` to all bars: `tqdm.__init__ = partialmethod(tqdm.__init__, disable=rank != 0)`.
    """
    paths = project.keep("files that mute bars", lambda: frozenset(_muting_bars(project)))
    return any(path in reached(project, p) for p in paths)


def _doing_so(project: Project) -> frozenset[str]:
    """The files that replace `print`, and those that call a function which does."""
    return project.keep("files that mute print", lambda: _find(project))


def _find(project: Project) -> frozenset[str]:
    found: set[str] = set()
    for path in project.files_containing(b"redirect_stdout("):
        module = project.module(path) if not is_test_file(path) else None
        if module is not None and any(_goes_to_own_file(module, call) for call in module.calls_named("redirect_stdout")):
            found.add(path)
    found.update(_all_leading_away(project, "sys.stdout"))
    for path in project.files_containing(b".print = "):
        module = project.module(path) if not is_test_file(path) else None
        for assign in module.nodes(ast.Assign) if module is not None else ():
            if module is not None and any(is_print_of_python(module, t) for t in assign.targets):
                add_with_callers(project, module, assign, found)
    return frozenset(found)


def _is_launched_into_files(project: Project) -> bool:
    """True for `Popen([…, f"--rank={i}"], stdout=open(…))` in a loop: one process speaks on the terminal, if any."""
    for path in project.files_containing(b"Popen("):
        module = project.module(path) if not is_test_file(path) else None
        for call in module.calls_named("Popen") if module is not None else ():
            if module is None or not any(isinstance(up, (ast.For, ast.While)) for up in module.ancestors(call)):
                continue
            out = next((k.value for k in call.keywords if k.arg == "stdout"), None)
            if out is not None and module.holds(b"rank") and "open(" in origin_text(module, out):
                return True
    return False


def _goes_to_own_file(module: SourceModule, call: ast.Call) -> bool:
    """`redirect_stdout(open(f"fit-{rank}.log", "w"))`: what is printed below goes where nobody repeats it."""
    return bool(call.args) and names_rank(origin_text(module, call.args[0]))


def _all_leading_away(project: Project, stream: str) -> set[str]:
    """The files that lead a stream of the other ranks away, and those that call a function which does."""
    found: set[str] = set()
    for module, assign in _leading_away(project, stream):
        add_with_callers(project, module, assign, found)
    return found


def _muting_bars(project: Project) -> set[str]:
    return _all_leading_away(project, "sys.stderr") | _disabling(project)


def _disabling(project: Project) -> set[str]:
    """The files that give `disable` to tqdm's own constructor, and those that call a function which does."""
    found: set[str] = set()
    for path in project.files_containing(b".__init__ = "):
        module = project.module(path) if not is_test_file(path) else None
        for assign in module.nodes(ast.Assign) if module is not None and module.holds(b"tqdm") else ():
            if module is not None and any(_is_constructor_of_bars(module, t) for t in assign.targets):
                if isinstance(assign.value, ast.Call) and any(k.arg == "disable" for k in assign.value.keywords):
                    add_with_callers(project, module, assign, found)
    return found


def _is_constructor_of_bars(module: SourceModule, target: ast.expr) -> bool:
    return isinstance(target, ast.Attribute) and target.attr == "__init__" and qualified(module, target.value).startswith("tqdm.")


def _leading_away(project: Project, stream: str) -> Iterator[tuple[SourceModule, ast.Assign]]:
    """Where a stream of the other ranks is led to nowhere, or each rank's into a file of its own."""
    for path in project.files_containing(f"{stream} = ".encode()):
        module = project.module(path) if not is_test_file(path) else None
        for assign in module.nodes(ast.Assign) if module is not None else ():
            if module is None or stream not in map(dotted, assign.targets):
                continue
            made = origin_text(module, assign.value)
            if names_rank(made) or (goes_nowhere(made) and ranks_at(module, assign, project=project) in OF_OTHERS):
                yield module, assign


def is_print_of_python(module: SourceModule, target: ast.expr) -> bool:
    if not isinstance(target, ast.Attribute) or target.attr != "print":
        return False
    return dotted(target.value) in _BUILTINS or qualified(module, target.value) in _BUILTINS


def add_with_callers(project: Project, module: SourceModule, assign: ast.Assign, found: set[str]) -> None:
    found.add(module.path)
    function = module.function_of(assign)
    if function is not None:
        _add_callers(project, module, function, found, _DEPTH)


def _add_callers(project: Project, module: SourceModule, function: FunctionNode, found: set[str], depth: int) -> None:
    used = uses_of(project, module, function).outside_tests()
    for site in used.calls:
        found.add(site.module.path)
        outer = site.module.function_of(site.call)
        if outer is not None and depth > 1:
            _add_callers(project, site.module, outer, found, depth - 1)
