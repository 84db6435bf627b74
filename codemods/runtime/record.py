"""`record`: what `dataclass(frozen=True, slots=True)` makes, made in a tenth of the time.

A dataclass takes 0.35 ms, since each of its methods is compiled, and `dataclasses` itself 10 ms with `inspect`; a check imports
two hundred of them. Here a method is compiled once for each number of fields, and the names are put into its code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, cached_property
from operator import attrgetter
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast, dataclass_transform, overload

T = TypeVar("T")


class _Missing:
    """The default of a field that has none, or one that is made anew."""

    def __repr__(self) -> str:
        return "<made anew>"


MISSING: Any = _Missing()


class Field:
    """default: the value, MISSING without one; factory: what makes it anew; compare: part of equality, order and hash."""

    __slots__ = ("annotation", "compare", "default", "factory")

    def __init__(self, default: object = MISSING, factory: Callable[[], object] | None = None, compare: bool = True) -> None:
        if type(default).__hash__ is None:
            raise ValueError(f"a default that all records share: {default!r}; give a default_factory")
        self.default, self.factory, self.compare, self.annotation = default, factory, compare, ""


def field(*, default: Any = MISSING, default_factory: Callable[[], Any] | None = None, compare: bool = True) -> Any:  # noqa: ANN401
    """A field of a record that is not just a default."""
    return Field(default, default_factory, compare)


@overload
def record(cls: type[T], /) -> type[T]: ...
@overload
def record(*, frozen: bool = True, order: bool = False) -> Callable[[type[T]], type[T]]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: type[T] | None = None, /, *, frozen: bool = True, order: bool = False) -> type[T] | Callable[[type[T]], type[T]]:
    """The class with the slots and methods that its annotations ask for.

    frozen: without it, fields may be assigned, and there is no hash. order: `<` and its like, by the fields. A cached_property
    of the class keeps its value beside the fields. There are no `__post_init__`, no InitVar and no keyword-only fields. Raises
    TypeError and ValueError where dataclasses do.
    """
    if cls is None:
        return lambda cls: _made(cls, frozen, order)
    return _made(cls, frozen, order)


def _made(cls: type[T], frozen: bool, order: bool) -> type[T]:
    """A new class, since slots cannot be given to one that is there."""
    inherited: dict[str, Field] = {}
    for base in reversed(cls.__mro__[1:]):
        inherited |= vars(base).get("__record_fields__", {})
    body = {name: value for name, value in vars(cls).items() if name not in ("__dict__", "__weakref__", "__annotations__")}
    own = _fields(cls, body)
    fields = inherited | own
    compared = tuple(name for name, f in fields.items() if f.compare)
    if "__post_init__" in body:
        raise TypeError(f"{cls.__name__}: a record has no __post_init__")
    beside = ("__dict__",) if any(isinstance(value, cached_property) for value in body.values()) else ()
    body |= {
        "__slots__": (*(name for name in own if name not in inherited), *beside),
        "__annotations__": cls.__annotations__,
        "__qualname__": cls.__qualname__,
        "__record_fields__": fields,
        "__match_args__": tuple(fields),
        "__dataclass_fields__": _AsDataclass(),
        "__reduce__": _reduce,
    }
    body.setdefault("__repr__", _repr)
    for method, sign in _COMPARISONS.items() if order else (("__eq__", "=="),):
        if method not in body:
            body[method] = _function(cls, _comparison(method, sign, len(compared)), compared, {})
    if body.get("__hash__") is None:
        body["__hash__"] = _function(cls, _hash(len(compared)), compared, {}) if frozen else None
    if frozen:
        body |= {"__setattr__": _refuse, "__delattr__": _refuse}
    metaclass: Any = type(cls)
    made: Any = metaclass(cls.__name__, cls.__bases__, body)
    made.__init__ = _init(made, fields, frozen)
    return cast("type[T]", made)


def _fields(cls: type, body: dict[str, Any]) -> dict[str, Field]:
    """The fields of its annotations, in order; their defaults leave the body for the slots."""
    own: dict[str, Field] = {}
    for name, annotation in cls.__annotations__.items():
        if not str(annotation).removeprefix("typing.").startswith("ClassVar"):
            value = body.pop(name, MISSING)
            own[name] = value if isinstance(value, Field) else Field(value)
            own[name].annotation = annotation
    return own


def names(of: object) -> tuple[str, ...]:
    """The names of the fields of a record, or of a class of them, in order."""
    known: tuple[str, ...] = of.__match_args__  # type: ignore[attr-defined]
    return known


# Methods, compiled with `_0`, `_1`, … in the place of the names


def _compiled(source: str) -> CodeType:
    code: CodeType = compile(source, "<record>", "exec").co_consts[0]
    return code


def _tuple(of: str, count: int) -> str:
    return "(" + "".join(f"{of}._{i}, " for i in range(count)) + ")"


@cache
def _comparison(method: str, sign: str, count: int) -> CodeType:
    both = f"{_tuple('self', count)} {sign} {_tuple('other', count)}"
    return _compiled(
        f"def {method}(self, other):\n if other.__class__ is self.__class__: return {both}\n return NotImplemented"
    )


@cache
def _hash(count: int) -> CodeType:
    return _compiled(f"def __hash__(self): return hash({_tuple('self', count)})")


@cache
def _assignments(made_anew: tuple[bool, ...], frozen: bool) -> CodeType:
    """The `__init__` of so many fields; frozen ones are set by their slots, which is faster than `object.__setattr__`."""
    lines = [f"def __init__(self{''.join(f', _{i}' for i in range(len(made_anew)))}):"]
    for i, anew in enumerate(made_anew):
        if anew:
            lines.append(f" if _{i} is MISSING: _{i} = new{i}()")
        lines.append(f" set{i}(self, _{i})" if frozen else f" self._{i} = _{i}")
    return _compiled("\n".join([*lines, " return None"]))


def _function(
    cls: type, code: CodeType, names: tuple[str, ...], given: dict[str, Any], defaults: tuple[object, ...] = ()
) -> FunctionType:
    """The function of that code with these names; given: its globals."""
    put = {f"_{i}": name for i, name in enumerate(names)}
    named = code.replace(
        co_varnames=tuple([put.get(name, name) for name in code.co_varnames]),
        co_names=tuple([put.get(name, name) for name in code.co_names]),
    )
    function = FunctionType(named, given, code.co_name, defaults)
    function.__qualname__, function.__module__ = f"{cls.__qualname__}.{code.co_name}", cls.__module__
    return function


def _init(cls: type, fields: Mapping[str, Field], frozen: bool) -> FunctionType:
    given: dict[str, Any] = {"MISSING": MISSING}
    defaults: list[object] = []
    for i, (name, one) in enumerate(fields.items()):
        if one.factory is not None:
            given[f"new{i}"] = one.factory
        if one.factory is not None or one.default is not MISSING:
            defaults.append(one.default)
        elif defaults:
            raise TypeError(f"non-default argument {name!r} follows default argument")
        if frozen:
            given[f"set{i}"] = getattr(cls, name).__set__
    code = _assignments(tuple([one.factory is not None for one in fields.values()]), frozen)
    return _function(cls, code, tuple(fields), given, tuple(defaults))


_COMPARISONS = {"__eq__": "==", "__lt__": "<", "__le__": "<=", "__gt__": ">", "__ge__": ">="}


# Methods that all records share


def _repr(self: Any) -> str:  # noqa: ANN401
    values = ", ".join(f"{name}={getattr(self, name)!r}" for name in names(self))
    return f"{self.__class__.__qualname__}({values})"


def _refuse(self: object, name: str, *value: object) -> NoReturn:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot {'assign to' if value else 'delete'} field {name!r}")


def _reduce(self: Any) -> tuple[type, tuple[object, ...]]:  # noqa: ANN401
    return self.__class__, tuple(getattr(self, name) for name in names(self))


class _AsDataclass:
    """`__dataclass_fields__`, made where somebody asks: a record is a dataclass for `fields`, `asdict` and `is_dataclass`."""

    def __get__(self, instance: object, owner: Any) -> Any:  # noqa: ANN401
        import dataclasses

        def same(one: Field) -> Any:  # noqa: ANN401
            if one.factory is not None:
                return dataclasses.field(default_factory=one.factory, compare=one.compare)
            return dataclasses.field(default=dataclasses.MISSING if one.default is MISSING else one.default, compare=one.compare)

        known: Mapping[str, Field] = owner.__record_fields__
        made: Any = dataclasses.make_dataclass(owner.__name__, [(name, one.annotation, same(one)) for name, one in known.items()])
        owner.__dataclass_fields__ = made.__dataclass_fields__
        return made.__dataclass_fields__


if TYPE_CHECKING:
    from dataclasses import replace as replace  # its arguments are checked by the fields
else:

    def replace(record: Any, /, **changes: object) -> Any:  # noqa: ANN401
        """The same record but for these fields. Raises TypeError for a name that is no field."""
        cls = record.__class__
        known = _readers.get(cls)
        if known is None:
            held = cls.__match_args__
            known = _readers[cls] = attrgetter(*held), {name: i for i, name in enumerate(held)}
        get, places = known
        given = list(get(record)) if len(places) > 1 else [get(record)]
        for name, value in changes.items():
            if name not in places:
                raise TypeError(f"{cls.__name__} has no field {name!r}")
            given[places[name]] = value
        return cls(*given)  # by position: a dozen keywords take twice as long

    _readers: dict[type, tuple[Callable[[Any], Any], dict[str, int]]] = {}
