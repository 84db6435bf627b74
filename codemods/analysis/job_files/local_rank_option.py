"""The option `--local_rank` of a script: which spellings it has, and how its default comes from the environment.

Of argparse, and of absl, whose flags are global: one that any imported file defines counts (absl-py 2.5).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from codemods.analysis.names import qualified
from codemods.api.findings import Edit, InsertAfter, ReplaceExpression
from codemods.files.source import SourceModule
from codemods.rewriting.imports import plan_plain

PASSED = "--local-rank"  # by torch.distributed.launch, since torch 2.0
SPELLINGS = ("--local_rank", PASSED)


def options_of(call: ast.Call) -> set[str]:
    return {a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)}


def local_rank_options(module: SourceModule) -> list[ast.Call]:
    """The calls of the file that give a parser the option."""
    return [c for c in module.calls_named("add_argument") if options_of(c) & set(SPELLINGS)]


def local_rank_flag(module: SourceModule) -> ast.Call | None:
    """The flag of absl that takes `--local_rank` and no other spelling, of a file that refuses flags it does not know."""
    if module.holds(b"known_only") or module.holds(b"undefok"):
        return None
    found = (c for c in module.calls_named("DEFINE_integer", "DEFINE_alias") if qualified(module, c.func).startswith("absl."))
    named = {str(c.args[0].value): c for c in found if c.args and isinstance(c.args[0], ast.Constant)}
    return named.get("local_rank") if "local-rank" not in named else None


def with_alias(module: SourceModule, call: ast.Call) -> list[Edit]:
    """The flag, and its alias; none where `flags` is not at hand, or the flag is not defined at the top of the file."""
    statement, holder = module.statement_of(call), call.func
    at_the_top = isinstance(module.parent(statement), ast.Module) and module.is_whole(statement)
    if not isinstance(holder, ast.Attribute) or not at_the_top:
        return []
    written = module.text_of(call.args[0])
    code = f"{module.text_of(holder.value)}.DEFINE_alias({quoted(written, 'local-rank')}, {written})"
    return [InsertAfter(module.path, module.span(statement), code)]


def quoted(beside: str, text: str) -> str:
    """The text in the quotes of the option beside it."""
    return f"'{text}'" if beside.endswith("'") else f'"{text}"'


def from_environment(module: SourceModule, call: ast.Call, beside: Iterable[ast.Call] = ()) -> tuple[list[Edit], str]:
    """The option with both spellings, and with the default from the environment; or why it is not written so.

    beside: the options of that name in other files of the program.
    """
    missing = [s for s in SPELLINGS if s not in options_of(call)]
    if any(options_of(other).intersection(missing) for other in (*local_rank_options(module), *beside)):
        # one parser may have both: argparse refuses a spelling that is given twice
        return [], "leave one option of that name, with both spellings, and take its default from `os.environ`"
    given = {k.arg: k.value for k in call.keywords}
    kind, default = given.get("type"), given.get("default")
    old = default.operand if isinstance(default, ast.UnaryOp) else default
    plain = default is None or (isinstance(old, ast.Constant) and isinstance(old.value, (int, type(None))))
    if not isinstance(kind, ast.Name) or kind.id != "int" or not plain or None in given or "#" in module.text_of(call):
        return [], "take the default from `os.environ`, and give the option both spellings"
    planned = plan_plain(module, "os")
    if planned is None:
        return [], "`os` has another meaning in this file: import it under another name first"
    written = module.text_of(default) if default is not None else "None"
    name = planned.name
    first = next(a for a in call.args if isinstance(a, ast.Constant) and a.value in SPELLINGS)
    variable = quoted(module.text_of(first), "LOCAL_RANK")  # scripts with the same line get the same line
    code = f"int({name}.environ.get({variable}, {written}))"
    if written == "None":
        code = f"{name}.environ.get({variable})"
    spelled = ", ".join([module.text_of(first), *(quoted(module.text_of(first), s) for s in missing)])
    if "required" not in given:  # piece by piece: the rest of the call stays as it is laid out
        new = _spliced(module, call, [(first, spelled), *([(default, code)] if default is not None else [])])
        if default is None:
            new = f"{new.removesuffix(')').rstrip().removesuffix(',')}, default={code})"
        return [*planned.edits, ReplaceExpression(module.path, module.span(call), new)], ""
    options = [spelled if a is first else module.text_of(a) for a in call.args]
    keywords = [f"{k.arg}={module.text_of(k.value)}" for k in call.keywords if k.arg not in ("default", "required")]
    at = next((i for i, k in enumerate(call.keywords) if k.arg == "default"), len(keywords))
    keywords.insert(at, f"default={code}")
    new = f"{module.text_of(call.func)}({', '.join([*options, *keywords])})"
    return [*planned.edits, ReplaceExpression(module.path, module.span(call), new)], ""


def _spliced(module: SourceModule, call: ast.Call, parts: list[tuple[ast.expr, str]]) -> str:
    """The text of the call with other text in the place of some of its parts."""
    whole, text = module.span(call), module.text_of(call)
    lines = text.splitlines(keepends=True)
    for part, new in sorted(parts, key=lambda p: (p[0].lineno, p[0].col_offset), reverse=True):
        span = module.span(part)
        row = span.line - whole.line
        start = span.column - (whole.column if row == 0 else 0)
        lines[row] = lines[row][:start] + new + lines[row][start + len(module.text_of(part)) :]
    return "".join(lines)
