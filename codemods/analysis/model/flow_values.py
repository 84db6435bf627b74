"""What flows through a model: a value, the parameters that surely reach it, those that may, and why they may not."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any

from codemods.analysis.model.member_kinds import Kind, Member
from codemods.runtime.record import field, record, replace

Names = frozenset[str]
NONE: Names = frozenset()


class Cause(Enum):
    """What decides whether a module takes part in a step."""

    RANDOM = "a random number"
    INDEX = "an index that is not constant"
    DATA = "the data of the batch"
    SHAPE = "the shape of what is given"
    ARGUMENT = "an argument of forward"
    CONFIG = "the configuration"
    SCHEDULE = "the epoch or the step"
    RANK = "the rank"
    TURN = "the loss whose turn it is"
    OTHER = "a test"

    @property
    def varies(self) -> bool:
        """True where the answer can differ from one step to the next."""
        return self is not Cause.CONFIG


@record
class Decision:
    """A place where parameters drop out. names: those; text: the test as written; literal: it draws the random number."""

    cause: Cause
    text: str
    path: str
    line: int
    names: Names = NONE
    literal: bool = False


@record
class Ref:
    """A module: where it hangs below the root, and what it is.

    partial: not known to be all of it (`self.blocks[k]`), and `cause` picks the element. each: one of several that a loop
    goes over, all of which are used.
    """

    path: str
    member: Member
    partial: str = ""
    each: bool = False
    cause: Cause = Cause.INDEX


class Unset(Enum):
    UNSET = 0


UNSET = Unset.UNSET


@record
class Value:
    """A value in forward.

    must: parameters whose gradient it carries on every path. may: on some path. doubts: why a parameter of `may` is not in
    `must` although no test decides it. parts: elements by key (a tuple's by number). many: a list of independent values.
    constant: a literal. random: a random number. wrapped: the class of object it is. index_of: the module list that a loop
    index goes over, `*` where the loop counts to something else. closure: a function defined inside another.
    """

    must: Names = NONE
    may: Names = NONE
    doubts: Names = NONE
    parts: tuple[tuple[object, Value], ...] = ()
    refs: tuple[Ref, ...] = ()
    many: bool = False
    constant: object = UNSET
    random: bool = False
    wrapped: str = ""
    index_of: str = ""
    closure: Any = field(default=None, compare=False)

    def part(self, key: object) -> Value | None:
        return next((v for k, v in self.parts if k == key), None)

    @property
    def is_none(self) -> bool:
        return self.constant is None

    @property
    def carries(self) -> bool:
        return bool(self.may or self.must)


NOTHING = Value()


def union(values: Iterable[Value]) -> Value:
    """What is computed from all of `values`."""
    must: set[str] = set()
    may: set[str] = set()
    doubts: set[str] = set()
    for value in values:
        must |= value.must
        may |= value.may
        doubts |= value.doubts
    return Value(frozenset(must), frozenset(may), frozenset(doubts))


def doubtful(values: Iterable[Value], doubt: str) -> Value:
    """What an unknown function makes of `values`: their gradients may be lost."""
    joined = union(values)
    may = joined.may | joined.must
    return Value(NONE, may, joined.doubts | ({doubt} if may else NONE))


def flat(value: Value) -> Value:
    """The value without its structure."""
    return Value(value.must, value.may, value.doubts)


def merged(a: Value, b: Value, keep: Names = NONE) -> Value:
    """What a name holds after two paths meet; `keep` are parameters that exist on one of the paths only."""
    if a == b:
        return a
    if a.is_none and not b.is_none and not a.carries:
        return replace(b, constant=UNSET, must=b.must & keep)
    if b.is_none and not a.is_none and not b.carries:
        return replace(a, constant=UNSET, must=a.must & keep)
    must = (a.must & b.must) | ((a.must | b.must) & keep)
    parts: tuple[tuple[object, Value], ...] = ()
    if a.parts and b.parts:
        both = dict(b.parts)
        joint = [(k, merged(v, both[k], keep)) for k, v in a.parts if k in both]
        rest = [(k, replace(v, must=v.must & keep)) for k, v in [*a.parts, *b.parts] if k not in dict(joint)]
        parts = tuple(joint + rest)
    elif a.parts or b.parts:
        whole, bare = (a, b) if a.parts else (b, a)
        parts = tuple((k, replace(v, must=v.must & (bare.must | keep))) for k, v in whole.parts)
    refs = tuple(dict.fromkeys((*a.refs, *b.refs)))
    return Value(
        must, a.may | b.may | a.must | b.must, a.doubts | b.doubts, parts, refs, a.many or b.many,
        a.constant if a.constant == b.constant else UNSET, a.random or b.random, a.wrapped or b.wrapped,
        a.index_of if a.index_of == b.index_of else "", a.closure or b.closure,
    )  # fmt: skip


def leaves(ref: Ref) -> list[tuple[str, Member]]:
    """The parameters directly below a container, without looking into project modules."""
    member = ref.member
    if member.kind in (Kind.LEAF, Kind.PARAMETER, Kind.UNKNOWN):
        return [(ref.path, member)]
    if member.kind in (Kind.SEQUENCE, Kind.LIST, Kind.DICT, Kind.CHOICE):
        return [leaf for part in parts_of(ref) for leaf in leaves(part)]
    return []


def parts_of(ref: Ref) -> list[Ref]:
    """The elements of a container, each with its path: `blocks[0]`, `heads["x"]`."""
    out = []
    for i, part in enumerate(ref.member.parts):
        if part.name.startswith("="):  # an element that is registered under another name as well
            parent = ref.path.rpartition(".")[0]
            out.append(Ref(f"{parent}.{part.name[1:]}" if parent else part.name[1:], part, ref.partial))
            continue
        single = len(ref.member.parts) == 1 and part.repeated
        label = part.name if part.name.startswith("(") else f"[{part.name}]" if part.name else "" if single else f"[{i}]"
        out.append(Ref(ref.path + label, part, ref.partial))
    return out


def below(path: str, name: str) -> bool:
    """True if the path has `name` as one of its steps: `head.fc` is below `head`, `enc.head.fc` too."""
    steps = path.replace("[", ".[").replace("(", ".(").split(".")
    wanted = name.split(".")
    return any(steps[i : i + len(wanted)] == wanted for i in range(len(steps)))
