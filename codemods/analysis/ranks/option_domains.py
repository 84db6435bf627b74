"""What an option can be, by its own call of `add_argument`: no command line makes it anything else."""

from __future__ import annotations

import ast

from codemods.runtime.record import record

Value = str | int | float | bool | None
# These give no None for any text. `type=bool` gives both values, though not as its author meant.
_TYPES = frozenset({"str", "int", "float", "bool"})


@record
class Domain:
    """values: all that it can be; None where they cannot be counted. none: it may be None."""

    values: tuple[Value, ...] | None
    none: bool

    def joined(self, other: Domain) -> Domain:
        values = None if self.values is None or other.values is None else (*self.values, *other.values)
        return Domain(values, self.none or other.none)


_ANYTHING = Domain(None, True)


def domain_of(call: ast.Call) -> Domain:
    """What the option of a call of `add_argument` can be."""
    given = {k.arg: k.value for k in call.keywords if k.arg is not None}
    if len(given) != len(call.keywords):
        return _ANYTHING
    action = given.get("action", ast.Constant("store"))
    known, default = _value(given.get("default", ast.Constant(None)))
    if _is_named(action, "BooleanOptionalAction"):
        switched: tuple[Value, ...] = (True, False)
    elif isinstance(action, ast.Constant) and action.value in ("store_true", "store_false"):
        switched = (action.value == "store_true",)
        known, default = (True, not switched[0]) if "default" not in given else (known, default)
    elif isinstance(action, ast.Constant) and action.value == "store":
        return _stored(call, given, known, default)
    else:
        return _ANYTHING
    return _of_values((*switched, default)) if known else _ANYTHING


def _stored(call: ast.Call, given: dict[str, ast.expr], known: bool, default: Value) -> Domain:
    """An option that takes a value from the command line."""
    kind, many, choices = given.get("type"), given.get("nargs"), given.get("choices")
    if not known or (kind is not None and not (isinstance(kind, ast.Name) and kind.id in _TYPES)):
        return _ANYTHING
    own: tuple[Value, ...] = (default,) if _takes_its_default(call, given, many) else ()
    none = None in own
    if isinstance(many, ast.Constant) and many.value == "?":
        sure, const = _value(given.get("const", ast.Constant(None)))
        return Domain(None, none or not sure or const is None)
    converted = isinstance(default, str) and isinstance(kind, ast.Name) and kind.id != "str"
    if many is not None or converted or not isinstance(choices, (ast.List, ast.Tuple, ast.Set)):
        return Domain(None, none)
    values = [_value(e) for e in choices.elts]
    return _of_values((*(v for _, v in values), *own)) if all(sure for sure, _ in values) else Domain(None, none)


def _takes_its_default(call: ast.Call, given: dict[str, ast.expr], many: ast.expr | None) -> bool:
    """False for what a command has to give: a required option, and an argument without a flag."""
    required = given.get("required")
    if isinstance(required, ast.Constant) and required.value is True:
        return False
    flags = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    positional = bool(flags) and not any(f.startswith("-") for f in flags)
    return not positional or many is not None


def _of_values(values: tuple[Value, ...]) -> Domain:
    return Domain(values, None in values)


def _value(node: ast.expr) -> tuple[bool, Value]:
    """Whether it is a plain value that is written out, and the value."""
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return False, None
    return (True, value) if value is None or isinstance(value, (str, int, float)) else (False, None)


def _is_named(node: ast.expr, name: str) -> bool:
    return (node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else "") == name
