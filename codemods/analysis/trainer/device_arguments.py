"""The arguments of Lightning's Trainer for devices and processes, written for Lightning 2: they decide over each other."""

from __future__ import annotations

import ast

from codemods.analysis.trainer.lightning_trainers import Change, keywords, literal_text, more_of
from codemods.analysis.trainer.lightning_upgrade import Standing, standing
from codemods.analysis.trainer.none_values import nones_of
from codemods.analysis.trainer.strategy_plugins import in_plugins
from codemods.api.findings import Applicability, DropKeyword, Edit, Evidence, RenameKeyword, ReplaceExpression, SetKeyword
from codemods.data.lightning_arguments import (
    ACCELERATOR_GONE,
    BACKEND_GONE,
    DEVICE_ARGUMENTS,
    DEVICES_SINCE,
    GONE_STRATEGIES,
    GPUS_GONE,
    KEPT_STRATEGIES,
    NONE_WAS_DEFAULT,
    STRATEGY_GONE,
)
from codemods.files.source import SourceModule
from codemods.runtime.record import field, record
from codemods.store.project import Project

SPAWNED = (
    "Lightning 1 started the processes of several devices from inside of the Trainer, Lightning 2 runs the whole script once for "
    "each"
)
TAKES_ALL = "where no devices are named, Lightning 2 takes all that it finds"
FLAG_DEFAULT = Evidence(
    "version", "DDP has find_unused_parameters=False by default from Lightning 2.0 on; it was True from 1.2.4 to 1.9"
)


@record
class DeviceChange:
    """old: the arguments as written, for people; gone: since when they are errors."""

    old: str
    gone: tuple[int, int]
    node: ast.keyword
    change: Change
    standing: Standing
    evidence: tuple[Evidence, ...]


@record(frozen=False)
class _Plan:
    """What becomes of one call, while it is worked out."""

    module: SourceModule
    call: ast.Call
    accelerator: str = ""
    strategy: str = ""
    edits: list[Edit] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    standings: list[Standing] = field(default_factory=list)
    counted: bool = False
    several: bool | None = None  # None: not shown

    def drop(self, name: str) -> None:
        self.edits.append(DropKeyword(self.module.path, self.module.span(self.call), name))

    def rename(self, name: str, new: str) -> None:
        self.edits.append(RenameKeyword(self.module.path, self.module.span(self.call), name, new))

    def set(self, name: str, value: str) -> None:
        self.edits.append(SetKeyword(self.module.path, self.module.span(self.call), name, value))


def device_change(project: Project, module: SourceModule, call: ast.Call) -> DeviceChange | None:
    """What the arguments of a Trainer for devices have become, None where every version that is allowed takes them."""
    given = keywords(call)
    named = _named_strategy(given)
    numbers = standing(project, module.path, call, since=DEVICES_SINCE, gone=GPUS_GONE)
    old = [given[n] for n in DEVICE_ARGUMENTS if n in given and (n == "distributed_backend" or numbers is not None)]
    plan = _Plan(module, call)
    gone = GPUS_GONE
    if named is not None:
        argument, name = named
        gone = BACKEND_GONE if argument == "distributed_backend" else ACCELERATOR_GONE
        gone = max(gone, STRATEGY_GONE.get(name, gone)) if argument == "strategy" else gone
        known = standing(project, module.path, given[argument], since=DEVICES_SINCE, gone=gone)
        if known is None:
            return None
        plan.standings.append(known)
        old = [given[argument], *(k for k in old if k.arg != argument)]
        _write_strategy(plan, given, argument, name, numbers is not None)
        if (none := _none_of(given[argument].value)) is not None:
            auto = standing(project, module.path, none, since=NONE_WAS_DEFAULT["strategy"], gone=gone)
            plan.standings += [auto] if auto is not None else []
    elif "distributed_backend" in given:
        known = standing(project, module.path, given["distributed_backend"], since=DEVICES_SINCE, gone=BACKEND_GONE)
        if known is None:
            return None
        plan.standings.append(known)
        _write_backend(plan, given)
        gone = BACKEND_GONE
    if not old:
        return None
    if numbers is not None:
        plan.standings.append(numbers)
        _write_devices(plan, given)
        _write_accelerator(plan, given)
        _ask_how_started(plan, given, named)
    if more := more_of(module, call):
        plan.refusals.append(f"{more} may give accelerator=, devices= or strategy= as well")
    first = min(old, key=lambda k: (k.lineno, k.col_offset))
    shown = ", ".join(" ".join(module.text_of(k).split()) for k in dict.fromkeys(old))
    weakest = min(plan.standings, key=lambda s: s.level.rank)
    doubts = (*((weakest.assumes,) if weakest.assumes else ()), *plan.doubts)
    if weakest.level is Applicability.DISPLAY:
        plan.refusals.append(weakest.assumes)
    change = Change(tuple(plan.edits), doubts, tuple(plan.refusals))
    ddp = numbers is not None and (plan.strategy or plan.several) and "strategy" not in given
    return DeviceChange(shown, gone, first, change, weakest, (*weakest.evidence, *((FLAG_DEFAULT,) if ddp else ())))


