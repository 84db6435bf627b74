"""One Python file as everybody here sees it: bytes, text, lines, syntax tree, one walk into buckets, imports, suppressions."""

from __future__ import annotations

import ast
import io
import re
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, wraps
from typing import Any, TypeVar

from codemods.api.findings import Span
from codemods.files.spelling import own_names, unify
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record

BOM = b"\xef\xbb\xbf"
# PEP 263: a cookie stands in the first or second line.
_COOKIE = lazy(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)", re.ASCII)
_SUPPRESSION = lazy(r"#\s*ddpfix:\s*(ignore(?:-file)?)\s*(?:\[([^\]]*)\])?\s*(.*)")

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
N = TypeVar("N", bound=ast.AST)
T = TypeVar("T")
M = TypeVar("M", bound="SourceModule")


class Unreadable(Exception):
    """A file that cannot be analysed. `reason` is one line for the user."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path, self.reason = path, reason

    def __reduce__(self) -> tuple[type[Unreadable], tuple[str, str]]:
        return Unreadable, (self.path, self.reason)


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


_LEAVES = frozenset({"ctx", "id", "attr", "arg", "n", "s", "kind", "type_comment", "level", "lineno", "op", "ops", "is_async"})
_CHILDLESS = (ast.Name, ast.Constant, ast.alias, ast.Pass, ast.Break, ast.Continue, ast.Global, ast.Nonlocal, ast.MatchSingleton)
_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar)  # `name` is a text


def _node_fields(cls: type[ast.AST]) -> tuple[str, ...]:
    """The fields that can hold nodes: those that hold texts and numbers are half of all, and asked for in vain."""
    if issubclass(cls, _CHILDLESS):
        return ()
    texts = _LEAVES | {"name"} if issubclass(cls, _NAMED) else _LEAVES
    texts = texts | {"module"} if issubclass(cls, ast.ImportFrom) else texts
    return tuple(f for f in cls._fields if f not in texts)


_FIELDS: dict[type[ast.AST], tuple[str, ...]] = {}


# What nine of ten nodes are, each in one expression: reading their fields by name takes three times as long.
_SHORT: dict[type[ast.AST], Callable[[Any], list[ast.AST]]] = {
    ast.Attribute: lambda n: [n.value],
    ast.Call: lambda n: [n.func, *n.args, *n.keywords],
    ast.Expr: lambda n: [n.value],
    ast.keyword: lambda n: [n.value],
    ast.Starred: lambda n: [n.value],
    ast.Assign: lambda n: [*n.targets, n.value],
    ast.Subscript: lambda n: [n.value, n.slice],
    ast.BinOp: lambda n: [n.left, n.right],
    ast.UnaryOp: lambda n: [n.operand],
    ast.BoolOp: lambda n: n.values[:],
    ast.Compare: lambda n: [n.left, *n.comparators],
    ast.Tuple: lambda n: n.elts[:],
    ast.List: lambda n: n.elts[:],
    ast.JoinedStr: lambda n: n.values[:],
    ast.arg: lambda n: [n.annotation] if n.annotation is not None else [],
    ast.Return: lambda n: [n.value] if n.value is not None else [],
    ast.If: lambda n: [n.test, *n.body, *n.orelse],
    ast.For: lambda n: [n.target, n.iter, *n.body, *n.orelse],
    ast.With: lambda n: [*n.items, *n.body],
    ast.IfExp: lambda n: [n.test, n.body, n.orelse],
    ast.ListComp: lambda n: [n.elt, *n.generators],
    ast.comprehension: lambda n: [n.target, n.iter, *n.ifs],
    ast.FormattedValue: lambda n: [n.value, n.format_spec] if n.format_spec is not None else [n.value],
    ast.arguments: lambda n: [
        *n.posonlyargs, *n.args, *([n.vararg] if n.vararg else ()), *n.kwonlyargs, *filter(None, n.kw_defaults),
        *([n.kwarg] if n.kwarg else ()), *n.defaults,
    ],
    **dict.fromkeys(_CHILDLESS, lambda n: []),
}


def child_nodes(node: ast.AST) -> list[ast.AST]:
    """The direct children in source order of their fields, without operators and contexts."""
    short = _SHORT.get(node.__class__)
    return short(node) if short is not None else _children(node)


def _children(node: ast.AST) -> list[ast.AST]:
    cls = node.__class__
    fields = _FIELDS.get(cls)
    if fields is None:
        fields = _FIELDS[cls] = _node_fields(cls)
    out: list[ast.AST] = []
    for name in fields:
        value = getattr(node, name, None)
        if value.__class__ is list:
            if value:
                out += value if isinstance(value[0], ast.stmt) else [v for v in value if isinstance(v, ast.AST)]
        elif value is not None and isinstance(value, ast.AST):
            out.append(value)
    return out


_SCOPES = frozenset({ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef})


def line_of(node: ast.AST) -> int:
    """The line in which a statement, an expression or anything else that has a place begins."""
    line: int = getattr(node, "lineno", 0)
    return line


def called_name(call: ast.Call) -> str:
    """The last name of what is called: `append` for `rows[0].append(x)`; "" where that is no name."""
    func = call.func
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""


def stands_above(one: ast.AST, other: ast.AST) -> bool:
    """True where `one` begins in an earlier line than `other`, or ends before it in the same line (`a(); b()`)."""
    first, then = line_of(one), line_of(other)
    if first != then:
        return first < then
    return ends_above(one, other)


def ends_above(one: ast.AST, other: ast.AST) -> bool:
    """True where `one` ends before `other` begins."""
    ends = getattr(one, "end_lineno", 0), getattr(one, "end_col_offset", 0)
    return ends <= (line_of(other), getattr(other, "col_offset", 0))


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """Every node below and including `node`, parents first, in source order; iterative, so depth does not matter."""
    stack = [node]
    while stack:
        top = stack.pop()
        yield top
        short = _SHORT.get(top.__class__)
        children = short(top) if short is not None else _children(top)
        if children:
            children.reverse()
            stack += children


def walk_scope(node: ast.AST) -> Iterator[ast.AST]:
    """Like `walk`, but does not enter functions, lambdas and classes below `node`."""
    stack = child_nodes(node)[::-1]
    while stack:
        top = stack.pop()
        yield top
        if (cls := top.__class__) not in _SCOPES:
            short = _SHORT.get(cls)
            children = short(top) if short is not None else _children(top)
            if children:
                children.reverse()
                stack += children


def walk_block(statements: Iterable[ast.stmt]) -> Iterator[ast.AST]:
    """The statements and what stands in them, without what the functions and classes among them hold."""
    for statement in statements:
        yield statement
        if statement.__class__ not in _SCOPES:
            yield from walk_scope(statement)


def _normal(encoding: str) -> str:
    """The name as Python's own tokenizer takes it: `utf-8-unix` and `Latin_1` are what Emacs and others write."""
    plain = encoding[:12].lower().replace("_", "-")
    if plain == "utf-8" or plain.startswith("utf-8-"):
        return "utf-8"
    if plain.startswith(("latin-1", "iso-8859-1", "iso-latin-1")) and plain.rpartition("1")[2][:1] in ("", "-"):
        return "iso-8859-1"
    return encoding


