"""The way of a command to a changed line: the tests round it, round the calls that lead to it, and where the first stands.

A line is shown to be run where a chain of calls that are seen begins in the script, and the options answer each test on it.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Mapping

from codemods.analysis.branches import branches_round, exits_above
from codemods.analysis.conditions import is_main_block
from codemods.analysis.loading.same_program import whole_program
from codemods.analysis.model.signatures import bind, defaults, is_bound, parameters
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.closed_branches import open_uses
from codemods.analysis.ranks.uses import CallSite, HandedOn, constructions, uses_of
from codemods.files.source import FunctionNode, SourceModule
from codemods.runtime.record import field, record
from ddpfix.summary.needed_options import NOWHERE, NeededOption, Program
from ddpfix.summary.option_tests import lacking, unanswered
from ddpfix.summary.program_stages import (
    OF_VALIDATION,
    calls_of_stages,
    has_no_validation_data,
    is_called_by_the_project_alone,
    is_called_with_its_object,
    stages_of,
    starts_a_stage,
)
from ddpfix.summary.sure_errors import ends_before

# What calls the function that it is handed, in each of its processes or in this one.
_CALLS_WHAT_IT_IS_HANDED = frozenset({"spawn", "start_processes", "Process", "launch", "Thread", "partial", "Fire", "run"})
_DEEPEST = 10
_MOST_STEPS = 2000
_TOO_LONG = NeededOption("a way that is too long to be followed", shown=False)
_KINDS = (ast.If, ast.IfExp)


@record(frozen=False)
class Way:
    """Where a program goes with the options of one command. given: what each option has. stage: `fit` of `main.py fit`, where
    Lightning reads the command.
    """

    program: Program
    script: str
    given: Mapping[str, str | None]
    stage: str = ""
    _to: dict[tuple[str, int, int], tuple[NeededOption, ...]] = field(default_factory=dict)
    _asked_for: list[tuple[str, int]] = field(default_factory=list)
    _went_round: bool = False
    _steps: int = 0

    def lacks(self, module: SourceModule, node: ast.AST) -> tuple[NeededOption, ...]:
        """What the options lack for the place to be run, and what nothing answers; nothing where it is shown to be run."""
        key = (module.path, getattr(node, "lineno", 0), getattr(node, "col_offset", 0))
        if key in self._to:
            return self._to[key]
        self._steps += 1
        if self._steps > _MOST_STEPS:
            return (_TOO_LONG,)
        found = tuple(dict.fromkeys(self._lacks(module, node)))
        if not self._went_round:  # else it holds for the calls above this one alone
            self._to[key] = found
        self._went_round = self._went_round and bool(self._asked_for)
        return found

    def _lacks(self, module: SourceModule, node: ast.AST) -> Iterator[NeededOption]:
        function = module.function_of(node)
        given = {p.arg for p in parameters(function, bound=False)} if function is not None else set()
        left: list[tuple[ast.expr, bool]] = []  # for the callers to answer
        for test, holds, passes in _tests(module, node):
            found = lacking(self.program, module, test, self.given, holds=holds) if test is not None else []
            if test is None:
                yield from [] if holds and module.path == self.script else [NOWHERE]
            elif passes:
                yield from (need for need in found if need.shown)
            elif found:
                asks_a_parameter = any(not n.shown for n in found) and _names(test) & (given - self.program.held)
                if asks_a_parameter:
                    left.append((test, holds))
                else:
                    yield from found
        if ends_before(self.program, module, node, self.given):
            yield NeededOption("lines above it that do not fail", shown=False)
        if any(isinstance(up, ast.ExceptHandler) for up in _inside(module, node)):
            yield NeededOption("an exception", shown=False)
        if function is not None:
            yield from self._before(module, function, node, left)

    def _before(
        self, module: SourceModule, function: FunctionNode, node: ast.AST, left: list[tuple[ast.expr, bool]]
    ) -> tuple[NeededOption, ...]:
        """What they lack for the function to be called, by its calls that come to the place."""
        key = (module.path, function.lineno)
        if key in self._asked_for or len(self._asked_for) > _DEEPEST:  # a function that calls itself is called by another first
            self._went_round = True
            return (NOWHERE,)
        self._asked_for.append(key)
        try:
            hook = self._of_a_hook(module, function)
            if hook is not None:
                return (*hook, *(unanswered(test, holds=holds) for test, holds in left))
            return self._called(module, function, node, left)
        finally:
            self._asked_for.pop()

    def _called(
        self, module: SourceModule, function: FunctionNode, node: ast.AST, left: list[tuple[ast.expr, bool]]
    ) -> tuple[NeededOption, ...]:
        project = self.program.project
        owner = module.class_of(function)
        if owner is not None and is_called_with_its_object(function) and (made := self._made(module, owner)) is not None:
            return (*made, *(unanswered(test, holds=holds) for test, holds in left))
        uses = open_uses(project, module, function, node, uses_of(project, module, function))
        ways = [
            (*self.lacks(s.module, s.call), *self._answered(function, module, s, left))
            for s in uses.calls
            if s.module.path in self.program.files and s.module.function_of(s.call) is not function and _names_it(s, function)
        ]
        handed = (h for h in uses.handed_on if h.module.path in self.program.files and _is_run(h))
        ways += [(*self.lacks(h.module, h.node), *(unanswered(test, holds=holds) for test, holds in left)) for h in handed]
        named = bool(uses.handed_on) or uses.more or any(s.module.path in self.program.files for s in uses.calls)
        if ways:
            best = min(ways, key=_hardness)
            return tuple(dict.fromkeys(best))
        if (uses.calls or uses.handed_on) and not named and is_called_by_the_project_alone(project, module, function):
            return (NOWHERE,)
        return (NeededOption(f"a call of `{function.name}` that is not seen", shown=False),)

    def _answered(
        self, function: FunctionNode, module: SourceModule, site: CallSite, left: list[tuple[ast.expr, bool]]
    ) -> Iterator[NeededOption]:
        """What the arguments of a call leave open of the tests for parameters."""
        given = bind(function, site.call, bound=is_bound(module, function)) if left else None
        values = (defaults(function) | given) if given is not None else {}
        for test, holds in left:
            put = _put(test, values)
            answer = _literal(put)
            if answer is None:
                yield from lacking(self.program, site.module, put, self.given, holds=holds)
            elif answer is not holds:
                yield NOWHERE

    def _made(self, module: SourceModule, owner: ast.ClassDef) -> tuple[NeededOption, ...] | None:
        """What they lack for an object of the class to be made; None where it is not seen who makes one."""
        project, files = self.program.project, self.program.files
        found = constructions(project, module, owner)
        if found is None:
            return None
        places = [*((s.module, s.call) for s in found.calls), *((h.module, h.node) for h in found.handed_on)]
        ways = [self.lacks(m, n) for m, n in places if m.path in files]
        if not ways and not places and module.path in files - whole_program(project, self.script):
            return ()  # settings name it
        return min(ways, key=_hardness) if ways else None

    def _of_a_hook(self, module: SourceModule, function: FunctionNode) -> tuple[NeededOption, ...] | None:
        """Of a method that Lightning calls in a stage of its own: `on_test_epoch_end`. None for what is no hook."""
        stages = stages_of(self.program.project, module, function)
        owner = module.class_of(function)
        if not stages or owner is None:
            return None
        project, files = self.program.project, self.program.files
        if stages == OF_VALIDATION and has_no_validation_data(project, files):
            return (NOWHERE,)
        if self.stage:
            return () if self.stage in stages else (NeededOption(f"the sub-command {stages[0]}", ("", stages[0])),)
        calls = [self.lacks(m, call) for m, call in calls_of_stages(project, files, stages)]
        if not calls:
            none = NeededOption(f"a call of `{stages[0]}` that is not seen", shown=False)
            return (NOWHERE if starts_a_stage(project, files) else none,)
        made = self._made(module, owner)
        unseen = (NeededOption(f"an object of `{owner.name}`, which is not seen to be made", shown=False),)
        return (*min(calls, key=_hardness), *(unseen if made is None else made))


def _hardness(needs: tuple[NeededOption, ...]) -> tuple[bool, bool, int]:
    return NOWHERE in needs, any(not need.shown for need in needs), len(needs)


def _tests(module: SourceModule, node: ast.AST) -> Iterator[tuple[ast.expr | None, bool, bool]]:
    """(a test that decides over a place in its function, its answer there, whether a run gets past it that no option stops).

    None for the one that asks whether this file is the program. An exit that raises ends a run that has failed, and one that goes
    on with the loop leaves the other rounds.
    """
    for branch in branches_round(module, node, kinds=_KINDS):
        yield None if is_main_block(branch.node) else branch.test, branch.holds, False
    for leaving in exits_above(module, node):
        yield leaving.test, False, isinstance(leaving.body[-1], (ast.Raise, ast.Continue))


def _inside(module: SourceModule, node: ast.AST) -> Iterator[ast.AST]:
    for up in module.ancestors(node):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return
        yield up


def _names(test: ast.expr) -> set[str]:
    return {n.id for n in ast.walk(test) if isinstance(n, ast.Name)}


def _names_it(site: CallSite, function: FunctionNode) -> bool:
    """False for `TASKS[name]()`, which may be another one's call."""
    called = site.call.func
    name = dotted(called)
    if isinstance(called, ast.Attribute) and called.attr == function.name:
        return True
    return name == function.name or name.partition(".")[0] in site.module.imports


