"""Runs a model's forward (or training_step) on paper: which registered parameters reach the value it returns, on every path.

Statements are followed through branches, loops over module lists, the model's own methods, its sub-modules and project
functions. What is not known carries a doubt instead of a parameter, so a missing piece can only make the answer weaker.
"""

from __future__ import annotations

import ast

from codemods.analysis.class_index import ClassFacts, class_facts
from codemods.analysis.model.flow_calls import call
from codemods.analysis.model.flow_elements import attribute, comprehension, subscript
from codemods.analysis.model.flow_frame import Branch, Env, Frame, Loop, Pass, Place, TooDeep, asks_for_none
from codemods.analysis.model.flow_loops import for_statement, while_statement
from codemods.analysis.model.flow_meeting import meet, meet_all, note_random, undecided
from codemods.analysis.model.flow_truth import truth
from codemods.analysis.model.flow_values import (
    NONE,
    NOTHING,
    UNSET,
    Decision,
    Names,
    Ref,
    Value,
    below,
    doubtful,
    flat,
    parts_of,
    union,
)
from codemods.analysis.model.member_kinds import Kind
from codemods.analysis.model.model_members import members_of
from codemods.analysis.model.signatures import defaults, parameters
from codemods.analysis.model.stopped_gradients import callee, stops_gradients
from codemods.analysis.names import dotted, last, qualified
from codemods.data import torch_modules as table
from codemods.files.source import FunctionNode
from codemods.runtime.record import replace
from codemods.store.project import Project

BUDGET = 120_000  # expressions looked at for one model
DEPTH = 24


