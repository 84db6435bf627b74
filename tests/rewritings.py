"""Ways to write the same program: text in, text out, None where a way has nothing to change. The meaning stays."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable, Iterator

Rewriting = Callable[[str], str | None]
REWRITINGS: dict[str, Rewriting] = {}
_RANKS = re.compile(r"rank|process_index|get_rank", re.I)


def rewriting(made: Rewriting) -> Rewriting:
    REWRITINGS[made.__name__.lstrip("_")] = made
    return made


def on_tree(made: Callable[[ast.Module], bool]) -> Rewriting:
    """A rewriting of the tree, True where it changed something; the text is what `ast` writes."""

    def rewrite(source: str) -> str | None:
        tree = ast.parse(source)
        return ast.unparse(ast.fix_missing_locations(tree)) + "\n" if made(tree) else None

    REWRITINGS[made.__name__.lstrip("_")] = rewrite
    return rewrite


# Text


def _plain(source: str) -> bool:
    """True where every line begins where a statement or an argument does: no text and no backslash over several lines."""
    return not re.search(r"\"\"\"|'''|\\\n", source)


def _statements(source: str) -> Iterator[ast.stmt]:
    yield from (n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.stmt))


def _by_line(source: str, change: Callable[[str, list[ast.stmt]], str | None]) -> str | None:
    """The text with its lines changed: `change` gets a line and the statements that begin there, and gives the new text."""
    at: dict[int, list[ast.stmt]] = {}
    for statement in _statements(source):
        if not isinstance(statement, ast.If) or not source.splitlines()[statement.lineno - 1].lstrip().startswith("elif"):
            first = min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", []))])
            at.setdefault(first, []).append(statement)
    lines = source.splitlines()
    new = [change(line, at.get(i, [])) for i, line in enumerate(lines, 1)]
    out = "\n".join(line if line is not None else old for line, old in zip(new, lines, strict=True)) + "\n"
    return out if out != source else None


@rewriting
def crlf(source: str) -> str | None:
    return source.replace("\n", "\r\n")


def _indented(source: str, step: str) -> str | None:
    even = not re.search(r"(?m)^(?:    )*(?: {1,3})(?=\S)", source)
    return re.sub(r"(?m)^(?:    )+", lambda m: step * (len(m[0]) // 4), source) if _plain(source) and even else None


@rewriting
def tabs(source: str) -> str | None:
    return _indented(source, "\t")


@rewriting
def two_blanks(source: str) -> str | None:
    return _indented(source, "  ")


@rewriting
def byte_order_mark(source: str) -> str | None:
    return None if "coding" in source else f"\N{ZERO WIDTH NO-BREAK SPACE}{source}"


@rewriting
def no_last_newline(source: str) -> str | None:
    return source.rstrip("\n")


@rewriting
def docstring_of_the_file(source: str) -> str | None:
    return None if ast.get_docstring(ast.parse(source)) or "__future__" in source else f'"""Says what it does."""\n\n{source}'


@rewriting
def coding_line(source: str) -> str | None:
    return f"# -*- coding: utf-8 -*-\n{source}"


@rewriting
def comments_at_the_end_of_lines(source: str) -> str | None:
    def change(line: str, here: list[ast.stmt]) -> str | None:
        simple = here and all(s.lineno == s.end_lineno for s in here)
        return f"{line}  # so it is" if simple and "#" not in line else None

    return _by_line(source, change)


@rewriting
def comment_lines_between(source: str) -> str | None:
    def change(line: str, here: list[ast.stmt]) -> str | None:
        indent = line[: len(line) - len(line.lstrip())]
        return f"{indent}# next\n{line}" if here else None

    return _by_line(source, change) if _plain(source) else None


@rewriting
def blank_lines_between(source: str) -> str | None:
    return _by_line(source, lambda line, here: f"\n{line}" if here else None) if _plain(source) else None


@rewriting
def trailing_semicolons(source: str) -> str | None:
    def change(line: str, here: list[ast.stmt]) -> str | None:
        simple = here and not any(hasattr(s, "body") or s.lineno != s.end_lineno for s in here)
        return f"{line};" if simple and "#" not in line and not line.endswith(";") else None

    return _by_line(source, change)


@rewriting
def semicolons_between(source: str) -> str | None:
    """Neighbours that are simple and alone on their lines, on one line."""
    lines = source.splitlines()
    for block in _blocks(ast.parse(source)):
        for before, after in zip(block[::2], block[1::2], strict=False):
            if any(hasattr(s, "body") or s.lineno != s.end_lineno or "#" in lines[s.lineno - 1] for s in (before, after)):
                continue
            if any(isinstance(s, (ast.Import, ast.ImportFrom)) for s in (before, after)) or before.end_lineno == after.lineno:
                continue
            if any(line.strip() for line in lines[before.lineno : after.lineno - 1]):
                continue
            lines[before.lineno - 1] += f"; {lines[after.lineno - 1].strip()}"
            lines[after.lineno - 1] = ""
    out = "\n".join(lines) + "\n"
    return out if out != source else None


def _heads(source: str, change: Callable[[str, str, str], str]) -> str | None:
    """`if test:` on one line, changed: indentation, test, what follows the colon."""

    def each(line: str, here: list[ast.stmt]) -> str | None:
        test = here[0].test if here and isinstance(here[0], ast.If) else None
        if test is None or test.lineno != test.end_lineno or test.end_lineno != here[0].lineno:
            return None
        found = re.match(r"^(\s*)if (.*):((?:\s*#.*)?)$", line)
        return change(*found.groups()) if found and not line.isspace() else None

    return _by_line(source, each) if _plain(source) and source.isascii() else None


@rewriting
def parentheses(source: str) -> str | None:
    return _heads(source, lambda indent, test, rest: f"{indent}if ({test}):{rest}")


@rewriting
def test_on_lines_of_its_own(source: str) -> str | None:
    return _heads(source, lambda indent, test, rest: f"{indent}if (\n{indent}    {test}\n{indent}):{rest}")


@rewriting
def backslash(source: str) -> str | None:
    return _heads(source, lambda indent, test, rest: f"{indent}if \\\n{indent}        {test}:{rest}")


@rewriting
def one_line_ifs(source: str) -> str | None:
    """`if test: a(); b()` where all of the block is simple."""
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.If) or node.orelse or lines[node.lineno - 1].lstrip().startswith("elif"):
            continue
        if any(hasattr(s, "body") or s.lineno != s.end_lineno for s in node.body) or node.body[0].lineno == node.lineno:
            continue
        held = lines[node.lineno - 1 : node.end_lineno]
        if node.test.end_lineno != node.lineno or any("#" in line or ";" in line for line in held):
            continue
        if not lines[node.lineno - 1].endswith(":") or any(isinstance(s, (ast.Import, ast.ImportFrom)) for s in node.body):
            continue
        lines[node.lineno - 1] += " " + "; ".join(lines[s.lineno - 1].strip() for s in node.body)
        lines[node.lineno : node.end_lineno] = [""] * (len(held) - 1)
    out = "\n".join(lines) + "\n"
    return out if out != source else None


@rewriting
def a_formatter(source: str) -> str | None:
    """The text as `ast` writes it: other quotes, no parentheses that are not needed, no comments."""
    return None if "#" in source else ast.unparse(ast.parse(source)) + "\n"


@rewriting
def arguments_on_lines_of_their_own(source: str) -> str | None:
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call) or node.lineno != node.end_lineno:
            continue
        call, line = node.value, lines[node.lineno - 1]
        given = [*call.args, *(k.value for k in call.keywords)]
        if not given or not line.isascii() or line[: node.col_offset].strip() or isinstance(given[0], ast.GeneratorExp):
            continue
        opened = line.index("(", call.func.end_col_offset or 0)
        closed = (call.end_col_offset or 0) - 1
        indent = " " * node.col_offset
        inner = line[opened + 1 : closed].rstrip().rstrip(",")
        lines[node.lineno - 1] = f"{line[: opened + 1]}\n{indent}    {inner},\n{indent}{line[closed:]}"
    out = "\n".join(lines) + "\n"
    return out if out != source else None


# Tests of the rank


def _rank_tests(tree: ast.Module, new: Callable[[ast.Compare], ast.expr | None]) -> bool:
    """`<rank> == 0` and `<rank> != 0` by what `new` makes of them."""
    made: list[ast.expr] = []

    class Tests(ast.NodeTransformer):
        def visit_Compare(self, node: ast.Compare) -> ast.expr:
            zero = len(node.ops) == 1 and isinstance(node.comparators[0], ast.Constant) and node.comparators[0].value in (0,)
            ranks = zero and isinstance(node.ops[0], (ast.Eq, ast.NotEq)) and _RANKS.search(ast.unparse(node.left))
            if not ranks or (other := new(node)) is None:
                return node
            made.append(other)
            return other

    Tests().visit(tree)
    return bool(made)


def _expression(text: str, **parts: ast.expr) -> ast.expr:
    """An expression with nodes in the place of names."""

    class Names(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return parts.get(node.id, node)

    whole = Names().visit(ast.parse(text, mode="eval").body)
    assert isinstance(whole, ast.expr)
    return whole


def _either(equal: str, unequal: str) -> Callable[[ast.Compare], ast.expr]:
    return lambda node: _expression(equal if isinstance(node.ops[0], ast.Eq) else unequal, LEFT=node.left)


@on_tree
def yoda(tree: ast.Module) -> bool:
    return _rank_tests(tree, _either("0 == LEFT", "0 != LEFT"))


@on_tree
def among(tree: ast.Module) -> bool:
    return _rank_tests(tree, _either("LEFT in (0,)", "LEFT not in (0,)"))


@on_tree
def among_a_list(tree: ast.Module) -> bool:
    return _rank_tests(tree, _either("LEFT in [0]", "LEFT not in [0]"))


@on_tree
def not_the_rank(tree: ast.Module) -> bool:
    return _rank_tests(tree, lambda n: _expression("not LEFT", LEFT=n.left) if isinstance(n.ops[0], ast.Eq) else None)


@on_tree
def smaller(tree: ast.Module) -> bool:
    return _rank_tests(tree, _either("LEFT < 1", "LEFT > 0"))


@on_tree
def negated(tree: ast.Module) -> bool:
    return _rank_tests(tree, _either("not LEFT != 0", "not LEFT == 0"))


@on_tree
def walrus(tree: ast.Module) -> bool:
    def new(node: ast.Compare) -> ast.expr | None:
        if not isinstance(node.left, ast.Call):
            return None
        return _expression("(held := LEFT) == 0" if isinstance(node.ops[0], ast.Eq) else "(held := LEFT) != 0", LEFT=node.left)

    scopes = (ast.Lambda, ast.comprehension, ast.ClassDef)
    return not any(isinstance(n, scopes) for n in ast.walk(tree)) and _rank_tests(tree, new)


# Branches and blocks


def _blocks(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                yield block


def _ifs(tree: ast.Module) -> list[ast.If]:
    chained = {id(n.orelse[0]) for n in ast.walk(tree) if isinstance(n, ast.If) and len(n.orelse) == 1}
    found = [n for n in ast.walk(tree) if isinstance(n, ast.If) and id(n) not in chained]
    found = [n for n in found if not (len(n.orelse) == 1 and isinstance(n.orelse[0], ast.If))]
    return [n for n in found if "__name__" not in ast.unparse(n.test)]


@on_tree
def else_pass(tree: ast.Module) -> bool:
    found = [n for n in _ifs(tree) if not n.orelse]
    for node in found:
        node.orelse = [ast.Pass()]
    return bool(found)


@on_tree
def inverted(tree: ast.Module) -> bool:
    for node in (found := _ifs(tree)):
        node.test = ast.UnaryOp(ast.Not(), node.test)
        node.body, node.orelse = node.orelse or [ast.Pass()], node.body
    return bool(found)


@on_tree
def doubly_negated(tree: ast.Module) -> bool:
    for node in (found := _ifs(tree)):
        node.test = ast.UnaryOp(ast.Not(), ast.UnaryOp(ast.Not(), node.test))
    return bool(found)


@on_tree
def matched(tree: ast.Module) -> bool:
    """`if x == 0: …` as `match x: case 0: …`."""
    made = []

    class Ifs(ast.NodeTransformer):
        def visit_If(self, node: ast.If) -> ast.stmt:
            self.generic_visit(node)
            test = node.test
            if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.Eq) or len(test.ops) != 1:
                return node
            if not isinstance(test.comparators[0], ast.Constant) or "__name__" in ast.unparse(test):
                return node
            cases = [ast.match_case(ast.MatchValue(test.comparators[0]), None, node.body)]
            if node.orelse:
                cases.append(ast.match_case(ast.MatchAs(), None, node.orelse))
            made.append(node)
            return ast.Match(test.left, cases)

    Ifs().visit(tree)
    return bool(made)


def _functions(tree: ast.Module) -> list[ast.FunctionDef]:
    return [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]


def _wrapped(tree: ast.Module, wrap: Callable[[list[ast.stmt]], ast.stmt]) -> bool:
    """The body of each function inside of one statement."""
    for function in (found := _functions(tree)):
        head = function.body[:1] if ast.get_docstring(function) is not None else []
        rest = function.body[len(head) :]
        if rest:
            function.body = [*head, wrap(rest)]
    return bool(found)


@on_tree
def in_try_finally(tree: ast.Module) -> bool:
    return _wrapped(tree, lambda body: ast.Try(body, [], [], [ast.Pass()]))


@on_tree
def in_a_context(tree: ast.Module) -> bool:
    tree.body.insert(_behind_docstring(tree), ast.Import([ast.alias("contextlib")]))
    entered = ast.parse("contextlib.nullcontext()", mode="eval").body
    return _wrapped(tree, lambda body: ast.With([ast.withitem(copy.deepcopy(entered))], body))


@on_tree
def under_true(tree: ast.Module) -> bool:
    return _wrapped(tree, lambda body: ast.If(ast.Constant(True), body, []))


@on_tree
def in_the_only_case(tree: ast.Module) -> bool:
    return _wrapped(tree, lambda body: ast.Match(ast.Constant(1), [ast.match_case(ast.MatchAs(), None, body)]))


@on_tree
def return_at_the_end(tree: ast.Module) -> bool:
    found = [f for f in _functions(tree) if not isinstance(f.body[-1], (ast.Return, ast.Raise)) and not _yields(f)]
    for function in found:
        function.body.append(ast.Return(None))
    return bool(found)


def _yields(function: ast.FunctionDef) -> bool:
    return any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in ast.walk(function))


@on_tree
def docstrings(tree: ast.Module) -> bool:
    found = [n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(n) is None]
    for node in found:
        node.body.insert(0, ast.Expr(ast.Constant("Says what it does.")))
    return bool(found)


@on_tree
def pass_between(tree: ast.Module) -> bool:
    for block in list(_blocks(tree)):
        keep = 1 if isinstance(block[0], ast.Expr) and isinstance(block[0].value, ast.Constant) else 0
        for i in range(len(block) - 1, keep, -1):
            if not isinstance(block[i], (ast.Import, ast.ImportFrom)):
                block.insert(i, ast.Pass())
    return True


# Names


@on_tree
def annotated(tree: ast.Module) -> bool:
    made = []

    class Assigns(ast.NodeTransformer):
        def visit_Assign(self, node: ast.Assign) -> ast.stmt:
            if len(node.targets) != 1 or not isinstance(node.targets[0], ast.Name) or _declared(tree, node.targets[0].id):
                return node
            made.append(node)
            return ast.AnnAssign(node.targets[0], ast.Constant("object"), node.value, 1)

    Assigns().visit(tree)
    return bool(made)


def _declared(tree: ast.Module, name: str) -> bool:
    return any(isinstance(n, (ast.Global, ast.Nonlocal)) and name in n.names for n in ast.walk(tree))


@on_tree
def typed_parameters(tree: ast.Module) -> bool:
    found = [a for f in _functions(tree) for a in f.args.args if a.annotation is None and a.arg not in ("self", "cls")]
    for argument in found:
        argument.annotation = ast.Constant("object")
    return bool(found)


@on_tree
def in_two_steps(tree: ast.Module) -> bool:
    """`x = f()` as `held = f(); x = held`, for the rank."""
    made = False
    for block in list(_blocks(tree)):
        for i in range(len(block) - 1, -1, -1):
            node = block[i]
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and _RANKS.search(node.targets[0].id):
                if isinstance(node.value, ast.Call):
                    held = f"held_{node.targets[0].id}"
                    block[i : i + 1] = [
                        ast.Assign([ast.Name(held, ast.Store())], node.value),
                        ast.Assign(node.targets, ast.Name(held, ast.Load())),
                    ]
                    made = True
    return made


@on_tree
def renamed_object(tree: ast.Module) -> bool:
    """`this` for `self`."""
    names = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == "self"]
    arguments = [n for n in ast.walk(tree) if isinstance(n, ast.arg) and n.arg == "self"]
    for name in names:
        name.id = "this"
    for argument in arguments:
        argument.arg = "this"
    return bool(arguments)


@on_tree
def renamed_rank(tree: ast.Module) -> bool:
    """`me` for a local `rank` that is bound from a call."""
    made = False
    for function in _functions(tree):
        for node in list(ast.walk(function)):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "rank":
                if isinstance(node.value, ast.Call) and "rank" in ast.unparse(node.value):
                    for name in ast.walk(function):
                        if isinstance(name, ast.Name) and name.id == "rank":
                            name.id, made = "me", True
    return made


@on_tree
def starred_arguments(tree: ast.Module) -> bool:
    found = [
        n.value for n in ast.walk(tree) if isinstance(n, ast.Expr) and isinstance(n.value, ast.Call) and n.value.args
        and not any(isinstance(a, (ast.Starred, ast.GeneratorExp)) for a in n.value.args)
    ]  # fmt: skip
    for call in found:
        call.args = [ast.Starred(ast.Tuple(call.args, ast.Load()), ast.Load())]
    return bool(found)


@on_tree
def keywords_turned_round(tree: ast.Module) -> bool:
    found = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and len(n.keywords) > 1]
    for call in found:
        call.keywords.reverse()
    return bool(found)


@on_tree
def methods_under_local_names(tree: ast.Module) -> bool:
    """`log = self.log` at the head of a method, and `log(…)` below."""
    made = False
    for function in _functions(tree):
        calls = [
            n.value for n in ast.walk(function) if isinstance(n, ast.Expr) and isinstance(n.value, ast.Call)
            and isinstance(n.value.func, ast.Attribute) and ast.unparse(n.value.func.value) == "self"
        ]  # fmt: skip
        names = {n.func.attr for n in calls if isinstance(n.func, ast.Attribute)} - _names(function) - {"super"}
        for name in sorted(names):
            bound = ast.parse(f"{name} = self.{name}").body
            function.body[int(ast.get_docstring(function) is not None) : 0] = bound
            made = True
        for call in calls:
            if isinstance(call.func, ast.Attribute) and call.func.attr in names:
                call.func = ast.Name(call.func.attr, ast.Load())
    return made


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} | {n.arg for n in ast.walk(node) if isinstance(n, ast.arg)}


# Imports


def _behind_docstring(tree: ast.Module) -> int:
    at = int(ast.get_docstring(tree) is not None)
    while at < len(tree.body) and "__future__" in ast.unparse(tree.body[at]):
        at += 1
    return at


def _rename(tree: ast.Module, old: str, new: ast.expr) -> None:
    class Names(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return copy.deepcopy(new) if node.id == old else node

    Names().visit(tree)


def _bound(tree: ast.Module, name: str) -> bool:
    """True where the name means something else in a place of the program."""
    stored = any(isinstance(n, ast.Name) and n.id == name and not isinstance(n.ctx, ast.Load) for n in ast.walk(tree))
    return stored or any(isinstance(n, ast.arg) and n.arg == name for n in ast.walk(tree))


@on_tree
def other_aliases(tree: ast.Module) -> bool:
    """`import torch.distributed as td`, whatever it was called."""
    made = False
    for node in tree.body:
        for alias in node.names if isinstance(node, (ast.Import, ast.ImportFrom)) else ():
            dotted = isinstance(node, ast.Import) and "." in alias.name and not alias.asname
            name = alias.asname or alias.name
            if not dotted and name != "*" and not _bound(tree, name) and "__future__" not in ast.unparse(node):
                alias.asname = f"{name}_"
                _rename(tree, name, ast.Name(f"{name}_", ast.Load()))
                made = True
    return made


@on_tree
def from_the_package(tree: ast.Module) -> bool:
    """`from torch import distributed as dist` for `import torch.distributed as dist`."""
    made = False
    for i, node in enumerate(tree.body):
        if isinstance(node, ast.Import) and len(node.names) == 1 and node.names[0].asname and "." in node.names[0].name:
            above, _, name = node.names[0].name.rpartition(".")
            tree.body[i] = ast.ImportFrom(above, [ast.alias(name, node.names[0].asname)], 0)
            made = True
    return made


@on_tree
def full_names(tree: ast.Module) -> bool:
    """`torch.distributed.barrier()` for `dist.barrier()`."""
    made = False
    for node in tree.body:
        if isinstance(node, ast.Import) and len(node.names) == 1 and node.names[0].asname:
            alias = node.names[0]
            if not _bound(tree, alias.asname or "") and not _bound(tree, alias.name.partition(".")[0]):
                _rename(tree, alias.asname or "", ast.parse(alias.name, mode="eval").body)
                alias.asname, made = None, True
    return made


@on_tree
def from_names_by_their_module(tree: ast.Module) -> bool:
    """`import m` and `m.f()` for `from m import f`."""
    made = False
    for i, node in enumerate(tree.body):
        if not isinstance(node, ast.ImportFrom) or node.level or node.module == "__future__" or not node.module:
            continue
        names = [a.asname or a.name for a in node.names]
        if "*" in names or any(_bound(tree, n) for n in (*names, node.module.partition(".")[0])):
            continue
        for alias in node.names:
            _rename(tree, alias.asname or alias.name, ast.parse(f"{node.module}.{alias.name}", mode="eval").body)
        tree.body[i] = ast.Import([ast.alias(node.module)])
        made = True
    return made


@on_tree
def imported_inside(tree: ast.Module) -> bool:
    """The imports of the file in each function, where nothing else stands at the top but functions."""
    imports = [n for n in tree.body if isinstance(n, (ast.Import, ast.ImportFrom))]
    rest = [n for n in tree.body if n not in imports]
    if not imports or not rest or any(not isinstance(n, ast.FunctionDef) or n.decorator_list or _annotated(n) for n in rest):
        return False
    if any("__future__" in ast.unparse(n) for n in imports):
        return False
    for function in rest:
        assert isinstance(function, ast.FunctionDef)
        at = int(ast.get_docstring(function) is not None)
        function.body[at:at] = copy.deepcopy(imports)
    tree.body = rest
    return True


def _annotated(function: ast.FunctionDef) -> bool:
    given = [*(a.annotation for a in function.args.args), function.returns, *function.args.defaults]
    return any(part is not None for part in given)


# Places


def _is_script(tree: ast.Module) -> bool:
    kinds = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)
    run = [n for n in tree.body if not isinstance(n, kinds)]
    return bool(run) and not any("__name__" in ast.unparse(n) for n in run)


@on_tree
def under_the_main_test(tree: ast.Module) -> bool:
    if not _is_script(tree) or any(isinstance(n, (ast.FunctionDef, ast.ClassDef)) for n in tree.body):
        return False
    kept = [n for n in tree.body if isinstance(n, (ast.Import, ast.ImportFrom))]
    run = [n for n in tree.body if n not in kept]
    test = ast.parse("__name__ == '__main__'", mode="eval").body
    tree.body = [*kept, ast.If(test, run, [])]
    return True


@on_tree
def in_a_function(tree: ast.Module) -> bool:
    if not _is_script(tree) or any(isinstance(n, (ast.FunctionDef, ast.ClassDef)) for n in tree.body):
        return False
    kept = [n for n in tree.body if isinstance(n, (ast.Import, ast.ImportFrom))]
    made = ast.parse("def main():\n    pass\n\nif __name__ == '__main__':\n    main()\n").body
    assert isinstance(made[0], ast.FunctionDef)
    made[0].body = [n for n in tree.body if n not in kept]
    tree.body = [*kept, *made]
    return True


@on_tree
def beside_others(tree: ast.Module) -> bool:
    """A function and a class that nobody uses, above and below."""
    one, other = ast.parse("def unused(a):\n    return a\n\n\nclass Unused:\n    size = 1\n").body
    last = max((i for i, n in enumerate(tree.body) if isinstance(n, (ast.Import, ast.ImportFrom))), default=-1)
    tree.body.insert(max(last + 1, _behind_docstring(tree)), one)
    tree.body.append(other)
    return True
