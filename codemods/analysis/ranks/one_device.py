"""Does a function train on one device of one node? Its Trainer starts no other process then, whatever its strategy is called."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from codemods.analysis.bindings import attribute_bindings, bindings_of
from codemods.analysis.call_graph import called_function
from codemods.analysis.distribution import is_test_file
from codemods.analysis.names import dotted, family, last, qualified
from codemods.analysis.ranks.ended_for_several import ends_but_for_one
from codemods.analysis.ranks.handed_arguments import arguments
from codemods.analysis.ranks.old_lightning import PARSED, is_before_two
from codemods.analysis.ranks.one_process_strategy import is_of_one_process, is_of_one_process_for_several
from codemods.analysis.ranks.parsed_fields import parsed_field
from codemods.analysis.ranks.set_above import set_above
from codemods.analysis.ranks.set_devices import is_written_as_one, speaks_of_several
from codemods.analysis.ranks.trainer_options import options_of
from codemods.files.source import FunctionNode, SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_DEVICES = lazy(
    rb"(?m)^[ ]*(?P<key>devices|gpus|num_nodes)[ ]*:[ ]*"
    rb"(?P<value>\[[ ]*\d+[ ]*(?:,[ ]*\d+[ ]*)*\]|[^\s#]+|(?:[ ]*\n[ ]*-[ ]*\d+)+)"
)
_IN_ONE_PROCESS = lazy(rb"(?m)^[ ]*(?:strategy|accelerator|distributed_backend)[ ]*:[ ]*[\"']?dp[\"']?[ \r]*(?:#.*)?$")
_SPAWNED = lazy(rb"(?m)^[ ]*strategy[ ]*:[ ]*[\"']?ddp_spawn\b")
_ON_CPU = lazy(rb"(?m)^[ ]*accelerator[ ]*:[ ]*[\"']?cpu\b")
_ONE = lazy(rb"[\"']?1[\"']?|\[[ ]*\d+[ ]*\]|[ ]*\n[ ]*-[ ]*\d+")
_MORE = lazy(rb"[\"']?(?:-1|[2-9]|\d\d+)[\"']?|\[?[ ]*\d+[ ]*(?:,[ ]*\d+[ ]*)+\]?|(?:[ ]*\n[ ]*-[ ]*\d+){2,}")
_CHOICE = lazy(r"(?<!\S)\+?([\w/]+)(?:@[\w.]+)?=[\"']?([\w.-]+)")
_SETTINGS_FILE = lazy(r"(?<![^\s=\"'])[\w./-]+\.ya?ml\b")
_MADE_BY_SETTINGS = lazy(rb"_target_[ ]*:[ ]*[\"']?(?:pytorch_lightning|lightning(?:\.pytorch)?)(?:\.trainer){0,2}\.Trainer\b")
# Commands that start, or have Lightning start, several processes.
_SPREADS = lazy(
    rb"--(?:trainer\.)?(?:devices|gpus)[ =]+(?!1\b|[\"']?\[[\w ${}]+\])|trainer\.(?:devices|gpus)=(?!1\b|[\"']?\[[\w ${}]+\])|"
    rb"torchrun|\bsrun\b|--nproc|"
    rb"distributed\.launch"
)
_COMMANDS = (".sh", ".md", ".rst", ".slurm", ".sbatch", "Makefile")
_HOW = ("strategy", "accelerator", "distributed_backend")  # Lightning 2.0 has `strategy` alone, and no `dp`
# Each of these may bring several processes with it.
_SPREADING = frozenset(
    {"devices", "gpus", "num_nodes", "num_processes", "strategy", "accelerator", "distributed_backend", "plugins", "tpu_cores",
     "ipus", "auto_select_gpus"}
)  # fmt: skip
_DEPTH = 2  # functions that hand the devices on


def trains_on_one_device(project: Project, module: SourceModule, function: FunctionNode | None) -> bool:
    """True where all of Lightning's Trainers in a function, or in the script itself, have one device on one node.

    Also where the functions that it calls make them.
    """
    if not module.holds(b"Trainer("):
        return False
    key = ("trains on one device", module.path, 0 if function is None else function.lineno)
    return project.keep(key, lambda: _trains_on_one(project, module, function))


def _trains_on_one(project: Project, module: SourceModule, function: FunctionNode | None) -> bool:
    made = [(module, call) for call in lightning_trainers(module, function)]
    for call in module.nodes(ast.Call):
        called = called_function(project, module, call) if module.function_of(call) is function else None
        if called is not None and called.node is not function and called.module.holds(b"Trainer("):
            made += [(called.module, call) for call in lightning_trainers(called.module, called.node)]
    return bool(made) and all(has_one_device(project, m, call) or is_written_as_one(project, m, call) for m, call in made)


def lightning_trainers(module: SourceModule, function: FunctionNode | None) -> Iterator[ast.Call]:
    """The calls of Lightning's Trainer in a function, or at the top of the file."""
    for call in module.calls_named("Trainer"):
        if module.function_of(call) is function and _is_lightning(module, call):
            yield call


