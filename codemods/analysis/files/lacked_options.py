"""Tests by `getattr(args, "tune", False)` of an option that nothing in the project has: a leftover of another program."""

from __future__ import annotations

import ast
import re

from codemods.analysis.loading.same_program import whole_program
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.lost_options import OPTION_NAMES
from codemods.data.training_arguments import FIELDS
from codemods.files.source import SourceModule
from codemods.files.text_file import JSON_KINDS, NOTEBOOK, SHELL_KINDS, YAML_KINDS
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_HOLDERS = (OPTION_NAMES - {"config", "cfg", "params", "hparams"}) | {"training_args", "model_args", "data_args"}
# Options that a library's own parser may give, or a launcher; and what fills options with names that are no words of the source.
_OF_OTHERS = lazy(r"rank|world|gpu|dist|device|node|deepspeed|resume")
_OPEN = lazy(
    rb"fairseq|megatron|espnet|omegaconf|OmegaConf|configargparse|jsonargparse|absl|add_argparse_args|from_argparse_args|"
    rb"parse_known_args|setattr\(\s*(?:self\.)?\w*(?:args?|opts?|options|namespace)\b|vars\(\s*[\w.]+\s*\)\s*(?:\.update|\[)|"
    rb"Namespace\(\s*\*\*\s*(?!vars\()|__dict__(?:\.update|\[)|fire\.Fire|@hydra|exec\("
)
_PARSES = (b"ArgumentParser", b"HfArgumentParser")
_TEXTS = (*SHELL_KINDS, *YAML_KINDS, *JSON_KINDS, NOTEBOOK, ".md", ".txt", ".toml", ".cfg")
_MOST = 400


def is_of_lacked_option(project: Project, module: SourceModule, part: ast.expr) -> bool:
    """True for `getattr(args, name, False)` and `hasattr(args, name)` where the name stands nowhere but in such questions."""
    if not isinstance(part, ast.Call) or not isinstance(part.func, ast.Name) or len(part.args) < 2:
        return False
    asks, (holder, named) = part.func.id, part.args[:2]
    if asks == "getattr" and not (len(part.args) == 3 and isinstance(part.args[2], ast.Constant) and not part.args[2].value):
        return False
    if asks not in ("getattr", "hasattr") or last(dotted(holder)) not in _HOLDERS:
        return False
    name = named.value if isinstance(named, ast.Constant) and isinstance(named.value, str) else ""
    if len(name) < 6 or name in FIELDS or _OF_OTHERS.search(name):
        return False
    if not project.keep(("options are written out", module.path), lambda: _are_written_out(project, module)):
        return False
    return project.keep(("lacked option", name), lambda: _is_lacked(project, name))


def _is_lacked(project: Project, name: str) -> bool:
    word = re.escape(name.encode())
    named = re.compile(rb"(?<!\w)" + word.replace(b"_", b"[-_]") + rb"(?![\w-])")
    asked = re.compile(
        rb"(?:get|has)attr\(\s*[\w.]+,\s*[\"']" + word + rb"[\"']|(?:args|opts?|options)\." + word + rb"\b(?!\s*=[^=])"
    )
    found = {p for w in {name, name.replace("_", "-")} for kinds in ((".py",), _TEXTS)
             for p in project.files_containing(w.encode(), kinds=kinds)}  # fmt: skip
    texts = [project.read(p) or b"" for p in found]
    return len(texts) < _MOST and all(len(named.findall(t)) == len(asked.findall(t)) for t in texts)


def _are_written_out(project: Project, module: SourceModule) -> bool:
    """True where the options of the program, or of all programs, come from parsers and classes of the project alone."""
    paths = whole_program(project, module.path) if module.holds(b"__main__") else project.python_files
    if len(project.python_files) > _MOST:
        return False
    texts = [project.read(p) or b"" for p in sorted(paths)]
    return any(word in text for text in texts for word in _PARSES) and not any(_OPEN.search(text) for text in texts)
