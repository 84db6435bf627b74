"""What stands round the making of a folder that may be there: a test for it, a handler of the error, a search for a free name."""

from __future__ import annotations

import ast
import re

from codemods.analysis.bound_values import assigned
from codemods.analysis.files.folder_calls import creates_folder, folder_of, gives_exist_ok
from codemods.analysis.handlers import handler_over
from codemods.analysis.names import dotted, last
from codemods.analysis.paths import origin_text
from codemods.analysis.positions import behind
from codemods.analysis.ranks.uses import calls_of
from codemods.api.findings import Edit, Unwrap
from codemods.files.source import SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_CAUGHT = frozenset({"FileExistsError", "OSError", "IOError", "EnvironmentError", "Exception", "BaseException"})
_FRESH = lazy(r"increment|unique|next_|new_run|(^|_)version", re.I)
_IS_THERE = frozenset({"exists", "isdir", "is_dir"})  # tests that a folder passes
_EXISTS = frozenset({"exists", "isdir", "is_dir", "isfile", "is_file", "lexists"})


def handler_of(module: SourceModule, project: Project, call: ast.Call) -> ast.ExceptHandler | None:
    """The handler that catches FileExistsError of this call, in its function or round a call of its function."""
    if found := handler_over(module, call, _CAUGHT):
        return found
    function = module.function_of(call)
    for site in (calls_of(project, module, function) or () if function else ()):
        caught = handler_over(site.module, site.call, _CAUGHT)
        if caught is not None and caught.type is not None and "FileExistsError" in ast.unparse(caught.type):
            return caught
    return None


def goes_on(handler: ast.ExceptHandler) -> bool:
    """True where the handler raises, leaves, or changes a name: an existing folder means something here."""
    decisive = (ast.Raise, ast.Return, ast.Continue, ast.Break, ast.Assign, ast.AugAssign)
    return any(isinstance(n, decisive) for s in handler.body if not _is_of_others(s) for n in walk(s))


def _is_of_others(statement: ast.stmt) -> bool:
    """True for `if e.errno != errno.EEXIST: raise`: what is done there is done for other errors than that of a folder."""
    if not isinstance(statement, ast.If) or statement.orelse or not isinstance(test := statement.test, ast.Compare):
        return False
    names = {last(dotted(n)) for n in walk(test) if isinstance(n, (ast.Name, ast.Attribute))}
    return "EEXIST" in names and len(test.ops) == 1 and isinstance(test.ops[0], (ast.NotEq, ast.IsNot))


def why_an_error(module: SourceModule, call: ast.Call, path: ast.expr) -> str:
    """Why an existing folder must stay an error here, "" where it need not."""
    if _FRESH.search(" ".join(_called(module, path))) or _searches(module, call, path):
        return (
            "the name of a new folder is searched for here, and each rank may find another: choose it on rank 0 and "
            "broadcast it"
        )
    text = _bare(module, path)
    function = module.function_of(call)
    for node in walk(function or module.tree):
        if isinstance(node, ast.Call) and last(dotted(node.func)) == "rmtree" and node.args:
            if module.function_of(node) is function and _bare(module, node.args[0]) == text:
                return "the folder is deleted here first: on a slower rank that removes what a faster one has written"
        if isinstance(node, ast.If) and module.function_of(node) is function and _tests(module, node.test, text):
            branch = node.orelse if _is_negative(node.test) else node.body
            if any(_stops(n) for s in branch for n in walk(s)):
                return "the code stops where the folder exists, so an existing one is not meant to be used again"
    return ""


def _called(module: SourceModule, path: ast.expr) -> list[str]:
    """Names of the functions that made the path."""
    values = [path, *(v for n in walk(path) if (name := dotted(n)) for v in assigned(module, n, name))]
    return [last(dotted(n.func)) for v in values for n in walk(v) if isinstance(n, ast.Call)]


def _searches(module: SourceModule, call: ast.Call, path: ast.expr) -> bool:
    """True where a loop of the function looks for a name that is free, and the path is made of what the loop binds."""
    function = module.function_of(call)
    made = origin_text(module, path)
    for node in walk(function or module.tree):
        if module.function_of(node) is not function:
            continue
        if isinstance(node, ast.While) and any(_is_existence_test(n) for n in walk(node.test)):
            bound = {dotted(n) for s in node.body for n in walk(s) if isinstance(getattr(n, "ctx", None), ast.Store)}
            if any(name and re.search(rf"\b{re.escape(name)}\b", made) for name in bound):
                return True
        if isinstance(node, (ast.While, ast.For)) and any(up is node for up in module.ancestors(call)):
            exits = [n for s in node.body for n in walk(s) if isinstance(n, (ast.Break, ast.Return))]
            tests = [n for s in node.body for n in walk(s) if _is_existence_test(n)]
            if tests and any(_ends_the_search(module, e, node, call) for e in exits):
                return True
    return False