def has_trainers_of_one_device(project: Project, module: SourceModule) -> bool:
    """True for a file of Lightning alone in a project whose Trainers, in programs and in settings, have one device."""
    if not any(family(name) == "lightning" for name in module.imported_modules):
        return False
    if any(module.holds(word) for word in (b"torch.distributed", b"ccelerat", b"Fabric", b"deepspeed")):
        return False
    return project.keep("trainers of one device", lambda: _all_have_one(project))


def _all_have_one(project: Project) -> bool:
    """By the project's own programs and settings; by its tests and demonstrations where nothing else makes a Trainer.

    A project in which nothing trains (`trainer.test(…)` alone) leaves that to its users, on any number of devices.
    """
    if not any(project.files_containing(word) for word in (b".fit(", b"LightningCLI")) and not _trainer_settings(project):
        return False
    if any(project.files_containing(word) for word in (b"torchrun", b"init_process_group(")):
        return False
    if project.files_containing(b"LightningCLI") and not _command_line_has_one(project):
        return False
    if any(_SPREADS.search(project.read(p) or b"") for p in project.files if p.endswith(_COMMANDS)):
        return False
    paths = sorted({*project.files_containing(b"Trainer("), *project.files_containing(b"Trainer.from_argparse_args")})
    said = [one for path in paths if not is_test_file(path) for one in _have_one(project, path)]
    said += [_DEVICES.search(text) is not None and _settings_have_one(project) for text in _trainer_settings(project)]
    if not said and project.files_containing(b"LightningCLI"):
        return True
    if not said:
        said = [one for path in paths for one in _have_one(project, path)]
    return bool(said) and all(said)


def _command_line_has_one(project: Project) -> bool:
    """True where each file of settings gives Lightning's command line one device, and no text and no code speaks of more."""
    if any(project.files_containing(word) for word in (b"trainer_defaults", b"trainer.devices")):
        return False
    return _settings_have_one(project) and not speaks_of_several(project)


def _have_one(project: Project, path: str) -> Iterator[bool]:
    """For each Trainer of Lightning that a file makes: whether it has one device."""
    module = project.module(path)
    for call in module.calls_named("Trainer", "from_argparse_args") if module is not None else ():
        name = qualified(module, call.func) if module is not None else ""
        if module is not None and family(name) == "lightning" and ".Trainer" in name:
            one = has_one_device(project, module, call) or is_written_as_one(project, module, call)
            yield one or (_takes_settings(call) and _settings_have_one(project))


def _trainer_settings(project: Project) -> list[bytes]:
    """The settings that make a Trainer: `_target_: pytorch_lightning.Trainer` of Hydra."""
    paths = project.files_containing(b"_target_", kinds=(".yaml", ".yml"))
    return [text for path in paths if _MADE_BY_SETTINGS.search(text := project.read(path) or b"")]


def _takes_settings(call: ast.Call) -> bool:
    given = {k.arg for k in call.keywords}
    unpacked = None in given or last(dotted(call.func)) == "from_argparse_args"
    return unpacked and not given & {"devices", "gpus", "num_nodes"}


def _settings_have_one(project: Project) -> bool:
    """True where the YAML of the project gives its Trainers one device, and nowhere more."""
    values = _devices_of_settings(project)
    return bool(values) and all(_ONE.fullmatch(v) for v in values)


def settings_give_several(project: Project) -> bool:
    """True where the YAML of the project gives its Trainers several devices wherever it gives them any."""
    values = project.keep("devices of settings", lambda: tuple(_devices_of_settings(project)))
    return bool(values) and all(_MORE.fullmatch(v) for v in values)


def chosen_settings_give_several(project: Project, given: str) -> bool:
    """True where a settings file that a command chooses gives its Trainer several devices.

    given: the rest of the command: `backend=2gpu` takes the file `2gpu.yaml` of a folder `backend`, `--config a.yaml` names it.
    """
    named = [f"/{group.rpartition('/')[2]}/{choice}.yaml" for group, choice in _CHOICE.findall(given)]
    named += [f"/{path.removeprefix('./')}" for path in _SETTINGS_FILE.findall(given)]
    return any(_gives_several(project.read(path) or b"") for end in named for path in project.files if f"/{path}".endswith(end))


def _gives_several(text: bytes) -> bool:
    values = [m["value"] for m in _DEVICES.finditer(text) if m["key"] != b"num_nodes" or _is_of_a_trainer(text, m)]
    return any(_MORE.fullmatch(v) for v in values) and not _IN_ONE_PROCESS.search(text) and not _is_simulation(text)


