"""Neighbouring statements that only put something out: what goes under one guard."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from codemods.analysis.names import dotted, last
from codemods.analysis.output.early_ranks import under_such_a_test
from codemods.analysis.output.effects import Effect, Effects, Kind, does_nothing, effects_of, names_rank, only_output_of
from codemods.analysis.output.figures import releases_figures
from codemods.analysis.output.guard_spelling import guard_for, has_guard
from codemods.analysis.output.natures import Nature, nature
from codemods.analysis.output.observers import covered
from codemods.analysis.output.package_names import asks_the_group
from codemods.analysis.output.rank_values import under_such_a_name
from codemods.analysis.positions import above
from codemods.analysis.ranks.rank_guards import early_exit, ranks_at
from codemods.analysis.ranks.uses import calls_of
from codemods.data.host_only import MUTATORS
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.record import record
from codemods.store.project import Project

_UNITS = (ast.Expr, ast.For, ast.If, ast.With, ast.Delete)


@record
class Run:
    """Neighbours in one block, from the first that puts something out to the last."""

    statements: tuple[ast.stmt, ...]
    effects: Effects

    @property
    def first(self) -> ast.stmt:
        return self.statements[0]

    @property
    def last(self) -> ast.stmt:
        return self.statements[-1]

    def makes(self, *kinds: Kind) -> bool:
        return any(e.kind in kinds for e in self.effects.output)


Wanted = Callable[[ast.stmt], bool]


def output_runs(
    project: Project, module: SourceModule, function: FunctionNode | ast.Module, wanted: Wanted
) -> Iterator[Run]:
    """The runs of output in a function that every rank reaches, the outermost of each, of statements that are `wanted`."""
    yield from _of_block(project, module, function.body, wanted)


def is_guarded_at_its_calls(
    project: Project, module: SourceModule, function: FunctionNode, *, looked_at: Callable[[FunctionNode], bool] = lambda _: True
) -> bool:
    """True where every call of the function is a statement of the file that gets a test of its own: it needs none then.

    looked_at: whether the function that a call stands in is looked through for such statements at all.
    """
    sites = calls_of(project, module, function) or ()
    if any(s.module is not module for s in sites):
        return False
    statements = [(s.module, s.module.parent(s.call)) for s in sites]
    for home, up in statements:
        above = home.function_of(up) if isinstance(up, ast.Expr) else function
        if not isinstance(up, ast.Expr) or above is function or (above is not None and not looked_at(above)):
            return False
        if ranks_at(home, up).some or not _is_output(project, home, up) or guard_for(project, home, up) is None:
            return False
    return bool(sites)


def _of_block(project: Project, module: SourceModule, block: list[ast.stmt], wanted: Wanted) -> Iterator[Run]:
    held: list[ast.stmt] = []
    between: list[ast.stmt] = []
    of_debugging = False  # behind a heading that each rank is to print: the lines below it belong to that
    for statement in block:
        said = _is_output(project, module, statement)
        if of_debugging and (said or _is_preparation(project, module, statement)):
            continue
        of_debugging = said and not wanted(statement) and _says_debug(statement)
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield from _close(project, module, held, wanted)
            held, between = [], []
            continue
        if said and wanted(statement):
            headed = bool(held) and any(_begins_section(module, s) for s in (*between, statement))
            if headed and _is_mixed(project, module, block) and not _leaks(module, held):
                yield from _close(project, module, held, wanted)
                held, between = [], []
            held += [*between, statement] if held else [statement]
            between = []
        elif held and _is_preparation(project, module, statement):
            between.append(statement)
        else:
            yield from _close(project, module, held, wanted)
            held, between = [], []
            if early_exit(module, statement, project=project) is None:
                yield from _below(project, module, statement, wanted)
    yield from _close(project, module, held, wanted)


def _says_debug(statement: ast.stmt) -> bool:
    texts = (n.value for n in walk(statement) if isinstance(n, ast.Constant))
    return any(isinstance(text, str) and "debug" in text.lower() for text in texts)


def makes_folder(module: SourceModule, statement: ast.stmt) -> bool:
    """True where a folder is made in the statement: that stays on every rank, each node has a disk of its own."""
    text = module.text_of(statement)
    return "makedirs(" in text or "mkdir(" in text


def _is_mixed(project: Project, module: SourceModule, block: list[ast.stmt]) -> bool:
    """True for a block that does more than put something out: headings in it speak of more than the output."""
    return any(not _is_output(project, module, s) and not _is_preparation(project, module, s) for s in block)


def _begins_section(module: SourceModule, statement: ast.stmt) -> bool:
    """True behind a blank line and a comment: the heading of what follows, which is to stay above a test of its own."""
    line = statement.lineno - 2
    commented = False
    while line >= 0 and module.lines[line].lstrip().startswith("#"):
        line, commented = line - 1, True
    return commented and line >= 0 and not module.lines[line].strip()


def _below(project: Project, module: SourceModule, statement: ast.stmt, wanted: Wanted) -> Iterator[Run]:
    """The runs inside a compound statement.

    None where one branch of an `if` has output that must stay as it is, nor under a `with` that opens the rank's own file.
    """
    if isinstance(statement, ast.With) and any(names_rank(module.text_of(i.context_expr)) for i in statement.items):
        return
    if isinstance(statement, ast.If) and statement.orelse:
        for branch in (*statement.body, *statement.orelse):
            if _is_output(project, module, branch) and not wanted(branch):
                return
    for inner in _blocks(statement):
        yield from _of_block(project, module, inner, wanted)


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The statement lists below a statement, without those of `except`: what goes wrong on a rank is that rank's to say."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(statement, name, None)
        if isinstance(block, list) and block:
            yield block
    yield from (case.body for case in getattr(statement, "cases", ()))


def _close(project: Project, module: SourceModule, held: list[ast.stmt], wanted: Wanted) -> Iterator[Run]:
    """The run, shortened from both ends or split until no name it binds is used outside."""
    if not held:
        return
    pieces = _split(module, held)
    kept = {id(s) for piece in pieces for s in piece}
    for statement in held:
        if id(statement) not in kept and isinstance(statement, (ast.If, ast.For, ast.With)):
            yield from _below(project, module, statement, wanted)  # a name it binds is used outside: its parts may still go
    for piece in pieces:
        effects = effects_of(project, module, piece)
        if any(not covered(project, module, e) for e in effects.output):
            inner = list(_below(project, module, piece[0], wanted)) if _is_lone_test(piece) else []
            yield inner[0] if len(inner) == 1 else Run(tuple(piece), effects)


def _is_lone_test(piece: list[ast.stmt]) -> bool:
    """An `if` with one run inside keeps its place: the guard goes under it, and fewer lines move."""
    return len(piece) == 1 and isinstance(piece[0], ast.If) and not piece[0].orelse


def _split(module: SourceModule, held: list[ast.stmt]) -> list[list[ast.stmt]]:
    if not _leaks(module, held) and not releases_figures(module, held):
        return [held]
    pieces: list[list[ast.stmt]] = []
    for statement in held:
        if isinstance(statement, _UNITS) and not _leaks(module, [statement]) and not releases_figures(module, [statement]):
            if pieces and pieces[-1] and held.index(pieces[-1][-1]) + 1 == held.index(statement):
                pieces[-1].append(statement)
            else:
                pieces.append([statement])
    return pieces


def _leaks(module: SourceModule, statements: list[ast.stmt]) -> bool:
    """True where a name bound inside, or a container filled inside, is read outside."""
    nodes = [n for s in statements for n in walk(s)]
    own = {id(t) for n in nodes if isinstance(n, ast.comprehension) for t in walk(n.target)}  # nobody else has these names
    bound = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and id(n) not in own}
    changed = {name for n in nodes if (name := _changed(n)) is not None and name.id not in module.imports}
    bound |= {name.id for name in changed if nature(module, name) is not Nature.HOST}
    inside = {id(n) for n in nodes}
    if _sets_what_is_read(module, nodes, inside):
        return True
    if not bound:
        return False
    home = module.function_of(statements[0])
    for node in module.nodes(ast.Name):
        if node.id in bound and id(node) not in inside and not isinstance(node.ctx, ast.Store):
            scope = module.function_of(node)
            if scope is home and not _bound_again(module, node, inside, below=statements[-1].end_lineno or 0):
                return True
            if scope is not home and home is not None and any(up is home for up in module.ancestors(node)):
                return True
    return False


def _sets_what_is_read(module: SourceModule, nodes: list[ast.AST], inside: set[int]) -> bool:
    """True where an attribute is set that is read outside, whatever the object: `args.config = json.load(f)`."""
    stored = {dotted(n) for n in nodes if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)} - {""}
    if not stored:
        return False
    reads = (n for n in module.nodes(ast.Attribute) if isinstance(n.ctx, ast.Load) and id(n) not in inside)
    return any(dotted(n) in stored for n in reads)


def _changed(node: ast.AST) -> ast.Name | None:
    """The name of what a node fills or changes: `options["a"] = 1`, `rows.append(x)`."""
    target: ast.expr | None = None
    if isinstance(node, (ast.Subscript, ast.Attribute)) and isinstance(node.ctx, (ast.Store, ast.Del)):
        target = node.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MUTATORS:
        target = node.func.value
    while isinstance(target, (ast.Subscript, ast.Attribute)):
        target = target.value
    return target if isinstance(target, ast.Name) else None


def _bound_again(module: SourceModule, read: ast.Name, inside: set[int], *, below: int) -> bool:
    """True for a read under a loop, `with` or comprehension of its own that binds the name, or behind a new value for it
    that stands further down than the line `below`.
    """
    child: ast.AST = read
    for up in module.ancestors(read):
        earlier = above(module, child)
        child = up
        given = [t for s in earlier if isinstance(s, ast.Assign) and s.lineno > below for t in s.targets]
        if any(isinstance(t, ast.Name) and t.id == read.id for t in given):
            return True
        if id(up) in inside or isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return False
        targets: list[ast.expr] = []
        if isinstance(up, ast.For):
            targets = [up.target] if any(n is read for s in up.body for n in walk(s)) else []
        elif isinstance(up, ast.With):
            targets = [i.optional_vars for i in up.items if i.optional_vars is not None]
        elif isinstance(up, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            targets = [g.target for g in up.generators]
        if any(isinstance(n, ast.Name) and n.id == read.id for t in targets for n in walk(t)):
            return True
    return False


def _is_output(project: Project, module: SourceModule, statement: ast.stmt) -> bool:
    """True for a statement that only puts something out, on every rank, and that control does not leave through."""
    if not isinstance(statement, _UNITS):
        return False
    key = ("is output", module.path, statement.lineno, statement.col_offset)  # asked by each codemod about output
    return project.keep(key, lambda: _puts_out(project, module, statement))


def _puts_out(project: Project, module: SourceModule, statement: ast.stmt) -> bool:
    if not module.is_whole(statement) or _leaves(statement) or _shows_progress(statement) or _binds_inside(statement):
        return False
    effects = only_output_of(project, module, statement)
    if effects is None or any(e.guarded for e in effects.items) or ranks_at(module, statement, project=project).some:
        return False
    if under_such_a_name(project, module, statement) or under_such_a_test(project, module, statement):
        return False
    return not all(_is_seen_to(project, module, statement, e) for e in effects.output)


def _binds_inside(statement: ast.stmt) -> bool:
    """True for `print(f"epoch {(epoch := epoch + 1)}")`: the name is bound for every rank, whatever is shown."""
    return any(isinstance(n, ast.NamedExpr) for n in walk(statement))


def _is_seen_to(project: Project, module: SourceModule, statement: ast.stmt, effect: Effect) -> bool:
    """True for output that belongs to another place: a function left to rank 0, or one that can have a guard of its own."""
    if covered(project, module, effect):
        return True
    if effect.path == module.path and statement.lineno <= effect.line <= (statement.end_lineno or statement.lineno):
        return False
    home = module if effect.path == module.path else project.module(effect.path)
    inside = [f for f in home.functions if f.lineno <= effect.line <= (f.end_lineno or f.lineno)] if home else []
    lines = effect.kind in (Kind.PRINT, Kind.LOG)
    if home is None or not inside:
        return False
    by_group = effect.kind is Kind.FILE and asks_the_group(home)
    return by_group or has_guard(project, home, inside[-1], lines=lines)


def _shows_progress(statement: ast.stmt) -> bool:
    """True for a loop with a progress bar, which stays on every rank."""
    return isinstance(statement, ast.For) and any(
        last(dotted(n.func)) in ("tqdm", "trange", "track") for n in walk(statement.iter) if isinstance(n, ast.Call)
    )


def _is_preparation(project: Project, module: SourceModule, statement: ast.stmt) -> bool:
    """True for an assignment to plain names that computes and no more."""
    if not isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign)) or not module.is_whole(statement):
        return False
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    names = all(isinstance(t, ast.Name) for t in targets)
    return names and does_nothing(project, module, statement)


def _leaves(statement: ast.stmt) -> bool:
    """True where `return`, or a `break` or `continue` of an outer loop, stands in the statement."""
    stack: list[tuple[ast.AST, bool]] = [(statement, False)]
    while stack:
        node, looped = stack.pop()
        if isinstance(node, ast.Return) or (isinstance(node, (ast.Break, ast.Continue)) and not looped):
            return True
        looped = looped or isinstance(node, (ast.For, ast.While))
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            block = getattr(node, name, None)
            stack += [(child, looped) for child in block] if isinstance(block, list) else ()
    return False
