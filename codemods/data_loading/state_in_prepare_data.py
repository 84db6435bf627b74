"""DDP407: attributes that prepare_data sets, where only one process of a node runs it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import ClassFacts, ClassSite, Role, class_facts, subclasses
from codemods.analysis.distribution import is_test_file, is_test_module
from codemods.analysis.frameworks import lightning_pin
from codemods.analysis.names import dotted
from codemods.analysis.wrapped.lightning_runs import kept_to_one
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Edit, Evidence, Finding, InsertBefore
from codemods.data.printed_errors import WAITING
from codemods.files.left_alone import left
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.record import record
from codemods.store.project import Project

# Before it, `fit` prepares the data above every spawn, "so that the model can assign properties", and knows no `setup`.
_HAS_SETUP = (0, 8)
_UNSAFE, _DISPLAY = Applicability.UNSAFE, Applicability.DISPLAY


class StateInPrepareData(DdpCodemod):
    """An attribute that `prepare_data` sets and other methods read.

    ## What it does
    Finds attributes that `prepare_data` of a LightningDataModule or LightningModule gives a value, and that another method of the
    class reads. Where the value is made of attributes, imports and literals alone, `setup` makes it, too; else it is reported.

    ## Why it matters
    Lightning calls `prepare_data` on one process of each node. The others have no such attribute: they end with AttributeError,
    or go on with the None of the constructor, while rank 0 waits for them. With one process nothing shows.

    ## Example
    ```python
    import json

    import lightning.pytorch as pl


    class Data(pl.LightningDataModule):
        def prepare_data(self):
            download(self.root)
            self.words = json.loads((self.root / "words.json").read_text())

        def setup(self, stage):
            self.size = len(self.words)
    ```

    ## Use instead
    ```python
    import json

    import lightning.pytorch as pl


    class Data(pl.LightningDataModule):
        def prepare_data(self):
            download(self.root)
            self.words = json.loads((self.root / "words.json").read_text())

        def setup(self, stage):
            self.words = json.loads((self.root / "words.json").read_text())
            self.size = len(self.words)
    ```

    ## Safety
    Unsafe: what `prepare_data` made has to be there to be read again, and alike, on every node; Lightning lets all ranks wait
    between the two. The line of `prepare_data` stays: it may be the one that downloads. One process makes the value twice.

    ## Refuses
    - Says nothing where `setup`, a property or another method that every rank runs gives the attribute a value that is not None.
    - Says nothing of what `prepare_data` alone reads.
    - Says nothing where the project calls `prepare_data` itself: then every rank has run it.
    - Says nothing where Lightning below 0.8 is pinned: its `fit` prepares the data before it starts the processes.
    - Says nothing where every Trainer of the project is given one device.
    - Reports a value that is made of the local names of `prepare_data`, and a class without a `setup` of its own.
    - A repository's own tests.

    ## References
    Lightning 2.6.6 on two processes (AttributeError on rank 1); the page on LightningDataModule: "setting state here (e.g.
    self.x = y)" is not for `prepare_data`.
    """

    code = "DDP407"
    severity = "crash"
    subject = "Make in setup what every rank needs"
    must_show = "A fit on two processes gets past setup on both, and both hold the same value."
    printed = ("object has no attribute", *WAITING)
    TRIGGERS = ((b"def prepare_data",), (b"self.",))
    READS_TESTS = False

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module) or _is_called(project) or kept_to_one(project):
            return
        pin = lightning_pin(project, near=module.path)
        if pin is not None and pin.surely_below(_HAS_SETUP):
            left(module, module.tree, f"{pin.text} is pinned: its fit prepares the data before it starts the processes")
            return
        for node in module.nodes(ast.ClassDef):
            method = module.methods_of(node).get("prepare_data")
            facts = class_facts(project, module, node) if method is not None else None
            if method is None or facts is None or not _is_lightning(facts):
                continue
            for one in _set_there(module, method):
                if (read := _read_elsewhere(project, facts, one.name, method)) is not None:
                    yield self._tell(module, node, one, read, method)

    def _tell(
        self, module: SourceModule, owner: ast.ClassDef, one: _Set, read: tuple[SourceModule, ast.AST], method: FunctionNode
    ) -> Finding:
        setup = module.methods_of(owner).get("setup")
        edits, reason = _repair(module, one, setup, method)
        line = getattr(read[1], "lineno", 0)
        message = (
            f"`self.{one.name}` is set in prepare_data, which runs on one process of each node: the others have no such "
            f"attribute, or an empty one, in {read[0].path}:{line}"
        )
        return self.finding(
            module,
            one.node,
            message,
            level=_UNSAFE if edits else _DISPLAY,
            edits=edits,
            evidence=[Evidence("static", f"every rank reads self.{one.name}", read[0].path, line)],
            reason=reason,
        )


@record
class _Set:
    """An attribute of self and the assignment that gives it a value."""

    name: str
    node: ast.Assign


def _is_lightning(facts: ClassFacts) -> bool:
    return facts.is_a(Role.LIGHTNING_DATA_MODULE) or facts.is_a(Role.LIGHTNING_MODULE)


def _is_called(project: Project) -> bool:
    """True where the project calls `prepare_data` on an object: it may do so on every rank."""

    def build() -> bool:
        for path in project.files_containing(b".prepare_data("):
            module = project.module(path) if not is_test_file(path) else None
            for call in module.calls_named("prepare_data") if module is not None else ():
                holder = call.func.value if isinstance(call.func, ast.Attribute) else None
                inside = module.method_of(call) if module is not None else None
                own = isinstance(holder, ast.Call) and dotted(holder.func) == "super"
                if not own and not (inside is not None and inside[1].name == "prepare_data"):
                    return True
        return False

    return project.keep("prepare_data is called", build)


def _set_there(module: SourceModule, method: FunctionNode) -> Iterator[_Set]:
    """The attributes of self that the method assigns, each once."""
    done: set[str] = set()
    for node in (n for n in walk(method) if isinstance(n, ast.Assign)):
        for target in node.targets:
            if isinstance(target, ast.Attribute) and dotted(target.value) == "self" and target.attr not in done:
                if module.function_of(node) is method and not _is_nothing(node.value):
                    done.add(target.attr)
                    yield _Set(target.attr, node)


def _is_nothing(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def _read_elsewhere(
    project: Project, facts: ClassFacts, name: str, method: FunctionNode
) -> tuple[SourceModule, ast.AST] | None:
    """The first place outside of prepare_data that reads it on every rank; None where it gets a value there, too."""
    first: tuple[SourceModule, ast.AST] | None = None
    sites: list[ClassSite] = [*facts.lineage, *subclasses(project, facts.lineage[0])]
    for site in sites:
        for node in walk(site.node):
            if isinstance(node, ast.Attribute) and node.attr == name and dotted(node.value) == "self":
                function = site.module.function_of(node)
                if function is method or (function is not None and function.name in ("prepare_data", "teardown")):
                    continue
                if isinstance(node.ctx, ast.Load):
                    if first is None and not _is_asked_for(site.module, node):
                        first = site.module, node
                elif _has_value(site.module, node):
                    return None
        if name in site.methods() or any(_names(s, name) for s in site.node.body):
            return None
    return first


def _names(statement: ast.stmt, name: str) -> bool:
    """True for a value of the class itself, None left out."""
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    named = any(isinstance(t, ast.Name) and t.id == name for t in targets)
    return named and isinstance(statement, ast.Assign) and not _is_nothing(statement.value)


def _has_value(module: SourceModule, node: ast.Attribute) -> bool:
    """True where the attribute is given something: an empty value of the constructor is there for prepare_data to fill."""
    up = module.parent(node)
    while isinstance(up, (ast.Tuple, ast.List)):
        up = module.parent(up)
    value = up.value if isinstance(up, (ast.Assign, ast.AnnAssign)) else None
    if value is None:
        return not isinstance(up, ast.AnnAssign)
    function = module.function_of(node)
    elements = value.keys if isinstance(value, ast.Dict) else getattr(value, "elts", None)
    empty = _is_nothing(value) or elements == []
    return not (empty and function is not None and function.name == "__init__")


def _is_asked_for(module: SourceModule, node: ast.AST) -> bool:
    """True under a test that names it, and in a `try`: it may be missing there."""
    name = getattr(node, "attr", "")
    for up in module.ancestors(node):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        if isinstance(up, ast.Try) or (isinstance(up, (ast.If, ast.IfExp)) and name in module.text_of(up.test)):
            return True
    return False


def _repair(
    module: SourceModule, one: _Set, setup: FunctionNode | None, method: FunctionNode
) -> tuple[list[Edit], str]:
    made = "make it in setup, which every rank runs, of what prepare_data left on the disk"
    if setup is None or one.node not in method.body or len(one.node.targets) > 1:
        return [], made
    local = {a.arg for a in method.args.args} - {"self"}
    local |= {n.id for n in walk(method) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    used = {n.id for n in walk(one.node.value) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    if used & local:
        return [], made
    body = setup.body
    first = body[1] if _is_docstring(body[0]) and len(body) > 1 else body[0]
    if _is_docstring(first) or not module.is_whole(first):
        return [], made
    edit = InsertBefore(module.path, module.span(first), module.text_of(one.node))
    return [edit], "assumes that every rank can make it again of what prepare_data left, and that it comes out alike"


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