def _named_strategy(given: dict[str, ast.keyword]) -> tuple[str, str] | None:
    """(argument, name) where a strategy of Lightning 1 is named by a literal, or by one side of a condition beside None."""
    for argument in ("accelerator", "distributed_backend", "strategy"):
        value = given[argument].value if argument in given else None
        if isinstance(value, ast.IfExp) and argument != "strategy":
            sides = [s.value for s in (value.body, value.orelse) if isinstance(s, ast.Constant)]
            names = [s for s in sides if isinstance(s, str) and s in KEPT_STRATEGIES] if None in sides else []
        else:
            names = [value.value] if isinstance(value, ast.Constant) and isinstance(value.value, str) else []
        for name in names:
            old = name in GONE_STRATEGIES or (argument != "strategy" and (name in KEPT_STRATEGIES or name == "ddp_cpu"))
            if old:
                return argument, name
    return None


def _none_of(value: ast.expr) -> ast.Constant | None:
    """The side of a condition that is None."""
    sides = (value.body, value.orelse) if isinstance(value, ast.IfExp) else ()
    return next((s for s in sides if isinstance(s, ast.Constant) and s.value is None), None)


def _as_strategy(plan: _Plan, value: ast.expr) -> str:
    """The value as `strategy=` takes it: None was its default once, "auto" is now."""
    none = _none_of(value)
    if none is None:
        return f'"{plan.strategy}"'
    at, start = plan.module.span(none), plan.module.span(value)
    text = plan.module.text_of(value)
    if at.line != start.line or "\n" in text or not text.isascii():
        plan.refusals.append(f'write strategy= with "{plan.strategy}", and "auto" where nothing is asked for')
        return text
    head = at.column - start.column
    return f'{text[:head]}"auto"{text[head + 4 :]}'


def _write_backend(plan: _Plan, given: dict[str, ast.keyword]) -> None:
    if literal_text(given["distributed_backend"].value) == "None":
        plan.drop("distributed_backend")
    else:
        plan.refusals.append("what distributed_backend= is given is not shown: a name of DDP goes to strategy=")


def _write_strategy(plan: _Plan, given: dict[str, ast.keyword], argument: str, name: str, numbers: bool) -> None:
    if name in GONE_STRATEGIES:
        plan.refusals.append(GONE_STRATEGIES[name])
        return
    if "strategy" in given:
        plan.refusals.append("strategy= is given as well: which of the two counts is yours to say")
        return
    plan.strategy = "ddp_spawn" if name == "ddp_cpu" else name
    if argument == "distributed_backend" and "accelerator" in given and _named_strategy({"accelerator": given["accelerator"]}):
        plan.refusals.append("accelerator= names a strategy as well")
    plugged = in_plugins(plan.module, given["plugins"].value) if "plugins" in given else None
    if plugged is not None and plugged.unknown:
        plan.refusals.append("what plugins= holds may be the strategy")
    if plugged is not None and plugged.strategy is not None and any(True for _ in nones_of(plan.module, plugged.strategy)):
        plan.refusals.append("what plugins= holds is the strategy at times only")
    in_place = plugged is None or plugged.strategy is None
    if name == "ddp_cpu":
        plan.accelerator = "cpu"
    if argument == "accelerator" and not numbers and name != "ddp_cpu":
        if in_place:
            plan.rename("accelerator", "strategy")
            if (none := _none_of(given[argument].value)) is not None:
                plan.edits.append(ReplaceExpression(plan.module.path, plan.module.span(none), '"auto"'))
        else:
            plan.drop("accelerator")
        return
    if argument == "distributed_backend" and in_place and name == plan.strategy and _none_of(given[argument].value) is None:
        plan.rename("distributed_backend", "strategy")
    else:
        if argument == "distributed_backend":
            plan.drop("distributed_backend")
        if in_place:
            plan.set("strategy", _as_strategy(plan, given[argument].value))
    if name == "ddp_cpu" and not numbers:
        plan.set("accelerator", '"cpu"')