def _declared(data: bytes) -> str:
    """The encoding that a coding line names, "" without one."""
    for line in re.split(rb"\r\n|\r|\n", data[:1024], maxsplit=2)[:2]:
        if cookie := _COOKIE.match(line):
            return _normal(cookie.group(1).decode("ascii"))
        if line.strip(b" \t\f") and not line.lstrip(b" \t\f").startswith(b"#"):
            break
    return ""


def decode(path: str, data: bytes) -> tuple[str, str, bytes]:
    """(text, encoding, byte order mark) of a source file, line endings kept. Raises Unreadable."""
    mark = BOM if data.startswith(BOM) else b""
    declared = _declared(data[len(mark) :]) if b"coding" in data[:1024] else ""
    if mark and declared not in ("", "utf-8"):
        raise Unreadable(path, f"its byte order mark says utf-8, its coding line {declared}")
    encoding = declared or "utf-8"
    try:
        text = data[len(mark) :].decode(encoding)
        if text.encode(encoding) != data[len(mark) :]:
            raise Unreadable(path, f"its bytes are not what {encoding} would write, so they could not be kept")
    except LookupError:
        raise Unreadable(path, f"unknown encoding {encoding!r} in its coding line") from None
    except UnicodeError as error:
        raise Unreadable(path, f"not {encoding}: {error.__class__.__name__}") from None
    return text, encoding, mark


_NEWER = (
    (lazy(r"^[ \t]*type[ \t]+\w+[ \t]*(\[[^\]]*\])?[ \t]*=", re.M), "3.12 (type statement)"),
    (lazy(r"^[ \t]*(async[ \t]+def|def|class)[ \t]+\w+[ \t]*\[", re.M), "3.12 (type parameters)"),
    (lazy(r"\bt[\"']"), "3.14 (template strings)"),
    (lazy(r"^[ \t]*except[ \t]+\w+[ \t]*,[ \t]*\w+[ \t]*:", re.M), "3.14 (except without parentheses), or Python 2"),
)


def _syntax_reason(text: str, error: SyntaxError) -> str:
    import sys

    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    where = f"line {error.lineno}: {error.msg}"
    if re.search(r"^[ \t]*print[ \t]+[\"'\w]", text, re.M) or (error.msg or "").startswith("Missing parentheses in call"):
        return f"{where}; it looks like Python 2"
    for pattern, version in _NEWER:
        if pattern.search(text) and not running >= version[:4]:
            return f"{where}; it may need Python {version}, this is Python {running}"
    if (error.msg or "").startswith("f-string"):
        return f"{where}; it may need Python 3.12 (nested quotes in f-strings), this is Python {running}"
    return f"{where} (read with Python {running})"


def parse_text(path: str, text: str) -> ast.Module:
    """The syntax tree of `text`. Raises Unreadable where the running Python cannot read it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        raise Unreadable(path, _syntax_reason(text, error)) from None
    except ValueError as error:
        raise Unreadable(path, str(error)) from None
    except (RecursionError, MemoryError):
        raise Unreadable(path, "an expression is nested too deeply for Python's own parser") from None


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
        self._parents: dict[ast.AST, ast.AST] = {}
        self._buckets: defaultdict[type[ast.AST], list[ast.AST]] = defaultdict(list)
        self._functions: dict[ast.AST, FunctionNode | None] = {}
        parents, buckets = self._parents, self._buckets
        stack: list[ast.AST] = [self.tree]
        pop, short_of, childless = stack.pop, _SHORT.get, frozenset(_CHILDLESS)
        while stack:
            node = pop()
            cls = node.__class__
            buckets[cls].append(node)
            if cls in childless:
                continue
            short = short_of(cls)
            children = short(node) if short is not None else _children(node)
            if children:
                for child in children:
                    parents[child] = node
                children.reverse()
                stack += children

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
        found = [call for name in names for call in self._calls.get(name, ())]
        return found if len(names) == 1 else sorted(found, key=lambda c: (c.lineno, c.col_offset))

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
