"""The import planner: the name a file can use for something, and the import statement it takes to have it. On `ast` only.

A name of a module from which a `from` import brings others in goes into that one. A new import goes beside the one that brought
its flavour in, inside the same `try` or `if`, so it never runs before a statement with a side effect that stood above, and never
past the guard of an optional dependency; in a sorted block where isort would put it.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable

from codemods.analysis.names import family
from codemods.analysis.positions import behind
from codemods.api.findings import Edit, ExtendImport, NeedImport
from codemods.files.source import Import, SourceModule, once_a_module
from codemods.files.text_file import NOTEBOOK
from codemods.runtime.record import record


@record
class Planned:
    """The name to write, and the edits that make it known: none where it already is."""

    name: str
    edits: tuple[Edit, ...] = ()


def in_scope(module: SourceModule, is_wanted: Callable[[str], bool]) -> str | None:
    """A module-level name whose every import `is_wanted`, under any alias."""
    for name, found in module.imports.items():
        if all(is_wanted(i.dotted) and runs_at_import(module, i.node) for i in found):
            return name
    return None


def runs_at_import(module: SourceModule, node: ast.AST) -> bool:
    """True where the statement runs when the module is imported: not in a function, not for type checkers or scripts only."""
    for up in module.ancestors(node):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return False
        if isinstance(up, ast.If) and any(word in module.text_of(up.test) for word in ("TYPE_CHECKING", "__name__")):
            return False
    return True


@once_a_module
def plan_rank_zero_only(module: SourceModule) -> Planned | None:
    """`rank_zero_only` of Lightning, in the flavour this file imports; None where no import of it shows a flavour.

    `pytorch_lightning.utilities` and `lightning.pytorch.utilities` both re-export it in every version that has the package.
    """
    if name := in_scope(module, lambda dotted: dotted.endswith(".rank_zero_only")):
        return Planned(name)
    if _is_bound(module, "rank_zero_only"):
        return None
    return plan_beside(module, "lightning", lambda flavour: (f"{flavour}.utilities", "rank_zero_only"))


def lightning_flavour(dotted: str) -> str:
    """The package whose names must be used together: `lightning.pytorch` or `pytorch_lightning`."""
    return "pytorch_lightning" if dotted.startswith("pytorch_lightning") else "lightning.pytorch"


def plan_beside(module: SourceModule, root: str, spell: Callable[[str], tuple[str, str]]) -> Planned | None:
    """A new `from … import …` beside the file's imports of the framework `root`; one in each branch of a `try`."""
    brought: list[Import] = []
    for found in module.imports.values():
        brought += [i for i in found if family(i.dotted) == root and runs_at_import(module, i.node)]
    if not brought:
        return None
    by_branch: dict[int, list[Import]] = {}
    for item in sorted(brought, key=lambda i: i.node.lineno):
        by_branch.setdefault(id(module.block_of(item.node)), []).append(item)
    top = [group for group in by_branch.values() if isinstance(module.parent(group[0].node), ast.Module)]
    groups = top[:1] or list(by_branch.values())
    name = ""
    edits: list[Edit] = []
    for group in groups:
        source, name = spell(lightning_flavour(group[0].dotted))
        if (same := _from_the_same(module, group, source)) is not None:
            edits.append(ExtendImport(module.path, module.span(same), name))
            continue
        anchor, before = _sorted_place(module, group, source)
        code = f"from {source} import {name}{_pardon(module, anchor)}"
        edits.append(NeedImport(module.path, module.span(anchor), code, before=before))
    return Planned(name, tuple(edits))


def _pardon(module: SourceModule, beside: ast.stmt) -> str:
    """The comment by which a linter lets the import `beside` stand below other code: the new one stands there, too."""
    span = module.span(beside)
    rest = module.lines[span.end_line - 1][span.end_column :]
    return "  # noqa: E402" if re.search(r"#\s*noqa:[\s\w,]*\bE402\b", rest) else ""


def _from_the_same(module: SourceModule, group: list[Import], source: str) -> ast.ImportFrom | None:
    """The `from source import …` that can take one name more."""
    for item in group:
        if isinstance(item.node, ast.ImportFrom) and item.module == source and _takes_more(module, item.node):
            return item.node
    return None


def _takes_more(module: SourceModule, statement: ast.ImportFrom) -> bool:
    """False for an import that holds comments, or goes on behind a backslash."""
    return not any(c in module.text_of(statement) for c in "#\\*")


def _sorted_place(module: SourceModule, group: list[Import], source: str) -> tuple[ast.stmt, bool]:
    """The statement behind which (True: in front of which) `from source import` keeps a sorted block sorted: plain imports
    first, then by module.
    """
    key = source.lower()
    fromwise = [i for i in group if isinstance(i.node, ast.ImportFrom)]
    if smaller := [i.node for i in fromwise if i.module.lower() <= key]:
        return smaller[-1], False
    place: ast.stmt = group[0].node
    if fromwise and place is fromwise[0].node:
        return place, True
    for statement in behind(module, place) if isinstance(place, ast.Import) else ():
        plain = isinstance(statement, ast.Import) and isinstance(place, ast.Import)
        sorted_in = isinstance(statement, ast.ImportFrom) and not statement.level and (statement.module or "").lower() <= key
        if statement.lineno != (place.end_lineno or place.lineno) + 1 or not (plain or sorted_in):
            break
        place = statement
    return place, False


