"""What is asked of a DDP wrapper that only the model inside can answer: reads, writes, questions by name, calls that do it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import ClassFacts
from codemods.analysis.guards.conditional_starts import needs_a_group
from codemods.analysis.names import dotted
from codemods.analysis.ranks.closed_by_options import closed_by_options
from codemods.analysis.wrapped.decided_alike import is_under_the_flag, may_be_replaced
from codemods.analysis.wrapped.ended_before import meets_above, meets_in_each_run, meets_now_and_then
from codemods.analysis.wrapped.group_in_each_run import has_a_group_in_each_run
from codemods.analysis.wrapped.holders import Wrapped, wrapper_in
from codemods.analysis.wrapped.left_bare import left_bare_by
from codemods.analysis.wrapped.losses import is_quiet
from codemods.analysis.wrapped.made_models import classes_of, has_attribute, is_plain, is_pretrained
from codemods.analysis.wrapped.names_looked_up import looked_up
from codemods.analysis.wrapped.passing_on import passes_on
from codemods.analysis.wrapped.wrapper_tests import counts_devices, is_tested, several_processes
from codemods.api.findings import Evidence
from codemods.data.wrapper_attributes import ENGINE, PRETRAINED, WRAPPER
from codemods.files.left_alone import left
from codemods.files.source import SourceModule
from codemods.runtime.record import record
from codemods.store.project import Project


@record
class Asked:
    """A question to a wrapper. holder: the expression of the wrapper; key: what two questions have in common; rest: what follows
    the model in the repaired line; known: the class is shown to have it; handed: a function that is called here asks; inverse:
    `module` of what may be bare; plain: the class keeps a plain value under the name; asks_by_name: `hasattr(model, "x")`;
    instead: what to write for `holder`, where that is not the model inside."""

    node: ast.expr
    holder: ast.expr
    wrapped: Wrapped
    receiver: str
    attribute: str
    text: str
    key: str
    rest: str = ""
    known: bool = False
    handed: bool = False
    inverse: bool = False
    plain: bool = False
    asks_by_name: bool = False
    instead: str = ""
    evidence: tuple[Evidence, ...] = ()


def asked_here(project: Project, module: SourceModule) -> Iterator[Asked]:
    """The reads and writes of this file, and its questions by name."""
    for node in module.nodes(ast.Attribute):
        if (node.attr in WRAPPER and node.attr != "module") or node.attr.startswith("_"):
            continue
        if not may_be_wrapper(module, node.value):
            continue
        if (found := wrapper_in(project, module, node.value)) is None:
            continue
        own = not is_of_object(module, node.value)
        if node.attr == "module" and own and (one := _by_devices(module, node, found)) is not None:
            yield one
        if not counts_for_it(project, module, node, found):
            continue
        if node.attr == "module":  # of another object's it is not said who leaves it bare
            if own and (one := _module_of_bare(project, module, node, found)) is not None:
                yield one
        elif (known := is_own(project, found, node.attr)) is not None:
            if isinstance(node.ctx, ast.Load) or (known and isinstance(node.ctx, ast.Store)):
                yield _asked(project, module, node, found, known)
    for call in module.calls_named("hasattr"):
        yield from _by_name(project, module, call)


def _asked(project: Project, module: SourceModule, node: ast.Attribute, found: Wrapped, known: bool) -> Asked:
    receiver = module.text_of(node.value)
    if isinstance(node.ctx, ast.Store):
        text = f"`{receiver}.{node.attr}` is set on the DDP wrapper: the model inside keeps its own, and does not see it"
    else:
        text = (
            f"`{receiver}.{node.attr}` is asked of the DDP wrapper, which has no `{node.attr}`: with several processes this line "
            "raises AttributeError"
        )
    plain = is_plain(project, found.module, found.model, node.attr) or isinstance(node.ctx, ast.Store)
    return Asked(node, node.value, found, receiver, node.attr, text, f".{node.attr}", f".{node.attr}", known, plain=plain)


def _module_of_bare(project: Project, module: SourceModule, node: ast.Attribute, found: Wrapped) -> Asked | None:
    """`model.module` behind `prepare`: with one process Accelerate does not wrap."""
    above = module.parent(node)
    runs = isinstance(above, ast.Call) and above.func is node
    if found.many or not isinstance(node.ctx, ast.Load) or (runs and not is_quiet(module, node)):
        return None  # a forward with gradients belongs to the wrapper
    flag = "" if found.prepared else left_bare_by(module, node, found)
    if not found.prepared and not flag and (not _is_bare_alone(found) or is_under_the_flag(module, node, found)):
        return None
    if not found.prepared and not flag and _ends_without_group(project, module, node, found):
        return None
    if found.prepared and meets_above(project, module, node):
        return None
    if found.prepared and meets_now_and_then(project, module, node):
        left(module, node, "one plain process ends at a collective of the same loop, for want of a process group")
        return None
    if found.prepared and has_a_group_in_each_run(project, module):
        left(module, node, "one plain process ends above: each run of its programs starts a process group of a launcher")
        return None
    if isinstance(found.model, ast.expr) and any(has_attribute(project, f, "module") for f in _classes(project, found)):
        return None
    receiver = module.text_of(node.value)
    who = "Accelerate does not wrap the model" if found.prepared else f"line {found.wrap.lineno} does not wrap the model"
    when = f"where `{flag}` does not hold" if flag else "with one process"
    text = f"`{receiver}.module`: {when} {who}, and this line raises AttributeError"
    rest = f".{above.attr}" if isinstance(above, ast.Attribute) else ""
    return Asked(node, node, found, receiver, "module", text, ".module", rest, known=True, inverse=True)


def asks_module_of_bare(project: Project, module: SourceModule, node: ast.Attribute) -> bool:
    """True for a `model.module` that is found here as one that may be bare."""
    found = wrapper_in(project, module, node.value) if may_be_wrapper(module, node.value) else None
    if found is None or not counts_for_it(project, module, node, found):
        return False
    return _module_of_bare(project, module, node, found) is not None


def _ends_without_group(project: Project, module: SourceModule, node: ast.Attribute, found: Wrapped) -> bool:
    """True where a run with one process never comes here: what needs a process group stands above, or above the wrap."""
    if meets_in_each_run(project, module, node):
        return True
    places: tuple[tuple[SourceModule, ast.expr], ...] = ((module, node), (found.module, found.wrap))
    return any(needs_a_group(project, m, m.function_of(n) or m.tree, n) for m, n in places)


def _by_devices(module: SourceModule, node: ast.Attribute, found: Wrapped) -> Asked | None:
    """`if torch.cuda.device_count() > 1: model.module`, where the model is wrapped for several processes."""
    up = next((u for u in module.ancestors(node) if isinstance(u, (ast.If, ast.FunctionDef))), None)
    if not isinstance(up, ast.If) or not _is_bare_alone(found) or not counts_devices(module.text_of(up.test)):
        return None
    receiver, text = module.text_of(node.value), module.text_of(up.test)
    message = (
        f"`{text}` decides whether `{receiver}.module` is there, and the wrap asks for the processes: one process with several "
        "GPUs raises AttributeError, and with one GPU for each process the keys of the state do not fit"
    )
    return Asked(
        up.test, up.test, found, receiver, "module", message, "devices", known=True, inverse=True,
        instead=f'hasattr({receiver}, "module")',
    )  # fmt: skip


def _is_bare_alone(found: Wrapped) -> bool:
    """True where `DDP(...)` stands under a test for several processes, without another arm."""
    module = found.module
    statement = module.statement_of(found.wrap)
    up = module.parent(statement)
    if found.always or not isinstance(up, ast.If) or up.orelse or statement not in up.body:
        return False
    return several_processes(module.text_of(up.test))


def _by_name(project: Project, module: SourceModule, call: ast.Call) -> Iterator[Asked]:
    """`hasattr(model, "x")`: False for the wrapper, whatever the model has."""
    if not isinstance(call.func, ast.Name) or len(call.args) != 2 or not isinstance(call.args[1], ast.Constant):
        return
    name, holder = call.args[1].value, call.args[0]
    if not isinstance(name, str) or name in WRAPPER or not may_be_wrapper(module, holder):
        return
    found = wrapper_in(project, module, holder)
    if found is None or has_an_arm_for_it(module, call, holder) or not counts_for_it(project, module, call, found):
        return
    if is_own(project, found, name) or (found.many and found.prepared):
        receiver = module.text_of(holder)
        text = f"`hasattr({receiver}, {name!r})` asks the DDP wrapper: with several processes it is False, whatever the model has"
        known = bool(is_own(project, found, name))
        yield Asked(call, holder, found, receiver, name, text, f"?{name}", "", known=known, asks_by_name=True)
        plain = is_plain(project, found.module, found.model, name)
        for node in _reads_behind(module, call, receiver, name):
            yield Asked(node, node.value, found, receiver, name, text, f"?{name}", f".{name}", known=known, plain=plain)


def _reads_behind(module: SourceModule, call: ast.Call, receiver: str, name: str) -> Iterator[ast.Attribute]:
    """`model.x` where `hasattr(model, "x")` lets it be reached: it is asked of the model inside as soon as the question is."""
    function = module.function_of(call)
    for node in module.nodes(ast.Attribute):
        if node.attr == name and dotted(node.value) == receiver:
            if module.function_of(node) is function and is_tested(module, node):
                yield node


def has_an_arm_for_it(module: SourceModule, call: ast.Call, holder: ast.expr) -> bool:
    """True where the `else` of the question goes on with `model.module`: the answer False is what the wrapper is told by."""
    for up in module.ancestors(call):
        if isinstance(up, (ast.If, ast.IfExp)):
            other = up.orelse if isinstance(up.orelse, list) else [up.orelse]
            inside = f"{dotted(holder)}.module"
            return any(isinstance(n, ast.Attribute) and dotted(n) == inside for part in other for n in ast.walk(part))
        if isinstance(up, ast.stmt):
            return False
    return False


def counts_for_it(project: Project, module: SourceModule, node: ast.AST, found: Wrapped) -> bool:
    """False where a test stands over it, or closes it, where attributes are passed on, and where the project sets the name."""
    same = module is found.module and module.function_of(node) is module.function_of(found.wrap)
    if is_tested(module, node, found.wrap if same else None) or passes_on(project, found):
        return False
    if may_be_replaced(project, module, node):
        return False
    if (test := closed_by_options(project, module, node)) is not None:
        return not left(module, node, "whatever its options are given, {} leads past it", test)
    name = node.attr if isinstance(node, ast.Attribute) else ""
    holder = dotted(node.value) if isinstance(node, ast.Attribute) else ""
    stores = (a for a in module.nodes(ast.Attribute) if isinstance(a.ctx, ast.Store) and a.attr == name and a is not node)
    return not any(dotted(a.value) == holder and module.function_of(a) is not None for a in stores) or not holder


def is_own(project: Project, found: Wrapped, name: str) -> bool | None:
    """True where the class of the model has it; None where its classes are known and none of them has."""
    classes = _classes(project, found)
    if any(has_attribute(project, facts, name) for facts in classes):
        return True
    if name in PRETRAINED and found.model is not None and is_pretrained(project, found.module, found.model):
        return True
    return None if name in ENGINE or (classes and not any(f.opaque or _becomes_another(f) for f in classes)) else False


def _becomes_another(facts: ClassFacts) -> bool:
    """True for a class whose objects are of another one in the end: `self.__class__ = type(chosen)`, or by its `__new__`."""
    if facts.method("__new__") is not None:
        return True
    for site in facts.lineage:
        given = (a for a in site.module.nodes(ast.Attribute) if a.attr == "__class__" and isinstance(a.ctx, ast.Store))
        if b"__class__" in site.module.data and any(site.module.class_of(a) is site.node for a in given):
            return True
    return False


def _classes(project: Project, found: Wrapped) -> tuple[ClassFacts, ...]:
    return classes_of(project, found.module, found.model)


def may_be_wrapper(module: SourceModule, node: ast.expr) -> bool:
    """A name or a field: told from the node alone, before anything is followed."""
    if isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Name):
        return node.id not in ("self", "cls") and node.id not in module.imports
    return is_own_field(node) or is_of_object(module, node)


def is_own_field(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def is_of_object(module: SourceModule, node: ast.expr) -> bool:
    """True for `task.net` and `self.task.net`: a field of another object."""
    if not isinstance(node, ast.Attribute):
        return False
    held = node.value
    named = isinstance(held, ast.Name) and held.id not in ("self", "cls") and held.id not in module.imports
    return named or is_own_field(held)


def names_of_wrapper(project: Project, module: SourceModule) -> Iterator[Asked]:
    """Calls of a function that looks the names of a wrapper up among those of a bare network, or the other way round."""
    for one in looked_up(project, module):
        if not counts_for_it(project, module, one.call, one.wrapped):
            continue
        function, receiver = dotted(one.call.func), module.text_of(one.holder)
        where = f"{one.function.module.path}:{one.line}"
        text = (
            f"`{function}` is handed the DDP wrapper, all of whose names begin with `module.`, and looks them up against those "
            f"of `{one.bare}` ({where}): with several processes this call raises KeyError"
        )
        proof = Evidence("static", "goes by the names of both", one.function.module.path, one.line)
        yield Asked(
            one.call, one.holder, one.wrapped, receiver, function, text, f"names({function}", known=True, plain=True,
            evidence=(proof,),
        )  # fmt: skip
