"""Spawned ranks that meet by the environment, where nothing has put the address there: `mp.spawn` sets none of its variables."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_of, only_value
from codemods.analysis.distribution import is_test_file
from codemods.analysis.guards.entry_points import group_arguments
from codemods.analysis.job_files.documented_starts import script_names, starts
from codemods.analysis.loading.same_program import whole_program
from codemods.analysis.names import qualified
from codemods.analysis.processes.starts import Start, reached_by, starts_in
from codemods.files.import_statements import stem_of
from codemods.files.source import SourceModule
from codemods.files.text_file import READ_KINDS
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.file_facts import file_fact
from codemods.store.project import Project

_ADDRESS = ("MASTER_ADDR", "MASTER_PORT")
_TEXTS = (*READ_KINDS, ".txt", ".rst", ".env", ".toml", ".cfg", ".ini")
_ENVIRONMENT = lazy(r"env://[^?]*$")  # what stands behind it is not read, but for a query
# What may put variables into the environment of a process without naming them in the project, or starts it with them there.
_OTHERS = lazy(
    rb"dotenv|environs\b|submitit|sagemaker|azureml|\bray\b|kubeflow|PyTorchJob|torchelastic|elastic_launch|horovod|"
    rb"(?:import|from) determined\b|LightningEnvironment|mpi4py|os\.exec|subprocess|Popen|"
    rb"environ\.update\(|os\.environ\[[^\"'\]]+\] *=|\bmpi\b"
)
# A command that starts no Python of the project: `subprocess.run(["git", "diff"])`.
_TOOLS = lazy(
    rb"\bimport subprocess\b|\bsubprocess\.(?:run|call|check_output|check_call|Popen|getoutput)\(\s*\[?\s*[\"']"
    rb"(?:git|nvidia-smi|lscpu|hostname|tar|unzip|wget|curl|cp|mv|rm|mkdir|ffmpeg|pip)\b"
)
# A launcher has started the parent, whose ranks inherit all that it set: read with no value in its place, and not set here.
_GIVEN = lazy(rb"environ\[[\"'](RANK|WORLD_SIZE)[\"']\](?! *=[^=])")
_SETS = lazy(rb"environ\[[\"'](?:RANK|WORLD_SIZE)[\"']\] *=[^=]")


@record
class Unset:
    """start: what spawns the ranks. holder: the file of `call`, where each ends. missing: the variables that nothing sets.

    unread: the address, where more than `env://` is written, of which torch takes nothing.
    """

    start: Start
    holder: SourceModule
    call: ast.Call
    missing: tuple[str, ...]
    unread: str = ""


def unset_rendezvous(project: Project, module: SourceModule) -> Iterator[Unset]:
    """The starts of process groups in what the file spawns that read the environment for what nothing puts there."""
    if _is_launched(project, module.path):
        return
    for start in starts_in(project, module):
        for site in reached_by(project, start.worker):
            for call in site.module.calls_named("init_process_group"):
                if site.module.function_of(call) is not site.node or not _is_torch(site.module, call):
                    continue
                asked, address = _asked(site.module, call)
                missing = tuple(v for v in asked if not _is_known(project, module.path, v))
                if missing and set(_ADDRESS) & set(missing):
                    yield Unset(start, site.module, call, missing, address.removeprefix("env://") and address)


def _is_torch(module: SourceModule, call: ast.Call) -> bool:
    return qualified(module, call.func).startswith("torch.distributed.") and not any(k.arg is None for k in call.keywords)


def _asked(module: SourceModule, call: ast.Call) -> tuple[tuple[str, ...], str]:
    """The variables that the call reads, in its order, and its address: nothing where it is told of another meeting."""
    given = group_arguments(call)
    if given is None or "store" in given:
        return (), ""
    method = given.get("init_method")
    if isinstance(method, ast.Name):
        method = only_value(bindings_of(module, method))
        if method is None:
            return (), ""
    written = method.value if isinstance(method, ast.Constant) else "" if method is not None else None
    address = "env://" if written is None else written
    if not isinstance(address, str) or not _ENVIRONMENT.match(address):
        return (), ""
    left = [v for v, name in (("RANK", "rank"), ("WORLD_SIZE", "world_size")) if name not in given]
    return (*left, *_ADDRESS), address


def _is_launched(project: Project, path: str) -> bool:
    """True where a text starts the script by a launcher, which sets the variables, or where something else may set them."""
    names = script_names(path)
    if any((s.launched or s.several) and s.script in ("", *names) for s in starts(project)):
        return True
    return any(project.fact(_may_be_told, p) for p in _program(project, path))


@file_fact
def _may_be_told(path: str, data: bytes) -> bool:
    del path
    return _OTHERS.search(_TOOLS.sub(b"", data)) is not None or (_GIVEN.search(data) is not None and _SETS.search(data) is None)


def _is_known(project: Project, path: str, variable: str) -> bool:
    """True where the program, another program that takes it in, or a text of the repository names the variable."""
    word = variable.encode()
    if any(word in (project.read(p) or b"") for p in _program(project, path)):
        return True
    return variable in _ADDRESS and bool(project.files_containing(word, kinds=_TEXTS))


def _program(project: Project, path: str) -> frozenset[str]:
    """The files of the script, and those of every program that imports it."""

    def build() -> frozenset[str]:
        found = set(whole_program(project, path))
        for other in project.files_importing(stem_of(path)):
            if not is_test_file(other) and path in (files := whole_program(project, other)):
                found |= files
        return frozenset(found)

    return project.keep(("programs with", path), build)
