"""What nobody needs any more once some code is gone: imports, helper functions, loaded metrics, constants. Worked out up front.

Only what has a use today, all of it inside the removed code, is an orphan: what was unused before stays as it is.
"""

from __future__ import annotations

import ast
import sys

from codemods.analysis.names import qualified
from codemods.analysis.trainer.references import (
    Mention,
    binding_scope,
    bindings,
    in_comments,
    in_other_files,
    in_strings,
    in_text_files,
    inside,
    names_of,
)
from codemods.api.findings import DropImport, Edit, RemoveStatement
from codemods.files.import_statements import stem_of
from codemods.files.source import SourceModule, walk
from codemods.runtime.record import field, record
from codemods.store.project import Project

# Packages whose import does nothing that other code could rely on.
_QUIET = frozenset(
    {"Levenshtein", "bert_score", "bleurt", "datasets", "editdistance", "evaluate", "jieba", "jiwer", "nltk", "numpy", "pandas",
     "rapidfuzz", "rouge", "rouge_chinese", "rouge_score", "sacrebleu", "scipy", "seqeval", "sklearn", "torch", "torchmetrics",
     "transformers", "typing_extensions"}
)  # fmt: skip
_LOUD = frozenset({"__future__", "antigravity", "faulthandler", "readline", "this"})
# Making one of these downloads a script, and that is all: without a user it is only waited for.
METRIC_LOADERS = frozenset({"evaluate.load", "evaluate.combine", "datasets.load_metric"})


@record(frozen=False)
class Removal:
    """Code to take out and what goes with it.

    gone: the nodes that disappear, by file. edits: for what goes beside the first nodes. left: what then has no user but
    cannot be taken out, each with its reason. names: what goes, for people.
    """

    project: Project
    gone: dict[str, set[ast.AST]] = field(default_factory=dict)
    edits: list[Edit] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def is_gone(self, module: SourceModule, node: ast.AST) -> bool:
        return inside(module, node, self.gone.get(module.path, set()))

    def take(self, module: SourceModule, node: ast.AST) -> None:
        self.gone.setdefault(module.path, set()).add(node)

    @property
    def nodes(self) -> frozenset[ast.AST]:
        return frozenset(n for nodes in self.gone.values() for n in nodes)


@record
class _Name:
    module: SourceModule
    word: str
    scope: ast.AST


def removal(project: Project, first: list[tuple[SourceModule, ast.AST]]) -> Removal:
    """The removal of the nodes `first` (whose own edits the caller makes) with everything that only they used."""
    plan = Removal(project)
    for module, node in first:
        plan.take(module, node)
    left: dict[tuple[str, str], str] = {}
    while True:
        before = len(plan.nodes) + len(plan.edits)
        left.clear()
        for module, node in _sites(plan):
            for name in _names_in(module, node):
                if reason := _orphan(plan, name):
                    left[module.path, name.word] = reason
        if before == len(plan.nodes) + len(plan.edits):
            plan.left = list(left.values())
            return plan


def _sites(plan: Removal) -> list[tuple[SourceModule, ast.AST]]:
    found = []
    for path, nodes in plan.gone.items():
        module = plan.project.module(path)
        assert module is not None
        found += [(module, n) for n in sorted(nodes, key=lambda n: getattr(n, "lineno", 0))]
    return found


def _names_in(module: SourceModule, root: ast.AST) -> list[_Name]:
    """The names that a node reads from outside itself."""
    found: dict[tuple[str, int], _Name] = {}
    for node in walk(root):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            scope = binding_scope(module, node)
            if not inside(module, scope, {root}):
                found[node.id, id(scope)] = _Name(module, node.id, scope)
    return list(found.values())


def _orphan(plan: Removal, name: _Name) -> str:
    """Takes out what binds a name that only removed code reads; the reason where that cannot be done, "" otherwise."""
    module, word = name.module, name.word
    bound = [b for b in bindings(module, word, name.scope) if not plan.is_gone(module, b)]
    reads = [n for n in names_of(module, word, name.scope) if isinstance(n.ctx, ast.Load)]
    itself: set[ast.AST] = {b for b in bound if isinstance(b, (ast.FunctionDef, ast.AsyncFunctionDef))}  # it may be recursive
    if not all(plan.is_gone(module, n) or inside(module, n, itself) for n in reads):
        return ""
    if not bound or _is_dropped(plan, module, bound, word):
        return ""
    if isinstance(name.scope, ast.Module) and in_other_files(plan.project, module.path, word):
        return ""
    binding = bound[0]
    if len(bound) > 1:
        return f"{word} ({module.path}:{getattr(binding, 'lineno', 0)}) is given its value in several places"
    if isinstance(binding, ast.arg):
        return f"the parameter {word} ({module.path}:{binding.lineno}) then has no use"
    if isinstance(binding, (ast.Import, ast.ImportFrom)):
        return _drop_import(plan, module, binding, word)
    return _remove_statement(plan, name, binding)


def _is_dropped(plan: Removal, module: SourceModule, bound: list[ast.AST], word: str) -> bool:
    spans = [module.span(b) for b in bound]
    return any(
        isinstance(e, DropImport) and e.name == word and e.path == module.path and e.span in spans for e in plan.edits
    )


