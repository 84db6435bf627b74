"""The same program in other places: parts of it in a second file, in a package, in a class, behind a start of its own.

Each takes a program of one file and gives the files of the new one, or None where the program has no such part.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

Files = dict[str, str]
Layout = Callable[[ast.Module], Files | None]

LAYOUTS: dict[str, Layout] = {}
MAIN = "train.py"


def layout(made: Layout) -> Layout:
    LAYOUTS[made.__name__] = made
    return made


def laid_out(source: str, name: str) -> Files | None:
    """The files of a program in another layout."""
    return LAYOUTS[name](ast.parse(source))


Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def _parts(tree: ast.Module) -> tuple[list[ast.stmt], list[Definition], list[ast.stmt]] | None:
    """Imports and plain values, definitions, and what is run. None where a definition stands behind what is run."""
    head: list[ast.stmt] = []
    definitions: list[Definition] = []
    run: list[ast.stmt] = []
    for statement in tree.body:
        if isinstance(statement, Definition):
            if run:
                return None
            definitions.append(statement)
        elif isinstance(statement, (ast.Import, ast.ImportFrom)) or _is_value(statement):
            if definitions or run:
                return None
            head.append(statement)
        else:
            run.append(statement)
    return head, definitions, run


def _is_value(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Assign) and not any(isinstance(n, ast.Call) for n in ast.walk(statement))


def _read(nodes: Iterable[ast.AST]) -> set[str]:
    return {n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name)}


def _bound(statement: ast.stmt) -> set[str]:
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return {(alias.asname or alias.name).partition(".")[0] for alias in statement.names}
    if isinstance(statement, Definition):
        return {statement.name}
    return {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _needed(head: list[ast.stmt], used: set[str]) -> list[ast.stmt]:
    """The imports and values that a file needs."""
    kept: list[ast.stmt] = []
    for statement in reversed(head):
        if isinstance(statement, ast.ImportFrom) and any(a.name == "*" for a in statement.names):
            kept.append(statement)
        elif isinstance(statement, (ast.Import, ast.ImportFrom)):
            names = [a for a in statement.names if (a.asname or a.name).partition(".")[0] in used]
            future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
            if names or future:
                kept.append(statement if future else _with_names(statement, names))
        elif _bound(statement) & used:
            kept.append(statement)
            used = used | _read([statement])
    return kept[::-1]


def _with_names(statement: ast.Import | ast.ImportFrom, names: list[ast.alias]) -> ast.stmt:
    if isinstance(statement, ast.Import):
        return ast.Import(names=names)
    return ast.ImportFrom(module=statement.module, names=names, level=statement.level)


def _text(*groups: Iterable[ast.stmt]) -> str:
    body = [statement for group in groups for statement in group]
    return ast.unparse(ast.fix_missing_locations(ast.Module(body=body, type_ignores=[]))) + "\n"


def _shared(tree: ast.Module) -> tuple[list[ast.stmt], list[Definition], list[Definition], list[ast.stmt]] | None:
    """Head, definitions that others of the file use, those that use them, and what is run."""
    parts = _parts(tree)
    if parts is None:
        return None
    head, definitions, run = parts
    by_name = {d.name: d for d in definitions}
    if len(by_name) < len(definitions) or any(_written(d) for d in definitions):
        return None
    users = [d for d in definitions if d.name == "main" or (_read(run) & {d.name})]
    lent = [d for d in definitions if d not in users]
    if not lent or _read(lent) & {d.name for d in users}:
        return None
    return (head, lent, users, run) if users or run else None


def _written(definition: Definition) -> bool:
    return any(isinstance(n, ast.Global) for n in ast.walk(definition))


def _from(module: str, names: Iterable[str], level: int = 0) -> ast.ImportFrom:
    return ast.ImportFrom(module=module, names=[ast.alias(name=n) for n in sorted(names)], level=level)


def _split(tree: ast.Module, file: str, bring: Callable[[set[str]], ast.stmt]) -> Files | None:
    if (shared := _shared(tree)) is None:
        return None
    head, lent, users, run = shared
    rest = [*users, *run]
    wanted = {d.name for d in lent} & _read(rest)
    if not wanted:
        return None
    return {file: _text(_needed(head, _read(lent)), lent), MAIN: _text(_needed(head, _read(rest)), [bring(wanted)], rest)}


@layout
def helpers_in_a_file(tree: ast.Module) -> Files | None:
    return _split(tree, "helpers.py", lambda names: _from("helpers", names))


@layout
def helpers_in_a_package(tree: ast.Module) -> Files | None:
    files = _split(tree, "lib/helpers.py", lambda names: _from("lib", names))
    return files and files | {"lib/__init__.py": "from .helpers import *\n"}


@layout
def helpers_by_their_module(tree: ast.Module) -> Files | None:
    files = _split(tree, "helpers.py", lambda names: ast.Import(names=[ast.alias(name="helpers")]))
    shared = _shared(tree)
    if files is None or shared is None:
        return None
    names = {d.name for d in shared[1]}
    program = ast.parse(files[MAIN])
    changed = _ByModule(names).visit(program)
    return files | {MAIN: ast.unparse(ast.fix_missing_locations(changed)) + "\n"}


class _ByModule(ast.NodeTransformer):
    def __init__(self, names: set[str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self._names and isinstance(node.ctx, ast.Load):
            return ast.Attribute(value=ast.Name(id="helpers", ctx=ast.Load()), attr=node.id, ctx=ast.Load())
        return node


@layout
def started_from_another_file(tree: ast.Module) -> Files | None:
    """`train.py` calls the `main` of a file of functions alone."""
    parts = _parts(tree)
    if parts is None or not parts[1] or not parts[2] or any(_written(d) for d in parts[1]):
        return None
    head, definitions, run = parts
    names = {d.name for d in definitions} & _read(run)
    if not names:
        return None
    program = [_from("engine", names), *run]
    return {"engine.py": _text(_needed(head, _read(definitions)), definitions), MAIN: _text(_needed(head, _read(run)), program)}


@layout
def main_as_a_method(tree: ast.Module) -> Files | None:
    """The body of `main()` as the method of an object that the program makes."""
    parts = _parts(tree)
    if parts is None:
        return None
    head, definitions, run = parts
    main = next((d for d in definitions if isinstance(d, ast.FunctionDef) and d.name == "main"), None)
    if main is None or not run or ast.unparse(main.args) or main.decorator_list:
        return None
    method = ast.FunctionDef(
        name="run", args=ast.arguments([], [ast.arg("self")], None, [], [], None, []), body=main.body, decorator_list=[],
        returns=None, type_comment=None,
    )  # fmt: skip
    owner = ast.ClassDef(name="Job", bases=[], keywords=[], body=[method], decorator_list=[])
    text = _text(head, [owner if d is main else d for d in definitions], run)
    return {MAIN: text.replace("main()", "Job().run()")}


# What is run, elsewhere


def _body(tree: ast.Module) -> tuple[list[ast.stmt], list[Definition], list[ast.stmt]] | None:
    """Head, definitions, and the statements that the program runs: of its `main`, or of the file itself."""
    parts = _parts(tree)
    if parts is None:
        return None
    head, definitions, run = parts
    main = next((d for d in definitions if isinstance(d, ast.FunctionDef) and d.name == "main"), None)
    if main is not None and not ast.unparse(main.args) and not main.decorator_list and len(run) == 1:
        return head, [d for d in definitions if d is not main], main.body
    if any(isinstance(s, ast.If) and "__name__" in ast.unparse(s.test) for s in run) or len(run) < 2:
        return None
    return head, definitions, run


def _calls_of(name: str, made: str) -> list[ast.stmt]:
    return ast.parse(f"from engine import {name}\n\nif __name__ == '__main__':\n    {made}\n").body


def _function(name: str, arguments: list[str], body: list[ast.stmt]) -> ast.FunctionDef:
    args = ast.arguments([], [ast.arg(a) for a in arguments], None, [], [], None, [])
    return ast.FunctionDef(name=name, args=args, body=body, decorator_list=[], returns=None, type_comment=None)


@layout
def run_by_a_function_of_another_file(tree: ast.Module) -> Files | None:
    if (body := _body(tree)) is None:
        return None
    head, definitions, run = body
    if any(isinstance(n, ast.ImportFrom) and any(a.name == "*" for a in n.names) for s in run for n in ast.walk(s)):
        return None
    return {"engine.py": _text(head, definitions, [_function("run", [], run)]), MAIN: _text(_calls_of("run", "run()"))}


@layout
def in_a_trainer_class(tree: ast.Module) -> Files | None:
    """What the program makes first is kept by an object, and its loop is a method of it."""
    if (body := _body(tree)) is None:
        return None
    head, definitions, run = body
    at = next((i for i, s in enumerate(run) if not isinstance(s, (ast.Assign, ast.Expr, ast.Import, ast.ImportFrom))), len(run))
    if at in (0, len(run)):
        return None
    names = {n.id for s in run[:at] for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    kept = _Kept(names & _read(run[at:]))
    made = [kept.visit(s) for s in run[:at]]
    loop = [kept.visit(s) for s in run[at:]]
    if any(isinstance(n, ast.Return) for s in run for n in ast.walk(s)):
        return None
    methods: list[ast.stmt] = [_function("__init__", ["self"], made), _function("fit", ["self"], loop)]
    owner = ast.ClassDef(name="Training", bases=[], keywords=[], body=methods, decorator_list=[])
    return {"engine.py": _text(head, definitions, [owner]), MAIN: _text(_calls_of("Training", "Training().fit()"))}


class _Kept(ast.NodeTransformer):
    """Names as attributes of `self`; in functions inside, too."""

    def __init__(self, names: set[str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self._names:
            return ast.Attribute(value=ast.Name(id="self", ctx=ast.Load()), attr=node.id, ctx=node.ctx)
        return node


_COMM = """\
import os

