"""One way through a function that a fresh tensor may take in the place of a loss, from where it is made to where it ends."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.guards import fresh_values
from codemods.analysis.guards.fresh_values import Decider, Fresh, fresh_value, given_to_backward, is_number, path_of, switches_on
from codemods.analysis.handlers import kinds_of
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.reached_collectives import may_put_together
from codemods.analysis.ranks.several_processes import several_processes
from codemods.analysis.variance.analysis import Analysis
from codemods.analysis.variance.exits import asks_number, takes_all
from codemods.analysis.variance.values import Cause
from codemods.data.rank_variance import SAYS_REDUCED
from codemods.files.source import walk
from codemods.runtime.record import record, replace

_Known = dict[str, Fresh]
_OWN = (Cause.DATA, Cause.PLACE)
_ADD_IN_PLACE = frozenset({"add_", "sub_", "copy_", "addcmul_", "index_add_", "set_"})


@record
class Ending:
    """Where a fresh tensor leaves the function. backward: the call that it is given to; None where it is returned.

    part: the place in a returned tuple, the key in a returned dict, None for the whole.
    """

    fresh: Fresh
    line: int
    backward: ast.Call | None = None
    part: int | str | None = None


class LossWalk:
    """given: calls that are known to give back a fresh tensor, by their place. own: parameters that differ between the ranks."""

    def __init__(
        self, analysis: Analysis, site: FunctionSite, given: Mapping[str, Ending], own: frozenset[str] = frozenset()
    ) -> None:
        self.analysis, self.module, self.function = analysis, site.module, site.node
        self.given, self.own = given, own
        self.tests: list[Decider] = []  # what decided over the way to the present statement
        self.found: list[Ending] = []

    def endings(self) -> Iterator[Ending]:
        """Those at which each rank decides for itself whether it is the fresh tensor that leaves."""
        self._inner(self.function.body, {p: end.fresh for p, end in self.given.items() if end.part is None})
        for end in self.found:
            if end.fresh.grad and end.fresh.by is not None:
                yield end

    # Statements: each gives what is known behind it, None where the way ends

    def _statement(self, node: ast.stmt, known: _Known) -> _Known | None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return known
        if isinstance(node, ast.If):
            return self._choice(node, known)
        if isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
            return self._loop(node, known)
        if isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                self._calls(item.context_expr, known)
                call, name = item.context_expr, item.optional_vars
                if isinstance(call, ast.Call) and call.args and isinstance(name, ast.Name):
                    self._bind(name, fresh_value(self.module, call.args[0], known), known)  # `with amp.scale_loss(loss, o) as s:`
            return self._inner(node.body, known)
        if isinstance(node, (ast.Try, ast.TryStar)):
            return self._attempt(node, known)
        if isinstance(node, ast.Match):
            return self._inner(node.cases[0].body, known) if takes_all(node.cases[0]) else {}
        return self._plain(node, known)

    def _inner(self, body: Sequence[ast.stmt], known: _Known) -> _Known | None:
        """A block that is always entered: what a test in it left behind decides over what comes behind it as well."""
        now: _Known | None = known
        for statement in body:
            now = self._statement(statement, now) if now is not None else None
        return now

    def _plain(self, node: ast.stmt, known: _Known) -> _Known | None:
        self._calls(node, known)
        if isinstance(node, ast.Return):
            self._leave(node, known)
            return None
        if isinstance(node, (ast.Raise, ast.Break, ast.Continue)):
            return None
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._assign(target, node.value, known)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self._assign(node.target, node.value, known)
        elif isinstance(node, ast.AugAssign) and (path := path_of(node.target)) in known:
            if (added := self._value(node.value, known)) is not None:
                known[path] = fresh_values.summed(known[path], added)
            elif not is_number(self.module, node.value):
                del known[path]
        return known

    def _assign(self, target: ast.expr, value: ast.expr, known: _Known) -> None:
        if isinstance(target, ast.Attribute) and target.attr == "requires_grad":
            held = known.get(path_of(target.value))
            if held is not None and isinstance(value, ast.Constant) and value.value is True:
                known[path_of(target.value)] = replace(held, grad=True)
            return
        if isinstance(target, (ast.Tuple, ast.List)):
            values = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
            for i, part in enumerate(target.elts):
                own = self._value(values[i], known) if len(values) == len(target.elts) else self._part(value, i)
                self._bind(part, own, known)
            return
        self._bind(target, self._value(value, known), known)
        end, path = self.given.get(path_of(value)), path_of(target)
        if end is not None and end.part is not None and path:
            known[f"{path}[{end.part!r}]"] = end.fresh

    def _bind(self, target: ast.expr, value: Fresh | None, known: _Known) -> None:
        path = path_of(target)
        for held in [p for p in known if p == path or p.startswith(f"{path}[")]:
            del known[held]
        if path and value is not None:
            known[path] = value

    # Expressions

    def _value(self, node: ast.expr, known: _Known) -> Fresh | None:
        if isinstance(node, ast.IfExp):
            arms = [self._value(n, known) for n in (node.body, node.orelse)]
            held = next((a for a in arms if a is not None), None)
            if held is None or held.by is not None or all(a is not None for a in arms):
                return held
            return replace(held, by=node.test) if self._is_own(node.test) else None
        if isinstance(node, ast.Subscript) and (end := self.given.get(path_of(node.value))) is not None:
            key = node.slice.value if isinstance(node.slice, ast.Constant) else None
            return end.fresh if end.part is not None and key == end.part else None
        return fresh_value(self.module, node, known)

    def _part(self, value: ast.expr, index: int) -> Fresh | None:
        end = self.given.get(path_of(value))
        return end.fresh if end is not None and end.part == index else None

    def _calls(self, node: ast.AST, known: _Known) -> None:
        """Backward passes of fresh tensors in a statement, and `loss.requires_grad_()`."""
        for call in walk(node):
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
                continue
            if call.func.attr == "requires_grad_" and (held := known.get(path_of(call.func.value))) is not None:
                known[path_of(call.func.value)] = replace(held, grad=switches_on(call))
            elif call.func.attr in _ADD_IN_PLACE and any(fresh_value(self.module, a, known) is None for a in call.args):
                self._bind(call.func.value, None, known)
            elif (loss := given_to_backward(call)) is not None:
                held = self._value(loss, known)
                if held is not None:
                    self._end(held, call.lineno, call, None)

    def _leave(self, node: ast.Return, known: _Known) -> None:
        value = node.value
        if isinstance(value, ast.Tuple):
            parts: list[tuple[int | str | None, ast.expr]] = list(enumerate(value.elts))
        elif isinstance(value, ast.Dict):
            named = [(k.value, v) for k, v in zip(value.keys, value.values, strict=True) if isinstance(k, ast.Constant)]
            parts = [(k, v) for k, v in named if isinstance(k, str)]
        else:
            parts = [(None, value)] if value is not None else []
        for part, inner in parts:
            if (held := self._value(inner, known)) is not None:
                self._end(held, node.lineno, None, part)

    def _end(self, held: Fresh, line: int, backward: ast.Call | None, part: int | str | None) -> None:
        by = held.by or next((t for t in reversed(self.tests) if self._decides(t)), None)
        self.found.append(Ending(replace(held, by=by), line, backward, part))

    # Ways that part

    def _choice(self, node: ast.If, known: _Known) -> _Known | None:
        self._calls(node.test, known)
        if (several := several_processes(self.module, node.test)) is not None:
            return self._inner(node.body if several else node.orelse, known)  # the one answer where there are ranks
        kept: _Known = {}
        if self._asks_for(node.test, known):
            known = {}  # what is asked of the fresh tensor decides over what becomes of it
        elif any(k.by is not None for k in known.values()) and self._is_own(node.test):
            kept = {p: k for p, k in known.items() if not _binds(node, p)}  # the two tests may be one: nothing of it inside
            known = {}
        before = len(self.tests)
        self.tests.append(node.test)
        arms = [self._inner(body, dict(known)) for body in (node.body, node.orelse)]
        del self.tests[before:]
        if any(a is None for a in arms):
            if any(isinstance(n, ast.Return) and not _is_nothing(n.value) for n in walk(node)):
                self.tests.append(node.test)  # what is returned behind it is returned by the other answer
            rest = next((a for a in arms if a is not None), None)
            return kept | rest if rest is not None else None
        return kept | self._joined(arms, node.test)

    def _joined(self, arms: Sequence[_Known | None], by: Decider) -> _Known:
        """What a name holds behind ways that part: fresh on one of them, where each rank decides which it takes."""
        ways = [a for a in arms if a is not None]
        out: _Known = {}
        for path in {p for way in ways for p in way}:
            held = [way[path] for way in ways if path in way]
            decided = next((h for h in held if h.by is not None), None)
            if decided is not None:
                out[path] = decided
            elif len(held) == len(ways):
                out[path] = held[0]
            elif self._decides(by):
                out[path] = replace(held[0], by=by)
        return out

    def _asks_for(self, test: ast.expr, known: _Known) -> bool:
        """True for `if loss.requires_grad`: whether it is there, and a number, a fresh tensor answers like any other."""
        if asks_number(test) or any(isinstance(n, ast.Constant) and n.value is None for n in walk(test)):
            return False
        return any(isinstance(n, (ast.Name, ast.Attribute, ast.Subscript)) and path_of(n) in known for n in walk(test))

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, known: _Known) -> _Known:
        """The body is read once; what it makes differ is told only where a test in it decides."""
        before = len(self.tests)
        inner = self._inner(node.body, dict(known))
        del self.tests[before:]
        if inner is None or node.orelse:
            return {}
        return {p: v for p, v in inner.items() if v.by is not None or p in known}

    def _attempt(self, node: ast.Try | ast.TryStar, known: _Known) -> _Known | None:
        if any(isinstance(n, (ast.Import, ast.ImportFrom)) for n in node.body):
            return {}  # a package that is not there is there on no rank
        begun = dict(known)
        body = self._inner([*node.body, *node.orelse], known)
        ways: list[_Known | None] = [body]
        for handler in node.handlers:
            before = len(self.tests)
            self.tests.append(handler)
            after = self._inner(handler.body, dict(begun))
            del self.tests[before:]
            ways.append(after)
            if after is not None and after.keys() - (body or {}).keys():
                made = {p: replace(v, by=v.by or handler) for p, v in after.items() if p not in (body or {})}
                ways[-1] = {**after, **made}
        if all(w is None for w in ways):
            return None
        out: _Known = {}
        for way in ways:
            out |= {p: v for p, v in (way or {}).items() if v.by is not None or all(w is None or p in w for w in ways)}
        return self._inner(node.finalbody, out)

    # Who decides

    def _decides(self, by: Decider) -> bool:
        return _is_of_one_rank(by) if isinstance(by, ast.ExceptHandler) else self._is_own(by)

    def _is_own(self, test: ast.expr) -> bool:
        """True where the answer is the rank's own: by its data or its clock, or whether a loss is a number, unreduced."""
        value = self.analysis.tested(self.module, test)
        if value.differs:
            return value.cause in _OWN
        state = self.analysis.of(FunctionSite(self.module, self.function)) if self.own else None
        if state is not None and state.tests.get(id(test), value).params & self.own:
            return True
        return asks_number(test) and value.cause is Cause.UNKNOWN and not self._is_reduced_above(test)

    def _is_reduced_above(self, test: ast.expr) -> bool:
        calls = (n for n in walk(self.function) if isinstance(n, ast.Call) and n.lineno <= test.lineno)
        return any(
            SAYS_REDUCED.search(last(dotted(c.func))) or may_put_together(self.analysis.project, self.module, c) for c in calls
        )


# Errors of the program or of its surroundings, which every rank meets.
_OF_ALL = frozenset(
    {"ImportError", "ModuleNotFoundError", "AttributeError", "TypeError", "NotImplementedError", "NameError", "KeyError",
     "AssertionError", "StopIteration"}
)  # fmt: skip


def _is_of_one_rank(handler: ast.ExceptHandler) -> bool:
    return handler.type is None or not all(last(dotted(k)) in _OF_ALL for k in kinds_of(handler))


def _is_nothing(value: ast.expr | None) -> bool:
    return value is None or isinstance(value, ast.Constant)


def _binds(node: ast.AST, path: str) -> bool:
    """True where a statement gives a name, or something in it, a value."""
    targets = (n for n in walk(node) if isinstance(n, (ast.Name, ast.Attribute, ast.Subscript)) and isinstance(n.ctx, ast.Store))
    return any(path == (bound := path_of(t)) or path.startswith(f"{bound}[") for t in targets)
