"""Does a program start several processes, or is it started as several? What it, and what it comes to, does; and the texts.

Mention is no start: a script that imports `init_distributed` and never calls it runs as one process, whoever else does.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from enum import IntEnum
from posixpath import basename

from codemods.analysis.accelerators import made_as_fabric
from codemods.analysis.bound_values import assigned
from codemods.analysis.call_graph import find_function
from codemods.analysis.class_index import class_facts
from codemods.analysis.job_files.documented_starts import is_told_alone, other_starts, script_names, starts
from codemods.analysis.loading.same_program import whole_program
from codemods.analysis.names import dotted, family, last, qualified
from codemods.analysis.ranks.bound_on_first_device import needs_the_first_device
from codemods.analysis.ranks.given_devices import call_gives_several, command_gives_several
from codemods.analysis.ranks.one_device import has_one_device, says_more_devices, settings_give_several, settings_leave_one
from codemods.analysis.ranks.reached_scopes import MOST_SCOPES, LeftOut, inside, once_a_scope, parts_of, reached
from codemods.analysis.ranks.set_devices import (
    is_left_one_by_its_jobs,
    is_left_to_one_by_commands,
    is_left_to_one_gpu,
    is_set_to_one,
)
from codemods.analysis.ranks.started_groups import may_start_a_group
from codemods.analysis.ranks.sure_joins import joins_in_every_run
from codemods.analysis.ranks.ungiven_options import UngivenOptions
from codemods.files.source import SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

# Names of calls that start ranks or join them, whoever defines them: those of torch, Fabric and Ray, and what projects and their
# libraries call a start of their own.
_CALLED = (
    r"init_process_group|spawn|start_processes|notebook_launcher|debug_launcher|Fabric|LightningLite|LightningCLI|TorchTrainer|"
    r"TorchDistributor|elastic_launch|\w*launch\w*|\w*init\w*_dist\w*|\w*dist\w*_init\w*|\w*setup\w*_(?:dist|ddp)\w*|"
    r"\w*(?:ddp|dist\w*)_setup\w*|init\w*_(?:ddp|distributed|process|torch_ddp|parallel\w*)|initialize_\w*parallel\w*|"
    r"DistributedDataParallel|DDP|FullyShardedDataParallel|FSDP|fully_shard"
)
_NAME = lazy(rf"(?:{_CALLED})$")
# The same in the bytes of a file, with those that are known by their module.
_START = lazy(
    rf"\b(?:{_CALLED}|Accelerator|PartialState|hvd\.init|idist\.\w+|deepspeed\.initialize|MPI\.COMM_WORLD)\b".encode()
)
_SPAWNS = lazy(rb"\b(?:spawn|start_processes|\w+_launcher|elastic_launch|LightningLite|Fabric|Torch(?:Trainer|Distributor))\(")
_STARTS = lazy(r"spawn|start_processes|launch|LightningCLI|LightningLite|Fabric|TorchTrainer|TorchDistributor")  # by itself
_AS_TOLD = frozenset({"LightningCLI", "LightningLite", "Fabric"})  # as many as settings and commands say
_DOTTED = lazy(r"(?:hvd\.init|horovod\.\w+\.init|idist\.\w+|ignite\.distributed\.\w+|deepspeed\.\w+|.*MPI\.COMM_WORLD.*)$")
_VARIABLES = frozenset({"RANK", "LOCAL_RANK", "WORLD_SIZE", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"})
# Programs of these have loops and starts of their own, which no file of the project shows.
_OTHERS = frozenset(
    {"mmengine", "mmcv", "detectron2", "composer", "colossalai", "ray", "fairseq", "catalyst", "megatron", "nemo", "torchtune",
     "fastai", "allennlp", "espnet2", "speechbrain", "axolotl", "xtuner", "ultralytics", "torch_xla", "jax", "tensorflow",
     "submitit", "paddle", "mindspore", "flair", "oslo", "fvcore", "vissl", "classy_vision", "sentence_transformers"}
)  # fmt: skip
# They join the processes that a launcher starts, and are as much at home in one.
_LAUNCHED = frozenset({"Accelerator", "PartialState"})
_ONE_DEVICE = lazy(rb"(?m)^os\.environ\[[\"']CUDA_VISIBLE_DEVICES[\"']\][ ]*=[ ]*[\"']\d[\"']")
_WRAP = lazy(rb"\b(?:DistributedDataParallel|FullyShardedDataParallel|fully_shard)\(")
_IN_A_GROUP = frozenset({"get_rank", "barrier", "all_reduce", "broadcast", "all_gather", "gather", "reduce", "scatter"})
# Whether there is a group at all.
_ASKS = lazy(r"is_initialized|is_available|is_dist|world_size|(?<!torch\.)distributed\b(?!\.)|num_gpus|n_gpu")
_BY_TEXT = frozenset({"instantiate", "import_module", "__import__", "get_class", "locate", "get_object"})


class Start(IntEnum):
    """As how many processes a program is seen to run, the surest last."""

    ONE = 0  # nothing that it comes to starts ranks
    OPEN = 1  # a framework that would train on several, if somebody launched it so
    JOINS = 2  # it joins the processes of a launcher
    PRESUMED = 3  # the same, where no text says how any program is started, and one process may run it as well
    LIKELY = 4  # a framework that starts as many as its settings say, or a command whose script is a variable
    SEVERAL = 5

    @property
    def is_several(self) -> bool:
        """True for a program of several processes, as far as is seen."""
        return self >= Start.PRESUMED


def start_of(project: Project, program: SourceModule) -> Start:
    """How the file is started, if it is run as a script."""
    return project.keep(("start of", program.path), lambda: _start_of(project, program))


def _start_of(project: Project, program: SourceModule) -> Start:
    names = script_names(program.path)
    if _is_on_one_device(program):
        return Start.ONE
    own = [s for s in starts(project) if s.script in names and s.path in ("", program.path)]
    launched = [s.script for s in starts(project) if s.several]
    if any(s.several for s in own) or any(other_starts(project, n) for n in names):
        return Start.SEVERAL
    if any(_is_on_one_device(m) for m in _imported(project, program)):
        return Start.ONE
    best, alone = _start_of_all(project, program, None)
    if best is Start.LIKELY and (settings_give_several(project) or any(command_gives_several(s.given) for s in own)):
        best = Start.SEVERAL
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


def _start_of_joining(project: Project, program: SourceModule, *, named: bool, launched: list[str]) -> Start:
    """As how many processes a program is run that joins those of a launcher, of which no command for it is known.

    named: the texts start it by Python alone, where nobody is there to be joined. launched: the scripts that they start on
    several processes, "" for one that a variable names: beside those a script that is not named is an experiment of its day.
    """
    if "" in launched:
        return Start.LIKELY
    if named or is_told_alone(project, program.path):
        return Start.OPEN
    there = project.keep("names of files", lambda: frozenset(map(basename, project.python_files)))
    if not there.isdisjoint(launched):
        return Start.OPEN
    if joins_in_every_run(project, program, _is_join):
        return Start.SEVERAL
    return Start.LIKELY if launched else Start.PRESUMED


def _is_join(project: Project, module: SourceModule, call: ast.Call) -> bool:
    return _start_by(project, module, call) is Start.JOINS or _is_in_a_group(module, call)


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


def _has_no_group(project: Project, program: SourceModule) -> bool:
    """True for a program that wraps its model in DDP, which raises without a process group, and in which nothing starts one."""
    paths = whole_program(project, program.path)
    return any(_WRAP.search(project.read(path) or b"") for path in paths) and not may_start_a_group(project, program.path)


def _is_on_one_device(program: SourceModule) -> bool:
    """True where the file leaves its process one GPU, whatever the launcher says: ranks would share it, and NCCL refuses."""
    return program.holds(b"CUDA_VISIBLE_DEVICES") and _ONE_DEVICE.search(program.data) is not None


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
    best = _start_of_heir(project, module, scope) if isinstance(scope, ast.ClassDef) else Start.ONE
    needs_group = not any(_ASKS.search(module.text_of(part)) for part in parts_of(scope))
    for node in inside(module, scope, left_out):
        if isinstance(node, ast.Call):
            best = max(best, _start_by(project, module, node))
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
    return any(family(qualified(module, c.func)) == "lightning" and _is_on_one(project, module, c) for c in calls)


def _is_on_one(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True for a call of Lightning that is given one device, which no text tells people to raise."""
    return has_one_device(project, module, call) and not says_more_devices(project, call)


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


