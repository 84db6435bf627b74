"""How new code takes the layout of its place: LibCST node in, LibCST node out. The only other module that imports LibCST."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from codemods.source import SourceModule

NEWLINES = ("\r\n", "\n", "\r")


def indent_of(text: str) -> str:
    """The white space that the first line begins with."""
    line = text.split("\n", 1)[0]
    return line[: len(line) - len(line.lstrip(" \t\f"))]


def newline_of(lines: Sequence[str], line: int) -> str:
    """The line end in use at a line, or nearest above it, or in the file at all."""
    for index in [*range(line - 1, -1, -1), *range(line, len(lines))]:
        for end in NEWLINES:
            if lines[index].endswith(end):
                return end
    return "\n"


def unit_of(module: SourceModule, line: int) -> str:
    """One step of indentation as it is used nearest to a line: two blanks, four, a tab."""
    lines = module.lines
    steps: list[tuple[int, str]] = []
    for statement, block in module.blocks():
        if not block or block[0].lineno == statement.lineno:
            continue
        outer, inner = indent_of(lines[statement.lineno - 1]), indent_of(lines[block[0].lineno - 1])
        if inner.startswith(outer) and len(inner) > len(outer):
            steps.append((abs(statement.lineno - line), inner[len(outer) :]))
    return min(steps)[1] if steps else "    "


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
    """`call` without its keyword argument `name`; a comment behind that argument goes with it."""
    args = list(call.args)
    index = next(i for i, a in enumerate(args) if a.keyword is not None and a.keyword.value == name)
    gone = args.pop(index)
    if index == len(args) and args:  # it was the last: what closed the call now stands behind the one before
        before = args[-1]
        if isinstance(gone.comma, cst.Comma):
            closing = gone.comma.whitespace_after
            kept = _closing_after(before.comma, closing)
            args[-1] = before.with_changes(comma=gone.comma.with_changes(whitespace_after=kept))
        else:
            space = _closing_after(before.comma, gone.whitespace_after_arg)
            args[-1] = before.with_changes(comma=cst.MaybeSentinel.DEFAULT, whitespace_after_arg=space)
    if not args:
        return call.with_changes(args=[], whitespace_before_args=cst.SimpleWhitespace(""))
    return call.with_changes(args=args)


def _closing_after(
    comma: cst.Comma | cst.MaybeSentinel, closing: cst.BaseParenthesizableWhitespace
) -> cst.BaseParenthesizableWhitespace:
    """The closing space with the comment that stood behind the argument which is now the last."""
    joint = comma.whitespace_after if isinstance(comma, cst.Comma) else cst.SimpleWhitespace("")
    if isinstance(closing, cst.ParenthesizedWhitespace):
        first = joint.first_line if isinstance(joint, cst.ParenthesizedWhitespace) else cst.TrailingWhitespace()
        return closing.with_changes(first_line=first, empty_lines=[])
    return closing


def comment_argument(call: cst.Call, keyword: str, lines: Sequence[str]) -> cst.Call:
    """Comment lines above an argument that stands on a line of its own; the call must be laid out so."""
    args = list(call.args)
    index = next(i for i, a in enumerate(args) if a.keyword is not None and a.keyword.value == keyword)
    empty = [cst.EmptyLine(indent=True, whitespace=cst.SimpleWhitespace(""), comment=cst.Comment(_hash(x))) for x in lines]
    space = args[index - 1].comma.whitespace_after if index else call.whitespace_before_args  # type: ignore[union-attr]
    if not isinstance(space, cst.ParenthesizedWhitespace):
        raise ValueError("the argument shares its line")
    deep = [e.with_changes(whitespace=space.last_line) for e in empty]
    new = space.with_changes(empty_lines=[*space.empty_lines, *deep])
    if not index:
        return call.with_changes(whitespace_before_args=new)
    before = args[index - 1]
    assert isinstance(before.comma, cst.Comma)
    args[index - 1] = before.with_changes(comma=before.comma.with_changes(whitespace_after=new))
    return call.with_changes(args=args)


# Expressions


def expression_in_place_of(old: cst.BaseExpression, code: str) -> cst.BaseExpression:
    """`code` with the parentheses that stood round `old`."""
    new = cst.parse_expression(code)
    lpar, rpar = getattr(old, "lpar", ()), getattr(old, "rpar", ())
    if lpar and not getattr(new, "lpar", ()):
        return new.with_changes(lpar=lpar, rpar=rpar)
    return new


# Statements


def statements(code: str, newline: str) -> list[cst.BaseStatement]:
    """Parsed statements; their own lines keep the block's indentation because LibCST gives it from the place."""
    config = cst.PartialParserConfig(default_newline=newline)
    module = cst.parse_module(code if code.endswith("\n") else code + "\n", config=config)
    body = list(module.body)
    if module.header and body and hasattr(body[0], "leading_lines"):
        body[0] = body[0].with_changes(leading_lines=[*module.header, *body[0].leading_lines])
    return body  # type: ignore[return-value]


