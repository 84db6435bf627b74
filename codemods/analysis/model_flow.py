"""Runs a model's forward (or training_step) on paper: which registered parameters reach the value it returns, on every path.

Statements are followed through branches, loops over module lists, the model's own methods, its sub-modules and project
functions. What is not known carries a doubt instead of a parameter, so a missing piece can only make the answer weaker.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from codemods.analysis import flow_calls, flow_values
from codemods.analysis.class_index import ClassFacts, class_facts
from codemods.analysis.flow_tests import cause_of, is_random_call
from codemods.analysis.flow_values import NONE, NOTHING, UNSET, Cause, Decision, Names, Ref, Value, flat, merged, parts_of, union
from codemods.analysis.model_members import Kind, canonical, members_of
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.signatures import defaults, parameters
from codemods.data import torch_modules as table
from codemods.project import Project
from codemods.source import FunctionNode, SourceModule, walk

Env = dict[str, Value]
BUDGET = 60_000  # expressions looked at for one model
DEPTH = 24


class TooDeep(Exception):
    """The model is too large to follow."""


@dataclass
class Frame:
    """One call of one function. exits: returned values with the undecided test they stand under, if any."""

    module: SourceModule
    function: FunctionNode | ast.Lambda
    facts: ClassFacts | None
    exits: list[tuple[Value, ast.expr | None]] = field(default_factory=list)
    loops: list[list[tuple[Env, ast.expr | None]]] = field(default_factory=list)
    breaks: list[list[tuple[Env, ast.expr | None]]] = field(default_factory=list)
    tests: list[ast.expr] = field(default_factory=list)
    no_grad: int = 0
    root: bool = False

    @property
    def parameters(self) -> frozenset[str]:
        return frozenset(a.arg for a in parameters(self.function, bound=False)) - {"self"}


@dataclass(frozen=True, slots=True)
class Branch:
    """An `if` whose answer the source does not decide, and what it costs: names of the modules only one side uses."""

    text: str
    path: str
    line: int
    lost: Names


class Flow:
    """The run over one model. decisions, assumptions and problems are what it found on the way."""

    def __init__(self, project: Project, given: frozenset[str] = NONE) -> None:
        self.project = project
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
        self.random_tests: set[int] = set()
        self.checkpoints: dict[str, bool] = {}  # where activation checkpointing stands -> may it be the reentrant kind
        self.all_paths: Names = NONE

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
        self.depth += 1
        if self.depth > DEPTH:
            raise TooDeep
        try:
            if isinstance(frame.function, ast.Lambda):
                return self.eval(frame, env, frame.function.body)
            for decorator in frame.function.decorator_list:
                name = qualified(frame.module, _callee(decorator))
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

    def joined_exits(self, frame: Frame) -> Value:
        if not frame.exits:
            return NOTHING
        exits = frame.exits
        if frame.root and any(not value.is_none for value, _ in exits):
            exits = [(value, test) for value, test in exits if not value.is_none]  # no loss, no backward
        result, _ = exits[-1]
        for value, test in reversed(exits[:-1]):
            result = self.meet(frame, value, result, test)
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
            return self.for_statement(frame, node, env)
        elif isinstance(node, ast.While):
            return self.while_statement(frame, node, env)
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
            below = frozenset(p for ref in value.refs for p in self.parameters_below(ref))
            return Value(NONE, below | value.may, value.doubts | {"which module of a list is used is not followed"})
        if (part := value.part(key)) is not None:
            return part
        if value.many or value.parts:
            doubt = {"only one element of a list is used"} if value.carries else NONE
            return Value(NONE, value.may | value.must, value.doubts | doubt)
        return flat(value)

    def if_statement(self, frame: Frame, node: ast.If, env: Env) -> Env | None:
        known = self.truth(frame, env, node.test)
        if known is not None:
            return self.block(frame, node.body if known else node.orelse, env)
        test = self.undecided(frame, env, node.test)
        self.note_random(frame, env, test)
        text = " ".join(frame.module.text_of(test).split())
        key = (frame.module.path, test.lineno)
        self.branches.setdefault(key, Branch(text, frame.module.path, test.lineno, NONE))
        frame.tests.append(test)
        then = self.block(frame, node.body, dict(env))
        other = self.block(frame, node.orelse, dict(env))
        frame.tests.pop()
        if then is None or other is None:
            # the rest of the block runs on one side of the test only, and so do its returns
            return then if other is None else other
        return self.meet_all(frame, then, other, test)

    def undecided(self, frame: Frame, env: Env, test: ast.expr) -> ast.expr:
        """The part of a test that the source leaves open: `self.training and x` comes to `x`."""
        if isinstance(test, ast.BoolOp):
            open_parts = [v for v in test.values if self.truth(frame, env, v) is None]
            if len(open_parts) == 1:
                return self.undecided(frame, env, open_parts[0])
        return test

    def meet_all(self, frame: Frame, a: Env, b: Env, test: ast.expr | None) -> Env:
        out: Env = {}
        for name in {**a, **b}:
            if name in a and name in b:
                out[name] = self.meet(frame, a[name], b[name], test)
            else:
                out[name] = a.get(name) or b.get(name) or NOTHING
        return out

    def meet(self, frame: Frame, a: Value, b: Value, test: ast.expr | None) -> Value:
        """What is left where two paths meet; parameters that only one side carries are written down with the test."""
        if a == b:
            return a
        keep = self.conditional(frame, test) if test is not None else NONE
        # what the other side may carry as well is lost for another reason than this test
        lost = ((a.must - b.must - b.may) | (b.must - a.must - a.may)) - keep
        if lost and test is not None:
            self.decide(frame, test, lost, random=self.is_random(frame, test))
        return merged(a, b, keep)

    def decide(self, frame: Frame, test: ast.expr, lost: Names, *, random: bool) -> None:
        module = frame.module
        cause = cause_of(module, test, random=random, parameters=frame.parameters)
        if cause is Cause.OTHER and not self.varies(frame, {}, test):
            cause = Cause.CONFIG
        text = " ".join(module.text_of(test).split())
        self.decisions.append(Decision(cause, text, module.path, test.lineno, frozenset(lost), random))
        key = (module.path, test.lineno)
        before = self.branches[key].lost if key in self.branches else NONE
        self.branches[key] = Branch(text, module.path, test.lineno, before | lost)

    def varies(self, frame: Frame, env: Env, node: ast.expr, seen: frozenset[str] = NONE) -> bool:
        """True where an expression depends on what the method is given; loop counters, settings and literals do not."""
        for name in {n.id for n in walk(node) if isinstance(n, ast.Name)} - seen - {"self"}:
            if name in frame.parameters:
                value = env.get(name, NOTHING)
                if not value.index_of and value.constant is UNSET:
                    return True
                continue
            sources = [*_sources(frame.function, name)]
            if any(self.varies(frame, env, source, seen | {name}) for source in sources):
                return True
        return False

    def is_random(self, frame: Frame, test: ast.expr) -> bool:
        calls = (n for n in walk(test) if isinstance(n, ast.Call))
        return id(test) in self.random_tests or any(is_random_call(frame.module, c) for c in calls)

    def note_random(self, frame: Frame, env: Env, test: ast.expr) -> None:
        if self.eval(frame, env, test).random:
            self.random_tests.add(id(test))

    def conditional(self, frame: Frame, test: ast.expr) -> Names:
        """Parameters that exist only where the test holds (or only where it does not): the branch cannot leave them out."""
        if frame.facts is None:
            return NONE
        text = canonical(frame.module, test, frame.function)  # type: ignore[arg-type]
        bare = text[4:] if text.startswith("not ") else text
        members = members_of(self.project, frame.facts)
        names = {n for n, m in members.by_name.items() if m.condition in (bare, f"not {bare}")}
        if not names:
            return NONE
        return frozenset(path for path in self.all_paths if any(_below(path, n) for n in names))

    # Loops

    def for_statement(self, frame: Frame, node: ast.For | ast.AsyncFor, env: Env) -> Env | None:
        rounds = flow_calls.iterate(self, frame, env, node.iter)
        frame.breaks.append([])
        current: Env | None = env
        before = dict(env)
        if rounds is None:
            element = self._generic_element(frame, env, node)
            rounds = [element]
        for value in rounds:
            if current is None:
                break
            frame.loops.append([])
            self.assign(frame, current, node.target, value)
            depth = len(frame.tests)
            current = self.block(frame, node.body, current)
            del frame.tests[depth:]
            for early, test in frame.loops.pop():
                current = early if current is None else self.meet_all(frame, current, early, test)
        for early, test in frame.breaks.pop():
            current = early if current is None else self.meet_all(frame, current, early, test)
        if current is None:
            return None
        if not self._runs(frame, env, node.iter):
            gained = {p for n, v in current.items() for p in v.must - before.get(n, NOTHING).must}
            if gained:
                self.assumptions.setdefault(f"the loop at {frame.module.path}:{node.lineno} runs at least once")
        return self.block(frame, node.orelse, current)

    def _generic_element(self, frame: Frame, env: Env, node: ast.For | ast.AsyncFor) -> Value:
        value = self.eval(frame, env, node.iter)
        name = last(dotted(node.iter.func)) if isinstance(node.iter, ast.Call) else ""
        if name == "range":
            return Value(index_of="*")
        if name == "enumerate" and isinstance(node.iter, ast.Call) and node.iter.args:
            inner = self.element(self.eval(frame, env, node.iter.args[0]), object())
            return replace(union([inner]), parts=((0, Value(index_of="*")), (1, inner)))
        if value.refs:
            return self.element(value, None)
        if not (value.many or value.parts):
            return flat(value)
        return flat(value) if _adds_up(node) else self.element(value, object())

    def _runs(self, frame: Frame, env: Env, iterated: ast.expr) -> bool:
        """True where the loop goes over modules (no round without a module) or a literal."""
        if isinstance(iterated, (ast.List, ast.Tuple)):
            return True
        return flow_calls.iterate(self, frame, env, iterated) is not None

    def while_statement(self, frame: Frame, node: ast.While, env: Env) -> Env | None:
        before = dict(env)
        frame.loops.append([])
        frame.breaks.append([])
        current = self.block(frame, node.body, env)
        for early, test in [*frame.loops.pop(), *frame.breaks.pop()]:
            current = early if current is None else self.meet_all(frame, current, early, test)
        if current is None:
            return None
        return self.meet_all(frame, current, before, node.test)

    def with_statement(self, frame: Frame, node: ast.With | ast.AsyncWith, env: Env) -> Env | None:
        stops = any(_stops_gradients(frame.module, item.context_expr) for item in node.items)
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
                current = other if current is None else self.meet_all(frame, current, other, None)
        return self.block(frame, node.finalbody, current) if current is not None else None

    # Tests

    def truth(self, frame: Frame, env: Env, test: ast.expr) -> bool | None:
        """The answer of a test during training, where the source decides it."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            inner = self.truth(frame, env, test.operand)
            return None if inner is None else not inner
        if isinstance(test, ast.BoolOp):
            answers = [self.truth(frame, env, v) for v in test.values]
            decisive = isinstance(test.op, ast.Or)
            if decisive in answers:
                return decisive
            return None if None in answers else not decisive
        if isinstance(test, ast.Attribute) and test.attr == "training":
            return True
        if isinstance(test, ast.Constant):
            return bool(test.value)
        if isinstance(test, ast.Call):
            return self._truth_of_call(frame, env, test)
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            return self._comparison(frame, env, test)
        if isinstance(test, (ast.Name, ast.Attribute)):
            value = self.eval(frame, env, test)
            if value.refs:
                return True
            return bool(value.constant) if value.constant is not UNSET else None
        return None

    def _truth_of_call(self, frame: Frame, env: Env, test: ast.Call) -> bool | None:
        name = qualified(frame.module, test.func)
        if name == "hasattr" and len(test.args) == 2 and isinstance(test.args[1], ast.Constant):
            owner = self.eval(frame, env, test.args[0])
            for ref in owner.refs:
                if ref.member.site is not None:
                    facts = class_facts(self.project, ref.member.site.module, ref.member.site.node)
                    if str(test.args[1].value) in members_of(self.project, facts).by_name:
                        return True
            return None
        if name == "isinstance" and len(test.args) == 2:
            return self._isinstance(frame, env, test)
        if last(name) in ("is_scripting", "is_tracing", "is_in_onnx_export", "is_compiling", "is_exporting"):
            return False
        return True if name == "torch.is_grad_enabled" else None

    def _isinstance(self, frame: Frame, env: Env, test: ast.Call) -> bool | None:
        """`isinstance(block, Attention)` where both are known."""
        wanted = test.args[1].elts if isinstance(test.args[1], ast.Tuple) else [test.args[1]]
        names = {last(qualified(frame.module, w)) for w in wanted}
        answers = set()
        for ref in self.eval(frame, env, test.args[0]).refs:
            member = ref.member
            if member.kind is Kind.MODULE and member.site is not None:
                facts = class_facts(self.project, member.site.module, member.site.node)
                lineage = {s.name for s in facts.lineage} | {last(n) for n in facts.external}
                answers.add(True if names & lineage else None if facts.opaque else False)
            elif member.kind in (Kind.LEAF, Kind.FREE):
                answers.add(member.note in names or "Module" in names)
            else:
                answers.add(None)
        return answers.pop() if len(answers) == 1 else None

    def _comparison(self, frame: Frame, env: Env, test: ast.Compare) -> bool | None:
        left, op = test.left, test.ops[0]
        a, b = self.eval(frame, env, left), self.eval(frame, env, test.comparators[0])
        if isinstance(op, (ast.Is, ast.IsNot)) and b.is_none:
            same: bool | None = None
            if a.constant is not UNSET:
                same = a.constant is None
            elif a.refs or (a.must and not a.may - a.must) or self._is_given(frame, left):
                same = False
            return same if same is None or isinstance(op, ast.Is) else not same
        if a.constant is UNSET or b.constant is UNSET:
            return None
        if isinstance(op, (ast.Eq, ast.Is)):
            return bool(a.constant == b.constant)
        if isinstance(op, (ast.NotEq, ast.IsNot)):
            return bool(a.constant != b.constant)
        return None

    def _is_given(self, frame: Frame, node: ast.expr) -> bool:
        return frame.root and isinstance(node, ast.Name) and node.id in self.given

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
            return flow_calls.attribute(self, frame, env, node)
        if isinstance(node, ast.Call):
            value = flow_calls.call(self, frame, env, node)
            return self._stop(frame, value) if frame.no_grad else value
        if isinstance(node, ast.Subscript):
            return flow_calls.subscript(self, frame, env, node)
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
            return flow_calls.comprehension(self, frame, env, node)
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
        known = self.truth(frame, env, node.test)
        if known is not None:
            return self.eval(frame, env, node.body if known else node.orelse)
        test = self.undecided(frame, env, node.test)
        self.note_random(frame, env, test)
        a, b = self.eval(frame, env, node.body), self.eval(frame, env, node.orelse)
        return self.meet(frame, a, b, test)

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
        if member.kind in (Kind.LEAF, Kind.PARAMETER, Kind.UNKNOWN):
            out[ref.path] = ref
        elif member.kind in (Kind.SEQUENCE, Kind.LIST, Kind.DICT, Kind.CHOICE) and member.note != "plain":
            for part in parts_of(ref):
                out |= self.parameters_below(part, depth + 1)
        elif member.kind is Kind.MODULE and member.site is not None:
            facts = class_facts(self.project, member.site.module, member.site.node)
            members = members_of(self.project, facts)
            for problem in members.problems:
                self.problems.setdefault(f"{member.site.name}: {problem}")
            for name, inner in members.by_name.items():
                if name not in members.frozen:
                    below = self.parameters_below(Ref(f"{ref.path}.{name}" if ref.path else name, inner), depth + 1)
                    inside = {p: p[len(ref.path) :].lstrip(".") for p in below}
                    out |= {p: r for p, r in below.items() if not any(_below(inside[p], f) for f in members.frozen)}
        return out


