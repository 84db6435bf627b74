"""One Python file as everybody here sees it: bytes, text, lines, syntax tree, one walk into buckets, imports, suppressions."""

from __future__ import annotations

import ast
import io
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, wraps
from typing import TypeVar

from codemods.api.findings import Span
from codemods.files.nodes import (
    FunctionNode,
    called_name,
    child_nodes,
    ends_above,
    line_of,
    parents_and_kinds,
    stands_above,
    walk,
    walk_block,
    walk_scope,
)
from codemods.files.reading import BOM, Unreadable, decode, parse_text
from codemods.files.spelling import own_names, unify
from codemods.files.star_names import APART, BROUGHT
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record

# What most of the catalogue asks of a file, under one name.
__all__ = [
    "BOM", "FunctionNode", "Import", "SourceModule", "Suppression", "Unreadable", "called_name", "child_nodes", "decode",
    "ends_above", "line_of", "once_a_module", "parse_text", "stands_above", "suppression_in", "walk", "walk_block", "walk_scope",
]  # fmt: skip

_SUPPRESSION = lazy(r"#\s*ddpfix:\s*(ignore(?:-file)?)\s*(?:\[([^\]]*)\])?\s*(.*)")

N = TypeVar("N", bound=ast.AST)
T = TypeVar("T")
M = TypeVar("M", bound="SourceModule")


@record
class Suppression:
    """A `# ddpfix: ignore[...] reason` comment. No codes: it is not accepted as one. `whole_file` for ignore-file."""

    line: int
    codes: tuple[str, ...]
    reason: str
    whole_file: bool
    span: Span


@record
class Import:
    """What a name was imported as: `module` (with its leading dots) and `name` in it, or "" for the module itself."""

    module: str
    name: str
    node: ast.Import | ast.ImportFrom

    @property
    def dotted(self) -> str:
        if not self.name:
            return self.module
        return self.module + self.name if self.module.endswith(".") else f"{self.module}.{self.name}"


def brought_by_stars(stars: Sequence[Import], data: bytes) -> Iterator[tuple[str, Import]]:
    """The names that known packages bring by `import *`, as far as the file holds them and no later star may bring another."""
    for i, star in enumerate(stars):
        if all(later.module.partition(".")[0] in APART for later in stars[i + 1 :]):
            for name in sorted(BROUGHT.get(star.module, ())):
                if name.encode() in data:
                    yield name, Import(star.module, name, star.node)


def suppression_in(comment: str, line: int, column: int) -> Suppression | None:
    """The suppression that a comment, which begins at that place, holds."""
    match = _SUPPRESSION.search(comment)
    if match is None:
        return None
    kind, codes, reason = match.groups()
    names = tuple(c.strip() for c in (codes or "").split(",") if c.strip())
    return Suppression(line, names, reason.strip(), kind == "ignore-file", Span(line, column, line, column + len(comment)))


def once_a_module(build: Callable[[M], T]) -> Callable[[M], T]:
    """`build`, whose answer for a module is kept as long as the module is."""

    def known(module: M) -> T:
        memo = module._memo
        if build not in memo:
            memo[build] = build(module)
        return memo[build]  # type: ignore[return-value]

    return wraps(build)(known)


