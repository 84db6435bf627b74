"""Every reference to a name in the repository: exact scopes in Python, whole words in every other text file."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator

from codemods.analysis.names import dotted
from codemods.analysis.unbound_names import names_outside
from codemods.files.import_statements import stem_of
from codemods.files.source import FunctionNode, SourceModule, child_nodes, walk
from codemods.files.text_file import BINARY_KINDS
from codemods.runtime.record import record
from codemods.store.project import Project

Scope = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef | ast.expr

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_DEPTH = 4  # star imports from file to file
_SCOPES = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, *_COMPREHENSIONS)


@record
class Mention:
    """A place that names something. kind: use, import, unbound, string, comment, text (no Python file), unreadable.

    unbound: a file reads the name and nothing binds it there. What is missing may be the import of this one.
    """

    kind: str
    path: str
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}" if self.line else self.path


# Scopes


def binding_scope(module: SourceModule, name: ast.Name) -> ast.AST:
    """The scope that gives `name` its value: a function, class, lambda or comprehension, or the module (builtins too)."""
    return _scope_of_word(module, name, name.id)


def _scope_of_word(module: SourceModule, node: ast.AST, word: str) -> ast.AST:
    inner, below, start = node, node, True
    for up in module.ancestors(node):
        if isinstance(up, _SCOPES):
            outside = _evaluated_outside(up, below, inner)
            visible = start or not isinstance(up, ast.ClassDef)  # methods do not see the names of their class
            if not outside:
                if isinstance(up, ast.Module) or (visible and binds(up, word)):
                    return up
                start = False
        inner, below = below, up
    return module.tree


def _evaluated_outside(scope: ast.AST, child: ast.AST, grandchild: ast.AST) -> bool:
    """True where part of a scope is evaluated by the scope round it: defaults, decorators, bases, the first iterable."""
    if isinstance(scope, _COMPREHENSIONS):
        first = scope.generators[0]
        return child is first and grandchild is first.iter
    if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return not any(s is child for s in scope.body)
    if isinstance(scope, ast.ClassDef):
        return not any(s is child for s in scope.body)
    return isinstance(scope, ast.Lambda) and child is scope.args


def binds(scope: ast.AST, word: str) -> bool:
    """True where the scope itself gives `word` a value."""
    if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        a = scope.args
        if any(arg.arg == word for arg in (*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg)))):
            return True
    bound = False
    for node in _own_nodes(scope):
        if isinstance(node, (ast.Global, ast.Nonlocal)) and word in node.names:
            return False
        bound = bound or _binds_here(node, word)
    return bound


def _binds_here(node: ast.AST, word: str) -> bool:
    if isinstance(node, ast.Name):
        return node.id == word and not isinstance(node.ctx, ast.Load)
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return node.name == word
    if isinstance(node, ast.alias):
        return (node.asname or node.name.partition(".")[0]) == word
    if isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)):
        return node.name == word
    return isinstance(node, ast.MatchMapping) and node.rest == word


def _own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a scope without those of the scopes in it; the walrus inside a comprehension belongs to the scope."""
    body = getattr(scope, "body", None)
    stack = list(body) if isinstance(body, list) else child_nodes(scope)
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, _COMPREHENSIONS):
            stack += [w.target for w in walk(node) if isinstance(w, ast.NamedExpr)]
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            stack += node.decorator_list
        elif not isinstance(node, ast.Lambda):
            stack += child_nodes(node)


def names_of(module: SourceModule, word: str, scope: ast.AST) -> list[ast.Name]:
    """Every Name node, read or written, that means the `word` of this scope."""
    return [n for n in module.nodes(ast.Name) if n.id == word and binding_scope(module, n) is scope]


def bindings(module: SourceModule, word: str, scope: ast.AST) -> list[ast.AST]:
    """What gives `word` its value in the scope: definitions, import statements, the statements that assign it, parameters."""
    found: list[ast.AST] = []
    if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        found += [a for a in walk(scope.args) if isinstance(a, ast.arg) and a.arg == word]
    for node in _own_nodes(scope):
        if not isinstance(node, ast.Name) and _binds_here(node, word):
            found.append(module.statement_of(node) if isinstance(node, ast.alias) else node)
    stored = [n for n in names_of(module, word, scope) if not isinstance(n.ctx, ast.Load)]
    return found + [module.statement_of(n) for n in stored]


def inside(module: SourceModule, node: ast.AST, roots: set[ast.AST]) -> bool:
    return node in roots or any(up in roots for up in module.ancestors(node))


# Other files


def in_other_files(project: Project, path: str, word: str) -> list[Mention]:
    """What in other Python files may mean the module-level `word` of the file `path`."""
    return project.memo(("references", path, word), lambda: list(_in_other_files(project, path, word)))


def _in_other_files(project: Project, path: str, word: str) -> Iterator[Mention]:
    for other in project.files_containing(_in_bytes(word)):
        if other == path or not _whole_word(word).search(_text(project, other)):
            continue
        module = project.module(other)
        if module is None:
            yield Mention("unreadable", other, 0)
            continue
        yield from _imported(project, module, path, word)
        yield from _as_attribute(project, module, path, word)
        yield from _unbound(project, module, word)