def _start_of_heir(project: Project, module: SourceModule, owner: ast.ClassDef) -> Start:
    """What an heir of a framework's trainer starts: the loop is the framework's, and so are the processes."""
    named = class_facts(project, module, owner).external
    loops = [name for name in named if last(name).endswith(("Trainer", "Runner", "Engine", "CLI"))]
    if any(family(name) == "lightning" for name in loops):
        by_settings = all(last(name).endswith("CLI") for name in loops) and settings_leave_one(project)
        return Start.OPEN if by_settings else Start.LIKELY
    return Start.OPEN if loops else Start.ONE


def _start_by(project: Project, module: SourceModule, call: ast.Call) -> Start:
    name = dotted(call.func)
    bare = last(name)
    if bare == "Trainer" or bare.endswith("Trainer") or name.endswith("Trainer.from_argparse_args"):
        return _start_of_trainer(project, module, call)
    full = qualified(module, call.func)
    if bare == "LightningCLI" and family(full) == "lightning" and settings_leave_one(project):
        return Start.OPEN
    if bare == "Fabric" and family(full) == "lightning" and _is_on_one(project, module, call):
        return Start.ONE
    if bare in _AS_TOLD and family(full) == "lightning":
        return Start.SEVERAL if call_gives_several(project, module, call) else Start.LIKELY
    if bare == "launch" and isinstance(call.func, ast.Attribute) and made_as_fabric(project, module, call.func.value):
        return Start.ONE  # the call that makes it says how many it starts
    if bare == "launch" and isinstance(call.func, ast.Attribute) and "gradio" in module.imported_modules:
        return Start.ONE  # a page for one person
    if bare == "notebook_launcher" and any(k.arg == "num_processes" and module.text_of(k.value) == "1" for k in call.keywords):
        return Start.ONE
    if bare in _LAUNCHED:  # which of several programs is launched, a person may leave open
        return Start.JOINS if any(s.several for s in starts(project)) else Start.OPEN
    if _NAME.match(bare) or _DOTTED.match(name) or _DOTTED.match(full):
        if find_function(project, module, name) is not None and not _wraps(bare):
            return Start.ONE  # a function of the project is looked into, whatever its name
        return Start.SEVERAL if _STARTS.search(bare) else Start.JOINS
    if bare == "Process" and "multiprocessing" in full and _joins_nearby(module):
        return Start.SEVERAL
    if bare == "fit" and "trainer" in name.lower() and any(family(m) == "lightning" for m in module.imported_modules):
        return Start.ONE if _is_made_here(module, call) else Start.LIKELY  # a Trainer that is made elsewhere
    if bare in _BY_TEXT:
        return _start_by_text(project)
    return Start.OPEN if family(full) in _OTHERS or full.partition(".")[0] in _OTHERS else Start.ONE


