"""The functions of a file that write, rename or delete files, told by the names of what they call."""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from codemods.analysis.names import dotted, last
from codemods.files.sites import Site
from codemods.files.source import FunctionNode, SourceModule, once_a_module
from codemods.store.project import Project

# The rest of a call that ends in its line and names no mode that writes: a mode that is no literal is known to nobody.
_NO_MODE = rb"(?![rbt]*[wax+][rbt+]*[\"'])"
_OPENED_TO_READ = (
    rb"(?:[^\n()\"']|\"" + _NO_MODE + rb"[^\"\n]*\"|'" + _NO_MODE + rb"[^'\n]*'|\((?:[^\n()]|\([^\n()]*\))*\))*\)"
)
# a call of such a name, not its definition; saving checkpoints and hyperparameters is every rank's business in Lightning;
# tensors are copied in place, and lists have a `remove`
WRITES = Site(
    rb"(?<!def )\b(?!(?:on_)?save_checkpoint\b|save_hyperparameters\b|Popen\b|dumps\b|safe_open\b|is_open|remove_duplicate"
    rb"|remove(?:pre|suf)fix\(|\w*copy_\(|deepcopy\(|copy\(\)|(?<=\.)remove\()\w*"
    rb"(?:(?:save|dump|writ|to_(?:csv|json|excel|parquet|pickle|feather|hdf|html)|tofile|remove|rmtree|make_archive|rename"
    rb"|unlink|copy|move)\w*\(|open\w*\("
    rb"(?!" + _OPENED_TO_READ + rb"))|\bshutil\.(?!which\b)|\bos\.remove\("
    rb"|\b(?:Timed)?RotatingFileHandler\("
    rb"|\bFileHandler\((?:[^\n]*(?:[\"']w[+bt]*[\"']|mode=\w|,[ ]*\w+\))|[ \t]*\r?\n)|\bfilemode\s*=\s*(?:[\"']w|[a-z])"
    rb"|\(f?[\"']rm -|[\"']rm[\"'],",
    b"open", b"save", b"dump", b"writ", b"to_csv", b"to_json", b"to_excel", b"to_parquet", b"to_pickle", b"to_feather",
    b"to_hdf", b"to_html", b"tofile", b"remove", b"rmtree", b"make_archive", b"rename", b"unlink", b"copy",
    b"move", b"shutil", b"FileHandler", b"filemode", b"rm -", b'"rm"', b"'rm'",
)  # fmt: skip


def writes_below(project: Project, module: SourceModule, function: FunctionNode) -> bool:
    """False for a function that can put no file out: it calls nothing of such a name, here or in what it calls for nothing."""
    return id(function) in _writing(module) or id(function) in _calling(project, module)


def _calling(project: Project, module: SourceModule) -> frozenset[int]:
    """The functions that call, for nothing, one of this file that writes or one that another file of the project may hold."""
    return project.memo(("calling for nothing", module.path), lambda: frozenset(_find_calling(project, module)))


def _find_calling(project: Project, module: SourceModule) -> Iterator[int]:
    names = {f.name for f in module.functions if id(f) in _writing(module)}
    near = {root for root, found in module.imports.items() if any(project.resolve(i.dotted, module.path) for i in found)}
    for node in module.nodes(ast.Expr):
        if isinstance(node.value, ast.Call):
            called = dotted(node.value.func)
            if last(called) in names or not called or called.partition(".")[0] in near:
                yield from (id(up) for up in module.ancestors(node) if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)))


@once_a_module
def _writing(module: SourceModule) -> frozenset[int]:
    """The functions that hold a call by whose name files are written, by id."""
    lines = list(WRITES.lines(module.data))
    found = (f for f in module.functions if bisect_left(lines, f.lineno) < bisect_right(lines, f.end_lineno or f.lineno))
    return frozenset(id(f) for f in found)
