"""What is taken away by every rank: does a late one do harm, and is the path one and the same?"""

from __future__ import annotations

import ast

from codemods.analysis.call_graph import called_function
from codemods.analysis.files.file_calls import SHELLS, Act, FileCall, file_call
from codemods.analysis.files.file_flow import steps_in
from codemods.analysis.files.file_paths import forms
from codemods.analysis.handlers import handler_over
from codemods.analysis.names import dotted, qualified
from codemods.analysis.paths import origin_text
from codemods.analysis.ranks.rank_guards import Ranks
from codemods.files.source import SourceModule, walk
from codemods.store.project import Project

_GONE = frozenset({"FileNotFoundError", "OSError", "IOError", "EnvironmentError", "Exception", "BaseException"})
_FOLDERS = frozenset({"shutil.rmtree", *SHELLS})


def puts_up_with_it(module: SourceModule, call: ast.Call) -> bool:
    """True where the code goes on when another rank was there first."""
    if any(k.arg in ("missing_ok", "ignore_errors", "dirs_exist_ok") for k in call.keywords):
        return True
    if qualified(module, call.func) in SHELLS:
        return True  # `rm -rf` of what is gone says nothing
    for up in module.ancestors(call):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            break
        if isinstance(up, (ast.With, ast.AsyncWith)) and "suppress(" in "".join(module.text_of(i.context_expr) for i in up.items):
            return True
    return handler_over(module, call, _GONE) is not None


def is_made_anew(project: Project, module: SourceModule, found: FileCall) -> bool:
    """True for a whole folder that the ranks, or rank 0, make again behind it without a wait: a late rank takes that away."""
    if qualified(module, found.call.func) not in _FOLDERS:
        return False
    function, gone = module.function_of(found.call), forms(module, found.path)
    behind = False
    for step in steps_in(project, module, list(function.body if function is not None else module.tree.body)):
        if step.call is found.call:
            behind = True
        elif behind and step.act is None:
            return False
        elif behind and step.act in (Act.MAKES, Act.WRITES, Act.FILLS) and step.ranks in (Ranks.ALL, Ranks.ZERO):
            if any(made == path or made.startswith(f"{path}/") for made in step.forms for path in gone):
                return True
    return False


def is_a_person_asked(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True under a test that waits for an answer on the terminal, which one process has at most."""
    tests = [up.test for up in module.ancestors(call) if isinstance(up, ast.If)]
    for asked in (n for test in tests for n in walk(test) if isinstance(n, ast.Call)):
        site = called_function(project, module, asked)
        if dotted(asked.func) == "input" or (site is not None and "input(" in site.module.text_of(site.node)):
            return True
    return False


def asking_round(module: SourceModule, call: ast.AST) -> ast.If | None:
    """The `if exists(folder):` round nothing but the call that takes the folder away: the guard belongs round both."""
    if not isinstance(call, ast.Call) or qualified(module, call.func) not in _FOLDERS:
        return None
    statement = module.statement_of(call)
    test = module.parent(statement)
    if not isinstance(test, ast.If) or test.orelse or test.body != [statement]:
        return None
    asked = (file_call(module, n) for n in walk(test.test) if isinstance(n, ast.Call))
    return test if any(a is not None and a.act is Act.ASKS for a in asked) else None


def made_of(module: SourceModule, found: FileCall) -> str:
    """What the path is made of; under `if debug:` not what `"debug" if debug else clock()` comes to otherwise."""
    text = origin_text(module, found.path)
    tests = [up.test for up in module.ancestors(found.call) if isinstance(up, ast.If)]
    holds = {module.text_of(part) for t in tests for part in (t.values if isinstance(t, ast.BoolOp) else [t])}
    for choice in module.nodes(ast.IfExp) if holds else ():
        if module.text_of(choice.test) in holds:
            text = text.replace(module.text_of(choice.orelse), "").replace(ast.unparse(choice.orelse), "")
    return text