def _below(path: str, name: str) -> bool:
    """True if the path has `name` as one of its steps: `head.fc` is below `head`, `enc.head.fc` too."""
    steps = path.replace("[", ".[").split(".")
    wanted = name.split(".")
    return any(steps[i : i + len(wanted)] == wanted for i in range(len(steps)))


def _adds_up(loop: ast.For | ast.AsyncFor) -> bool:
    """True where the loop adds (or appends) what it makes of each element to something, so all of them count."""
    names = {n.id for n in walk(loop.target) if isinstance(n, ast.Name)}
    for statement in loop.body:
        added: list[ast.expr] = []
        if isinstance(statement, ast.AugAssign):
            added = [statement.value]
        elif isinstance(statement, ast.Assign):
            if any(isinstance(n, ast.Name) and n.id in names for n in walk(statement.value)):
                names |= {n.id for t in statement.targets for n in walk(t) if isinstance(n, ast.Name)}
            grown = {t.id for t in statement.targets if isinstance(t, ast.Name)}
            old = isinstance(statement.value, ast.BinOp) and isinstance(statement.value.left, ast.Name)
            added = [statement.value] if old and statement.value.left.id in grown else []  # type: ignore[attr-defined]
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            func = statement.value.func
            added = statement.value.args if isinstance(func, ast.Attribute) and func.attr == "append" else []
        if any(isinstance(n, ast.Name) and n.id in names for a in added for n in walk(a)):
            return True
    return False


def _sources(function: FunctionNode | ast.Lambda, name: str) -> Iterator[ast.expr]:
    """What a local name is made of: assigned values, what a loop goes over."""
    for node in walk(function):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets, source = node.targets, node.value
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
            targets, source = [node.target], node.iter
        elif isinstance(node, ast.AugAssign):
            targets, source = [node.target], node.value
        if any(isinstance(n, ast.Name) and n.id == name for t in targets for n in walk(t)):
            yield source


def _callee(node: ast.expr) -> ast.expr:
    return node.func if isinstance(node, ast.Call) else node


def _stops_gradients(module: SourceModule, context: ast.expr) -> bool:
    name = last(qualified(module, _callee(context)))
    if name in table.NO_GRAD:
        return True
    if name == "set_grad_enabled" and isinstance(context, ast.Call) and context.args:
        first = context.args[0]
        return not (isinstance(first, ast.Constant) and first.value is True)
    return False


__all__ = ["Branch", "Env", "Flow", "Frame", "TooDeep", "flow_values"]
