"""DDP310: a data set waits for the other ranks in a method that is only called where its files are missing."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_of
from codemods.analysis.class_index import ClassFacts, class_facts
from codemods.analysis.distribution import is_test_module
from codemods.analysis.names import dotted, end_of, family, last
from codemods.analysis.ranks.collectives import Collective, collective_at
from codemods.analysis.ranks.rank_guards import Ranks, ranks_at
from codemods.analysis.ranks.reached_collectives import reached_by
from codemods.analysis.short_texts import short
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Evidence, Finding
from codemods.files.source import FunctionNode, SourceModule, walk, walk_scope
from codemods.store.project import Project

_HOOKS = ("download", "process")
_LIBRARIES = frozenset({"torch_geometric", "dgl", "ogb"})
_LOOKS = frozenset(
    {"exists", "isfile", "isdir", "is_file", "is_dir", "files_exist", "_check_exists", "_check_integrity", "has_cache"}
)  # fmt: skip


class BarrierInAConditionalHook(DdpCodemod):
    """A data set's `download` or `process` waits for the other ranks, and is only called where files are missing.

    ## What it does
    Finds collectives in the methods `download` and `process` of data sets of PyTorch Geometric and DGL, which call them where
    files of the raw or processed folder are missing; and of a project's own classes that call them under such a test.

    ## Why it matters
    Each rank looks for the files at its own moment. The first finds none, begins to write them and comes to the barrier; a rank
    that looks when they are there goes past the method, and nobody meets the first at the barrier. It hangs on some starts only,
    and never again once the files are there.

    ## Example
    ```python
    import torch
    import torch.distributed as dist
    from torch_geometric.data import InMemoryDataset


    class Molecules(InMemoryDataset):
        def process(self):
            if dist.get_rank() == 0:
                torch.save(build(self.raw_paths), self.processed_paths[0])
            dist.barrier()
    ```

    ## Use instead
    ```python
    import torch
    import torch.distributed as dist
    from torch_geometric.data import InMemoryDataset


    class Molecules(InMemoryDataset):
        def process(self):
            torch.save(build(self.raw_paths), self.processed_paths[0])


    def molecules(root):
        if dist.get_rank() == 0:
            Molecules(root)
        dist.barrier()
        return Molecules(root)
    ```

    ## Safety
    There is no fix: the order belongs where the data set is made, on every way there.

    ## Refuses
    - Says nothing in a repository's own tests.
    - Says nothing of other methods, and of a class that calls them always, or by a test that the ranks have agreed on.
    - Says nothing of a collective of a part of the ranks, or under a test of the rank.

    ## References
    PyTorch Geometric 2.6, `Dataset._download` and `Dataset._process`: they return where the files exist; DGL's
    `DGLDataset._load`; a two-process run in which the second rank is a second late.
    """

    code = "DDP310"
    severity = "hang"
    TRIGGERS = (
        (b"def download(", b"def process("),
        (b"barrier", b"reduce", b"broadcast", b"all_gather", b"wait_for_everyone", b"synchronize"),
    )
    READS_TESTS = False

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        for owner in module.nodes(ast.ClassDef):
            methods = module.methods_of(owner)
            for name in (n for n in _HOOKS if n in methods):
                waits = list(_waits(project, module, methods[name]))
                if not waits or (why := _why_conditional(project, class_facts(project, module, owner), name)) is None:
                    continue
                call, text = waits[0]
                yield self.finding(
                    module, call,
                    f"{text} waits for every rank, and {name}() is only called where files are missing: a rank that finds them "
                    "never comes here, and the others wait for it",
                    evidence=[why],
                    reason=f"take the wait out of {name}(): rank 0 makes the data set first, all wait, then the others make it",
                )  # fmt: skip


def _waits(project: Project, module: SourceModule, method: FunctionNode) -> Iterator[tuple[ast.Call, str]]:
    """The calls of a method that wait for all ranks, whoever calls it."""
    for node in walk_scope(method):
        if not isinstance(node, ast.Call) or ranks_at(module, node, project=project) is not Ranks.ALL:
            continue
        found = collective_at(module, node, project)
        if isinstance(found, Collective):
            if not found.grouped and found.name not in ("init_process_group", "new_group"):
                yield node, found.text
        elif (reached := reached_by(project, module, node)) is not None:
            yield node, reached.text


def _why_conditional(project: Project, facts: ClassFacts, name: str) -> Evidence | None:
    """What calls the method only where files are missing."""
    for site in facts.lineage:
        for call in site.module.calls_named(name, f"_{name}"):
            if dotted(call.func) != f"self.{name}" or site.module.class_of(call) is not site.node:
                continue
            test = _test_over(site.module, call)
            if test is None:
                return None  # it is called whatever there is
            if _looks(site.module, test):
                shown = f"self.{name}() stands under `{short(site.module, test)}`"
                return Evidence("static", shown, site.module.path, test.lineno)
            return None
    for external in facts.external:
        if family(external) in _LIBRARIES and last(external).endswith("Dataset"):
            return Evidence("static", f"{last(external)} of {family(external)} calls {name}() where its files are missing")
    return None


def _test_over(module: SourceModule, call: ast.Call) -> ast.expr | None:
    below: ast.AST = call
    for up in module.ancestors(call):
        if isinstance(up, ast.If) and below is not up.test:
            return up.test
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return None
        below = up
    return None


def _looks(module: SourceModule, test: ast.expr) -> bool:
    """True for a test that asks the file system, also by a name that was bound to the answer, and has not been agreed on."""
    for node in walk(test):
        if isinstance(node, ast.Call) and end_of(node.func) in _LOOKS:
            return True
        if isinstance(node, ast.Name):
            values = [b.value for b in bindings_of(module, node)]
            if len(values) == 1 and isinstance(values[0], (ast.Call, ast.UnaryOp)) and _is_look(values[0]):
                return True
    return False


def _is_look(value: ast.expr) -> bool:
    inner = value.operand if isinstance(value, ast.UnaryOp) else value
    return isinstance(inner, ast.Call) and end_of(inner.func) in _LOOKS
