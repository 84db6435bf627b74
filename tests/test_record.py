"""`record` against the dataclass that it stands for, in every point in which a program can tell them apart."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import subprocess
import sys
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar

import pytest

from codemods.runtime import record as records
from codemods.runtime.record import field, record


def place(make: Callable[..., Any], given: Callable[..., Any]) -> Any:
    @make
    class Place:
        """Where."""

        limit: ClassVar[int] = 3
        path: str
        lines: tuple[int, ...] = ()
        notes: list[str] = given(default_factory=list)
        node: object = given(default=None, compare=False)

        @property
        def first(self) -> int:
            return self.lines[0]

        def longer(self, by: int) -> tuple[int, ...]:
            return (*self.lines, *range(by))

    return Place


def below(make: Callable[..., Any], base: Any) -> Any:
    @make
    class Below(base):  # type: ignore[misc]
        """Further down."""

        depth: int = 0
        path: str = "root"

        def __str__(self) -> str:
            return f"{self.path}/{self.depth}"

    return Below


def empty(make: Callable[..., Any]) -> Any:
    @make
    class Empty:
        pass

    return Empty


AS_DATACLASS = dataclasses.dataclass(frozen=True, slots=True)
BOTH = [place(AS_DATACLASS, dataclasses.field), place(record, field)]
INHERITED = [below(AS_DATACLASS, BOTH[0]), below(record, BOTH[1])]


def said(act: Callable[[], object]) -> object:
    """What comes of it: a value, or the kind and the words of the error."""
    try:
        return act()
    except Exception as error:
        return type(error).__name__, str(error)


ACTS: dict[str, Callable[[Any], object]] = {
    "by position": lambda cls: repr(cls("a", (1,), ["x"], 2)),
    "by keyword": lambda cls: repr(cls(lines=(2,), path="a")),
    "defaults": lambda cls: repr(cls("a")),
    "made anew": lambda cls: cls("a").notes is cls("a").notes,
    "given in its place": lambda cls: cls("a", (), ()).notes,
    "too few": lambda cls: repr(cls()),
    "too many": lambda cls: cls("a", (), [], 1, 2, 3, 4),
    "unknown": lambda cls: cls("a", other=1),
    "twice": lambda cls: cls("a", path="b"),
    "equal": lambda cls: cls("a", (1,), (), 1) == cls("a", (1,), (), 2),
    "different": lambda cls: (cls("a") == cls("b"), cls("a") != cls("b"), cls("a") == ("a", (), []), cls("a") == 1),
    "hash": lambda cls: hash(cls("a", (1,), (), 1)) == hash(cls("a", (1,), (), 2)),
    "a key": lambda cls: {cls("a", (), ()): 1}[cls("a", (), ())],
    "no hash of a list": lambda cls: hash(cls("a")),
    "assigned": lambda cls: setattr(cls("a"), "path", "b"),
    "assigned elsewhere": lambda cls: setattr(cls("a"), "lines", (1,)),
    "deleted": lambda cls: delattr(cls("a"), "path"),
    "no dict": lambda cls: hasattr(cls("a"), "__dict__"),
    "order": lambda cls: cls("a") < cls("b"),
    "slots": lambda cls: cls.__slots__,
    "match": lambda cls: cls.__match_args__,
    "doc": lambda cls: cls.__doc__,
    "class variable": lambda cls: (cls.limit, cls("a").limit),
    "property": lambda cls: cls("a", (7,)).first,
    "method": lambda cls: cls("a", (7,)).longer(by=2),
    "text": lambda cls: str(cls("a")),
    "names": lambda cls: (cls.__name__, cls.__module__, cls.__init__.__qualname__.rpartition(".")[2]),
    "annotations": lambda cls: cls.__annotations__,
    "default on the class": lambda cls: type(cls.lines).__name__,
    "fields": lambda cls: [(f.name, f.type, f.compare, f.default_factory is list) for f in dataclasses.fields(cls)],
    "defaults of fields": lambda cls: [f.default for f in dataclasses.fields(cls) if f.default is not dataclasses.MISSING],
    "asdict": lambda cls: dataclasses.asdict(cls("a", (1,), [cls("b")])),
    "is_dataclass": lambda cls: (dataclasses.is_dataclass(cls), dataclasses.is_dataclass(cls("a"))),
    "replaced": lambda cls: repr(dataclasses.replace(cls("a", (1,)), path="b")),
    "replaced unknown": lambda cls: dataclasses.replace(cls("a", (1,)), other="b"),
    "copied": lambda cls: (copy.copy(cls("a", (1,))) == cls("a", (1,)), repr(copy.deepcopy(cls("a", (1,), [cls("b")])))),
}


@pytest.mark.parametrize("classes", [BOTH, INHERITED], ids=["alone", "inherited"])
@pytest.mark.parametrize("act", ACTS)
def test_a_record_does_what_the_dataclass_does(act: str, classes: list[Any]) -> None:
    meant, made = classes
    assert said(lambda: ACTS[act](made)) == said(lambda: ACTS[act](meant))


def test_a_record_of_another_class_is_never_equal() -> None:
    assert INHERITED[1]("a") != BOTH[1]("a")
    assert empty(record)() != empty(record)()


def test_no_fields_at_all() -> None:
    meant, made = empty(AS_DATACLASS), empty(record)
    assert made() == made() and hash(made()) == hash(meant()) and repr(made()) == repr(meant())
    assert made.__match_args__ == made.__slots__ == ()


@record
class Sent:
    name: str
    value: object = None


@record(order=True)
class Version:
    major: int
    minor: int = 0
    text: str = field(default="", compare=False)


@record(frozen=False)
class Count:
    seen: int = 0
    names: list[str] = field(default_factory=list)


@record
class Slow:
    value: int

    @cached_property
    def squares(self) -> list[int]:
        return [self.value**2]


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_it_travels(protocol: int) -> None:
    sent = Sent("a", (Version(1, 2, "x"), Slow(3)))
    assert pickle.loads(pickle.dumps(sent, protocol)) == sent
    program = f"import pickle, sys; print(pickle.loads({pickle.dumps(sent, protocol)!r}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == f"{sent!r}\n"


def test_it_matches() -> None:
    match Sent("a", Version(1)):
        case Sent("a", Version(major, minor=0)):
            assert major == 1
        case _:
            raise AssertionError


def test_order_is_by_the_fields_that_count() -> None:
    assert sorted([Version(2), Version(1, 3), Version(1, 2)]) == [Version(1, 2), Version(1, 3), Version(2)]
    assert Version(1) <= Version(1, 0, "x") and Version(1) >= Version(1, 0, "x") and not Version(1) < Version(1, 0, "x")
    assert max(Version(1), Version(0, 9)) > Version(1, -1)
    with pytest.raises(TypeError):
        assert Version(1) < (2, 0)  # type: ignore[operator]


def test_one_that_is_not_frozen_changes_and_is_no_key() -> None:
    count = Count()
    count.seen += 1
    count.names.append("a")
    assert count == Count(1, ["a"]) != Count()
    with pytest.raises(AttributeError):
        count.other = 1  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="unhashable"):
        hash(count)


def test_a_cached_property_is_worked_out_once_and_does_not_travel() -> None:
    slow = Slow(3)
    assert slow.squares is slow.squares == [9]
    assert slow == Slow(3) and hash(slow) == hash(Slow(3))
    with pytest.raises(AttributeError):
        slow.value = 4  # type: ignore[misc]
    assert vars(pickle.loads(pickle.dumps(slow))) == {}


def test_replaced_is_another_one() -> None:
    first = Version(1, 2, "x")
    assert records.replace(first, minor=3) == Version(1, 3) and first.minor == 2
    assert records.replace(first, minor=3).text == "x"
    with pytest.raises(TypeError, match="other"):
        records.replace(first, other=3)  # type: ignore[call-arg]


def wrong_order(make: Callable[..., Any]) -> None:
    @make
    class _Wrong:
        a: int = 0
        b: int


def shared_default(make: Callable[..., Any]) -> None:
    @make
    class _Wrong:
        a: list[int] = []  # noqa: RUF012


@pytest.mark.parametrize("wrong", [wrong_order, shared_default])
def test_what_a_dataclass_refuses_is_refused(wrong: Callable[..., None]) -> None:
    for make in (AS_DATACLASS, record):
        with pytest.raises((TypeError, ValueError), match="default"):
            wrong(make)


def test_what_it_does_not_do_is_refused() -> None:
    with pytest.raises(TypeError, match="__post_init__"):

        @record
        class _Late:
            a: int

            def __post_init__(self) -> None:
                raise AssertionError


def test_own_methods_stay() -> None:
    @record
    class Folded:
        name: str

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Folded) and other.name.lower() == self.name.lower()

        def __hash__(self) -> int:
            return hash(self.name.lower())

        def __repr__(self) -> str:
            return self.name

    assert {Folded("A")} == {Folded("a")} and repr(Folded("A")) == "A"


def test_arguments_are_checked_by_the_fields() -> None:
    """With this file's own types: an ignore that the type checker does not need is an error."""
    assert Sent(1).name == 1  # type: ignore[arg-type, comparison-overlap]
    assert records.replace(Version(1), minor="2").minor == "2"  # type: ignore[arg-type, comparison-overlap]
    with pytest.raises(TypeError):
        Version(major=1, patch=2)  # type: ignore[call-arg]
