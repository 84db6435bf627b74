"""Everything that a program does with one network: from where it is made, through names, fields, functions and returns.

A wrap that is found on the way ends the question, and so does every use that is not understood: `lost` says so. What is left is a
network of which the source shows that nobody wraps it, holds it inside another, or reduces its gradients.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.call_graph import called_function
from codemods.analysis.class_index import Role, class_facts, find_class
from codemods.analysis.distribution import is_test_file
from codemods.analysis.handed import handed
from codemods.analysis.model.signatures import has_parameter
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.uses import uses_of
from codemods.analysis.wrapped.losses import is_quiet
from codemods.analysis.wrapped.network_spots import Flow, Spot, is_optimizer, is_seen_from, scope_of, shares
from codemods.analysis.wrapped.wrapped_inside import may_wrap_inside
from codemods.analysis.wrapped.wraps import without_moves
from codemods.files.source import SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

MOST = 60  # places that may hold the network
MOST_FILES = 25
HANDS_BACK = frozenset({"convert_sync_batchnorm", "compile", "script", "revert_sync_batchnorm"})
# Functions and methods that look at a network, or copy it, and hand it to nobody.
_LOOKS = frozenset(
    {"print", "len", "isinstance", "hasattr", "id", "type", "str", "repr", "callable", "deepcopy", "copy", "save", "watch",
     "info", "summary", "add_graph", "clip_grad_norm_", "clip_grad_value_", "vector_to_parameters", "parameters_to_vector",
     "debug", "sum", "any", "all", "next", "iter", "list", "max", "min", "unscale_", "accumulate", "unwrap_model",
     "clip_gradients"}
)  # fmt: skip
_SETTINGS = lazy(r"(?:\A|[._])(?:config|cfg|conf|args|opt|opts|hparams|params|flags)\Z", re.I)
_COLLECTS = frozenset({"list", "filter", "chain", "tuple", "set", "sorted", "from_iterable", "dict", "iter", "reversed", "map"})
_PARAMETERS = frozenset({"parameters", "named_parameters"})
_RUN_NOTHING = frozenset(
    {"state_dict", "load_state_dict", "zero_grad", "named_modules", "modules", "apply", "buffers", "children"}
)
# What may stand round a network and hands it to nobody: tests, an own line, an f-string.
_ENDS = (ast.Expr, ast.Compare, ast.If, ast.IfExp, ast.UnaryOp, ast.FormattedValue, ast.Delete, ast.Assert)


def flow_of(project: Project, module: SourceModule, made: ast.Call) -> Flow:
    """Where the network that `made` constructs goes."""
    key = ("network flow", module.path, made.lineno, made.col_offset)
    return project.memo(key, lambda: _Follower(project, module, made).follow())


class _Follower:
    def __init__(self, project: Project, module: SourceModule, made: ast.Call) -> None:
        self.project = project
        self.made = module, made
        self.flow = Flow()
        self.seen: set[tuple[str, int, str, bool]] = set()
        self.thawed = self.stilled = False

    def follow(self) -> Flow:
        module, made = self.made
        self._value(module, made)
        at = 0
        while at < len(self.flow.scopes) and not self.flow.lost:
            self._spot(self.flow.scopes[at])
            at += 1
        self.flow.frozen = self.stilled and not self.thawed
        return self.flow

    def _lose(self, module: SourceModule, node: ast.AST) -> None:
        self.flow.lost = self.flow.lost or f"{module.path}:{getattr(node, 'lineno', 0)}"

    def _add(self, spot: Spot) -> None:
        key = (spot.module.path, id(spot.owner), spot.name, spot.parameters)
        if key not in self.seen:
            self.seen.add(key)
            self.flow.scopes.append(spot)
        if len(self.seen) > MOST:
            self._lose(spot.module, spot.owner or spot.module.tree)

    # Where a spot is read

    def _spot(self, spot: Spot) -> None:
        for module, read in self._reads(spot):
            if spot.parameters:
                self._given_on(module, read)
            else:
                self._value(module, read)
            if self.flow.lost:
                return

    def _reads(self, spot: Spot) -> Iterator[tuple[SourceModule, ast.expr]]:
        if not spot.field:
            for read in spot.module.reads_of(spot.name):
                if isinstance(read, ast.Name) and is_seen_from(spot, read):
                    yield spot.module, read
            return
        files = self.project.files_using(spot.name, most=MOST_FILES)
        if files is None:
            self._lose(spot.module, spot.owner or spot.module.tree)
        for path in files or ():
            module = None if is_test_file(path) else self.project.module(path)
            for read in module.reads_of(spot.name) if module is not None else ():
                if module is not None and isinstance(read, ast.Attribute) and self._is_of(module, read, spot):
                    yield module, read

    def _is_of(self, module: SourceModule, read: ast.Attribute, spot: Spot) -> bool:
        """False for a field of another class, and for a setting."""
        holder = dotted(read.value)
        if holder != "self":
            return _SETTINGS.search(holder) is None
        owner = module.class_of(read)
        if owner is None or owner is spot.owner:
            return owner is not None
        lineage = [s.node for s in class_facts(self.project, module, owner).lineage]
        above = class_facts(self.project, spot.module, spot.owner).lineage if isinstance(spot.owner, ast.ClassDef) else ()
        return spot.owner in lineage or any(s.node is owner for s in above)

    # The network itself

    def _value(self, module: SourceModule, node: ast.expr) -> None:
        """What the expression round `node`, which holds the network, does with it."""
        up = module.parent(node)
        if isinstance(up, ast.Attribute):
            self._member(module, up)
        elif isinstance(up, ast.Call) and up.func is node:
            self.flow.run = self.flow.run or not is_quiet(module, up)
        elif isinstance(up, (ast.Call, ast.keyword)):
            self._handed(module, node)
        elif isinstance(up, (ast.Assign, ast.AnnAssign, ast.NamedExpr)):
            self._assigned(module, up)
        elif isinstance(up, (ast.IfExp, ast.BoolOp)) and getattr(up, "test", None) is not node:
            self._value(module, up)
        elif isinstance(up, (ast.Tuple, ast.List)):
            self._element(module, node, up)
        elif isinstance(up, ast.Return):
            self._returned(module, up, None)
        elif not isinstance(up, _ENDS):
            self._lose(module, node)

    def _member(self, module: SourceModule, read: ast.Attribute) -> None:
        call = module.parent(read)
        called = call if isinstance(call, ast.Call) and call.func is read else None
        if read.attr == "module":
            if not _asks_for_wrapper(module, read):
                self._lose(module, read)
        elif read.attr in _PARAMETERS and called is not None:
            self._given_on(module, called)
        elif called is not None and without_moves(called) is not called:
            if read.attr == "requires_grad_":
                self._switched(called.args[0] if called.args else None)
            self._value(module, called)
        elif called is not None:
            if may_wrap_inside(self.project, *self.made, module, called):
                self._lose(module, called)
            self.flow.run = self.flow.run or not (read.attr in _RUN_NOTHING or is_quiet(module, called))
        elif isinstance(call, (ast.Call, ast.keyword, ast.Starred)) and shares(module.text_of(module.statement_of(call))):
            self._lose(module, read)

    def _switched(self, value: ast.expr | None) -> None:
        off = isinstance(value, ast.Constant) and value.value is False
        self.stilled, self.thawed = self.stilled or off, self.thawed or not off

    def _assigned(self, module: SourceModule, up: ast.Assign | ast.AnnAssign | ast.NamedExpr) -> None:
        for target in up.targets if isinstance(up, ast.Assign) else [up.target]:
            self._bound(module, target, parameters=False)

    def _bound(self, module: SourceModule, target: ast.expr, *, parameters: bool) -> None:
        owner = module.class_of(target)
        if isinstance(target, ast.Name):
            self._add(Spot(module, scope_of(module, target), target.id, parameters=parameters))
        elif isinstance(target, ast.Attribute) and dotted(target.value) == "self" and owner is not None:
            if self._may_hold_parts(module, owner):
                self._lose(module, target)
            self._add(Spot(module, owner, target.attr, field=True, parameters=parameters))
        else:
            self._lose(module, target)

    def _may_hold_parts(self, module: SourceModule, owner: ast.ClassDef) -> bool:
        """True for a class that is a network itself, or wraps its fields by names that it works out."""
        facts = class_facts(self.project, module, owner)
        if facts.opaque or facts.is_a(Role.NN_MODULE) or facts.is_a(Role.LIGHTNING_MODULE) or facts.is_a(Role.HF_TRAINER):
            return True
        texts = (s.module.text_of(s.node) for s in facts.lineage)
        return any(re.search(r"setattr\(\s*self|getattr\(\s*self|self\.__dict__|vars\(self", text) for text in texts)

    def _element(self, module: SourceModule, node: ast.expr, up: ast.Tuple | ast.List) -> None:
        above, index = module.parent(up), next(i for i, e in enumerate(up.elts) if e is node)
        if isinstance(above, ast.For) and above.iter is up and isinstance(above.target, ast.Name):
            self._loop(module, above, above.target.id)
        elif isinstance(above, ast.Return) and isinstance(up, ast.Tuple):
            self._returned(module, above, index)
        elif isinstance(above, ast.Assign):
            self._unpacked(module, above, up, index)
        elif isinstance(above, (ast.Call, ast.keyword)):
            call = module.parent(above) if isinstance(above, ast.keyword) else above
            site = called_function(self.project, module, call) if isinstance(call, ast.Call) else None
            if site is None or shares(site.module.text_of(site.node)):
                self._lose(module, node)
        else:
            self._lose(module, node)

    def _unpacked(self, module: SourceModule, assign: ast.Assign, values: ast.Tuple | ast.List, index: int) -> None:
        """`gen, disc = Generator(), Discriminator()`; a list that is kept is not followed."""
        targets = assign.targets[0].elts if isinstance(assign.targets[0], ast.Tuple) else []
        if len(targets) == len(values.elts):
            self._bound(module, targets[index], parameters=False)
        else:
            self._lose(module, assign)

    def _loop(self, module: SourceModule, loop: ast.For, name: str) -> None:
        for node in (n for s in loop.body for n in walk(s)):
            if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
                self._value(module, node)

    def _handed(self, module: SourceModule, node: ast.expr) -> None:
        """The network is an argument of a call."""
        up = module.parent(node)
        call = module.parent(up) if isinstance(up, ast.keyword) else up
        assert isinstance(call, ast.Call)
        name = last(dotted(call.func)) or getattr(call.func, "attr", "")
        if name in HANDS_BACK or _takes_bare(call, name):
            self._value(module, call)
            return
        site = called_function(self.project, module, call)
        if site is None:
            self._to_unknown(module, call, name)
            return
        owner = site.module.parent(site.node)
        if isinstance(owner, ast.ClassDef) and site.node.name == "__init__" and self._may_hold_parts(site.module, owner):
            self._lose(module, call)
            return
        parameter = next((key for key, value in handed(site, call).items() if value is node), "")
        if not has_parameter(site.node, parameter):
            self._lose(module, call)
        else:
            self._add(Spot(site.module, site.node, parameter))

    def _to_unknown(self, module: SourceModule, call: ast.Call, name: str) -> None:
        made = find_class(self.project, module, dotted(call.func)) if dotted(call.func) else None
        if name not in _LOOKS or made is not None or (name == "prepare"):
            self._lose(module, call)

    def _returned(self, module: SourceModule, at: ast.Return, index: int | None) -> None:
        """What a function gives back: every caller has it."""
        function = module.function_of(at)
        if function is None:
            return
        uses = uses_of(self.project, module, function)
        if uses.more or uses.handed_on:
            self._lose(module, at)
        for site in uses.outside_tests().calls:
            if index is None:
                self._value(site.module, site.call)
                continue
            up = site.module.parent(site.call)
            targets = getattr(up.targets[0], "elts", []) if isinstance(up, ast.Assign) else []
            if index < len(targets) and not any(isinstance(t, ast.Starred) for t in targets):
                self._bound(site.module, targets[index], parameters=False)
            elif not isinstance(up, ast.Expr):
                self._lose(site.module, site.call)

    # Its parameters

    def _given_on(self, module: SourceModule, node: ast.expr) -> None:
        """Where the parameters go: into an optimizer, a list, a function, a loop."""
        below: ast.AST = node
        for up in module.ancestors(node):
            if isinstance(up, ast.Call) and below is not up.func:
                if last(dotted(up.func)) in _COLLECTS:
                    below = up
                    continue
                self._taken(module, up, below)
                return
            if isinstance(up, ast.Attribute):
                return  # a method of the list itself
            if isinstance(up, (ast.For, ast.comprehension)) and up.iter is below:
                self._gone_through(module, up)
                if isinstance(up, ast.For):
                    return
            if isinstance(up, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr)):
                for target in up.targets if isinstance(up, ast.Assign) else [up.target]:
                    self._bound(module, target, parameters=True)
                return
            if isinstance(up, ast.stmt):
                if isinstance(up, ast.Return):
                    self._given_back(module, up)
                return
            below = up

    def _given_back(self, module: SourceModule, at: ast.Return) -> None:
        function = module.function_of(at)
        uses = uses_of(self.project, module, function) if function is not None else None
        for site in uses.outside_tests().calls if uses is not None else ():
            self._given_on(site.module, site.call)

    def _taken(self, module: SourceModule, call: ast.Call, below: ast.AST) -> None:
        name = last(dotted(call.func)) or getattr(call.func, "attr", "")
        if name in ("append", "extend", "insert", "add") and isinstance(call.func, ast.Attribute):
            holder = call.func.value
            if isinstance(holder, (ast.Name, ast.Attribute)):
                self._bound(module, holder, parameters=True)
            return
        if is_optimizer(module, call):
            self.flow.steps.append((module, call))
        elif name == "add_param_group":
            self._lose(module, call)
        elif name not in _LOOKS:
            self._into(module, call, below)

    def _into(self, module: SourceModule, call: ast.Call, below: ast.AST) -> None:
        site = called_function(self.project, module, call)
        if site is None:
            if shares(module.text_of(call)) or "sync" in module.text_of(call.func).lower():
                self._lose(module, call)
            return
        if shares(site.module.text_of(site.node)):
            self._lose(module, call)
            return
        inner = below.value if isinstance(below, ast.keyword) else below
        for key in (key for key, value in handed(site, call).items() if value is inner):
            self._add(Spot(site.module, site.node, key, parameters=True))

    def _gone_through(self, module: SourceModule, loop: ast.For | ast.comprehension) -> None:
        """A loop over the parameters: it switches them off or on, reduces them, or looks at them."""
        if not isinstance(loop, ast.For):
            return
        if shares(module.text_of(loop)):
            self._lose(module, loop)
        for node in (n for s in loop.body for n in walk(s)):
            if isinstance(node, ast.Assign) and any(last(dotted(t)) == "requires_grad" for t in node.targets):
                self._switched(node.value)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "requires_grad_":
                self._switched(node.args[0] if node.args else None)


def _takes_bare(call: ast.Call, name: str) -> bool:
    """`getattr(net, "module", net)`: what a bare network gives back is itself."""
    asked = call.args[1] if name == "getattr" and len(call.args) == 3 else None
    return isinstance(asked, ast.Constant) and asked.value == "module"


def _asks_for_wrapper(module: SourceModule, read: ast.Attribute) -> bool:
    """True under `hasattr(net, "module")` and `isinstance(net, DDP)`: such code takes a bare network as well."""
    tests = (up.test for up in module.ancestors(read) if isinstance(up, (ast.If, ast.IfExp)))
    return any(re.search(r"\b(?:hasattr|isinstance)\(", module.text_of(test)) for test in tests)