class SourceModule:
    """A parsed Python file.

    path: relative to the project's root, posix. data: the bytes as they are. Raises Unreadable when they cannot be read.
    Nodes are those of the standard library's `ast`; `span` turns their byte columns into characters.
    """

    def __init__(self, path: str, data: bytes) -> None:
        self.path, self.data = path, data
        self._held: dict[bytes, bool] = {}
        self._memo: dict[object, object] = {}
        self.text, self.encoding, self.mark = decode(path, data)
        self.tree = self._parse()
        self._ascii = self.text.isascii()
        self._index()
        self.own_objects = unify(self)  # what methods call their object where they do not say `self`

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.path!r})"

    def _parse(self) -> ast.Module:
        return parse_text(self.path, self.text)

    def _index(self) -> None:
        self._methods: dict[ast.ClassDef, dict[str, FunctionNode]] = {}
        self._parents, self._buckets = parents_and_kinds(self.tree)
        self._functions: dict[ast.AST, FunctionNode | None] = {}

    def holds(self, word: bytes) -> bool:
        """True if the bytes hold `word`; asked of every node of a file, so it is remembered."""
        known = self._held.get(word)
        if known is None:
            known = self._held[word] = word in self.data or word in self._own_names
        return known

    @cached_property
    def _own_names(self) -> bytes:
        return own_names(self.data)

    def nodes(self, cls: type[N]) -> list[N]:
        """All nodes of exactly this class, in source order."""
        return self._buckets.get(cls, [])  # type: ignore[return-value]

    def buckets(self) -> Iterator[tuple[type[ast.AST], list[ast.AST]]]:
        """Every class of node that occurs, with its nodes in source order."""
        return iter(self._buckets.items())

    @cached_property
    def functions(self) -> list[FunctionNode]:
        found: list[FunctionNode] = [*self.nodes(ast.FunctionDef), *self.nodes(ast.AsyncFunctionDef)]
        return sorted(found, key=lambda f: (f.lineno, f.col_offset))

    @cached_property
    def _calls(self) -> dict[str, list[ast.Call]]:
        out: dict[str, list[ast.Call]] = {}
        for call in self.nodes(ast.Call):
            out.setdefault(called_name(call), []).append(call)
        for name, own in self._other_names.items():
            out.setdefault(own, []).extend(call for call in out.get(name, ()) if isinstance(call.func, ast.Name))
        return out

    @cached_property
    def _other_names(self) -> dict[str, str]:
        """The names that `from` imports give to what has another one: `from m import f as g` -> `g: f`."""
        aliases = (alias for node in self.nodes(ast.ImportFrom) for alias in node.names)
        return {alias.asname: alias.name for alias in aliases if alias.asname and alias.asname != alias.name}

    def calls_named(self, *names: str) -> list[ast.Call]:
        """Calls whose function's last name is one of `names`: `log` finds `self.log(...)`, `log(...)`, and what a `from` import
        brings under another name.
        """
        if len(names) == 1:
            return self._calls.get(names[0], [])[:]
        found = dict.fromkeys(call for name in names for call in self._calls.get(name, ()))
        return sorted(found, key=lambda c: (c.lineno, c.col_offset))

    @cached_property
    def _reads(self) -> dict[str, list[ast.Name | ast.Attribute]]:
        out: dict[str, list[ast.Name | ast.Attribute]] = {}
        for name in self.nodes(ast.Name):
            if name.ctx.__class__ is ast.Load:
                out.setdefault(name.id, []).append(name)
        for attribute in self.nodes(ast.Attribute):
            if attribute.ctx.__class__ is ast.Load:
                out.setdefault(attribute.attr, []).append(attribute)
        return out

    def reads_of(self, name: str) -> list[ast.Name | ast.Attribute]:
        """Where the name, or an attribute of that name, is read: names first."""
        return self._reads.get(name, [])

    # Relations

    def parent(self, node: ast.AST) -> ast.AST | None:
        return self._parents.get(node)

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """From the parent outward to the module."""
        up = self._parents.get(node)
        while up is not None:
            yield up
            up = self._parents.get(up)

    def statement_of(self, node: ast.AST) -> ast.stmt:
        """The innermost statement that holds `node`, or `node` itself."""
        if isinstance(node, ast.stmt):
            return node
        return next(up for up in self.ancestors(node) if isinstance(up, ast.stmt))

    def function_of(self, node: ast.AST) -> FunctionNode | None:
        """The innermost `def` round `node`, not `node` itself. A lambda is passed over."""
        known = self._functions
        if node in known:
            return known[node]
        up, parents, passed = self._parents.get(node), self._parents, [node]
        while up is not None and not isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if up in known:
                up = known[up]
                break
            passed.append(up)
            up = parents.get(up)
        for below in passed:
            known[below] = up
        return up

    def class_of(self, node: ast.AST) -> ast.ClassDef | None:
        """The innermost class round `node`, not `node` itself."""
        return next((up for up in self.ancestors(node) if isinstance(up, ast.ClassDef)), None)

    def method_of(self, node: ast.AST) -> tuple[ast.ClassDef, FunctionNode] | None:
        """The class and the method (a direct child of the class) that `node` stands in, nested functions included."""
        below: ast.AST = node
        for up in self.ancestors(node):
            if isinstance(up, ast.ClassDef) and isinstance(below, (ast.FunctionDef, ast.AsyncFunctionDef)):
                return up, below
            below = up
        return None

    def methods_of(self, owner: ast.ClassDef) -> dict[str, FunctionNode]:
        """Methods of a class by name, the last definition winning, as at run time."""
        found = self._methods.get(owner)
        if found is None:
            functions = [f for f in owner.body if isinstance(f, (ast.FunctionDef, ast.AsyncFunctionDef))]
            found = self._methods[owner] = {f.name: f for f in functions}
        return found

    def block_of(self, statement: ast.stmt) -> list[ast.stmt]:
        """The statement list that `statement` is an element of."""
        owner = self._parents[statement]
        for name in ("body", "orelse", "finalbody"):
            block = getattr(owner, name, None)
            if isinstance(block, list) and any(s is statement for s in block):
                return block
        raise ValueError(f"{type(owner).__name__} holds no such statement")

    def blocks(self) -> Iterator[tuple[ast.AST, list[ast.stmt]]]:
        """Each owner of statements (a statement, an `except`, a `case`; not the module) with each list it owns."""
        for cls, nodes in self._buckets.items():
            if issubclass(cls, (ast.stmt, ast.ExceptHandler, ast.match_case)):
                for node in nodes:
                    for name in ("body", "orelse", "finalbody"):
                        block = getattr(node, name, None)
                        if isinstance(block, list) and block:
                            yield node, block

    def symbol(self, node: ast.AST) -> str:
        """The dotted name of the class and function round `node` (or of `node`), "" at module level."""
        named = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        chain = [node, *self.ancestors(node)]
        return ".".join(reversed([n.name for n in chain if isinstance(n, named)]))

    # Text

    @cached_property
    def lines(self) -> list[str]:
        """Lines with their ends, broken as Python breaks them: at \\n, \\r\\n and \\r only."""
        return io.StringIO(self.text, newline="").readlines()

    def _characters(self, line: int, byte_column: int) -> int:
        if self._ascii:
            return byte_column
        return len(self.lines[line - 1].encode("utf-8", "surrogatepass")[:byte_column].decode("utf-8", "surrogatepass"))

    def span(self, node: ast.AST) -> Span:
        """Where `node` stands. Parentheses round an expression are not part of it; nor are decorators of a `def`."""
        line, end = node.lineno, node.end_lineno  # type: ignore[attr-defined]
        return Span(
            line,
            self._characters(line, node.col_offset),  # type: ignore[attr-defined]
            end,
            self._characters(end, node.end_col_offset),  # type: ignore[attr-defined]
        )

    def text_at(self, span: Span) -> str:
        lines = self.lines[span.line - 1 : span.end_line]
        if not lines:
            return ""
        if len(lines) == 1:
            return lines[0][span.column : span.end_column]
        return "".join([lines[0][span.column :], *lines[1:-1], lines[-1][: span.end_column]])

    def text_of(self, node: ast.AST) -> str:
        return self.text_at(self.span(node))

    def is_whole(self, statement: ast.stmt) -> bool:
        """True if the writer can change the statement for itself: it is no `elif`, and shares its lines with nothing but
        statements of its own block (`a(); b()`, `if x: a()`) and a comment.
        """
        span = self.span(statement)
        if isinstance(statement, ast.If) and self.text_at(span).startswith("elif"):
            return False
        head = self.lines[span.line - 1][: span.column].rstrip()
        tail = self.lines[span.end_line - 1][span.end_column :].lstrip()
        if tail and not tail.startswith((";", "#")):
            return tail.startswith("\\") and not tail[1:].strip()
        return not head or head.endswith((";", ":"))

    # Imports

    @cached_property
    def imports(self) -> dict[str, list[Import]]:
        """Bound name -> what it was imported as; several where a `try` or an `if` offers several. Without what a class hides."""
        out: dict[str, list[Import]] = {}
        for node in self.nodes(ast.Import):
            for alias in node.names:
                if alias.asname:
                    out.setdefault(alias.asname, []).append(Import(alias.name, "", node))
                else:
                    root = alias.name.partition(".")[0]
                    out.setdefault(root, []).append(Import(root, "", node))
        for source in self.nodes(ast.ImportFrom):
            module = "." * source.level + (source.module or "")
            for alias in source.names:
                out.setdefault(alias.asname or alias.name, []).append(Import(module, alias.name, source))
        if "*" in out:
            for name, brought in brought_by_stars(out["*"], self.data):
                out.setdefault(name, [brought])
        for own in self.tree.body:
            if isinstance(own, ast.ClassDef) and own.name in out and self._is_hidden(own, out[own.name]):
                del out[own.name]
        return out

    def _is_hidden(self, own: ast.ClassDef, imports: list[Import]) -> bool:
        """True for a class below the import of its name that is no heir of it: whoever reads the name means the class."""
        heirs = any(isinstance(n, ast.Name) and n.id == own.name for base in own.bases for n in walk(base))
        return not heirs and all(i.node.lineno < own.lineno for i in imports)

    @cached_property
    def imported_modules(self) -> frozenset[str]:
        """Every module that any import statement names, relative ones with their dots."""
        plain = {a.name for node in self.nodes(ast.Import) for a in node.names}
        return frozenset(plain | {"." * n.level + (n.module or "") for n in self.nodes(ast.ImportFrom)})

    # Suppressions

    @cached_property
    def suppressions(self) -> Sequence[Suppression]:
        """The `# ddpfix: ignore[...]` comments; tokenised only where the word occurs."""
        if "ddpfix:" not in self.text:
            return ()
        import tokenize

        found = []
        try:
            for token in tokenize.generate_tokens(io.StringIO(self.text, newline=None).readline):
                if token.type == tokenize.COMMENT and (made := suppression_in(token.string, *token.start)):
                    found.append(made)
        except (tokenize.TokenError, SyntaxError):  # the tree was read, so only an odd ending is left
            pass
        return tuple(found)
