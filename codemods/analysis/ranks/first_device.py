"""Is a file tied to the first device? It may hold an Accelerator for half precision, and runs as one process all the same."""

from __future__ import annotations

import ast

from codemods.analysis.distribution import is_test_file
from codemods.analysis.names import dotted
from codemods.files.source import SourceModule, once_a_module
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_SETTINGS = frozenset({"config", "cfg", "conf", "args", "opt", "opts", "hparams", "hps", "settings", "train_config", "params"})
# The setting's default: `device: str = "cuda:0"`, `add_argument("--device", default="cuda:0")`.
_FIRST = lazy(rb"\bdevice\s*:\s*str\s*=\s*[\"']cuda:0[\"']|[\"']--device[\"'][^()]{0,120}default\s*=\s*[\"']cuda:0[\"']")
_OTHERWISE = (b"torch.distributed", b"LOCAL_RANK", b"local_rank", b"accelerator.device", b"process_index")


def is_tied_to_first_device(project: Project, module: SourceModule) -> bool:
    """True for a file that may have an accelerator, and puts its data on a device that the settings call `cuda:0`.

    `prepare` puts the model of the second process on the second device: its first loss would fail. Nobody runs it so.
    """
    if not module.holds(b"ccelerator") or not module.holds(b".device") or any(module.holds(w) for w in _OTHERWISE):
        return False
    return _goes_by_a_setting(module) and project.keep("set to the first device", lambda: _is_set(project))


@once_a_module
def _goes_by_a_setting(module: SourceModule) -> bool:
    read = False
    for node in module.nodes(ast.Attribute):
        holder = dotted(node.value).rpartition(".")[2] if node.attr == "device" else ""
        if holder in _SETTINGS:
            if isinstance(node.ctx, ast.Store):
                return False
            read = True
    return read


def _is_set(project: Project) -> bool:
    if project.files_containing(b"notebook_launcher"):
        return False
    return any(_FIRST.search(project.read(p) or b"") for p in project.files_containing(b"cuda:0") if not is_test_file(p))