class Flow:
    """The run over one model. decisions, assumptions and problems are what it found on the way."""

    def __init__(
        self, project: Project, given: frozenset[str] = NONE, *, settings: bool = False, decided: tuple[Place, bool] | None = None
    ) -> None:
        self.project = project
        self.decided = decided  # a test, and the answer that is tried
        self.has_met = False  # that test
        self.settings = settings  # tests on settings are answered by the values that the project gives them
        self.given = given  # parameters of the root method that training always passes (labels)
        self.decisions: list[Decision] = []
        self.branches: dict[tuple[str, int], Branch] = {}
        self.assumptions: dict[str, None] = {}
        self.problems: dict[str, None] = {}
        self.stopped: dict[str, str] = {}
        self.used_at: dict[str, tuple[str, int, str]] = {}
        self.heap: dict[str, Value] = {}
        self.depth = 0
        self.steps = 0
        self.active: set[tuple[int, str]] = set()  # functions that are being run, each with the object it is a method of
        self.random_tests: set[int] = set()
        self.checkpoints: dict[str, bool] = {}  # where activation checkpointing stands -> may it be the reentrant kind
        self.all_paths: Names = NONE
        self.above: list[ast.ClassDef] = []  # the classes round the module whose parameters are being listed
        self.within: list[ast.ClassDef] = []  # the classes of the modules that are being called
        self.taken: dict[str, None] = {}  # assumptions on what the modules are
        self.loop: Loop | None = None  # where the run starts outside of the model
        self.by_hand: list[Pass] | None = None  # the passes of `self.manual_backward`, where they are what is asked for
        self.absent: set[str] = set()  # made only under a setting that the project never has
        self.perhaps, self.tested = set[str](), set[str]()  # layers that one arm of a test adds; that a constructor's test makes

    # Functions

    def call_method(self, ref: Ref, facts: ClassFacts, name: str, env: Env, *, root: bool = False) -> Value | None:
        """Run the method `name` of a module; None where no project class defines it."""
        found = facts.method(name)
        if found is None:
            return None
        site, function = found
        frame = Frame(site.module, function, facts, root=root)
        return self.run(frame, {**env, "self": Value(refs=(ref,))})

    def run(self, frame: Frame, env: Env) -> Value:
        """The value that the function returns, over all its paths."""
        owner = env.get("self", NOTHING).refs
        frame.owner = owner[0].path if owner else ""
        key = (id(frame.function), frame.owner)
        if key in self.active:
            return self._again(frame, env)
        if self.depth >= DEPTH:
            raise TooDeep
        self.depth += 1
        self.active.add(key)
        try:
            if isinstance(frame.function, ast.Lambda):
                return self.eval(frame, env, frame.function.body)
            for decorator in frame.function.decorator_list:
                name = qualified(frame.module, callee(decorator))
                frame.no_grad += last(name) in table.NO_GRAD
                if last(name) not in table.HARMLESS_DECORATORS | table.NO_GRAD:
                    place = f"{frame.module.path}:{decorator.lineno}"
                    self.problems.setdefault(f"@{name} is put round {frame.function.name} ({place})")
            end = self.block(frame, frame.function.body, env)
            if end is not None:
                frame.exits.append((Value(constant=None), None))
            return self.joined_exits(frame)
        finally:
            self.depth -= 1
            self.active.discard(key)

    def _again(self, frame: Frame, env: Env) -> Value:
        """A function that calls itself (over nested dicts, say): what it is given may come out, and nothing is sure."""
        given = [value for name, value in env.items() if name in frame.parameters]
        below = frozenset(p for value in given for ref in value.refs for p in self.parameters_below(ref))
        if not below and not any(value.carries for value in given):
            return NOTHING
        where = f"{frame.module.path}:{frame.function.lineno}"
        return doubtful([*map(flat, given), Value(NONE, below)], f"a function that calls itself ({where})")

    def joined_exits(self, frame: Frame) -> Value:
        if not frame.exits:
            return NOTHING
        exits = frame.exits
        if frame.root and any(not value.is_none for value, _ in exits):
            exits = [(value, test) for value, test in exits if not value.is_none]  # no loss, no backward
        result, _ = exits[-1]
        for value, test in reversed(exits[:-1]):
            result = meet(self, frame, value, result, test)
        return self._stop(frame, result) if frame.no_grad else result

    def arguments(
        self, function: FunctionNode | ast.Lambda, args: list[Value], keywords: dict[str, Value], *, bound: bool
    ) -> Env:
        """The environment a call makes; defaults that are literals are known."""
        names = [a.arg for a in parameters(function, bound=bound)]
        positional = len(function.args.posonlyargs) + len(function.args.args) - (1 if bound else 0)
        env: Env = {}
        for name, default in defaults(function).items():
            env[name] = Value(constant=default.value) if isinstance(default, ast.Constant) else NOTHING
        for name, value in zip(names[:positional], args, strict=False):
            env[name] = value
        rest = args[positional:]
        if function.args.vararg:
            env[function.args.vararg.arg] = replace(union(rest), parts=tuple(enumerate(rest)))
        spread = keywords.pop("**", None)
        if function.args.kwarg:
            extra = {k: v for k, v in keywords.items() if k not in names}
            joined = union([*extra.values(), *([spread] if spread else [])])
            env[function.args.kwarg.arg] = replace(joined, parts=tuple(extra.items()))
        if spread is not None:
            for name in names:
                env[name] = flat(spread) if name not in env or env[name].constant is not UNSET else env[name]
        env |= {k: v for k, v in keywords.items() if k in names}
        return {**dict.fromkeys(names, NOTHING), **env}

    # Statements

    def block(self, frame: Frame, statements: list[ast.stmt], env: Env) -> Env | None:
        """The environment behind the statements, None where no path gets there."""
        current: Env | None = env
        for statement in statements:
            if current is None:
                return None
            current = self.statement(frame, statement, current)
        return current

    def statement(self, frame: Frame, node: ast.stmt, env: Env) -> Env | None:
        if isinstance(node, ast.Assign):
            value = self.eval(frame, env, node.value)
            for target in node.targets:
                self.assign(frame, env, target, value)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self.assign(frame, env, node.target, self.eval(frame, env, node.value))
        elif isinstance(node, ast.AugAssign):
            old = self.eval(frame, env, node.target)
            new = self.eval(frame, env, node.value)
            self.assign(frame, env, node.target, replace(union([old, new]), many=old.many or new.many))
        elif isinstance(node, ast.Return):
            value = self.eval(frame, env, node.value) if node.value else Value(constant=None)
            frame.exits.append((value, frame.tests[-1] if frame.tests else None))
            return None
        elif isinstance(node, ast.Raise):
            return None
        elif isinstance(node, (ast.Continue, ast.Break)):
            stack = frame.loops if isinstance(node, ast.Continue) else frame.breaks
            if stack:
                stack[-1].append((dict(env), frame.tests[-1] if frame.tests else None))
            return None
        elif isinstance(node, ast.If):
            return self.if_statement(frame, node, env)
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            return for_statement(self, frame, node, env)
        elif isinstance(node, ast.While):
            return while_statement(self, frame, node, env)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            return self.with_statement(frame, node, env)
        elif isinstance(node, ast.Try):
            return self.try_statement(frame, node, env)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            env[node.name] = Value(closure=(node, frame))
        elif isinstance(node, ast.Expr):
            self.eval(frame, env, node.value)
        elif isinstance(node, ast.Match):
            self.problems.setdefault(f"a match statement ({frame.module.path}:{node.lineno})")
        return env

    def assign(self, frame: Frame, env: Env, target: ast.expr, value: Value) -> None:
        if frame.no_grad:
            value = self._stop(frame, value)
        if isinstance(target, ast.Name):
            env[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            for i, element in enumerate(target.elts):
                inner = element.value if isinstance(element, ast.Starred) else element
                self.assign(frame, env, inner, self.element(value, i))
        elif isinstance(target, ast.Subscript):
            old = self.eval(frame, env, target.value)
            if name := dotted(target.value):
                key = target.slice.value if isinstance(target.slice, ast.Constant) else None
                parts = tuple((k, v) for k, v in old.parts if k != key) + (((key, value),) if key is not None else ())
                joined = union([old, value])
                env[name] = replace(joined, parts=parts, refs=old.refs, many=old.many and not old.parts)
        elif isinstance(target, ast.Attribute):
            name = dotted(target)
            stored = replace(value, must=NONE) if frame.tests else value
            if name.startswith("self.") and (owner := env.get("self")) and owner.refs:
                self.heap[f"{owner.refs[0].path}|{name[5:]}"] = stored
            elif name:
                env[name] = stored

    def element(self, value: Value, key: object) -> Value:
        """`value[key]` of a tuple or a mapping; of a tensor the value itself; of a list of values one that is not known."""
        if value.refs:
            names = frozenset(p for ref in value.refs for p in self.parameters_below(ref))
            return Value(NONE, names | value.may, value.doubts | {"which module of a list is used is not followed"})
        if (part := value.part(key)) is not None:
            return part
        if value.many or value.parts:
            held = frozenset(p for _, part in value.parts for ref in part.refs for p in self.parameters_below(ref))
            doubt = {"only one element of a list is used"} if value.carries or held else NONE
            return Value(NONE, value.may | value.must | held, value.doubts | doubt)
        return flat(value)

    def if_statement(self, frame: Frame, node: ast.If, env: Env) -> Env | None:
        known = truth(self, frame, env, node.test)
        if known is not None:
            return self.block(frame, node.body if known else node.orelse, env)
        test = undecided(self, frame, env, node.test)
        if (tried := self.tried(frame, test)) is not None:
            return self.block(frame, node.body if tried else node.orelse, env)
        note_random(self, frame, env, test)
        text = " ".join(frame.module.text_of(test).split())
        key = (frame.module.path, test.lineno)
        if self.loop is None or frame.facts is not None:
            self.branches.setdefault(key, Branch(text, frame.module.path, test.lineno, NONE, asks_for_none(test)))
        frame.tests.append(test)
        then = self.block(frame, node.body, dict(env))
        other = self.block(frame, node.orelse, dict(env))
        frame.tests.pop()
        if then is None or other is None:
            # the rest of the block runs on one side of the test only, and so do its returns
            return then if other is None else other
        return meet_all(self, frame, then, other, test)

    def tried(self, frame: Frame, test: ast.expr) -> bool | None:
        """The answer that is tried for a test that the source leaves open."""
        if self.decided is None or self.decided[0] != (frame.module.path, test.lineno):
            return None
        self.has_met = True
        return self.decided[1]

    def with_statement(self, frame: Frame, node: ast.With | ast.AsyncWith, env: Env) -> Env | None:
        stops = any(stops_gradients(frame.module, item.context_expr) for item in node.items)
        for item in node.items:
            value = self.eval(frame, env, item.context_expr)
            if item.optional_vars is not None:
                self.assign(frame, env, item.optional_vars, flat(value))
        frame.no_grad += stops
        after = self.block(frame, node.body, env)
        frame.no_grad -= stops
        return after

    def try_statement(self, frame: Frame, node: ast.Try, env: Env) -> Env | None:
        current = self.block(frame, [*node.body, *node.orelse], dict(env))
        for handler in node.handlers:
            other = self.block(frame, handler.body, dict(env))
            if other is not None:
                current = other if current is None else meet_all(self, frame, current, other, None)
        return self.block(frame, node.finalbody, current) if current is not None else None


    # Expressions

    def eval(self, frame: Frame, env: Env, node: ast.expr | None) -> Value:
        self.steps += 1
        if self.steps > BUDGET:
            raise TooDeep
        if node is None:
            return NOTHING
        if isinstance(node, ast.Constant):
            return Value(constant=node.value)
        if isinstance(node, ast.Name):
            return env.get(node.id, NOTHING)
        if isinstance(node, ast.Attribute):
            return attribute(self, frame, env, node)
        if isinstance(node, ast.Call):
            value = call(self, frame, env, node)
            return self._stop(frame, value) if frame.no_grad else value
        if isinstance(node, ast.Subscript):
            return subscript(self, frame, env, node)
        if isinstance(node, (ast.Tuple, ast.List)):
            values = [self.eval(frame, env, e) for e in node.elts]
            return replace(union(values), parts=tuple(enumerate(values)))
        if isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            keyed = [(k.value if isinstance(k, ast.Constant) else object(), self.eval(frame, env, v)) for k, v in pairs]
            return replace(union(v for _, v in keyed), parts=tuple(keyed))
        if isinstance(node, ast.IfExp):
            return self.conditional_expression(frame, env, node)
        if isinstance(node, ast.Compare):
            operands = [self.eval(frame, env, v) for v in (node.left, *node.comparators)]
            return Value(random=any(v.random for v in operands))
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
            return comprehension(self, frame, env, node)
        if isinstance(node, ast.NamedExpr):
            value = self.eval(frame, env, node.value)
            self.assign(frame, env, node.target, value)
            return value
        if isinstance(node, ast.Lambda):
            return Value(closure=(node, frame))
        if isinstance(node, (ast.Starred, ast.Await)):
            return self.eval(frame, env, node.value)
        if isinstance(node, ast.BoolOp):
            values = [self.eval(frame, env, v) for v in node.values]
            joined = union(values)
            must = values[0].must if values else NONE
            return replace(joined, must=must, may=joined.may | joined.must, random=any(v.random for v in values))
        if isinstance(node, ast.JoinedStr):
            return NOTHING
        operands = [self.eval(frame, env, c) for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr)]
        joined = union(operands)
        listed = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and any(v.many for v in operands)
        return replace(joined, random=any(v.random for v in operands), many=listed)

    def conditional_expression(self, frame: Frame, env: Env, node: ast.IfExp) -> Value:
        known = truth(self, frame, env, node.test)
        if known is not None:
            return self.eval(frame, env, node.body if known else node.orelse)
        test = undecided(self, frame, env, node.test)
        if (tried := self.tried(frame, test)) is not None:
            return self.eval(frame, env, node.body if tried else node.orelse)
        note_random(self, frame, env, test)
        a, b = self.eval(frame, env, node.body), self.eval(frame, env, node.orelse)
        return meet(self, frame, a, b, test)

    def _stop(self, frame: Frame, value: Value) -> Value:
        """The value without its gradient."""
        for name in value.must | value.may:
            self.stopped.setdefault(name, f"{frame.module.path}:{frame.function.lineno}")
        parts = tuple((k, self._stop(frame, v)) for k, v in value.parts)
        return replace(value, must=NONE, may=NONE, doubts=NONE, parts=parts)

    # Modules

    def parameters_below(self, ref: Ref, depth: int = 0) -> dict[str, Ref]:
        """Every parametrised leaf below a module, frozen ones left out."""
        out: dict[str, Ref] = {}
        member = ref.member
        if depth > DEPTH:
            raise TooDeep
        if member.assumed:
            self.assumptions.setdefault(member.assumed)
            self.taken.setdefault(member.assumed)
        if member.kind in (Kind.LEAF, Kind.PARAMETER, Kind.UNKNOWN):
            out[ref.path] = ref
        elif member.kind in (Kind.SEQUENCE, Kind.LIST, Kind.DICT, Kind.CHOICE) and member.note != "plain":
            for part in parts_of(ref):
                out |= (found := self.parameters_below(part, depth + 1))
                self.perhaps |= found.keys() if part.member.condition else NONE
        elif member.kind is Kind.MODULE and member.site is not None and member.site.node in self.above:
            out[ref.path] = replace(ref, member=replace(member, kind=Kind.UNKNOWN, note=f"{member.note} holds one of its kind"))
        elif member.kind is Kind.MODULE and member.site is not None:
            self.above.append(member.site.node)
            facts = class_facts(self.project, member.site.module, member.site.node)
            members = members_of(self.project, facts)
            for problem in members.problems:
                self.problems.setdefault(f"{member.site.name}: {problem}")
            for name, inner in ((n, m) for n, m in members.by_name.items() if n not in members.frozen):
                found = self.parameters_below(Ref(f"{ref.path}.{name}" if ref.path else name, inner), depth + 1)
                self.tested |= found.keys() if inner.condition or inner.perhaps else NONE
                inside = {p: p[len(ref.path) :].lstrip(".") for p in found}
                out |= {p: r for p, r in found.items() if not any(below(inside[p], f) for f in members.frozen)}
            self.above.pop()
        return out