def _hash(line: str) -> str:
    return f"# {line}" if line else "#"


def with_comment(statement: cst.BaseStatement, lines: Sequence[str]) -> cst.BaseStatement:
    new = [cst.EmptyLine(indent=True, comment=cst.Comment(_hash(line))) for line in lines]
    return statement.with_changes(leading_lines=[*statement.leading_lines, *new])  # type: ignore[attr-defined]


def under_guard(held: Sequence[cst.BaseStatement], test: str) -> cst.If:
    """`if test:` over statements; comments above the first stay above the guard."""
    lead = held[0].leading_lines  # type: ignore[attr-defined]
    body = [held[0].with_changes(leading_lines=[]), *held[1:]]
    return cst.If(test=cst.parse_expression(test), body=cst.IndentedBlock(body), leading_lines=lead)


def unwrapped(statement: cst.BaseStatement) -> list[cst.BaseStatement]:
    """The body of an `if` in its place; comments above the `if` stay, and so do those at the end of its block."""
    if not isinstance(statement, cst.If) or statement.orelse is not None:
        raise ValueError("only an if without else can be unwrapped")
    if isinstance(statement.body, cst.SimpleStatementSuite):
        suite = statement.body
        line = cst.SimpleStatementLine(suite.body, trailing_whitespace=suite.trailing_whitespace)
        return [line.with_changes(leading_lines=statement.leading_lines)]
    assert isinstance(statement.body, cst.IndentedBlock)
    body = list(statement.body.body)
    first = body[0]
    body[0] = first.with_changes(leading_lines=[*statement.leading_lines, *first.leading_lines])  # type: ignore[attr-defined]
    return body


def without(
    original: cst.BaseStatement, anchor: cst.CSTNode, new: list[cst.BaseStatement]
) -> list[cst.BaseStatement]:
    """The line without one of its small statements, or nothing."""
    if not isinstance(original, cst.SimpleStatementLine) or len(original.body) < 2:
        return []
    assert isinstance(new[0], cst.SimpleStatementLine)
    index = next(i for i, small in enumerate(original.body) if small is anchor)
    kept = [small for i, small in enumerate(new[0].body) if i != index]
    kept[-1] = kept[-1].with_changes(semicolon=cst.MaybeSentinel.DEFAULT)
    return [new[0].with_changes(body=kept)]


def without_import(new: list[cst.BaseStatement], name: str) -> list[cst.BaseStatement]:
    """An import statement without one bound name; nothing where it was the last."""
    line = new[0] if new else None
    if not isinstance(line, cst.SimpleStatementLine) or not isinstance(line.body[0], cst.Import | cst.ImportFrom):
        return new
    node = line.body[0]
    if isinstance(node.names, cst.ImportStar):
        return new
    names = [n for n in node.names if _bound(n) != name]
    if not names:
        return []
    if _bound(node.names[-1]) == name:  # the last one's comma, or the lack of one, goes to its neighbour
        names[-1] = names[-1].with_changes(comma=node.names[-1].comma)
    return [line.with_changes(body=[node.with_changes(names=names), *line.body[1:]])]


def _bound(alias: cst.ImportAlias) -> str:
    if alias.asname is not None:
        return code_of(alias.asname.name)
    return code_of(alias.name).partition(".")[0]


def comments_to_first(
    above: list[cst.BaseStatement], new: list[cst.BaseStatement]
) -> tuple[list[cst.BaseStatement], list[cst.BaseStatement]]:
    """Blank lines and comments above a statement stay above what is put in front of it."""
    lead = new[0].leading_lines  # type: ignore[attr-defined]
    first = above[0].with_changes(leading_lines=[*lead, *above[0].leading_lines])  # type: ignore[attr-defined]
    return [first, *above[1:]], [new[0].with_changes(leading_lines=[]), *new[1:]]
