"""Does a project speak of runs on several nodes? By its commands, its settings, its programs and its texts.

Graphs have nodes as well: `num_nodes=x.size(0)` and "nodes in COO form" say nothing about machines.
"""

from __future__ import annotations

import re

from codemods.analysis.distribution import is_test_file
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_COUNTS = rb"(?:nnodes|num[_-]nodes|num[_-]machines|n_nodes)"
_MORE = rb"[\"']?(?![01]\b)[$\w{<]"  # anything but none and one: a number, a variable, a place to fill in
_PLACE = rb"\b(?:node|machine)_rank\b(?![\"']?[ =:]+[\"']?0\b)"  # that of the first, and often the only one, says nothing
_SPOKEN = (
    rb"(?<!single-node or )\bmulti[- ]?nodes?\b|\btwo (?:nodes|machines)\b|\bSLURM_NNODES\b|\bSLURM_JOB_NUM_NODES\b|"
    rb"\bSLURM_NODEID\b"
)
_COMMAND = rb"--(?:nodes|" + _COUNTS + rb")[\"']?[ =]+" + _MORE + rb"|\btrainer\.num_nodes=" + _MORE
_COMMANDS = lazy(
    rb"(?i)" + _COMMAND + rb"|(?m:^[ \t]*(?:export[ ]+)?(?:nodes|" + _COUNTS + rb")=)" + _MORE + rb"|" + _SPOKEN
    + rb"|" + _PLACE + rb"|#SBATCH[^\n]*(?:-N|--nodes)[ =]*[2-9]"
)  # fmt: skip
_SETTINGS = lazy(rb"(?i)\b" + _COUNTS + rb"[\"']?[ ]*:[ ]*" + _MORE + rb"|" + _COMMAND + rb"|" + _SPOKEN)
_PROGRAMS = lazy(
    rb"(?i)" + _COMMAND + rb"|" + _SPOKEN + rb"|" + _PLACE + rb"|"
    rb"\b(?:Trainer|Fabric)\((?:[^()]|\([^()]*\)){0,4000}?\bnum_nodes[ ]*=[ ]*" + _MORE
)  # fmt: skip
_ONE_NODE = lazy(rb"(?im)^[ \t]*(?:export[ ]+)?(?:nnodes|num_nodes|n_nodes|num_machines)=[\"']?1\b")
_ASKED = lazy(rb"How many different machines[^\n]*")  # the dialogue of `accelerate config`
_TEXTS = (".sh", ".bash", ".md", ".rst", ".txt", ".slurm", ".sbatch", "Makefile")
_FILES = (".yaml", ".yml", ".json", ".toml")


def names_nodes(project: Project) -> bool:
    """True where a command, a setting or a text of the project speaks of more than one node."""
    return project.keep("several nodes", lambda: any(_speaks(project, p) for p in project.files if not is_test_file(p)))


def _speaks(project: Project, path: str) -> bool:
    if (pattern := _pattern(path)) is None:
        return False
    data = project.read(path) or b""
    if path.endswith((".sh", ".bash", ".slurm", ".sbatch")) and _ONE_NODE.search(data):
        return False  # what it hands to the launcher is one
    return pattern.search(_ASKED.sub(b"", data) if b"How many" in data else data) is not None


def _pattern(path: str) -> re.Pattern[bytes] | None:
    if path.endswith(".py"):
        return _PROGRAMS
    return _COMMANDS if path.endswith(_TEXTS) else _SETTINGS if path.endswith(_FILES) else None