def settings_of_trainers(project: Project) -> list[bytes]:
    """The YAML that speaks of a Trainer, and starts no ranks to try them out."""
    read = ((p, project.read(p) or b"") for p in project.files if p.endswith((".yaml", ".yml")))
    texts = [t for path, t in read if b"trainer" in t or _is_of_trainers(path) or _MADE_BY_SETTINGS.search(t)]
    return [t for t in texts if not _is_simulation(t)]


def _devices_of_settings(project: Project) -> list[bytes]:
    texts = settings_of_trainers(project)
    in_one = [b"1" for text in texts if _IN_ONE_PROCESS.search(text)]  # `dp`: one process, whatever its devices
    found = ((text, m) for text in texts if not _IN_ONE_PROCESS.search(text) for m in _DEVICES.finditer(text))
    return in_one + [m["value"] for text, m in found if m["key"] != b"num_nodes" or _is_of_a_trainer(text, m)]


def _is_simulation(text: bytes) -> bool:
    """True for settings that start ranks on the CPU to try them out: `strategy: ddp_spawn` beside `accelerator: cpu`."""
    return _SPAWNED.search(text) is not None and _ON_CPU.search(text) is not None


def _is_of_trainers(path: str) -> bool:
    """True for `trainer.yaml`, and for a choice of Hydra's: `trainer/ddp.yaml` stands below `trainer:`, and need not say so."""
    folder, _, name = path.rpartition("/")
    return folder.rpartition("/")[2] in ("trainer", "trainers") or name.partition(".")[0] in ("trainer", "trainers")


def _is_of_a_trainer(text: bytes, found: re.Match[bytes]) -> bool:
    """True for a key at the top of a file, or right below `trainer:`. A graph of 27 nodes has a `num_nodes` of its own."""
    depth = len(found[0]) - len(found[0].lstrip(b" "))
    above = (line for line in reversed(text[: found.start()].splitlines()) if line.strip() and not line.lstrip().startswith(b"#"))
    outer = next((line for line in above if len(line) - len(line.lstrip(b" ")) < depth), b"trainer")
    return b"trainer" in outer.lower()


def settings_leave_one(project: Project) -> bool:
    """True for a project whose settings give each Trainer one device, and of which no command names more: it may be told more."""

    def build() -> bool:
        commands = (p for p in project.files if p.endswith(_COMMANDS))
        return _settings_have_one(project) and not any(_SPREADS.search(project.read(p) or b"") for p in commands)

    return project.keep("settings of one device", build)


def _is_lightning(module: SourceModule, call: ast.Call) -> bool:
    return family(qualified(module, call.func)) == "lightning"


