"""Does every parameter of a model take part in every loss? A plain static verdict, with the chain of evidence behind it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import Enum
from itertools import takewhile

from codemods.analysis.class_index import ClassSite, class_facts
from codemods.analysis.model.copied_layers import copied_by
from codemods.analysis.model.flow_frame import Place, TooDeep
from codemods.analysis.model.flow_values import NONE, NOTHING, Cause, Decision, Names, Ref, Value
from codemods.analysis.model.member_kinds import Kind, Member
from codemods.analysis.model.model_flow import Flow
from codemods.analysis.model.model_members import members_of
from codemods.analysis.model.parameter_paths import in_each_arm, own_name, steps_of, top_of, tops_of
from codemods.api.findings import Asked, Evidence
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

EVIDENCE_ROWS = 12
_NOT_FROM_STEP_TO_STEP = frozenset({Cause.CONFIG, Cause.ARGUMENT, Cause.OTHER})
# in front of a name: not of self, whose class is followed, nor of a configuration, where it is a section
_OF_AN_OBJECT = rb"(?<!self)(?<!config)(?<!cfg)(?<!conf)(?<!args)(?<!hparams)"


class Verdict(Enum):
    """What the source shows about the parameters of a model."""

    ALL = "every parameter reaches the loss in every step"
    SOMETIMES = "some parameters are left out in some steps"
    NEVER = "some parameters never reach the loss"
    UNKNOWN = "the source does not show it"


class Entry(Enum):
    """Where the loss comes from: the method it starts in."""

    FORWARD = "forward"  # raw DDP: the loss is made of what forward returns
    HF = "forward "  # transformers.Trainer: the output named loss
    TRAINING_STEP = "training_step"

    @property
    def method(self) -> str:
        return self.value.strip()


@record
class Usage:
    """The verdict over one model.

    skipped: the decisions that leave parameters out in some steps, random ones first. never: parameters that reach no loss.
    reasons: what is not known. assumptions: what the verdict takes for granted. checkpoints: `path:line` of the activation
    checkpointing that may be the reentrant kind. wrapped: the class of object that forward returns, where it is none of
    Python's own. many: forward returns several outputs, and which of them enter the loss is not in it. taken: those of the
    assumptions that say what the modules are. dead: those of `never` that are made always and that nothing unknown can use.
    copied: which of those torch works with copies of, and what copies them. instead: what does without the flag, where that is
    more than freezing.
    """

    verdict: Verdict
    site: ClassSite
    entry: Entry
    skipped: tuple[Decision, ...] = ()
    never: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    checkpoints: tuple[str, ...] = ()
    wrapped: str = ""
    opaque: Names = NONE
    taken: tuple[str, ...] = ()
    many: bool = False
    dead: tuple[str, ...] = ()
    copied: tuple[tuple[str, str], ...] = ()
    instead: str = ""

    @property
    def name(self) -> str:
        return self.site.name


def needs_flag(usage: Usage) -> bool:
    """True where something that differs from step to step leaves a module out."""
    causes = {decision.cause for decision in usage.skipped if decision.cause.varies}
    return usage.verdict is Verdict.SOMETIMES and bool(causes - {Cause.ARGUMENT, Cause.OTHER})


def deciding(usage: Usage) -> Decision | None:
    """The strongest of what leaves a module out in some steps; what training may never meet does not count."""
    return next((d for d in usage.skipped if d.cause.varies and d.cause not in (Cause.ARGUMENT, Cause.OTHER)), None)


def usage_of(project: Project, site: ClassSite, entry: Entry) -> Usage:
    """The verdict over the model class `site`, remembered for the project."""
    key = ("model usage", site.module.path, site.node.lineno, entry)
    return project.memo(key, lambda: _usage_of(project, site, entry))


def _usage_of(project: Project, site: ClassSite, entry: Entry) -> Usage:
    """What holds for every configuration, if it does; else what holds for the values that the project gives its settings."""
    found = Judge(project, site, entry, settings=False).judge()
    return found if found.verdict is Verdict.ALL else Judge(project, site, entry, settings=True).judge()


class Judge:
    def __init__(
        self, project: Project, site: ClassSite, entry: Entry, *, settings: bool, decided: tuple[Place, bool] | None = None
    ) -> None:
        self.project, self.site, self.entry = project, site, entry
        self.facts = class_facts(project, site.module, site.node)
        given = frozenset({"labels", "label", "targets", "target", "label_ids"}) if entry is Entry.HF else NONE
        self.flow = Flow(project, given, settings=settings, decided=decided)
        root = Member(site.name, Kind.MODULE, site.name, site.module.path, site.node.lineno, site)
        self.root = Ref("", root)
        self.parameters: dict[str, Ref] = {}

    def judge(self) -> Usage:
        try:
            returned = self._returned()
        except (TooDeep, RecursionError):
            return self._unknown("the model is too large to follow")
        if returned is None:
            return self._unknown(f"{self.site.name} has no {self.entry.method} in the project")
        loss, doubt = self._loss(returned)
        if self.parameters and not (loss.must | loss.may) & frozenset(self.parameters):
            return self._unknown(f"no parameter of {self.site.name} is seen to reach the loss: what is trained is made otherwise")
        return self._verdict(loss, doubt, returned)

    def _returned(self) -> Value | None:
        self.parameters = self.flow.parameters_below(self.root)
        self.flow.all_paths = frozenset(self.parameters)
        return self._run()

    def _run(self) -> Value | None:
        found = self.facts.method(self.entry.method)
        if found is None:
            return None
        inner = self.flow.arguments(found[1], [], {}, bound=True)
        env = {name: value if name not in _named(found[1]) else NOTHING for name, value in inner.items()}
        return self.flow.call_method(self.root, self.facts, self.entry.method, env, root=True)

    def _loss(self, returned: Value) -> tuple[Value, str]:
        """The loss among the outputs, and why it cannot be told from them, "" where it can."""
        if self.entry is Entry.FORWARD:
            outputs = [v for _, v in returned.parts if v.carries] or [returned]
            if len(outputs) == 1 and not returned.many:
                return outputs[0], ""
            shared = frozenset.intersection(*(v.must for v in outputs))
            loss = Value(shared, returned.may | returned.must, returned.doubts)
            text = f"forward of {self.site.name} returns several outputs; which of them enter the loss is not followed"
            return loss, "" if shared >= frozenset(self.parameters) - self.flow.absent else text
        named = returned.part("loss")
        if named is not None:
            return named, ""
        if self.entry is Entry.HF:
            if returned.parts and (first := returned.part(0)) is not None:
                return first, ""
            return returned, f"forward of {self.site.name} returns no output named loss"
        return returned, ""

    def _verdict(self, loss: Value, doubt: str, returned: Value) -> Usage:
        missing = frozenset(self.parameters) - loss.must - self.flow.absent
        opaque = frozenset(p for p, ref in self.parameters.items() if ref.member.kind is Kind.UNKNOWN) - self.flow.absent
        skipped = self._skipped(missing, loss)
        explained = frozenset(p for d in skipped for p in d.names)
        varying = [d for d in skipped if d.cause.varies]
        never = tuple(sorted(p for p in missing - explained - opaque if p not in loss.may))
        reasons = self._reasons(loss, doubt, opaque, missing - explained - frozenset(never), skipped)
        elsewhere = self._read_elsewhere(never)
        reasons += elsewhere
        if self.entry is Entry.TRAINING_STEP:
            reasons += [f"{self.site.name} has its own {n}" for n in ("backward", "training_step_end") if self.facts.method(n)]
        perhaps = frozenset(p for p, ref in self.parameters.items() if ref.member.perhaps)
        left_out = frozenset(p for d in varying for p in d.names)
        if left_out and left_out <= perhaps:
            reasons.append(f"whether {tops_of(left_out)} has parameters is decided when the model is built")
        if never and not self._is_surely_made(never):
            reasons.append(f"whether {tops_of(never)} holds what never reaches the loss is decided when the model is built")
        if left_out - opaque - perhaps:
            verdict = Verdict.SOMETIMES
        elif reasons or (self.flow.problems and never):
            verdict = Verdict.UNKNOWN
        else:
            verdict = Verdict.NEVER if never else Verdict.ALL
        if not self.parameters:
            verdict, reasons = Verdict.UNKNOWN, [f"no parameter of {self.site.name} is seen"]
        reentrant = sorted(place for place, may_be in self.flow.checkpoints.items() if may_be)
        dead = () if elsewhere or self._has_own_backward() else self._dead(never)
        return Usage(
            verdict, self.site, self.entry, tuple(skipped), never, tuple(reasons), tuple(self.flow.assumptions),
            tuple(self._evidence(loss, verdict, never)), tuple(reentrant), returned.wrapped, opaque, tuple(self.flow.taken),
            bool(doubt), dead, tuple(self._copied(dead)),
        )  # fmt: skip

    def _has_own_backward(self) -> bool:
        names = ("backward", "training_step_end", "automatic_optimization")
        words = (b"manual_backward", b"automatic_optimization")
        return self.entry is Entry.TRAINING_STEP and (
            any(self.facts.method(name) for name in names)
            or any(site.module.holds(word) for site in self.facts.lineage for word in words)
        )

    def _dead(self, never: tuple[str, ...]) -> tuple[str, ...]:
        """The parameters that reach no loss whatever else is not known, if each way to make the model makes one of them."""
        tops = members_of(self.project, self.facts).by_name
        always = (p for p in never if p not in self.flow.perhaps and p not in self.flow.tested)
        sure = tuple(p for p in always if top_of(p) in tops and not self.parameters[p].member.condition)
        return sure if not self.flow.problems and in_each_arm(tuple(self.parameters), sure) else ()

    def _is_surely_made(self, never: tuple[str, ...]) -> bool:
        """True where each of several makes of a module has one of them, and not only layers that a test adds."""
        sure = [p for p in never if p not in self.flow.perhaps]
        return bool(sure) and in_each_arm(tuple(self.parameters), sure)

    def _copied(self, dead: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        for path in dead:
            member = self.parameters[path].member
            module = self.project.module(member.path)
            if module is not None and (name := copied_by(module, member.line, path.rpartition(".")[2])):
                yield path, name

    def _read_elsewhere(self, never: Iterable[str]) -> list[str]:
        """Parameters that forward does not use may be used by other code: `model.module.head(features)`."""
        own = {site.module.path for site in self.facts.lineage}
        dead = tuple(never)
        living = self._steps_but(frozenset(dead))
        for name in dict.fromkeys(own_name(path, living) for path in dead):
            word = f".{name}".encode()
            for path in self.project.files_containing(word):
                data = self.project.read(path) or b""
                if path in own or self._only_looks(path, data):
                    continue
                if re.search(_OF_AN_OBJECT + re.escape(word) + rb"\b", data):
                    return [f"{name} is read in {path}"]
        return []

    def _only_looks(self, path: str, data: bytes) -> bool:
        """True for a program that trains nothing and that no other file imports: what it does with a layer is no step."""
        stem = path.rpartition("/")[2].removesuffix(".py")
        trains = any(word in data for word in (b"backward", b".fit(", b"Trainer", b".step("))
        return not trains and b"__main__" in data and not self.project.files_importing(stem)

    def _steps_but(self, dead: Names) -> frozenset[str]:
        """Every step on the ways to the other parameters."""
        return frozenset(head for p in self.parameters if p not in dead for head, _ in steps_of(p))

    def _skipped(self, missing: Names, loss: Value) -> list[Decision]:
        """The decisions that explain why a parameter is missing; each parameter goes to the strongest."""
        order = list(Cause)
        ranked = sorted(self.flow.decisions, key=lambda d: (order.index(d.cause), not d.literal, d.path, d.line))
        out: list[Decision] = []
        left = {p for p in missing if p in loss.may}
        loosely = frozenset(p for d in ranked if d.cause in _NOT_FROM_STEP_TO_STEP for p in d.names)
        for decision in ranked:
            names = frozenset(left & decision.names)
            if decision.cause not in _NOT_FROM_STEP_TO_STEP and names & loosely:
                names -= self._used_either_way(decision) & loosely
            if names:
                left -= names
                out.append(Decision(decision.cause, decision.text, decision.path, decision.line, names, decision.literal))
        return out

    def _used_either_way(self, decision: Decision) -> Names:
        """What the loss may have for each answer of a test: another test leaves it out, this one only an output that shows it."""
        used: list[Names] = []
        place = (decision.path, decision.line)
        for answer in (True, False):
            other = Judge(self.project, self.site, self.entry, settings=self.flow.settings, decided=(place, answer))
            try:
                returned = other._returned()
            except (TooDeep, RecursionError):
                return NONE
            if returned is None or not other.flow.has_met:
                return NONE
            loss = other._loss(returned)[0]
            used.append(loss.may | loss.must)
        return used[0] & used[1]

    def _reasons(self, loss: Value, doubt: str, opaque: Names, open_names: Names, skipped: list[Decision]) -> list[str]:
        out = list(self.flow.problems)
        out += [f"{top_of(p)}: {self.parameters[p].member.note}" for p in sorted(opaque)]
        if open_names - opaque:
            out += sorted(loss.doubts) or [doubt or f"how {tops_of(open_names - opaque)} reaches the loss is not followed"]
        if doubt:
            out.append(doubt)
        places = [f"{place} checkpoints with the reentrant kind" for place, may_be in self.flow.checkpoints.items() if may_be]
        config = [d for d in skipped if not d.cause.varies]
        out += [f"{tops_of(d.names)} takes part only by `{d.text}` ({d.path}:{d.line}), a setting" for d in config]
        return list(dict.fromkeys([*out, *places]))

    def _evidence(self, loss: Value, verdict: Verdict, never: Iterable[str]) -> list[Evidence]:
        found = self.facts.method(self.entry.method)
        rows: list[Evidence] = []
        if found is not None:
            text = f"the loss is followed from {self.site.name}.{self.entry.method}"
            rows.append(Evidence("static", text, found[0].module.path, found[1].lineno, asked=Asked.PARAMETERS))
        rows += self._module_rows(loss)
        for branch in self.flow.branches.values():
            if not branch.lost and verdict is Verdict.ALL and len(rows) < EVIDENCE_ROWS * 2:
                asked = Asked.OPTIONAL if branch.absent else Asked.BRANCHES
                text = f"the test `{branch.text}` leaves no module out"
                rows.append(Evidence("static", text, branch.path, branch.line, asked=asked))
        for path in list(never)[:EVIDENCE_ROWS]:
            ref = self.parameters[path]
            where = f", only without a gradient ({self.flow.stopped[path]})" if path in self.flow.stopped else ""
            text = f"{path} reaches no loss{where}"
            rows.append(Evidence("static", text, ref.member.path, ref.member.line, asked=Asked.PARAMETERS))
        return rows

    def _module_rows(self, loss: Value) -> list[Evidence]:
        """One row for each direct sub-module: where it is used on the way to the loss."""
        rows: list[Evidence] = []
        tops: dict[str, list[str]] = {}
        for path in self.parameters:
            tops.setdefault(top_of(path), []).append(path)
        for top, paths in list(tops.items())[:EVIDENCE_ROWS]:
            used = next((u for p, u in self.flow.used_at.items() if p == top or top_of(p) == top), None)
            if used is not None and all(p in loss.must for p in paths):
                text = f"{top} reaches the loss: {used[2][:80]}"
                rows.append(Evidence("static", text, used[0], used[1], asked=Asked.PARAMETERS))
        if len(tops) > EVIDENCE_ROWS:
            more = f"{len(tops) - EVIDENCE_ROWS} more modules were followed the same way"
            rows.append(Evidence("static", more, self.site.module.path, self.site.node.lineno, asked=Asked.PARAMETERS))
        return rows

    def _unknown(self, reason: str) -> Usage:
        return Usage(Verdict.UNKNOWN, self.site, self.entry, reasons=(reason,))


def _named(function: object) -> frozenset[str]:
    """Parameters of the root method: whoever calls it may give any of them, so their defaults say nothing."""
    args = function.args  # type: ignore[attr-defined]
    return frozenset(a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs))


_VARIANT = lazy(r"\(\d+\)(\[\w+\])*$|\(\d+\)")  # which of several makes of a module: they share a name to freeze it by


def left_out_where(decision: Decision) -> str:
    """When a module takes no part, for a message: behind `takes no part`."""
    place = f"({decision.path}:{decision.line})"
    if decision.cause is Cause.TURN:
        return f"in the backward pass of `{decision.text}` {place}"
    return f"in steps that `{decision.text}` decides {place}"


def names_of(parameters: Iterable[str]) -> str:
    """The first of some parameters, for a message."""
    names = list(dict.fromkeys(_VARIANT.sub("", name) for name in parameters))
    return ", ".join(names[:4]) + (" …" if len(names) > 4 else "")


def never_of(usage: Usage, parameters: tuple[str, ...]) -> str:
    """What some parameters of a model do not do, for a message, with the cause where torch has copied one of them."""
    copies = "".join(f"; {by} works with copies of {path}" for path, by in usage.copied if path in parameters)
    return f"{names_of(parameters)} of {usage.name} never reaches the loss{copies}"


def modules_of(decision: Decision) -> str:
    """The sub-modules that a decision leaves out, for a message: the last step that they have in common, by sub-module."""
    groups: dict[str, list[list[str]]] = {}
    for name in decision.names:
        steps = name.replace("[", ".[").split(".")
        groups.setdefault(steps[0], []).append(steps)
    out = []
    for paths in groups.values():
        shared = takewhile(lambda column: len(set(column)) == 1, zip(*paths, strict=False))
        steps = [column[0] for column in shared] if len(paths) > 1 else paths[0]
        while len(steps) > 1 and steps[-1].startswith("["):
            steps = steps[:-1]
        out.append(".".join(steps).replace(".[", "["))
    return ", ".join(sorted(out)[:4]) + (" …" if len(out) > 4 else "")
