"""Methods of objects that a factory makes, which are handed a Trainer of transformers: `recipe.save(model, trainer)`.

The class of the object is not seen, the argument is: whoever calls a method of that name with a Trainer that he has trained with
comes there on every rank.
"""

from __future__ import annotations

import ast

from codemods.analysis.distribution import is_test_file
from codemods.analysis.ranks.collectives import trainer_of
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.api.findings import Evidence
from codemods.files.source import FunctionNode, SourceModule
from codemods.store.project import Project

_NAME = "trainer"
_MOST = 12


def handed_a_trainer(project: Project, module: SourceModule, function: FunctionNode | None) -> Evidence | None:
    """The call that hands such a method the Trainer, if no call of that kind stands under a test of the rank."""
    if function is None or not isinstance(module.parent(function), ast.ClassDef):
        return None
    names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
    if _NAME not in names[1:]:
        return None
    position = names.index(_NAME) - 1
    found = None
    paths = project.files_containing(f".{function.name}(".encode())
    for path in [p for p in paths if not is_test_file(p) and b"Trainer" in (project.read(p) or b"")][:_MOST]:
        other = project.module(path)
        for call in other.calls_named(function.name) if other is not None else ():
            given = call.args[position] if len(call.args) > position else None
            if other is None or not isinstance(given, ast.Name) or trainer_of(other, given, project) != "transformers":
                continue
            if ranks_reaching(project, other, call).some:
                return None
            text = f"{other.text_of(call.func)}() is handed the Trainer, on every rank"
            found = found or Evidence("static", text, path, call.lineno)
    return found