import torch
import torch.distributed as dist


def setup():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")


def is_dist():
    return dist.is_available() and dist.is_initialized()


def get_rank():
    return dist.get_rank() if is_dist() else 0


def get_world_size():
    return dist.get_world_size() if is_dist() else 1


def barrier():
    if is_dist():
        dist.barrier()
"""


@layout
def by_helpers_of_the_project(tree: ast.Module) -> Files | None:
    """`comm.get_rank()` for `dist.get_rank()`: a function of the project that asks whether there is a group."""
    source = ast.unparse(tree)
    if "dist.get_rank()" not in source and "dist.barrier()" not in source:
        return None
    if "dist.get_rank()" in source and "import torch.distributed as dist" not in source:
        return None
    for name in ("get_rank()", "get_world_size()", "barrier()"):
        source = source.replace(f"dist.{name}", f"comm.{name}")
    return _with_comm("import comm\n" + source)


@layout
def by_names_of_the_project(tree: ast.Module) -> Files | None:
    """`get_rank()` for `dist.get_rank()`, imported from a file of the project."""
    files = by_helpers_of_the_project(tree)
    if files is None:
        return None
    source = files[MAIN].removeprefix("import comm\n").replace("comm.", "")
    return None if "def get_rank" in source else _with_comm("from comm import barrier, get_rank, get_world_size\n" + source)


def _with_comm(source: str) -> Files:
    """Without the imports that nothing reads any more."""
    tree = ast.parse(source)
    used = _read(tree.body)
    parts = _parts(tree)
    body = tree.body if parts is None else [*_needed(parts[0], used), *parts[1], *parts[2]]
    return {"comm.py": _COMM, MAIN: _text(body)}


@layout
def heirs_of_a_base_in_another_file(tree: ast.Module) -> Files | None:
    """A class of the project stands between each class and the framework's."""
    bases: dict[str, str] = {}
    for owner in [n for n in tree.body if isinstance(n, ast.ClassDef)]:
        for i, base in enumerate(owner.bases):
            written = ast.unparse(base)
            if "." in written and written.replace(".", "").isidentifier():
                name = bases.setdefault(written, "Base" + written.rpartition(".")[2])
                owner.bases[i] = ast.Name(id=name, ctx=ast.Load())
    parts = _parts(tree)
    if not bases or parts is None:
        return None
    classes = [ast.parse(f"class {name}({written}):\n    pass").body[0] for written, name in bases.items()]
    head, definitions, run = parts
    rest = [*definitions, *run]
    program = _text(_needed(head, _read(rest)), [_from("base", bases.values())], rest)
    return {"base.py": _text(_needed(head, _read(classes)), classes), MAIN: program}
