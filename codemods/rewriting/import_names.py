"""The names of an import statement: one less, one more. LibCST node in, LibCST node out; a helper of run_writer.py."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import libcst as cst

from codemods.rewriting.layout import closing_after, code_of, without_comments

WIDEST = 88  # a longer line is what most formatters break


def without_import(small: cst.BaseSmallStatement, names: Collection[str]) -> cst.BaseSmallStatement | None:
    """An import statement without some bound names, None where nothing is left. Raises ValueError for a name it has not."""
    if not isinstance(small, cst.Import | cst.ImportFrom) or isinstance(small.names, cst.ImportStar):
        raise ValueError("only an import that names what it brings can lose a name")
    missing = set(names) - {bound_by(n) for n in small.names}
    if missing:
        raise ValueError(f"the import does not bind {', '.join(sorted(missing))}")
    kept = [n for n in small.names if bound_by(n) not in names]
    if not kept:
        return None
    gone, last = small.names[-1], kept[-1]
    if last is gone or not isinstance(last.comma, cst.Comma):
        return small.with_changes(names=kept)
    joint = last.comma.whitespace_after  # the last one's comma, or the lack of one, goes to its neighbour
    if isinstance(gone.comma, cst.Comma):
        comma = gone.comma.with_changes(whitespace_after=closing_after(joint, gone.comma.whitespace_after))
        return small.with_changes(names=[*kept[:-1], last.with_changes(comma=comma)])
    kept[-1] = last.with_changes(comma=cst.MaybeSentinel.DEFAULT)
    if not isinstance(small, cst.ImportFrom) or small.rpar is None:
        return small.with_changes(names=kept)
    rpar = small.rpar.with_changes(whitespace_before=closing_after(joint, small.rpar.whitespace_before))
    return small.with_changes(names=kept, rpar=rpar)


def bound_by(alias: cst.ImportAlias) -> str:
    if alias.asname is not None:
        return code_of(alias.asname.name)
    return code_of(alias.name).partition(".")[0]


def with_import(small: cst.BaseSmallStatement, name: str, unit: str, indent: int = 0) -> cst.BaseSmallStatement:
    """A `from` import with one name more: in its place where the names are in isort's order, else as the last.

    indent: how far the statement stands to the right; a line that gets too long for it is broken, a name a line.
    """
    if not isinstance(small, cst.ImportFrom) or isinstance(small.names, cst.ImportStar):
        raise ValueError("only a from import can bring one name more")
    names = list(small.names)
    if any(code_of(n.name) == name and n.asname is None for n in names):
        return small
    at = _place_of(name, [code_of(n.name) for n in names])
    if small.lpar is None:
        made = small.with_changes(names=_bare([*names[:at], _alias(name), *names[at:]]))
        return made if indent + len(code_of(made)) <= max(WIDEST, indent + len(code_of(small))) else _broken(made, unit)
    joint = _between(small, names)
    if at < len(names):
        names.insert(at, _alias(name, cst.Comma(whitespace_after=joint)))
    else:
        last = names[-1]
        names[-1:] = [last.with_changes(comma=cst.Comma(whitespace_after=joint)), _alias(name, last.comma)]
    return small.with_changes(names=names)


def _alias(name: str, comma: cst.Comma | cst.MaybeSentinel = cst.MaybeSentinel.DEFAULT) -> cst.ImportAlias:
    return cst.ImportAlias(cst.Name(name), comma=comma)


def _place_of(name: str, others: Sequence[str]) -> int:
    """Where isort and ruff put it: constants, classes, the rest, each without regard to case; the end where none is in order."""
    for key in (_by_type, str.lower):
        if list(others) == sorted(others, key=key):
            return next((i for i, other in enumerate(others) if key(other) > key(name)), len(others))
    return len(others)


def _by_type(name: str) -> str:
    return f"{0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2}{name.lower()}"


def _bare(names: Sequence[cst.ImportAlias]) -> list[cst.ImportAlias]:
    """Names on one line, without a comma behind the last."""
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    return [n.with_changes(comma=comma if n is not names[-1] else cst.MaybeSentinel.DEFAULT) for n in names]


def _between(small: cst.ImportFrom, names: Sequence[cst.ImportAlias]) -> cst.BaseParenthesizableWhitespace:
    """What stands between two names of a list in brackets."""
    first = names[0].comma
    if len(names) > 1 and isinstance(first, cst.Comma):
        return without_comments(first.whitespace_after)
    assert small.lpar is not None
    space = without_comments(small.lpar.whitespace_after)
    return space if isinstance(space, cst.ParenthesizedWhitespace) else cst.SimpleWhitespace(" ")


def _broken(small: cst.ImportFrom, unit: str) -> cst.ImportFrom:
    assert not isinstance(small.names, cst.ImportStar)
    inner = cst.ParenthesizedWhitespace(indent=True, last_line=cst.SimpleWhitespace(unit))
    outer = cst.ParenthesizedWhitespace(indent=True)
    names = [n.with_changes(comma=cst.Comma(whitespace_after=inner)) for n in small.names]
    names[-1] = names[-1].with_changes(comma=cst.Comma(whitespace_after=outer))
    return small.with_changes(names=names, lpar=cst.LeftParen(whitespace_after=inner), rpar=cst.RightParen())
