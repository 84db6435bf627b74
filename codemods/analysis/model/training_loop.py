"""The loss of a model that returns several outputs: followed through the code that wraps it, calls it and runs backward."""

from __future__ import annotations

import ast

from codemods.analysis.class_index import ClassSite
from codemods.analysis.model.flow_frame import Frame, Loop
from codemods.analysis.model.flow_values import NONE, NOTHING, Names, Value
from codemods.analysis.model.model_usage import Entry, Judge, Usage, Verdict
from codemods.analysis.model.wrapped_model import callers
from codemods.api.findings import Asked, Evidence
from codemods.files.source import FunctionNode, SourceModule
from codemods.runtime.record import record, replace
from codemods.store.project import Project

LEVELS = 3  # how far above the wrapper the training is looked for


@record
class _InLoop:
    """carried: the parameters that every loss of the loop surely has."""

    usage: Usage
    carried: Names


def usage_in_loop(project: Project, module: SourceModule, call: ast.Call, site: ClassSite) -> Usage | None:
    """The verdict by the backward passes of the functions round the wrapper; None where they do not show it, either."""
    found = _in_loop(project, module, call, site)
    return found.usage if found is not None and found.usage.verdict is not Verdict.UNKNOWN else None


def corrected_by_loop(project: Project, module: SourceModule, call: ast.Call, usage: Usage) -> Usage:
    """The verdict by the loop, where one output of forward leaves a module out in some steps, and the loss has it by another."""
    left_out = frozenset(name for decision in usage.skipped if decision.cause.varies for name in decision.names)
    if not (usage.many and usage.verdict is Verdict.SOMETIMES and left_out):
        return usage
    found = _in_loop(project, module, call, usage.site)
    return found.usage if found is not None and left_out <= found.carried else usage


def _in_loop(project: Project, module: SourceModule, call: ast.Call, site: ClassSite) -> _InLoop | None:
    key = ("usage in loop", module.path, call.lineno, call.col_offset, site.module.path, site.node.lineno)
    return project.memo(key, lambda: _find(project, module, call, site))


def _find(project: Project, module: SourceModule, call: ast.Call, site: ClassSite) -> _InLoop | None:
    homes = [(module, module.function_of(call))]
    for _ in range(LEVELS):
        for home, function in homes:
            judge = _LoopJudge(project, site, home, function, call, settings=False) if _trains(project, home) else None
            found = judge.judge() if judge is not None else None
            if judge is None or found is None or not judge.seen:
                continue
            if found.verdict is not Verdict.ALL:
                judge = _LoopJudge(project, site, home, function, call, settings=True)
                found = judge.judge()
            return _InLoop(found, judge.carried)  # this is where it is trained
        homes = [
            (other, other.function_of(use))
            for home, function in homes if function is not None
            for other, use in callers(project, home, function)
        ]  # fmt: skip
    return None


def _trains(project: Project, module: SourceModule) -> bool:
    """True where a backward pass stands in the file, or in one of the project that it imports from."""
    found = (project.resolve(name.dotted, module.path) for names in module.imports.values() for name in names)
    paths = {module.path, *(resolved.path for resolved in found if resolved is not None)}
    return any(b".backward(" in (project.read(path) or b"") for path in paths)


class _LoopJudge(Judge):
    """Judges by the values that `backward()` is called on, not by what forward returns."""

    def __init__(
        self, project: Project, site: ClassSite, home: SourceModule, function: FunctionNode | None, call: ast.Call,
        *, settings: bool,
    ) -> None:  # fmt: skip
        super().__init__(project, site, Entry.FORWARD, settings=settings)
        self.home = home
        self.function = function or ast.FunctionDef(
            "(module)", ast.arguments([], [], None, [], [], None, []), home.tree.body, [], lineno=1
        )
        self.loop = self.flow.loop = Loop(self.root, site.node)
        self.seen = False
        self.carried = NONE

    def _run(self) -> Value | None:
        arguments = self.function.args
        names = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
        self.flow.block(Frame(self.home, self.function, None), self.function.body, dict.fromkeys(names, NOTHING))
        inside = frozenset(self.parameters)
        passes = [p for p in self.loop.passes if (p.loss.must | p.loss.may) & inside]
        self.seen = bool(passes)
        if not passes:
            return None
        self.flow.assumptions = {text: None for p in passes for text in p.assumptions}
        self.flow.problems = {text: None for p in passes for text in p.problems}
        self.flow.decisions = self.flow.decisions[: max(p.decisions for p in passes)]
        self.loop.passes[:] = passes
        losses = [p.loss for p in passes]
        self.carried = shared = frozenset.intersection(*(v.must for v in losses))
        return Value(shared, frozenset(n for v in losses for n in v.may | v.must), frozenset(d for v in losses for d in v.doubts))

    def _loss(self, returned: Value) -> tuple[Value, str]:
        several = len({p.loss.must for p in self.loop.passes}) > 1
        return returned, "several losses are followed by backward passes of their own" if several else ""

    def _evidence(self, loss: Value, verdict: Verdict, never: object) -> list[Evidence]:
        first = self.loop.passes[0]
        rows = [Evidence("static", "the loss that backward() is called on", first.path, first.line, asked=Asked.PARAMETERS)]
        return [*rows, *super()._evidence(loss, verdict, never)[1:]]  # type: ignore[arg-type]

    def judge(self) -> Usage:
        found = super().judge()
        if not self.seen:
            return found
        last = self.loop.passes[-1]
        assumed = f"{self.site.name} is trained by the backward pass at {last.path}:{last.line} alone"
        return replace(found, wrapped="", assumptions=(*found.assumptions, assumed), taken=(*found.taken, assumed))