def _is_made_here(module: SourceModule, fit: ast.Call) -> bool:
    """True for `trainer.fit(…)` of a Trainer that the same scope makes: that call says how many devices it has."""
    holder = fit.func.value if isinstance(fit.func, ast.Attribute) else None
    if isinstance(holder, ast.Call):
        return last(dotted(holder.func)) == "Trainer"
    made = assigned(module, holder, holder.id) if isinstance(holder, ast.Name) else []
    names = [dotted(v.func) if isinstance(v, ast.Call) else "" for v in made]
    return bool(names) and all(last(n) == "Trainer" or n.endswith("Trainer.from_argparse_args") for n in names)


def _joins_nearby(module: SourceModule) -> bool:
    """True where the file that starts processes by hand speaks of a group for them."""
    return module.holds(b"init_process_group") or module.holds(b"world_size")


def _wraps(bare: str) -> bool:
    return bare in ("DistributedDataParallel", "DDP", "FullyShardedDataParallel", "FSDP", "fully_shard", "init_process_group")


def _start_of_trainer(project: Project, module: SourceModule, call: ast.Call) -> Start:
    kind = family(qualified(module, call.func))
    if kind == "lightning":
        if _is_on_one(project, module, call):
            return Start.ONE
        left = is_left_to_one_gpu(project, call) or is_left_to_one_by_commands(project, module, call)
        if left or is_set_to_one(project, module, call):
            return Start.OPEN
        return Start.SEVERAL if call_gives_several(project, module, call) else Start.LIKELY
    if find_function(project, module, dotted(call.func)) is not None:
        return Start.ONE  # of the project: its class is looked into
    return Start.OPEN


def _start_by_text(project: Project) -> Start:
    """What is made of a name that a setting holds may be anything that the project's settings and packages have."""

    def build() -> Start:
        named = project.files_containing(b"Trainer", kinds=(".yaml", ".yml"))
        if any(b"lightning" in (project.read(p) or b"") for p in named):
            return Start.LIKELY
        inner = [project.read(p) or b"" for p in project.python_files if b"__main__" not in (project.read(p) or b"")]
        if any(_SPAWNS.search(data) for data in inner):
            return Start.LIKELY
        return Start.JOINS if any(_START.search(data) for data in inner) else Start.OPEN

    return project.keep("start by text", build)


def _is_read(module: SourceModule, node: ast.Constant) -> bool:
    """True for `os.environ["RANK"]` and `os.getenv("RANK")`: what sets it for others, or prints it, reads nothing."""
    up = module.parent(node)
    if isinstance(up, ast.Subscript):
        return isinstance(up.ctx, ast.Load)
    if isinstance(up, ast.Call):
        return last(dotted(up.func)) in ("get", "getenv")
    return isinstance(up, ast.Compare)
