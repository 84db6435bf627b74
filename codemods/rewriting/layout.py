"""How new code takes the layout of its place: LibCST node in, LibCST node out. Beside rewriter.py, what imports LibCST."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from codemods.rewriting.continued_lines import as_deep_as


def code_of(node: cst.CSTNode) -> str:
    return cst.Module([]).code_for_node(node)


# Calls


def _spans_lines(space: object) -> bool:
    return isinstance(space, cst.ParenthesizedWhitespace)


def set_keyword(call: cst.Call, name: str, value: str) -> cst.Call:
    """`call` with `name=value`: in place of an argument of that name, else behind the last, laid out as the others are."""
    new_value = cst.parse_expression(value)
    args = list(call.args)
    for i, arg in enumerate(args):
        if arg.keyword is not None and arg.keyword.value == name:
            args[i] = arg.with_changes(value=new_value)
            return call.with_changes(args=args)
    plain = cst.SimpleWhitespace("")
    spaced = next((a.equal for a in args if a.keyword is not None and isinstance(a.equal, cst.AssignEqual)), None)
    equal = spaced if spaced is not None else cst.AssignEqual(plain, plain)
    new = cst.Arg(keyword=cst.Name(name), value=new_value, equal=equal)
    if not args:
        return call.with_changes(args=[new])
    last = args[-1]
    if len(args) == 1 and isinstance(last.value, cst.GeneratorExp) and not last.value.lpar:
        last = last.with_changes(value=last.value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()]))
    args[-1:] = _append(call, args, last, new)
    return call.with_changes(args=args)


def _append(call: cst.Call, args: Sequence[cst.Arg], last: cst.Arg, new: cst.Arg) -> list[cst.Arg]:
    """The last argument and the new one, with the white space, the comma and the comment each of them gets."""
    between = _separator(call, args)
    if isinstance(last.comma, cst.Comma):  # a trailing comma: what follows it closes the call
        closing = last.comma.whitespace_after
        joint, tail = _hand_over(closing, between)
        kept = last.comma.with_changes(whitespace_after=joint)
        return [last.with_changes(comma=kept), new.with_changes(comma=last.comma.with_changes(whitespace_after=tail))]
    joint, tail = _hand_over(last.whitespace_after_arg, between)
    if not _spans_lines(last.whitespace_after_arg):
        tail = last.whitespace_after_arg
    first = last.with_changes(comma=cst.Comma(whitespace_after=joint), whitespace_after_arg=cst.SimpleWhitespace(""))
    return [first, new.with_changes(whitespace_after_arg=tail)]


def _separator(call: cst.Call, args: Sequence[cst.Arg]) -> cst.BaseParenthesizableWhitespace:
    """What stands between two arguments here: the last separator in use, or the line break behind the bracket."""
    if len(args) > 1 and isinstance(args[-2].comma, cst.Comma):
        return args[-2].comma.whitespace_after
    if _spans_lines(call.whitespace_before_args):
        return call.whitespace_before_args
    return cst.SimpleWhitespace(" ")


def _hand_over(
    closing: cst.BaseParenthesizableWhitespace, between: cst.BaseParenthesizableWhitespace
) -> tuple[cst.BaseParenthesizableWhitespace, cst.BaseParenthesizableWhitespace]:
    """(space between the old last and the new argument, space behind the new one).

    A comment behind the old last argument stays with it: it moves into the joint.
    """
    bare = without_comments(between)
    if not isinstance(closing, cst.ParenthesizedWhitespace):
        return bare, closing
    tail = closing.with_changes(first_line=cst.TrailingWhitespace(newline=closing.first_line.newline), empty_lines=[])
    if isinstance(bare, cst.ParenthesizedWhitespace):
        return bare.with_changes(first_line=closing.first_line, empty_lines=closing.empty_lines), tail
    if closing.first_line.comment is None and not closing.empty_lines:
        return bare, tail
    # several arguments a line, and a comment behind the last: the new one needs a line of its own
    indented = closing.with_changes(last_line=cst.SimpleWhitespace(closing.last_line.value + "    "))
    return indented, tail


def without_comments(space: cst.BaseParenthesizableWhitespace) -> cst.BaseParenthesizableWhitespace:
    if isinstance(space, cst.ParenthesizedWhitespace):
        plain = cst.TrailingWhitespace(newline=space.first_line.newline)
        return space.with_changes(first_line=plain, empty_lines=[])
    return cst.SimpleWhitespace(" ") if isinstance(space, cst.SimpleWhitespace) and not space.value else space


def drop_keyword(call: cst.Call, name: str) -> cst.Call:
    """`call` without its keyword argument `name`; the comments behind it and right above it go with it."""
    args = list(call.args)
    index = _keyword_index(args, name)
    gone = args.pop(index)
    before = args[index - 1].comma if index else None
    if isinstance(before, cst.Comma):
        joint = before.with_changes(whitespace_after=_without_comment_above(before.whitespace_after))
        args[index - 1] = args[index - 1].with_changes(comma=joint)
    else:
        call = call.with_changes(whitespace_before_args=_without_comment_above(call.whitespace_before_args))
    if not args:
        space = call.whitespace_before_args
        return call.with_changes(args=[], whitespace_before_args=space if _has_comment(space) else cst.SimpleWhitespace(""))
    if index == len(args):  # it was the last: what closed the call now stands behind the one before
        args[-1] = _closed_as(args[-1], gone)
    return call.with_changes(args=args)


def drop_parameter(function: cst.FunctionDef, name: str) -> cst.FunctionDef:
    """`function` without its last positional parameter, which is called `name`."""
    held = list(function.params.params)
    if not held or held[-1].name.value != name:
        raise ValueError(f"{name} is not the last parameter")
    gone = held.pop()
    if held:
        held[-1] = held[-1].with_changes(comma=gone.comma, whitespace_after_param=gone.whitespace_after_param)
    return function.with_changes(params=function.params.with_changes(params=held))


def drop_key(literal: cst.Dict, name: str) -> cst.Dict:
    """The dict `literal` without the entry of the key `name`; the comments behind it and right above it go with it."""
    elements = list(literal.elements)
    index = next(i for i, e in enumerate(elements) if isinstance(e, cst.DictElement) and _is_text(e.key, name))
    gone = elements.pop(index)
    before = elements[index - 1].comma if index else None
    brace = literal.lbrace
    if isinstance(before, cst.Comma):
        joint = before.with_changes(whitespace_after=_without_comment_above(before.whitespace_after))
        elements[index - 1] = elements[index - 1].with_changes(comma=joint)
    else:
        brace = brace.with_changes(whitespace_after=_without_comment_above(brace.whitespace_after))
    if not elements:
        kept = brace.whitespace_after if _has_comment(brace.whitespace_after) else cst.SimpleWhitespace("")
        bare = cst.RightCurlyBrace()
        return literal.with_changes(elements=[], lbrace=brace.with_changes(whitespace_after=kept), rbrace=bare)
    if index < len(elements):
        return literal.with_changes(elements=elements, lbrace=brace)
    last = elements[-1]
    assert isinstance(last.comma, cst.Comma)
    closing = closing_after(last.comma.whitespace_after, literal.rbrace.whitespace_before)
    end = literal.rbrace.with_changes(whitespace_before=closing)
    elements[-1] = last.with_changes(comma=gone.comma)  # a last comma's space is the bracket's
    return literal.with_changes(elements=elements, lbrace=brace, rbrace=end)


def _is_text(key: cst.BaseExpression, name: str) -> bool:
    return isinstance(key, (cst.SimpleString, cst.ConcatenatedString)) and key.evaluated_value == name


def rename_keyword(call: cst.Call, name: str, new: str) -> cst.Call:
    """`call` with its keyword argument `name` under another name; every blank and comment stays."""
    args = list(call.args)
    index = _keyword_index(args, name)
    args[index] = args[index].with_changes(keyword=cst.Name(new))
    return call.with_changes(args=args)


def _keyword_index(args: Sequence[cst.Arg], name: str) -> int:
    for i, arg in enumerate(args):
        if arg.keyword is not None and arg.keyword.value == name:
            return i
    raise ValueError(f"the call has no argument {name}")


def _closed_as(before: cst.Arg, gone: cst.Arg) -> cst.Arg:
    """`before` with what stood between the last argument, now gone, and the closing bracket."""
    assert isinstance(before.comma, cst.Comma)
    joint = before.comma.whitespace_after
    if isinstance(gone.comma, cst.Comma):
        closing = closing_after(joint, gone.comma.whitespace_after)
        return before.with_changes(comma=gone.comma.with_changes(whitespace_after=closing))
    closing = closing_after(joint, gone.whitespace_after_arg)
    return before.with_changes(comma=cst.MaybeSentinel.DEFAULT, whitespace_after_arg=closing)


def closing_after(
    joint: cst.BaseParenthesizableWhitespace, closing: cst.BaseParenthesizableWhitespace
) -> cst.BaseParenthesizableWhitespace:
    """The closing space with the comments of the argument which is now the last."""
    if not isinstance(closing, cst.ParenthesizedWhitespace):
        return joint if _has_comment(joint) else closing
    if not isinstance(joint, cst.ParenthesizedWhitespace):
        return closing.with_changes(first_line=cst.TrailingWhitespace(newline=closing.first_line.newline))
    return closing.with_changes(first_line=joint.first_line, empty_lines=[*joint.empty_lines, *closing.empty_lines])


def _has_comment(space: object) -> bool:
    if not isinstance(space, cst.ParenthesizedWhitespace):
        return False
    return space.first_line.comment is not None or any(line.comment is not None for line in space.empty_lines)


def _without_comment_above(space: cst.BaseParenthesizableWhitespace) -> cst.BaseParenthesizableWhitespace:
    if not isinstance(space, cst.ParenthesizedWhitespace):
        return space
    lines = list(space.empty_lines)
    while lines and lines[-1].comment is not None:
        lines.pop()
    return space.with_changes(empty_lines=lines)


def comment_argument(call: cst.Call, keyword: str, lines: Sequence[str]) -> cst.Call | None:
    """Comment lines above an argument that stands on a line of its own; None where it shares its line."""
    args = list(call.args)
    index = _keyword_index(args, keyword)
    before = args[index - 1].comma if index else None
    space = before.whitespace_after if isinstance(before, cst.Comma) else call.whitespace_before_args
    if not isinstance(space, cst.ParenthesizedWhitespace):
        return None
    plain = cst.EmptyLine(indent=space.indent, whitespace=space.last_line, newline=space.first_line.newline)
    new = [plain.with_changes(comment=cst.Comment(hashed(line))) for line in lines]
    space = space.with_changes(empty_lines=[*space.empty_lines, *new])
    if not isinstance(before, cst.Comma):
        return call.with_changes(whitespace_before_args=space)
    args[index - 1] = args[index - 1].with_changes(comma=before.with_changes(whitespace_after=space))
    return call.with_changes(args=args)


def hashed(line: str) -> str:
    return f"# {line}" if line else "#"


# Expressions

# How tightly an expression holds together, loosest first; what is not named is an atom or binds like one.
_LOOSE: tuple[type[cst.BaseExpression], ...] = (
    cst.NamedExpr, cst.Yield, cst.Lambda, cst.IfExp, cst.BooleanOperation, cst.UnaryOperation, cst.Comparison,
    cst.BinaryOperation, cst.Await,
)  # fmt: skip
# Where any expression may stand as it is.
_ROOMY = (
    cst.Arg, cst.Assign, cst.AnnAssign, cst.AugAssign, cst.Return, cst.Expr, cst.If, cst.While, cst.Assert, cst.Element,
    cst.Index, cst.DictElement, cst.Param, cst.For, cst.Lambda,
)  # fmt: skip
_BARE: dict[type[cst.BaseExpression], tuple[type[cst.CSTNode], ...]] = {
    cst.NamedExpr: (),
    cst.Yield: (cst.Expr, cst.Assign),
    cst.Tuple: (cst.Expr, cst.Assign, cst.Return),
}


def _binds(node: cst.BaseExpression) -> int:
    if isinstance(node, cst.Tuple):
        return -1
    return next((i for i, kind in enumerate(_LOOSE) if isinstance(node, kind)), len(_LOOSE))


def expression_in_place_of(old: cst.BaseExpression, code: str, parent: cst.CSTNode | None) -> cst.BaseExpression:
    """`code` where `old` stood, in brackets where its place asks for them; brackets round `old` stay.

    Those of a tuple or a generator are its own and go with it.
    """
    new = as_deep_as(old, cst.parse_expression(code))
    lpar, rpar = list(getattr(old, "lpar", ())), list(getattr(old, "rpar", ()))
    if isinstance(old, (cst.Tuple, cst.GeneratorExp)) and lpar:
        lpar, rpar = lpar[:-1], rpar[1:]
    if getattr(new, "lpar", ()):
        return new
    if lpar:
        return new.with_changes(lpar=lpar, rpar=rpar)
    tight = _binds(new)
    if tight == len(_LOOSE) or tight > _binds(old) or _same_kind(old, new):
        return new
    if isinstance(parent, _BARE.get(type(new), _ROOMY)):
        return new
    return new.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def _same_kind(old: cst.BaseExpression, new: cst.BaseExpression) -> bool:
    """True where `new` holds together just as `old` did."""
    if type(old) is not type(new) or isinstance(old, (cst.Tuple, cst.Comparison)):
        return False
    return type(getattr(old, "operator", None)) is type(getattr(new, "operator", None))


def renamed(old: cst.Name | cst.Attribute | cst.ImportAlias, code: str) -> cst.Name | cst.Attribute | cst.ImportAlias:
    """The name that reads `code` in the place of `old`; `code` of an imported name may hold an `as`."""
    if isinstance(old, cst.ImportAlias):
        name, _, kept = code.partition(" as ")
        return old.with_changes(name=cst.Name(name), asname=cst.AsName(cst.Name(kept)))
    new = cst.parse_expression(code)
    assert isinstance(new, (cst.Name, cst.Attribute))
    return new.with_changes(lpar=old.lpar, rpar=old.rpar)


def with_decorator(function: cst.FunctionDef, code: str) -> cst.FunctionDef:
    """`function` with one more decorator, next to the `def`; comments between stay next to the `def`."""
    return function.with_changes(decorators=[*function.decorators, cst.Decorator(cst.parse_expression(code))])
