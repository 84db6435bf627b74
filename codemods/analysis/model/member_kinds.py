"""What an attribute of a model may hold, and the small questions that its constructor answers."""

from __future__ import annotations

import ast
from enum import Enum

from codemods.analysis.class_index import ClassSite
from codemods.files.source import FunctionNode, SourceModule
from codemods.runtime.record import record, replace


class Kind(Enum):
    """What an attribute holds."""

    LEAF = "a module of torch with parameters"
    PARAMETER = "a parameter"
    MODULE = "a module of the project"
    SEQUENCE = "modules called one after the other"
    LIST = "a list of modules"
    DICT = "modules by name"
    CHOICE = "one of several, chosen when the model is built"
    FREE = "a module or function of torch without parameters"
    PLAIN = "no module"
    ALIAS = "another attribute's module"
    COPY = "a deep copy of another attribute's module, with parameters of its own"
    UNKNOWN = "something made outside the project"


@record
class Member:
    """What `self.name` is. parts: elements of a container or the choices. condition: the test it is made under, if any.

    note: the class's name, the reason it is unknown, or the attribute an alias or a copy stands for. repeated: made in a
    loop, so it stands for as many elements of its container as the loop has rounds. assumed: what has to hold for it to be that.
    perhaps: it may be something without parameters instead (`nn.Linear(…) if projects else nn.Identity()`).
    """

    name: str
    kind: Kind
    note: str
    path: str
    line: int
    site: ClassSite | None = None
    parts: tuple[Member, ...] = ()
    condition: str = ""
    repeated: bool = False
    assumed: str = ""
    perhaps: bool = False


@record
class Members:
    """All that a class registers.

    constants: attributes that are always the same literal. state: attributes that methods other than the constructor assign.
    problems: what hides members.
    """

    by_name: dict[str, Member]
    constants: dict[str, object]
    state: frozenset[str]
    frozen: frozenset[str]
    problems: tuple[str, ...]


def pairs(listed: Member) -> list[Member]:
    """The modules in `[("name", module), …]`."""
    return [pair.parts[-1] for pair in listed.parts if pair.parts]


def choice(made: Member, found: list[Member]) -> Member:
    """One of several; what is no module drops out (`nn.Linear(…) if x else None` is a Linear where it is there)."""
    real = [f for f in found if f.kind not in (Kind.PLAIN, Kind.FREE)]
    if not real:
        return replace(found[0], note=found[0].note)
    if len(real) == 1:
        return replace(real[0], perhaps=True) if len(found) > 1 else real[0]
    if all(f.kind is Kind.LEAF for f in real):
        return real[0]  # a Linear or a Conv: called alike, used alike
    return replace(made, parts=tuple(replace(f, name=f"({i})") for i, f in enumerate(real)))


def joined(name: str, values: list[Member]) -> Member:
    """One member for an attribute that is assigned several times: in both arms of a test, or again below."""
    real = [v for v in values if v.kind not in (Kind.PLAIN,)]
    if not real:
        return values[-1]
    if len(real) == 1:
        bare = any(v.kind is Kind.PLAIN and not v.condition for v in values[values.index(real[0]) + 1 :])
        return values[-1] if bare else real[0]
    if len({v.condition for v in real}) == 1:
        return real[-1]  # a subclass replaces what its base has made
    shared = [part for part in real[0].condition.split(" and ") if all(part in v.condition.split(" and ") for v in real)]
    return replace(choice(replace(real[0], kind=Kind.CHOICE), real), name=name, condition=" and ".join(shared))


def without_copies(member: Member, by_name: dict[str, Member]) -> Member:
    """A deep copy of `self.x` is a module of its own, made like `self.x`."""
    parts = tuple(without_copies(part, by_name) for part in member.parts)
    if member.kind is not Kind.COPY:
        return replace(member, parts=parts) if parts else member
    original = by_name.get(member.note)
    if original is None:
        return replace(member, kind=Kind.PLAIN, note="")  # not made here: Lightning's hparams, say
    if original.kind in (Kind.ALIAS, Kind.COPY):
        return replace(member, kind=Kind.UNKNOWN, note=f"what self.{member.note}, which it copies, is made of is not shown")
    here = {f: getattr(member, f) for f in ("name", "path", "line", "condition", "repeated")}
    return replace(without_copies(original, {}), **here)


def without_aliases(member: Member, by_name: dict[str, Member]) -> Member:
    """A container whose `self.x` elements are the modules of that name; their name begins with `=`."""
    parts = []
    for part in member.parts:
        if part.kind is Kind.ALIAS and part.note in by_name:
            parts.append(replace(by_name[part.note], name=f"={part.note}"))
        else:
            parts.append(without_aliases(part, by_name))
    return replace(member, parts=tuple(parts)) if parts else member


def canonical(module: SourceModule, test: ast.expr, function: FunctionNode) -> str:
    """A test as text, with `x` for `self.x`, so that the constructor's test and forward's compare equal."""
    return " ".join(module.text_of(test).replace("self.", "").replace(" is True", "").split())


def condition(module: SourceModule, node: ast.AST, function: FunctionNode) -> str:
    """The tests round `node` within the function, innermost first; "" where it always runs (loops do not count)."""
    below: ast.AST = node
    found: list[str] = []
    for up in module.ancestors(node):
        if up is function:
            break
        if isinstance(up, ast.If):
            text = canonical(module, up.test, function)
            several = isinstance(up.test, ast.BoolOp)
            found.append(text if any(below is s for s in up.body) else f"not ({text})" if several else f"not {text}")
        elif isinstance(up, (ast.Try, ast.While)):
            found.append("…")
        below = up
    return " and ".join(found)


def in_loop(module: SourceModule, node: ast.AST, function: FunctionNode) -> bool:
    for up in module.ancestors(node):
        if up is function:
            return False
        if isinstance(up, (ast.For, ast.While, ast.AsyncFor)):
            return True
    return False


def marked(member: Member, repeated: bool) -> Member:
    """The member, and the elements it may bring along, made in a loop."""
    parts = tuple(replace(part, repeated=part.repeated or repeated) for part in member.parts)
    return replace(member, repeated=member.repeated or repeated, parts=parts)


def literal_name(call: ast.Call) -> str:
    first = call.args[0] if call.args else None
    return str(first.value) if isinstance(first, ast.Constant) else ""


def is_false_node(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def is_false(call: ast.Call) -> bool:
    return bool(call.args) and is_false_node(call.args[0])
