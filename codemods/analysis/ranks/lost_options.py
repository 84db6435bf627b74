"""Attributes of argparse's options that no option of the program gives and nobody sets: reading one raises AttributeError.

Only where all options are to be seen: parsers whose options are written out, for every caller that hands its options here.
"""

from __future__ import annotations

import ast
import re

from codemods.analysis.loading.same_program import whole_program
from codemods.analysis.ranks.parsed_options import Parsed, parsed_options
from codemods.files.source import SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_MOST_FILES = 150
OPTION_NAMES = frozenset({"args", "opt", "opts", "options", "hparams", "config", "cfg", "params", "arguments", "parsed_args"})
# What gives the options more attributes than the source names, or reads the command line in another way.
_OPEN = lazy(
    rb"parse_known_args|parse_intermixed|set_defaults|HfArgumentParser|parse_args_into|Namespace\(|namespace=|(?<!self\.)__dict__"
    rb"|fromfile_prefix|setattr\(\s*(?!self\b|cls\b|model\b|module\b|mod\b|layer\b)\w|vars\(\s*[\w.]+\s*\)\s*(?:\.(?:update|setdefault)|\[)|__getattr__"
    rb"|add_argparse_args|from_argparse_args|add_subparsers|jsonargparse|configargparse|exec\("
)
_BY_LIBRARIES = lazy(r"rank|world|gpu|dist|device|node|backend|deepspeed")
# These set such attributes on the options that they get.
_LIBRARIES = lazy(
    rb"deepspeed|\btimm\b|megatron|colossal|horovod|detectron2|mmcv|mmengine|fairseq|fairscale|ccelerat|init_distributed"
)
# A mention of an attribute that may give it a value.
_SETS = (
    rb"[\"']NAME[\"']KEY|\.\s*NAME\b\s*(?:[-+*/|&%@]|//|\*\*|<<|>>)?=(?!=)|\.\s*NAME\b\s*:[^=\n]*=(?!=)"
    rb"|(?m:^[ \t]*\(?[^(\n]*\.\s*NAME\b\s*,[^()\n]*[^=!<>]=(?!=))|\.\s*NAME\b\s+in\b|\bas\s+[\w.]+\.NAME"
)


def is_lost_option(project: Project, module: SourceModule, node: ast.Attribute) -> bool:
    """True for `args.name` where no parser that gives `args` has such an option, and no file of the program sets it."""
    if not isinstance(node.value, ast.Name) or node.value.id not in OPTION_NAMES or not isinstance(node.ctx, ast.Load):
        return False
    if node.attr.startswith("_"):
        return False
    parsed = parsed_options(project, module, node.value)
    return bool(parsed) and not any(node.attr in p.options for p in parsed) and nobody_sets(project, module, parsed, node.attr)


def nobody_sets(
    project: Project, module: SourceModule, parsed: tuple[Parsed, ...], name: str, *, keys: bool = True
) -> bool:
    """True where the files of the programs only read the attribute of these options, and give them no others than they name.

    keys: the key of a dict that is written out may be that of options, too.
    """
    paths = sorted({module.path} | {p.path for p in parsed})
    return project.keep(("lost option", name, keys, *paths), lambda: _find(project, paths, name, keys=keys))


def _find(project: Project, paths: list[str], name: str, *, keys: bool) -> bool:
    files = {f for path in paths for f in whole_program(project, path)}
    if len(files) > _MOST_FILES:
        return False
    sets = re.compile(_SETS.replace(b"KEY", b"" if keys else rb"(?!\s*:)").replace(b"NAME", re.escape(name.encode())))
    texts = [project.read(path) or b"" for path in sorted(files)]
    if _BY_LIBRARIES.search(name) and any(_LIBRARIES.search(text) for text in texts):
        return False
    return not any(_OPEN.search(text) or sets.search(text) for text in texts)