def _write_devices(plan: _Plan, given: dict[str, ast.keyword]) -> None:
    counts = [n for n in ("gpus", "num_processes", "tpu_cores") if n in given]
    if "devices" in given:
        plan.counted = True
        if counts:
            plan.refusals.append("devices= is given as well")
        return
    idle = [n for n in counts if literal_text(given[n].value) == "None" and (n != "gpus" or len(counts) > 1)]
    for name in idle:
        plan.drop(name)
    counts = [n for n in counts if n not in idle]
    if counts == ["gpus", "num_processes"]:
        text = literal_text(given["gpus"].value)
        if text in ("0", "None"):
            plan.drop("gpus")
            counts = ["num_processes"]
        elif text is not None:
            plan.drop("num_processes")
            counts = ["gpus"]
    if len(counts) > 1:
        plan.refusals.append(f"{' and '.join(f'{n}=' for n in counts)} are both given: which of them counts is not shown")
    elif counts == ["gpus"]:
        _write_gpus(plan, given["gpus"].value)
    elif counts:
        _write_count(plan, counts[0], given[counts[0]].value)


def _write_gpus(plan: _Plan, value: ast.expr) -> None:
    text = literal_text(value)
    plan.counted = True
    if text in ("0", "None", "[]", "()"):
        plan.drop("gpus")
        plan.accelerator, plan.several = "cpu", False
        if text != "0":
            plan.doubts.append(f"gpus={text} trained on the CPU")
        return
    if text is None and isinstance(value, ast.IfExp):
        _write_gpus_if_any(plan, value)
        return
    plan.accelerator = "gpu"
    plan.rename("gpus", "devices")
    if text is None:
        plan.doubts.append("assumes one GPU at least: devices=0 is an error, where gpus=0 trained on the CPU")
        return
    plain = ast.literal_eval(value)
    if isinstance(plain, bool) or not isinstance(plain, (int, list, tuple, str)):
        plan.refusals.append(f"gpus={text}: how many devices that is, is yours to say")
    elif isinstance(plain, int):
        plan.several = plain != 1
    elif isinstance(plain, (list, tuple)):
        plan.several = len(plain) > 1
    elif plain.strip() == "-1" or "," in plain:
        plan.several = True
    elif plain.strip() == "0":
        plan.refusals.append('gpus="0" was no GPU in Lightning 1, and is asked for as the first one by most who write it')
    else:
        plan.doubts.append(f"gpus={text} was the GPU with that index before Lightning 1.5, and is that many since")
        plan.several = plain.strip() != "1"


def _write_gpus_if_any(plan: _Plan, value: ast.IfExp) -> None:
    """`1 if torch.cuda.is_available() else 0` is what accelerator="auto" does."""
    module = plan.module
    asks = module.text_of(value.test) == "torch.cuda.is_available()"
    if asks and literal_text(value.body) == "1" and literal_text(value.orelse) in ("0", "None"):
        plan.rename("gpus", "devices")
        plan.edits.append(ReplaceExpression(module.path, module.span(value), "1"))
        plan.accelerator, plan.several = "auto", False
        plan.doubts.append('accelerator="auto" takes a GPU that is no CUDA device as well')
    else:
        plan.refusals.append('devices=0 is an error, where gpus=0 trained on the CPU: accelerator="auto" takes what is there')


def _write_count(plan: _Plan, name: str, value: ast.expr) -> None:
    text = literal_text(value)
    plan.counted = True
    plan.accelerator = "tpu" if name == "tpu_cores" else "cpu"
    plan.rename(name, "devices")
    if text is None or not text.isdigit():
        plan.refusals.append(f"{name}= is no plain number")
    else:
        plan.several = text != "1"


def _write_accelerator(plan: _Plan, given: dict[str, ast.keyword]) -> None:
    if not plan.accelerator:
        if (
            "accelerator" in given and plan.strategy and _named_strategy({"accelerator": given["accelerator"]})
            and not plan.refusals
        ):  # fmt: skip
            plan.drop("accelerator")
        return
    held = given.get("accelerator")
    now = literal_text(held.value) if held is not None else "None"
    fits = {"gpu": ("'gpu'", "'cuda'", "'auto'"), "cpu": ("'cpu'",), "auto": ("'gpu'", "'auto'"), "tpu": ("'tpu'",)}
    if now == "None" or (held is not None and _named_strategy({"accelerator": held})):
        plan.set("accelerator", f'"{plan.accelerator}"')
    elif now not in fits[plan.accelerator]:
        assert held is not None
        plan.refusals.append(f"accelerator={plan.module.text_of(held.value)} beside it: which device is meant is not shown")


def _ask_how_started(plan: _Plan, given: dict[str, ast.keyword], named: tuple[str, str] | None) -> None:
    plugged = in_plugins(plan.module, given["plugins"].value) if "plugins" in given else None
    decided = named is not None or "strategy" in given or (plugged is not None and plugged.strategy is not None)
    nodes = given.get("num_nodes")
    more_nodes = nodes is not None and literal_text(nodes.value) != "1"
    if not plan.counted:
        plan.doubts.append(TAKES_ALL)
    elif not decided and (plan.several or more_nodes):
        plan.doubts.append(SPAWNED)
    elif not decided and plan.several is None:
        plan.doubts.append(f"of several devices: {SPAWNED}")