def plan_plain(module: SourceModule, source: str) -> Planned | None:
    """`import a.b` for a module that may be imported under an alias; a new one stands in its place among those of its kind, else
    behind the last top import.

    None where the file gives its root another meaning.
    """
    if name := in_scope(module, lambda dotted: dotted == source):
        return Planned(name)
    root = source.partition(".")[0]
    if any(i.dotted != root for i in module.imports.get(root, ())) or _is_assigned(module, root):
        return None
    if any(a.name == source and not a.asname and runs_at_import(module, n) for n in module.nodes(ast.Import) for a in n.names):
        return Planned(source)
    code = f"import {source}"
    if (place := _among_its_kind(module, source)) is not None:
        return Planned(source, (NeedImport(module.path, module.span(place[0]), code, before=place[1]),))
    anchor = last_top_import(module) or next((s for s in module.tree.body if not _is_docstring(s)), None)
    if anchor is None:
        docstring = module.tree.body[-1:]
        return Planned(source, tuple(NeedImport(module.path, module.span(s), code) for s in docstring)) if docstring else None
    before = not isinstance(anchor, (ast.Import, ast.ImportFrom))
    return Planned(source, (NeedImport(module.path, module.span(anchor), code, before=before),))


def plan_statement(module: SourceModule, code: str, source: str) -> tuple[Edit, ...]:
    """The import statement `code`, which brings in what `source` has, at the place that `plan_plain` gives a plain one."""
    if code.startswith("from "):
        same = [n for n in module.nodes(ast.ImportFrom) if "." * n.level + (n.module or "") == source]
        takes = [n for n in same if runs_at_import(module, n) and _takes_more(module, n)]
        if takes:
            return (ExtendImport(module.path, module.span(takes[0]), code.partition(" import ")[2]),)
    anchor, before = _among_its_kind(module, source) or (last_top_import(module), False)
    if anchor is None:
        return ()
    return (NeedImport(module.path, module.span(anchor), code, before=before),)


def _among_its_kind(module: SourceModule, source: str) -> tuple[ast.stmt, bool] | None:
    """As `_sorted_place`, in the first block of imports that holds one of the same package, or of the standard library."""
    root = source.partition(".")[0]
    kin = sys.stdlib_module_names if root in sys.stdlib_module_names else {root}
    for block in _import_blocks(module):
        roots = {name.partition(".")[0] for s in block for name in _modules_of(s)}
        if roots.isdisjoint(kin) or not all(module.is_whole(s) for s in block):
            continue
        plain = [s for s in block if isinstance(s, ast.Import)]
        smaller = [s for s in plain if s.names[0].name.lower() <= source.lower()]
        first = plain[0] if plain else block[0]
        return (smaller[-1], False) if smaller else (first, True)
    return None


def _import_blocks(module: SourceModule) -> list[list[ast.stmt]]:
    """The imports at the head of the file, line by line; a gap or a comment begins a new block."""
    out: list[list[ast.stmt]] = []
    last = last_top_import(module)
    for statement in module.tree.body if last is not None else ():
        if isinstance(statement, (ast.Import, ast.ImportFrom)) and _modules_of(statement) != ["__future__"]:
            if out and statement.lineno == (out[-1][-1].end_lineno or 0) + 1:
                out[-1].append(statement)
            else:
                out.append([statement])
        if statement is last:
            break
    return out


def _modules_of(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.ImportFrom):
        return ["." * statement.level + (statement.module or "")]
    return [a.name for a in statement.names] if isinstance(statement, ast.Import) else []


def last_top_import(module: SourceModule) -> ast.stmt | None:
    """The last import of the block at the head of the file; what stands behind other statements does not count.

    In a notebook the block is that of the first cell that imports: above it packages are installed and magics said.
    """
    notebook = module.path.endswith(NOTEBOOK)
    found: ast.stmt | None = None
    for statement in module.tree.body:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            if notebook and found is not None and _parted(module, found, statement):
                break
            found = statement
        elif found is not None or not (notebook or _is_docstring(statement)):
            break
    return found


def _parted(module: SourceModule, one: ast.stmt, other: ast.stmt) -> bool:
    """True where a cell ends between two statements: lines begin with what marks its end."""
    return any(line.startswith("#= ") for line in module.lines[one.lineno : other.lineno])


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _is_bound(module: SourceModule, name: str) -> bool:
    """True where the file defines or assigns `name` itself, or imports it as something else."""
    return name in module.imports or _is_assigned(module, name)


def _is_assigned(module: SourceModule, name: str) -> bool:
    if any(f.name == name for f in module.functions) or any(c.name == name for c in module.nodes(ast.ClassDef)):
        return True
    return any(n.id == name and isinstance(n.ctx, ast.Store) for n in module.nodes(ast.Name))