def _unbound(project: Project, module: SourceModule, word: str) -> Iterator[Mention]:
    if word in module.imports or hasattr(builtins, word):
        return
    reads = [n for n in names_of(module, word, module.tree) if isinstance(n.ctx, ast.Load)]
    if reads and not bindings(module, word, module.tree) and not _star_brings(project, module, word, _DEPTH):
        yield Mention("unbound", module.path, reads[0].lineno)


def _star_brings(project: Project, module: SourceModule, word: str, depth: int) -> bool:
    """True where a star import surely gives the file the word: that of a file of the project which binds it."""
    for star in module.imports.get("*", ()) if not word.startswith("_") else ():
        resolved = project.resolve(star.module, module.path)
        inner = project.module(resolved.path) if resolved is not None and not resolved.rest else None
        if inner is None or inner is module:
            continue
        if word in names_outside(inner, tuple(inner.tree.body)) or (depth and _star_brings(project, inner, word, depth - 1)):
            return True
    return False


def _imported(project: Project, module: SourceModule, path: str, word: str) -> Iterator[Mention]:
    for node in module.nodes(ast.ImportFrom):
        source = "." * node.level + (node.module or "")
        for alias in node.names:
            if alias.name in (word, "*") and _may_lead_to(project, module, source, path):
                if alias.name == word or names_of(module, word, module.tree):
                    yield Mention("import", module.path, node.lineno)


def _as_attribute(project: Project, module: SourceModule, path: str, word: str) -> Iterator[Mention]:
    for node in module.nodes(ast.Attribute):
        if node.attr != word:
            continue
        root = dotted(node.value).partition(".")[0]
        for found in module.imports.get(root, ()):
            prefix = dotted(node.value).partition(".")[2]
            target = f"{found.dotted}.{prefix}" if prefix else found.dotted
            if _may_lead_to(project, module, target, path):
                yield Mention("use", module.path, node.lineno)


def _may_lead_to(project: Project, module: SourceModule, source: str, path: str) -> bool:
    """True where importing from `source` may mean the file `path`: it resolves there, or nowhere and has its name."""
    if resolved := project.resolve(source, module.path):
        return resolved.path == path and not resolved.rest
    return source.lstrip(".").rpartition(".")[2] == stem_of(path)


# Words


def _whole_word(word: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(word)}(?!\w)")


def _in_bytes(word: str) -> bytes:
    """A string of the source may hold half a pair, which no file holds as such: it is then found nowhere."""
    return word.encode("utf-8", "surrogatepass")


def _text(project: Project, path: str) -> str:
    return (project.read_text(path) or b"").decode("utf-8", "replace")


def in_text_files(project: Project, word: str, *, of: str = "") -> list[Mention]:
    """The first place in each non-Python text file that holds the whole word; with `of`, only as `module.word`."""
    return project.memo(("words", word, of), lambda: list(_in_text_files(project, word, of)))


def _in_text_files(project: Project, word: str, of: str) -> Iterator[Mention]:
    pattern = re.compile(rf"(?<!\w){re.escape(of)}[.:]{re.escape(word)}(?!\w)") if of else _whole_word(word)
    for path in sorted(project.files):
        if path.endswith((".py", *BINARY_KINDS)) or _in_bytes(word) not in (project.read_text(path) or b""):
            continue
        text = _text(project, path)
        notebook = path.endswith(".ipynb") and bool(of) and of in text  # code that may import the module
        if found := (_whole_word(word) if notebook else pattern).search(text):
            yield Mention("text", path, text.count("\n", 0, found.start()) + 1)


def in_strings(project: Project, word: str, *, skip: frozenset[ast.AST] = frozenset()) -> list[Mention]:
    """Every string of the project's Python files that holds the whole word, outside the nodes in `skip`."""
    found = []
    for path in project.files_containing(_in_bytes(word)):
        module = project.module(path)
        for node in module.nodes(ast.Constant) if module else ():
            if isinstance(node.value, str) and word in node.value and _whole_word(word).search(node.value):
                assert module is not None
                if not inside(module, node, set(skip)):
                    found.append(Mention("string", path, node.lineno))
    return found


def in_comments(module: SourceModule, word: str, *, skip: frozenset[ast.AST] = frozenset()) -> list[Mention]:
    """Comments of one file that hold the whole word: code taken out of use, which somebody may want back."""
    import io
    import tokenize

    if word not in module.text:
        return []
    hidden = [(first_line_with_comments(module, n), n.end_lineno or 0) for n in skip if isinstance(n, ast.stmt)]
    found = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(module.text, newline="").readline):
            if token.type == tokenize.COMMENT and _whole_word(word).search(token.string):
                if not any(top <= token.start[0] <= end for top, end in hidden):
                    found.append(Mention("comment", module.path, token.start[0]))
    except tokenize.TokenError:  # the tree was read, so only an odd ending is left
        pass
    return found


def first_line_with_comments(module: SourceModule, node: ast.stmt) -> int:
    """The line of a statement's first decorator, or of the comment lines that stand directly on it."""
    line: int = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
    while line > 1 and module.lines[line - 2].lstrip().startswith("#"):
        line -= 1
    return line


def functions_named(module: SourceModule, word: str) -> list[FunctionNode]:
    """Functions of that name that are no methods."""
    return [f for f in module.functions if f.name == word and not isinstance(module.parent(f), ast.ClassDef)]
