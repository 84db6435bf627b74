"""Trainers of Lightning whose number of devices is left to settings, or to the machine: do the repository's own leave it at one?

Whoever runs the program may set more, so it is open rather than one process.
"""

from __future__ import annotations

import ast
import re
from posixpath import dirname

from codemods.analysis.bindings import bindings_of
from codemods.analysis.distribution import is_test_file
from codemods.analysis.job_files.documented_starts import is_pinned_to_one, script_names, starts, starts_of
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.python_settings import field_values, setting_in_python
from codemods.files.source import SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_DEPTH = 3  # names that hand the number on
_SETTINGS = (".yaml", ".yml", ".json", ".toml")
_TEXTS = (".sh", ".md", ".rst", ".txt", ".slurm", ".sbatch", "Makefile")
_DEVICE_FLAGS = frozenset({"devices", "gpus", "num_nodes", "g", "device"})
_HOW = frozenset({"strategy", "accelerator", "distributed_backend", "num_processes", "plugins"})  # who gives one means several
_TOLD = lazy(r"(?<!\S)--(?:devices|gpus|num_nodes)[= ][\"']?([^\s\"']*)")
_TOLD_ONE = lazy(r"0|1|\d,|\[\d\]")  # `--gpus 0,` is the first one, `--gpus 0` the CPU of one process
_ONE = lazy(rb"[\"']?1[\"']?|\[[ ]*\d+[ ]*\]")
# What speaks of several devices in a command or a text, whatever the setting is called there.
_SEVERAL = lazy(
    rb"=[\"']?\[[ ]*\d+[ ]*,[ ]*\d|CUDA_VISIBLE_DEVICES=[\"']?\d+,\d|torchrun|--nproc|distributed\.launch|accelerate launch|"
    rb"\b(?:devices|gpus|num_gpus|n_gpus|num_devices|ngpus)(?:[= ]|[ ]?:[ ]?)[\"']?(?:[2-9]|-1|auto|\$)|"
    rb"--gres=gpu:(?:\w+:)?[2-9]|"
    rb"(?i:multi(?:ple)?[- ]?gpu|\bddp\b|several gpu|\b(?:[2-9]|two|four|eight)[ ](?:x[ ])?(?:\w+[ ]){0,3}gpus\b|\bgpus\b)"
)
_TOLD_SEVERAL = lazy(  # words for people: a job of one GPU speaks of "GPUs" in its comments, too
    rb"(?i)\bmulti(?:ple)?[- ]?gpu|several gpu|\b(?:[2-9]|[1-9]\d|two|four|eight)[ ](?:x[ ])?(?:\w+[ ]){0,3}gpus\b"
)
_ONE_GPU = lazy(
    rb"(?i)\b(?:a[ ]single|single|one|1|1x)[- ](?:x[ ])?(?:[\w-]+[ ]){0,3}gpu\b(?!s)|"
    rb"#SBATCH[ ]+--(?:gres=gpu:(?:[a-z]\w*:)?1|gpus=1)\b"
)


