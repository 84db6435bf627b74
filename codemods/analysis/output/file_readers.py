"""Who reads, on every rank, a file of the kind that is being left to rank 0? By the suffix of its name, within one file."""

from __future__ import annotations

import ast

from codemods.analysis.names import dotted, last
from codemods.analysis.output.effects import effects_of
from codemods.analysis.paths import origin_text
from codemods.analysis.ranks.rank_guards import ranks_at
from codemods.files.source import SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_SUFFIX = lazy(r"\.(png|jpe?g|csv|tsv|json|jsonl|npy|npz|ya?ml|pkl|pickle|mp4|gif|parquet|h5|txt)\b")
_READS = frozenset({"open", "imread", "load", "read_csv", "read_json", "read_text", "read_parquet", "safe_load", "read_image"})


def suffixes(module: SourceModule, node: ast.AST) -> set[str]:
    """The suffixes of file names in an expression and in what its names were made from."""
    texts = [module.text_of(node), *(origin_text(module, n) for n in walk(node) if isinstance(n, (ast.Name, ast.Attribute)))]
    return {m.group(0).lower() for text in texts for m in _SUFFIX.finditer(text)}


def reader_on_every_rank(project: Project, module: SourceModule, writer: ast.AST, written: set[str]) -> str:
    """A call outside `writer` that reads a file of such a suffix on every rank; "" where none is seen."""
    inside = {id(n) for n in walk(writer)}
    for call in module.calls_named(*_READS):
        name = last(dotted(call.func)) or getattr(call.func, "attr", "")
        if id(call) in inside or ranks_at(module, call, project=project).some:
            continue
        if name == "open" and effects_of(project, module, [call]).output:
            continue
        asked = call.args[0] if call.args else call.func
        if written & suffixes(module, asked):
            return f"{module.text_of(call)[:60]} in line {call.lineno}"
    return ""
