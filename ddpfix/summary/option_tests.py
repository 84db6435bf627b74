"""What a test on the way to a changed line asks of the options of a command, and whether they answer it.

A test that asks for no option is no obstacle where it tells ranks apart, or a run of several processes from one of one. Each
other stays unanswered: nothing shows then that the command comes to the line.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from codemods.analysis.bindings import bindings_of
from codemods.analysis.job_files.shown_run import UNKNOWN
from codemods.analysis.literals import held_against, is_none
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.rank_tests import means_process_group, split_of
from codemods.analysis.ranks.several_processes import several_processes
from codemods.analysis.short_texts import shortened
from codemods.files.source import SourceModule
from codemods.runtime.record import record
from ddpfix.summary.needed_options import NeededOption, Program

_OFF = frozenset({"False", "None", "", "0", "0.0"})
_OPPOSITE: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
}
_COUNTERS = ("range", "trange", "enumerate")
_FIRST_OF_A_HOOK = frozenset({"batch_idx", "batch_nb"})


def lacking(
    program: Program, module: SourceModule, test: ast.expr, given: Mapping[str, str | None], *, holds: bool
) -> list[NeededOption]:
    """What has to be given for the test to come out so, and what of it no option answers."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return lacking(program, module, test.operand, given, holds=not holds)
    if isinstance(test, ast.BoolOp):
        parts = [lacking(program, module, part, given, holds=holds) for part in test.values]
        if isinstance(test.op, ast.And) == holds:  # all of them have to come out so
            return [need for part in parts for need in part]
        return min(parts, key=lambda part: (any(not need.shown for need in part), len(part)))
    asked = _asked(program, module, test, given)
    if asked is None or asked.answer is None:
        return [] if _is_no_obstacle(program, module, test, holds=holds) else [unanswered(test, holds=holds)]
    if asked.answer == holds:
        return []
    option = program.options[asked.option]
    flag = max(option.flags, key=len)
    switch = option.given_alone is not None and option.given_alone != UNKNOWN
    if asked.is_given == holds:
        words = (flag,) if switch else (flag, asked.value) if asked.value else ()
        return [NeededOption(" ".join(words) or f"{flag} {flag.lstrip('-').upper()}", words)]
    return [NeededOption(f"another {flag}" if asked.value else f"no {flag}")]


def unanswered(test: ast.expr, *, holds: bool) -> NeededOption:
    """A test as the reader finds it, turned round where it must not hold."""
    return NeededOption(f"`{shortened(ast.unparse(test if holds else _turned(test)))}`", shown=False)


def _turned(test: ast.expr) -> ast.expr:
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and type(test.ops[0]) in _OPPOSITE:
        return ast.Compare(test.left, [_OPPOSITE[type(test.ops[0])]()], test.comparators)
    return ast.UnaryOp(ast.Not(), test)


def _is_no_obstacle(program: Program, module: SourceModule, test: ast.expr, *, holds: bool) -> bool:
    """True where some process of several passes it, whatever its options are."""
    if isinstance(test, ast.Constant):
        return bool(test.value) == holds
    if isinstance(test, ast.Name) and (value := _constant(module, test)) is not None:
        return bool(value.value) == holds
    if (several := several_processes(module, test)) is not None:
        return several == holds
    if split_of(module, test, program.project) is not None:
        return True
    if means_process_group(module, test, program.project) or dotted(getattr(test, "func", None)) == "torch.cuda.is_available":
        return holds is not _says_that_none_is_there(test)
    return holds and _holds_in_the_first_round(module, test)


def _says_that_none_is_there(test: ast.expr) -> bool:
    """`"RANK" not in os.environ`, `local_rank == -1`, `rank is None`."""
    return isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.NotIn, ast.Eq, ast.Is))


def _constant(module: SourceModule, name: ast.Name) -> ast.Constant | None:
    """Of `VERBOSE = True`, once and at the top of the file."""
    bound = bindings_of(module, name)
    alone = len(bound) == 1 and not bound[0].part and not bound[0].parameter
    return bound[0].value if alone and isinstance(bound[0].value, ast.Constant) else None


def _holds_in_the_first_round(module: SourceModule, test: ast.expr) -> bool:
    """`i % args.every == 0` of a loop that counts from 0."""
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.Eq) or ast.unparse(test.comparators[0]) != "0":
        return False
    left = test.left.left if isinstance(test.left, ast.BinOp) and isinstance(test.left.op, ast.Mod) else test.left
    if not isinstance(left, ast.Name):
        return False
    loops = (up for up in module.ancestors(test) if isinstance(up, ast.For))
    return left.id in _FIRST_OF_A_HOOK or any(_counts_from_0(loop, left.id) for loop in loops)


def _counts_from_0(loop: ast.For, name: str) -> bool:
    first = loop.target.elts[0] if isinstance(loop.target, ast.Tuple) and loop.target.elts else loop.target
    call = loop.iter
    if not isinstance(call, ast.Call) or not isinstance(first, ast.Name) or first.id != name:
        return False
    return last(dotted(call.func)) in _COUNTERS and len(call.args) == 1 and not any(k.arg == "start" for k in call.keywords)


def _changed_text(node: ast.expr) -> tuple[ast.expr, Callable[[str], str]]:
    """(the text that is asked, what is made of it): `mode.split("-")[0]`, `mode.lower()`."""
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Call) and ast.unparse(node.slice) == "0":
        call, separator = node.value, node.value.args[0] if node.value.args else None
        if isinstance(call.func, ast.Attribute) and call.func.attr == "split" and isinstance(separator, ast.Constant):
            between = str(separator.value)
            return call.func.value, lambda text: text.split(between)[0] if between else text
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args:
        if node.func.attr in ("lower", "upper", "strip"):
            name = node.func.attr
            return node.func.value, lambda text: {"lower": text.lower(), "upper": text.upper(), "strip": text.strip()}[name]
    return node, str


@record
class _Asked:
    """answer: of the test, None where it is not known. is_given: it holds where the option is given, or has the value."""

    option: str
    answer: bool | None
    is_given: bool = True
    value: str = ""


def _asked(program: Program, module: SourceModule, test: ast.expr, given: Mapping[str, str | None]) -> _Asked | None:
    if name := program.option(module, test):
        value = given[name]
        return _Asked(name, None if value == UNKNOWN else value is not None and value not in _OFF)
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return None
    operator, against = test.ops[0], test.comparators[0]
    if is_none(against) and isinstance(operator, (ast.Is, ast.IsNot)) and (name := program.option(module, test.left)):
        is_other = isinstance(operator, ast.IsNot)
        return _Asked(name, None if given[name] == UNKNOWN else (given[name] is not None) == is_other, is_other)
    if isinstance(test.left, ast.Constant) and isinstance(operator, (ast.In, ast.NotIn)):
        name, is_part, part = program.option(module, against), isinstance(operator, ast.In), str(test.left.value)
        held = given.get(name)
        return None if not name or held is None or held == UNKNOWN else _Asked(name, (part in held) == is_part, is_part, part)
    compared = held_against(test)
    asked, change = _changed_text(compared[0]) if compared is not None else (test, str)
    name = program.option(module, asked) if compared is not None else ""
    if compared is None or not name or not compared[1]:
        return None
    _, values, is_one = compared
    wanted = [str(v) for v in values]
    answer = None if given[name] == UNKNOWN else (change(str(given[name])) in wanted) == is_one
    empty = wanted == [""]  # `opt.model != ""`
    return _Asked(name, answer, is_one != empty, "" if empty else wanted[0])