def _is_run(handed: HandedOn) -> bool:
    up = handed.module.parent(handed.node)
    up = handed.module.parent(up) if isinstance(up, ast.keyword) else up
    return isinstance(up, ast.Call) and up.func is not handed.node and last(dotted(up.func)) in _CALLS_WHAT_IT_IS_HANDED


class _Arguments(ast.NodeTransformer):
    def __init__(self, values: Mapping[str, ast.expr]) -> None:
        self._values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._values.get(node.id, node)


def _put(test: ast.expr, values: Mapping[str, ast.expr]) -> ast.expr:
    """The test with the arguments of a call in the place of parameters."""
    found: ast.expr = _Arguments(values).visit(copy.deepcopy(test))
    return found


def _literal(test: ast.expr) -> bool | None:
    """Of a test whose values are all written out."""
    if isinstance(test, ast.Constant):
        return bool(test.value)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = _literal(test.operand)
        return None if inner is None else not inner
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return None
    left, right = test.left, test.comparators[0]
    if not isinstance(left, ast.Constant) or not isinstance(right, ast.Constant):
        return None
    same = left.value == right.value
    if isinstance(test.ops[0], (ast.Eq, ast.Is)):
        return same
    return not same if isinstance(test.ops[0], (ast.NotEq, ast.IsNot)) else None