def _drop_import(plan: Removal, module: SourceModule, node: ast.Import | ast.ImportFrom, word: str) -> str:
    where = f"the import of {word} ({module.path}:{node.lineno})"
    direct = isinstance(module.parent(node), (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef))
    if not direct or not module.is_whole(node):
        return f"{where} stands in a branch"
    if "noqa" in "".join(module.lines[node.lineno - 1 : node.end_lineno]):
        return f"{where} is marked as wanted without a use"
    if _is_written_out(module, word, plan.nodes):
        return f"{where} may be exported, or is named in an annotation"
    if isinstance(node, ast.Import) and len([a for a in node.names if _bound(a) == word]) > 1:
        return f"{where} binds it twice"
    if not _is_imported_anyway(plan, module, node, word) and not _is_quiet(plan.project, module, node, word):
        return f"{where} may do something that other code relies on"
    plan.edits.append(DropImport(module.path, module.span(node), word))
    return ""


def _bound(alias: ast.alias) -> str:
    return alias.asname or alias.name.partition(".")[0]


def _is_written_out(module: SourceModule, word: str, skip: frozenset[ast.AST]) -> bool:
    """True where a string names the word in `__all__` or in an annotation."""
    for node in module.nodes(ast.Constant):
        if isinstance(node.value, str) and word in node.value and not inside(module, node, set(skip)):
            if module.holds(b"__all__") and node.value == word:
                return True
            if any(_annotates(up, node) for up in module.ancestors(node)):
                return True
    return False


def _annotates(holder: ast.AST, node: ast.AST) -> bool:
    wanted: ast.expr | None = None
    if isinstance(holder, (ast.FunctionDef, ast.AsyncFunctionDef)):
        wanted = holder.returns
    elif isinstance(holder, (ast.arg, ast.AnnAssign)):
        wanted = holder.annotation
    return wanted is not None and any(n is node for n in walk(wanted))


def _is_imported_anyway(plan: Removal, module: SourceModule, node: ast.Import | ast.ImportFrom, word: str) -> bool:
    """True where the same statement goes on importing another name from the module."""
    if not isinstance(node, ast.ImportFrom):
        return False
    scope = module.function_of(node) or module.tree
    others = [_bound(a) for a in node.names if _bound(a) != word]
    return any(not plan.is_gone(module, n) for other in others for n in names_of(module, other, scope))


def _is_quiet(project: Project, module: SourceModule, node: ast.Import | ast.ImportFrom, word: str) -> bool:
    """True where importing the module only defines things."""
    if isinstance(node, ast.ImportFrom):
        source = "." * node.level + (node.module or "")
    else:
        source = next(a.name for a in node.names if _bound(a) == word)
    root = source.partition(".")[0]
    if root and not project.resolve(source, module.path):
        return root in _QUIET or (root in sys.stdlib_module_names and root not in _LOUD)
    resolved = project.resolve(source, module.path)
    target = project.module(resolved.path) if resolved else None
    return target is not None and _only_defines(target)


def _only_defines(module: SourceModule) -> bool:
    """True for a file of imports of quiet packages, undecorated definitions and constants."""
    for statement in module.tree.body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if statement.decorator_list or (isinstance(statement, ast.ClassDef) and statement.keywords):
                return False
        elif isinstance(statement, (ast.Import, ast.ImportFrom)):
            names = (
                [a.name for a in statement.names] if isinstance(statement, ast.Import) else [statement.module or "."]
            )
            if isinstance(statement, ast.ImportFrom) and statement.level:
                return False
            if not all(
                n.partition(".")[0] in _QUIET | (sys.stdlib_module_names - _LOUD) | {"__future__"} for n in names
            ):
                return False
        elif not _is_plain_value(statement):
            return False
    return True


def _is_plain_value(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    value = statement.value if isinstance(statement, (ast.Assign, ast.AnnAssign)) else None
    plain = (ast.Constant, ast.List, ast.Tuple, ast.Set, ast.Dict, ast.UnaryOp, ast.USub)
    return value is not None and all(isinstance(n, plain) for n in walk(value))


def _remove_statement(plan: Removal, name: _Name, node: ast.AST) -> str:
    module, word = name.module, name.word
    where = f"{word} ({module.path}:{getattr(node, 'lineno', 0)})"
    if not isinstance(node, ast.stmt) or not module.is_whole(node) or module.parent(node) is not name.scope:
        return f"{where} is bound in a branch or a larger statement"
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        if node.decorator_list:
            return f"{where} is decorated"
    elif not _is_value_of_its_own(module, node):
        return f"{where} then has no user, and making it may have effects"
    if isinstance(name.scope, ast.Module) and (found := mentions(plan, module, word, node)):
        return f"{where} is named at {found[0]}"
    plan.take(module, node)
    plan.edits.append(RemoveStatement(module.path, module.span(node)))
    plan.names.append(word)
    return ""


def _is_value_of_its_own(module: SourceModule, node: ast.stmt) -> bool:
    """`x = evaluate.load(…)` or `x = <constant>`."""
    if isinstance(node, ast.Assign):
        if len(node.targets) != 1 or not isinstance(node.targets[0], ast.Name):
            return False
    elif not isinstance(node, ast.AnnAssign):
        return False
    value = node.value
    if isinstance(value, ast.Call):
        inner = [
            a
            for a in (*value.args, *(k.value for k in value.keywords))
            if any(isinstance(n, ast.Call) for n in walk(a))
        ]
        return qualified(module, value.func) in METRIC_LOADERS and not inner
    return _is_plain_value(node)


def mentions(plan: Removal, module: SourceModule, word: str, node: ast.AST) -> list[Mention]:
    """Where strings and text files name a module-level definition; a variable's name counts there only behind its module's."""
    skip = plan.nodes | {node}
    strings = in_strings(plan.project, word, skip=skip)
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return strings + in_text_files(plan.project, word) + in_comments(module, word, skip=skip)
    looked_up = any(f in module.text for f in ("__all__", "globals(", "getattr("))
    return [m for m in strings if m.path == module.path and looked_up] + in_text_files(
        plan.project, word, of=stem_of(module.path)
    )
