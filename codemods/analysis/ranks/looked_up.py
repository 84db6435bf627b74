"""Are functions and classes of a file looked up by their name as a text: by a setting, `getattr(layers, name)`, `globals()`?"""

from __future__ import annotations

import ast
import os
import re

from codemods.analysis.ranks.notebook_users import may_run_several
from codemods.analysis.ranks.registered import names_by_unused_keys
from codemods.analysis.ranks.unused import ELSEWHERE
from codemods.analysis.ranks.uses import MANY_FILES
from codemods.files.import_statements import stem_of
from codemods.files.source import FunctionNode, SourceModule
from codemods.files.text_file import NOTEBOOK
from codemods.store.corpus import uses
from codemods.store.project import Project

_DEFINES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def is_looked_up(
    project: Project, module: SourceModule, node: FunctionNode | ast.ClassDef, *, notebooks: bool = True
) -> bool:
    """True where a setting holds the name, or a string of the Python that may be what it is looked up by.

    A short word stands for many things: a function's name counts where functions are looked up by text at all.
    notebooks: whether one that names it counts too; it is a program of its own.
    """
    name = node.name.encode()
    if node.name == "main":
        return _is_entry(project, module)
    users = project.files_using(node.name, most=MANY_FILES)
    if users is None or _is_set(project, module, name, word=isinstance(node, ast.ClassDef), notebooks=notebooks):
        return True
    bare = isinstance(node, ast.ClassDef) or _is_looked_into(project, module)
    quoted = re.compile((rb"""["'.:]""" if bare else rb"""[.:]""") + re.escape(name) + rb"""["']""")
    held = (path for path in users if quoted.search(project.read(path) or b""))
    return any(_is_spelled(project, module, node, path, bare=bare) for path in held)


def _is_entry(project: Project, module: SourceModule) -> bool:
    """True where a setting or a script names the `main` of this very file: each program has one."""
    stem = re.escape(os.fsencode(stem_of(module.path)))
    named = re.compile(rb"\b%b[.:]main\b|\b%b[ \t]+import\b[^\n]*\bmain\b" % (stem, stem))
    return any(named.search(project.read_text(path) or b"") for path in project.files_containing(b"main", kinds=ELSEWHERE))


def _is_spelled(project: Project, module: SourceModule, node: FunctionNode | ast.ClassDef, path: str, *, bare: bool) -> bool:
    """True where a string of the file may be what a class or a function is looked up by."""
    other = project.module(path)
    if other is None:
        return True
    named = [d for d in other.tree.body if isinstance(d, _DEFINES) and d.name == node.name]  # a text in one of them means itself
    named += [node] if path == module.path and node not in named else []
    own = {line for d in named for line in range(d.lineno, (d.end_lineno or d.lineno) + 1)}
    ends = (f".{node.name}", f":{node.name}")
    for text in other.nodes(ast.Constant):
        value = text.value if isinstance(text.value, str) and text.lineno not in own else ""
        if (value.endswith(ends) or (bare and value == node.name)) and not _is_for_readers(other, text):
            return not (bare and names_by_unused_keys(project, path, node.name))
    return False


def _is_for_readers(module: SourceModule, text: ast.Constant) -> bool:
    """True for a string in an annotation or in `__all__`: nothing is looked up by it."""
    below: ast.AST = text
    for up in module.ancestors(text):
        if isinstance(up, (ast.Assign, ast.AugAssign)):
            targets = up.targets if isinstance(up, ast.Assign) else [up.target]
            return any(isinstance(t, ast.Name) and t.id == "__all__" for t in targets)
        if isinstance(up, (ast.arg, ast.AnnAssign)) and below is up.annotation:
            return True
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return below is up.returns
        below = up
    return False


def _is_set(project: Project, module: SourceModule, name: bytes, *, word: bool, notebooks: bool) -> bool:
    """True where a setting, a notebook or a shell script speaks of it. word: the name alone is enough, as a class's is.

    `nets.old.Net` in a setting is no `Net` of another file. Nothing of a notebook is to be had from outside.
    """
    if module.path.endswith(NOTEBOOK):
        return False
    paths = [p for p in project.files_containing(name, kinds=ELSEWHERE) if _may_have_it_run(project, p, name.decode())]
    paths = [p for p in paths if notebooks or not p.endswith(NOTEBOOK)]
    if word:
        return any(_speaks_of(project, project.read_text(p) or b"", module, name) for p in paths)
    word_of = re.escape(name)
    spoken = re.compile(rb"\w[.:]%b\b|\b%b\(|\bimport\b[^\n]*\b%b\b" % (word_of, word_of, word_of))
    return any(spoken.search(project.read_text(path) or b"") for path in paths)


def _may_have_it_run(project: Project, path: str, name: str) -> bool:
    """False for a notebook of one process: what it names is run by that alone."""
    return not path.endswith(NOTEBOOK) or may_run_several(project, path, name)


def _speaks_of(project: Project, data: bytes, module: SourceModule, name: bytes) -> bool:
    if not uses(data, name) or _has_it_from_a_package(project, data, module, name):
        return False
    home = "/" + module.path.removesuffix(".py").removesuffix("/__init__") + "/"
    for found in re.finditer(rb"(?:target_?|class_path|_target_)[\"']?:[ \t]*[\"']?([\w.]+)\." + re.escape(name) + rb"\b", data):
        if "/" + found[1].decode().strip(".").replace(".", "/") + "/" in home:  # a package may hand on what a file of it has
            return True
        data = data.replace(found[0], b"")
    return uses(data, name)


def _has_it_from_a_package(project: Project, data: bytes, module: SourceModule, name: bytes) -> bool:
    """True for a notebook or a text that imports the name, and each time from what is no part of the project."""
    found = re.findall(rb"\bfrom[ \t]+([\w.]+)[ \t]+import\b[^\n]*\b" + re.escape(name) + rb"\b", data)
    sources = {source.decode() for source in found}
    return bool(sources) and not any(s.startswith(".") or project.resolve(s, module.path) is not None for s in sources)


def _is_looked_into(project: Project, module: SourceModule) -> bool:
    """True where functions of the file may be looked up by text: `globals()`, `import_module`, `getattr(module, name)`."""
    if module.holds(b"globals()") or module.holds(b"__name__]") or project.files_containing(b"import_module("):
        return True
    stem = os.fsencode(stem_of(module.path))
    fetched = re.compile(rb"getattr\(\s*(?:\w+\.)*" + re.escape(stem) + rb"\s*,")
    return any(fetched.search(project.read(path) or b"") for path in project.files_containing(b"getattr("))
