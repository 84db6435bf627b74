"""Does a program start several processes, or is it started as several? What it, and what it comes to, does; and the texts.

Mention is no start: a script that imports `init_distributed` and never calls it runs as one process, whoever else does.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from posixpath import basename

from codemods.analysis.conditions import is_main_block
from codemods.analysis.job_files.documented_starts import is_told_alone, other_starts, script_names, starts
from codemods.analysis.job_files.renamed_scripts import is_named_as_before
from codemods.analysis.loading.same_program import whole_program
from codemods.analysis.names import dotted, family, last, qualified
from codemods.analysis.ranks.bound_on_first_device import needs_the_first_device
from codemods.analysis.ranks.given_devices import command_gives_several, command_keeps_to_one
from codemods.analysis.ranks.one_device import chosen_settings_give_several, settings_give_several
from codemods.analysis.ranks.reached_scopes import MOST_SCOPES, LeftOut, inside, once_a_scope, parts_of, reached
from codemods.analysis.ranks.set_devices import is_left_one_by_its_jobs
from codemods.analysis.ranks.start_kinds import Start
from codemods.analysis.ranks.started_groups import may_start_a_group
from codemods.analysis.ranks.starting_calls import is_on_one, start_by, start_of_heir
from codemods.analysis.ranks.sure_joins import joins_in_every_run
from codemods.analysis.ranks.ungiven_options import UngivenOptions
from codemods.files.source import SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_VARIABLES = frozenset({"RANK", "LOCAL_RANK", "WORLD_SIZE", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"})
_LEAVES_ONE = lazy(rb"os\.environ\[[\"']CUDA_VISIBLE_DEVICES[\"']\][ ]*=[ ]*[\"']\d[\"']")
_ONE_DEVICE = lazy(rb"(?m)^os\.environ\[[\"']CUDA_VISIBLE_DEVICES[\"']\][ ]*=[ ]*[\"']\d[\"']")
_WRAP = lazy(rb"\b(?:DistributedDataParallel|FullyShardedDataParallel|fully_shard)\(")
_IN_A_GROUP = frozenset({"get_rank", "barrier", "all_reduce", "broadcast", "all_gather", "gather", "reduce", "scatter"})
# Whether there is a group at all.
_ASKS = lazy(r"is_initialized|is_available|is_dist|world_size|(?<!torch\.)distributed\b(?!\.)|num_gpus|n_gpu")


def start_of(project: Project, program: SourceModule) -> Start:
    """How the file is started, if it is run as a script."""
    return project.keep(("start of", program.path), lambda: _start_of(project, program))


def joins_at_most(project: Project, program: SourceModule) -> bool:
    """True for a program that starts no processes by itself, as far as is seen: a launcher does, or nobody."""
    return project.keep(("joins at most", program.path), lambda: _start_of_all(project, program, None)[0] <= Start.JOINS)


def _start_of(project: Project, program: SourceModule) -> Start:
    names = script_names(program.path)
    if _is_on_one_device(program) or _is_left_one_when_run(program):
        return Start.ONE
    own = [s for s in starts(project) if s.script in names and s.path in ("", program.path)]
    launched = [s.script for s in starts(project) if s.several]
    if any(s.several for s in own) or other_starts(project, program.path):
        return Start.SEVERAL
    if any(_is_on_one_device(m) for m in _imported(project, program)):
        return Start.ONE
    best, alone = _start_of_all(project, program, None)
    if best is Start.LIKELY and (settings_give_several(project) or any(_gives_several(project, s.given) for s in own)):
        best = Start.SEVERAL
    if best is Start.LIKELY and any(command_keeps_to_one(s.given) for s in own):
        return Start.OPEN  # whoever gives it several devices has them all in one process
    if best in (Start.JOINS, Start.LIKELY, Start.SEVERAL) and (any(launched) or (own and "" not in launched)):
        without, _ = _start_of_all(project, program, UngivenOptions(project, program, switches=not any(launched)))
        if without < (Start.LIKELY if own else Start.JOINS):
            return Start.OPEN  # it may start ranks, under an option that nothing here gives
    if best is Start.JOINS and needs_the_first_device(program):
        return Start.OPEN
    if best is Start.LIKELY and is_left_one_by_its_jobs(project, program.path):
        return Start.OPEN  # its Trainer takes what the job leaves it: one GPU, or one task
    if best >= Start.LIKELY:
        return best
    if alone and best is Start.OPEN:
        return Start.ONE
    if best is Start.JOINS and _has_no_group(project, program):
        return Start.OPEN
    if best is Start.JOINS:
        return _start_of_joining(project, program, named=bool(own), launched=launched)
    return Start.LIKELY if "" in launched and best is Start.OPEN else best


def _gives_several(project: Project, given: str) -> bool:
    return command_gives_several(given) or (chosen_settings_give_several(project, given) and not command_keeps_to_one(given))


def _start_of_joining(project: Project, program: SourceModule, *, named: bool, launched: list[str]) -> Start:
    """As how many processes a program is run that joins those of a launcher, of which no command for it is known.

    named: the texts start it by Python alone, where nobody is there to be joined. launched: the scripts that they start on
    several processes, "" for one that a variable names: beside those a script that is not named is an experiment of its day.
    """
    if "" in launched:
        return Start.LIKELY
    if named or is_told_alone(project, program.path):
        return Start.OPEN
    if is_named_as_before(project, program.path):
        return Start.LIKELY
    there = project.keep("names of files", lambda: frozenset(map(basename, project.python_files)))
    if not there.isdisjoint(launched):
        return Start.OPEN
    if joins_in_every_run(project, program, _is_join):
        return Start.SEVERAL
    return Start.LIKELY if launched else Start.PRESUMED


def _is_join(project: Project, module: SourceModule, call: ast.Call) -> bool:
    return start_by(project, module, call) is Start.JOINS or _is_in_a_group(module, call)


def _start_of_all(project: Project, program: SourceModule, left_out: LeftOut | None) -> tuple[Start, bool]:
    """What all that the program comes to starts, and whether something there is for one process alone.

    left_out: what is not followed.
    """
    best, alone = Start.ONE, False
    for number, (module, scope) in enumerate(reached(project, program, left_out), 1):
        started = once_a_scope(project, module, scope, left_out, "start in", _start_in)
        best = max(best, started, Start.ONE if number < MOST_SCOPES else Start.OPEN)
        if best is Start.SEVERAL:
            break
        alone = alone or _spreads_a_model(module, scope) or _is_told_of_one(project, module, scope)
    return best, alone


def start_in_reach(project: Project, scopes: Iterable[tuple[SourceModule, ast.AST]]) -> Start:
    """What these scopes of a program start; OPEN where they are too many to be looked at."""
    best = Start.ONE
    for number, (module, scope) in enumerate(scopes, 1):
        best = max(best, once_a_scope(project, module, scope, None, "start in", _start_in))
        if best is not Start.ONE or number >= MOST_SCOPES:
            return max(best, Start.OPEN)
    return best


def _has_no_group(project: Project, program: SourceModule) -> bool:
    """True for a program that wraps its model in DDP, which raises without a process group, and in which nothing starts one."""
    paths = whole_program(project, program.path)
    return any(_WRAP.search(project.read(path) or b"") for path in paths) and not may_start_a_group(project, program.path)


def _is_on_one_device(program: SourceModule) -> bool:
    """True where the file leaves its process one GPU, whatever the launcher says: ranks would share it, and NCCL refuses."""
    return program.holds(b"CUDA_VISIBLE_DEVICES") and _ONE_DEVICE.search(program.data) is not None


def _is_left_one_when_run(program: SourceModule) -> bool:
    """The same in `if __name__ == "__main__":`, above whatever a function of the file may do with the devices."""
    if not program.holds(b"CUDA_VISIBLE_DEVICES"):
        return False
    own = {f.name for f in program.functions}
    for block in (s for s in program.tree.body if isinstance(s, ast.If) and is_main_block(s)):
        for statement in block.body:
            if _LEAVES_ONE.fullmatch(program.text_of(statement).encode()):
                return True
            if any(isinstance(n, ast.Call) and (dotted(n.func) in own or "cuda" in dotted(n.func)) for n in walk(statement)):
                break
    return False


def _imported(project: Project, program: SourceModule) -> Iterator[SourceModule]:
    """The files that the program imports, as far as they say which devices there are."""
    for path in sorted(whole_program(project, program.path) - {program.path}):
        if basename(path).removesuffix(".py") in sys.stdlib_module_names:
            continue  # `import time` means another one
        if b"CUDA_VISIBLE_DEVICES" in (project.read(path) or b""):
            module = project.module(path)
            if module is not None:
                yield module


def _start_in(project: Project, module: SourceModule, scope: ast.AST, left_out: LeftOut | None) -> Start:
    """What the code of one file's top level, function or class starts."""
    best = start_of_heir(project, module, scope) if isinstance(scope, ast.ClassDef) else Start.ONE
    needs_group = not any(_ASKS.search(module.text_of(part)) for part in parts_of(scope))
    for node in inside(module, scope, left_out):
        if isinstance(node, ast.Call):
            best = max(best, start_by(project, module, node))
            if needs_group and _is_in_a_group(module, node):
                best = max(best, Start.JOINS)  # it raises in one process: somebody starts a group for it
        elif isinstance(node, ast.Constant) and node.value in _VARIABLES and _is_read(module, node):
            best = max(best, Start.JOINS)
        if best is Start.SEVERAL:
            break
    return best