def _ends_the_search(module: SourceModule, leaving: ast.AST, loop: ast.AST, call: ast.Call) -> bool:
    """True for an exit behind the call, or by a test of what is there; a training that is over leaves its loop elsewhere."""
    if module.parent(leaving) in list(module.ancestors(call)):
        return True
    for up in module.ancestors(leaving):
        if up is loop:
            return False
        if isinstance(up, ast.If) and any(_is_existence_test(n) for n in walk(up.test)):
            return True
    return False


def _is_existence_test(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and last(dotted(node.func) or getattr(node.func, "attr", "")) in _EXISTS


def _bare(module: SourceModule, path: ast.expr) -> str:
    """The text of a path, without `str(...)`, `Path(...)` round it and without blanks."""
    while isinstance(path, ast.Call) and last(dotted(path.func)) in ("str", "Path", "fspath") and len(path.args) == 1:
        path = path.args[0]
    return "".join(module.text_of(path).split())


def _tests(module: SourceModule, test: ast.expr, text: str) -> bool:
    """True where the test asks whether the path `text` exists."""
    for node in walk(test):
        if isinstance(node, ast.Call) and _is_existence_test(node):
            asked = asks_for(node)
            if asked is not None and _bare(module, asked) == text:
                return True
    return False


def asks_for(call: ast.Call) -> ast.expr | None:
    """The path of `os.path.exists(path)` and `path.is_dir()`; None for any other call."""
    if not _is_existence_test(call):
        return None
    return call.args[0] if call.args else call.func.value if isinstance(call.func, ast.Attribute) else None


def _is_negative(test: ast.expr) -> bool:
    return any(isinstance(n, ast.UnaryOp) and isinstance(n.op, ast.Not) for n in walk(test))


def _stops(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return last(dotted(node.func)) in ("exit", "_exit", "quit", "input", "abort")
    return isinstance(node, (ast.Raise, ast.Assert))


def is_tested(module: SourceModule, call: ast.Call, path: ast.expr) -> bool:
    """True where the call stands under a test that the folder is missing."""
    text = _bare(module, path)
    return any(isinstance(up, ast.If) and _tests(module, up.test, text) for up in module.ancestors(call))


def is_default_under_test(module: SourceModule, call: ast.Call, spelling: str) -> bool:
    """True for `exist_ok=False` under a test that the folder is missing: a folder that is there is welcome."""
    path = folder_of(call, spelling)
    given = next((k.value for k in call.keywords if k.arg == "exist_ok"), None)
    off = isinstance(given, ast.Constant) and given.value is False
    return off and spelling != "os.mkdir" and path is not None and is_tested(module, call, path)


def without_test(module: SourceModule, call: ast.Call, path: ast.expr) -> tuple[Edit, ...]:
    """Takes off the test that the folder is missing, where nothing else hangs on it: `exist_ok` asks the same, in one step."""
    statement = module.statement_of(call)
    test = module.parent(statement)
    if not isinstance(statement, ast.Expr) or statement.value is not call or not isinstance(test, ast.If):
        return ()
    asked = test.test.operand if isinstance(test.test, ast.UnaryOp) and isinstance(test.test.op, ast.Not) else None
    if len(test.body) > 1 or test.orelse or not module.is_whole(test) or not isinstance(asked, ast.Call):
        return ()
    asks = last(dotted(asked.func) or getattr(asked.func, "attr", "")) in _IS_THERE
    return (Unwrap(module.path, module.span(test)),) if asks and _tests(module, asked, _bare(module, path)) else ()


def made_beside(module: SourceModule, call: ast.Call) -> list[ast.Call]:
    """The folders that are made behind a call, under the same test for its own: whoever comes past it fails there.

    Those that have no `exist_ok` yet, each in a statement of its own.
    """
    statement = module.statement_of(call)
    if not isinstance(module.parent(statement), ast.If):
        return []
    made = (s.value for s in behind(module, statement) if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call))
    spelled = ((c, creates_folder(module, c)) for c in made)
    return [c for c, spelling in spelled if spelling and not gives_exist_ok(module, c, spelling)]
