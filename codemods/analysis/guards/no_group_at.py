"""Can no process group be at a place? The statements above have destroyed it, or the script is a server and starts none.

A collective there meets nobody, and a wrapper cannot be: no other rank waits in it, and none can be asked to join.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_file
from codemods.analysis.guards.lost_groups import group_is_over, has_start
from codemods.analysis.names import dotted, family, last, qualified
from codemods.data.rank_variance import SERVERS
from codemods.files.import_statements import stem_of
from codemods.files.source import SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

# What asks for the rank, or joins the others, whatever is imported beside it: a library of training alone starts nothing.
_MAY_JOIN = lazy(
    rb"rank\b|rank_|_rank|RANK|[wW]orld_?[sS]ize|WORLD_SIZE|istributed|ccelerat|Trainer\(|\.fit\(|[dD]eep[sS]peed|horovod|hvd|mpi4py|"
    rb"(?:init|setup)_dist|is_ma(?:in|ster)|main_process|DDP|FSDP|spawn|\.prepare\(|ensor_?parallel"
)
_SERVING = frozenset({"run", "launch", "run_server", "run_app"})


def no_group_at(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True where no group can be, by what the function of `node` does above it, or by what the whole script is."""
    if serves_alone(project, module):
        return True
    return may_have_no_group(project, module) and bool(group_is_over(project, [(module, node)]))


def may_have_no_group(project: Project, module: SourceModule) -> bool:
    """False where `no_group_at` is for no place of the file."""
    return serves_alone(project, module) or bool(project.files_containing(b"destroy_process_group"))


def serves_alone(project: Project, module: SourceModule) -> bool:
    """True for a script that answers requests in every process that runs it, and asks for no rank.

    A second process on the machine could not open the port. A server of several processes asks for the rank first, or starts
    the group: rank 0 serves and the others wait for what it sends.
    """
    return project.keep(("serves alone", module.path), lambda: _serves_alone(project, module))


def _serves_alone(project: Project, module: SourceModule) -> bool:
    if not any(family(name) in SERVERS or family(name) == "uvicorn" for name in module.imported_modules):
        return False
    if not any(_is_always_run(module, call) for call in _serving(module)) or _MAY_JOIN.search(module.data):
        return False
    if any(not is_test_file(p) for p in project.files_importing(stem_of(module.path)) if p != module.path):
        return False  # what imports it may be a program of several processes
    return not any(has_start(project, module, call) for call in module.nodes(ast.Call))


def _serving(module: SourceModule) -> Iterator[ast.Call]:
    """`app.run(...)` of what a server's package makes in the file, `uvicorn.run(...)`."""
    made = {
        dotted(target) for assign in module.nodes(ast.Assign) for target in assign.targets
        if isinstance(assign.value, ast.Call) and family(qualified(module, assign.value.func)) in SERVERS
    }  # fmt: skip
    for call in module.calls_named(*_SERVING):
        name = qualified(module, call.func)
        holder = dotted(call.func.value) if isinstance(call.func, ast.Attribute) else ""
        if holder in made or family(name) == "uvicorn" or (family(name) in SERVERS and last(name) in _SERVING):
            yield call


def _is_always_run(module: SourceModule, call: ast.Call) -> bool:
    """True at the top of the file, also under `if __name__ == "__main__":`, and in the main function, under no other test."""
    for up in module.ancestors(call):
        if isinstance(up, ast.If) and "__name__" not in module.text_of(up.test):
            return False
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)) and up.name != "main":
            return False
    return True