def has_one_device(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True for a call of Lightning's Trainer that is handed one device, on one node, or `dp`, whose devices share one process."""
    written = {k.arg: k.value for k in call.keywords if k.arg}
    packed = [k.value for k in call.keywords if k.arg is None]
    if not packed and last(dotted(call.func)) == PARSED and not written.keys() & {*_HOW}:
        return any(_is_given_dp(project, module, call, how) for how in _HOW)
    if not packed:
        return _is_of_one(project, module, written) or _is_left_to_the_cpu(project, module, call)
    options = options_of(project, module, packed)
    return bool(options) and all(_is_of_one(project, home, {**written, **found}) for home, found in options)


def _is_given_dp(project: Project, module: SourceModule, call: ast.Call, how: str) -> bool:
    """True for `Trainer.from_argparse_args(args)` where the program sets `args.accelerator = "dp"` on each way to it."""
    values = parsed_field(project, module, call, how)
    return bool(values) and all(isinstance(v, ast.Constant) and v.value == "dp" for v in values)


def _is_left_to_the_cpu(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True for a Trainer of Lightning 1 that is told of no device: it took the CPU, as one process. 2.0 takes what it finds."""
    given = {k.arg for k in call.keywords}
    return not call.args and not given & _SPREADING and is_before_two(project, module, given)


def _is_of_one(project: Project, module: SourceModule, given: Mapping[str, ast.expr]) -> bool:
    if any((how := given.get(name)) is not None and is_of_one_process(project, module, how) for name in _HOW):
        return True  # whatever its devices
    devices, nodes = given.get("devices", given.get("gpus")), given.get("num_nodes")
    if not (nodes is None or (isinstance(nodes, ast.Constant) and nodes.value == 1)):
        return False
    if any((how := given.get(name)) is not None and is_of_one_process_for_several(module, how, given) for name in _HOW):
        return True
    if devices is None:
        kind = given.get("accelerator")
        return isinstance(kind, ast.Constant) and kind.value == "cpu" and "num_processes" not in given  # the CPU is one device
    return _is_one(project, module, devices, _DEPTH) or ends_but_for_one(module, devices)


def says_more_devices(project: Project, call: ast.Call) -> bool:
    """True where a text tells people to raise the variable that the call is given: `devices = 8` of a how-to."""
    given = next((k.value for k in call.keywords if k.arg in ("devices", "gpus")), None)
    if not isinstance(given, ast.Name):
        return False
    raised = re.compile(rb"(?m)^[ \t]*" + given.id.encode() + rb"[ ]*=[ ]*[2-9]")
    return any(raised.search(project.read(p) or b"") for p in project.files if p.endswith((".md", ".rst")))


def _is_one(project: Project, module: SourceModule, devices: ast.expr, depth: int) -> bool:
    if isinstance(devices, ast.Constant):
        return devices.value in (1, "1") and devices.value is not True
    if isinstance(devices, (ast.List, ast.Tuple)):
        return len(devices.elts) == 1
    if isinstance(devices, ast.IfExp) and "is_available" in module.text_of(devices.test):
        arms = (devices.body, devices.orelse)
        with_gpu, without = reversed(arms) if isinstance(devices.test, ast.UnaryOp) else arms
        return _is_one(project, module, with_gpu, depth) and (_is_none(without) or _is_one(project, module, without, depth))
    own = attribute_bindings(module, devices) if isinstance(devices, ast.Attribute) else []
    if own and depth >= 0:
        return all(b.value is not None and not b.part and _is_one(project, module, b.value, depth) for b in own)
    if (value := set_above(module, devices)) is not None:
        return _is_one(project, module, value, 0)
    if pinned := _setting_in(devices):
        return _is_pinned(project, module, pinned)
    if not isinstance(devices, ast.Name) or depth < 0:
        return False
    bound = bindings_of(module, devices)
    function = module.function_of(devices)
    if function is not None and len(bound) == 1 and bound[0].parameter:
        handed = list(arguments(project, module, function, devices.id))
        return bool(handed) and all(_is_one(project, home, value, depth - 1) for home, value in handed)
    return bool(bound) and all(b.value is not None and not b.part and _is_one(project, module, b.value, depth - 1) for b in bound)


def _is_none(node: ast.expr) -> bool:
    """`None`, `0` and "auto" beside no GPU: one process on the CPU."""
    return isinstance(node, ast.Constant) and node.value in (None, 0, "auto")


def _setting_in(devices: ast.expr) -> ast.Attribute | None:
    """`cfg.DEVICES` itself, or where it is counted: `len(cfg.DEVICES)`, `list(range(len(cfg.DEVICES)))`."""
    while isinstance(devices, ast.Call) and len(devices.args) == 1 and dotted(devices.func) in ("list", "range", "len"):
        devices = devices.args[0]
    return devices if isinstance(devices, ast.Attribute) else None


def _is_pinned(project: Project, module: SourceModule, setting: ast.Attribute) -> bool:
    """True where what reads the settings writes one device for the phase that this program asks for.

    `if phase == "test": cfg.DEVICES = [0]`, and `cfg = parse_args("test")` here.
    """
    home = module.function_of(setting)
    for path in project.files_containing(f".{setting.attr} = ".encode()):
        other = project.module(path)
        for assign in other.nodes(ast.Assign) if other is not None and not is_test_file(path) else ():
            if other is None or not _writes_one(assign, setting.attr):
                continue
            reader, phase = other.function_of(assign), _phase_of(other, assign)
            for call in module.calls_named(reader.name) if reader is not None and phase else ():
                given = [*call.args, *(k.value for k in call.keywords)]
                if module.function_of(call) is home and any(isinstance(a, ast.Constant) and a.value == phase for a in given):
                    return True
    return False


def _writes_one(assign: ast.Assign, attribute: str) -> bool:
    value = assign.value
    one = len(value.elts) == 1 if isinstance(value, ast.List) else isinstance(value, ast.Constant) and value.value == 1
    return one and any(isinstance(t, ast.Attribute) and t.attr == attribute for t in assign.targets)


def _phase_of(module: SourceModule, assign: ast.Assign) -> str:
    """The text that a parameter of the function must be, by the test right round the assignment."""
    up, function = module.parent(assign), module.function_of(assign)
    test = up.test if isinstance(up, ast.If) and assign in up.body else None
    if function is None or not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.Eq):
        return ""
    asked, text = test.left, test.comparators[0]
    known = isinstance(asked, ast.Name) and any(a.arg == asked.id for a in (*function.args.args, *function.args.kwonlyargs))
    return text.value if known and isinstance(text, ast.Constant) and isinstance(text.value, str) else ""