def _is_told_of_one(project: Project, module: SourceModule, scope: ast.AST) -> bool:
    """True where the program makes its Trainer or Fabric for one device."""
    calls = (n for n in inside(module, scope) if isinstance(n, ast.Call) and last(dotted(n.func)) in ("Trainer", "Fabric"))
    return any(family(qualified(module, c.func)) == "lightning" and is_on_one(project, module, c) for c in calls)


def _spreads_a_model(module: SourceModule, scope: ast.AST) -> bool:
    """True where one process puts the layers of a model on all GPUs in every run: Accelerate refuses to train it on several.

    DDP705 tells it where a command launches several.
    """
    if not module.holds(b"device_map"):
        return False
    for node in inside(module, scope):
        if isinstance(node, ast.keyword) and node.arg == "device_map" and isinstance(node.value, ast.Constant):
            if node.value.value == "auto" and not any(isinstance(up, (ast.If, ast.IfExp)) for up in module.ancestors(node)):
                return True
    return False


def _is_in_a_group(module: SourceModule, call: ast.Call) -> bool:
    bare = last(dotted(call.func))
    if bare == "DistributedSampler":
        return len(call.args) < 2 and not any(k.arg == "num_replicas" for k in call.keywords)
    return bare in _IN_A_GROUP and qualified(module, call.func).startswith("torch.distributed.")


def _is_read(module: SourceModule, node: ast.Constant) -> bool:
    """True for `os.environ["RANK"]` and `os.getenv("RANK")`: what sets it for others, or prints it, reads nothing."""
    up = module.parent(node)
    if isinstance(up, ast.Subscript):
        return isinstance(up.ctx, ast.Load)
    if isinstance(up, ast.Call):
        return last(dotted(up.func)) in ("get", "getenv")
    return isinstance(up, ast.Compare)