def is_set_to_one(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True for a Trainer whose devices come from a setting of which each file of settings makes one device of one node."""
    given = {k.arg: k.value for k in call.keywords}
    devices, nodes = given.get("devices", given.get("gpus")), given.get("num_nodes")
    if devices is None or None in given or not (nodes is None or (isinstance(nodes, ast.Constant) and nodes.value == 1)):
        return False
    return _is_one(project, module, devices, _DEPTH) and not speaks_of_several(project)


def is_written_as_one(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True for a Trainer whose devices are a field of settings in Python (`cfg.train.devices`) that is one wherever it is given.

    No option and no file of settings raises it, and no text speaks of more: who wants more changes the program.
    """
    given = {k.arg: k.value for k in call.keywords}
    devices, nodes = given.get("devices", given.get("gpus")), given.get("num_nodes")
    if not isinstance(devices, ast.Attribute) or None in given or not (nodes is None or _is_one(project, module, nodes, 0)):
        return False
    return project.keep(("written as one", devices.attr), lambda: _is_one_in_python(project, devices.attr))


def _is_one_in_python(project: Project, field: str) -> bool:
    if project.files_containing(field.encode(), kinds=_SETTINGS) or speaks_of_several(project):
        return False
    values = field_values(project, field)
    return bool(values) and all(_is_one_written(v) for v in values)


def _is_one_written(node: ast.expr) -> bool:
    if isinstance(node, (ast.List, ast.Tuple)):
        return len(node.elts) == 1 and not isinstance(node.elts[0], ast.Starred)
    return isinstance(node, ast.Constant) and node.value in (1, "1") and node.value is not True


def is_left_to_one_by_commands(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True for `Trainer.from_argparse_args(args)` of a script whose own option names one device, and no command another.

    Of Lightning's own options, which name none, where the commands do.
    """
    if last(dotted(call.func)) != "from_argparse_args" or any(k.arg in ("devices", "gpus", "num_nodes") for k in call.keywords):
        return False
    asked = [c for c in module.calls_named("add_argument") if _names(c, "devices") or _names(c, "gpus")]
    defaults = [next((k.value for k in c.keywords if k.arg == "default"), None) for c in asked]
    if not defaults:
        return module.holds(b"add_argparse_args") and _is_told_one(project, module)
    if not all(d is not None and _is_one(project, module, d, 0) for d in defaults):
        return False
    commands = starts_of(project, module.path)
    return bool(commands) and not any(s.several or s.more or s.flags & _DEVICE_FLAGS for s in commands or ())


def _is_told_one(project: Project, module: SourceModule) -> bool:
    """True where each command for the script gives one device (`--gpus 1`, `--gpus 0,`).

    Where there is none, each of those that the folder round its own has for others.
    """
    commands = starts_of(project, module.path)
    if not commands and commands is not None:
        folder = dirname(dirname(module.path))
        near = (s for s in starts(project) if not folder or s.job.startswith(f"{folder}/"))
        commands = [s for s in near if s.flags & _DEVICE_FLAGS]
    told = [_TOLD.findall(s.given) for s in commands or ()]
    alone = not any(s.several or s.more or s.launched or s.flags & _HOW for s in commands or ())
    return alone and bool(told) and all(found and all(map(_TOLD_ONE.fullmatch, found)) for found in told)


def is_left_to_one_gpu(project: Project, call: ast.Call) -> bool:
    """True for a Trainer that takes the devices it finds, in a repository whose texts name one GPU and nowhere more."""
    given = {k.arg for k in call.keywords}
    if call.args or given & {"devices", "gpus", "num_nodes", "strategy", "num_processes", None}:
        return False
    return not speaks_of_several(project) and project.keep("texts of one GPU", lambda: _holds(project, _ONE_GPU))


def is_left_one_by_its_jobs(project: Project, path: str) -> bool:
    """True for a script whose commands all leave it one process or one GPU, where no text that names it speaks of several."""
    if not is_pinned_to_one(project, path):
        return False
    named = {p for name in script_names(path) for p in project.files_containing(name.encode(), kinds=_TEXTS)}
    return not any(_TOLD_SEVERAL.search(project.read(p) or b"") for p in named if not is_test_file(p))


def speaks_of_several(project: Project) -> bool:
    return project.keep("texts of several devices", lambda: _holds(project, _SEVERAL))


def _holds(project: Project, words: re.Pattern[bytes]) -> bool:
    return any(words.search(project.read(p) or b"") for p in project.files if p.endswith(_TEXTS) and not is_test_file(p))


def _is_one(project: Project, module: SourceModule, node: ast.expr, depth: int) -> bool:
    if isinstance(node, ast.Constant):
        return node.value in (1, "1") and node.value is not True
    if isinstance(node, (ast.List, ast.Tuple)):
        return len(node.elts) == 1
    if depth > 0 and (given := setting_in_python(project, module, node)) is not None:
        return isinstance(given, (ast.Constant, ast.List, ast.Tuple)) and _is_one(project, module, given, 0)
    if setting := _setting(node):
        if (option := _is_option_of_one(module, setting)) is not None:
            return option
        return project.keep(("set to one", setting), lambda: _all_set_one(project, setting))
    if not isinstance(node, ast.Name) or depth <= 0:
        return False
    bound = bindings_of(module, node)
    return bool(bound) and all(b.value is not None and not b.part and _is_one(project, module, b.value, depth - 1) for b in bound)


def _setting(node: ast.expr) -> str:
    """The name of a setting that is read: `cfg.num_devices`, `cfg["num_devices"]`, `getattr(cfg, "num_devices", 1)`."""
    if isinstance(node, ast.Attribute):
        return node.attr if dotted(node) and not dotted(node).startswith(("self.", "torch.")) else ""
    if isinstance(node, ast.Subscript):
        name: ast.expr | None = node.slice
    elif isinstance(node, ast.Call) and len(node.args) > 1 and dotted(node.func) == "getattr":
        name = node.args[1]
    elif isinstance(node, ast.Call) and node.args and isinstance(node.func, ast.Attribute) and last(dotted(node.func)) == "get":
        name = node.args[0]
    else:
        return ""
    return name.value if isinstance(name, ast.Constant) and isinstance(name.value, str) else ""


def _is_option_of_one(module: SourceModule, setting: str) -> bool | None:
    """Whether the file's own option of this name is one device where nobody gives it; None where it has none."""
    given = [{k.arg: k.value for k in c.keywords} for c in module.calls_named("add_argument") if _names(c, setting)]
    defaults = [k.get("default") for k in given]
    return all(isinstance(d, ast.Constant) and d.value in (1, "1") and d.value is not True for d in defaults) if given else None


def _names(call: ast.Call, setting: str) -> bool:
    texts = (a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str))
    return any(t.startswith("--") and t[2:].replace("-", "_") == setting for t in texts)


def _all_set_one(project: Project, setting: str) -> bool:
    word = re.escape(setting.encode())
    written = re.compile(rb"(?m)^[ \t]*[\"']?" + word + rb"[\"']?[ ]*[:=][ ]*(\[[^\]\n]*\]|[^\s,#]+)")
    option = re.compile(rb"[\"']--" + word.replace(b"_", b"[-_]") + rb"[\"']")
    if any(option.search(project.read(p) or b"") for p in project.files_containing(setting.encode())):
        return False  # the command line may say another number
    holding = project.files_containing(setting.encode(), kinds=_SETTINGS)
    values = [value for path in holding for value in written.findall(project.read(path) or b"")]
    return bool(values) and all(_ONE.fullmatch(v) for v in values)
