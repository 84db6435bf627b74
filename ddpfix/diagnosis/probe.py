"""Run the user's own training command as one process, watched from inside, and keep what was seen of unused parameters."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from codemods.api.evidence import EvidenceFile, Observed, to_json
from ddpfix.discovery import find_root
from ddpfix.prove.environment import free_port, rank_environment
from ddpfix.prove.launchers import Training, as_installed, of_rank, understood
from ddpfix.prove.ranks import TRACER

INJECTED = Path(__file__).parent / "injected"
PATIENCE = 20.0  # seconds for the program after Ctrl-C
SHARES = (0.01, 0.05, 0.10)  # of the steps in which a rare branch might be taken
FRAMEWORKS = {
    "torch": "DistributedDataParallel",
    "Lightning": "Lightning's Trainer",
    "transformers": "the Trainer of transformers",
    "Accelerate": "Accelerate",
}


class CannotProbe(Exception):
    """A command that cannot be run: what, why, what to do."""

    def __init__(self, what: str, why: str, todo: str) -> None:
        self.what, self.why, self.todo = what, why, todo
        super().__init__(f"{what}: {why}")


@dataclass(frozen=True, slots=True)
class Probe:
    """What was seen. status: how the program ended, negative for a signal. stopped: the probe ended it after its steps.

    started: the program's Python loaded the hook. idle: wrapped models that no backward pass led to. evidence: a row a model.
    """

    status: int
    stopped: bool
    started: bool
    evidence: EvidenceFile
    idle: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def crashed(self) -> bool:
        return self.status != 0 and not self.stopped

    @property
    def exit_status(self) -> int:
        """The program's own, as a shell gives it; 0 where the probe ended it."""
        if self.stopped:
            return 0
        return self.status if self.status >= 0 else 128 - self.status


def chances(steps: int) -> tuple[tuple[float, float], ...]:
    """(p, the chance that a branch taken in a share p of the steps was never seen in so many), p of SHARES."""
    return tuple((p, (1 - p) ** steps) for p in SHARES)


def probe(command: Sequence[str], *, cwd: Path, steps: int = 50, env: Mapping[str, str] | None = None) -> Probe:
    """Run `command` in `cwd` with this process's own streams until every wrapped model had `steps` steps, or to its end.

    env: the environment in place of this process's own. Raises CannotProbe.
    """
    try:
        training = understood(command)
    except ValueError as error:
        raise CannotProbe("the command is not understood", str(error), "Give it after `--`: -- python train.py") from error
    with tempfile.TemporaryDirectory(prefix="ddpfix-probe-") as folder:
        environment = _environment(training, dict(os.environ if env is None else env), folder, steps)
        status = _run(of_rank(as_installed(training, environment).command, 0), cwd, environment)
        rows = _rows(Path(folder) / "trace-0.jsonl")
    return _probe(rows, status, command, find_root(cwd), training)


def write(found: Probe, out: Path) -> None:
    """The evidence file. Raises OSError."""
    out.write_text(to_json(found.evidence), encoding="utf-8")


# Running


def _environment(training: Training, env: dict[str, str], folder: str, steps: int) -> dict[str, str]:
    """`env` with the hook on the path, one GPU where there are several, and what torchrun sets where the command names it."""
    env |= dict(training.settings)
    if training.launcher:
        seen = env.get("CUDA_VISIBLE_DEVICES")
        env = {**rank_environment(env, 0, 1, free_port()), "CUDA_VISIBLE_DEVICES": seen or "0"}
        if seen == "":
            env["CUDA_VISIBLE_DEVICES"] = ""
    env["CUDA_VISIBLE_DEVICES"] = env.get("CUDA_VISIBLE_DEVICES", "0").partition(",")[0]
    path = env.get("PYTHONPATH", "")
    return env | {
        "DDPFIX_INJECTED": "_ddpfix_probe",
        "DDPFIX_PROBE_FOLDER": folder,
        "DDPFIX_PROBE_STEPS": str(steps),
        "DDPFIX_TRACE_PYTHONPATH": path,
        "PYTHONPATH": os.pathsep.join(p for p in (str(TRACER), str(INJECTED), path) if p),
    }


def _run(command: Sequence[str], cwd: Path, env: Mapping[str, str]) -> int:
    if shutil.which(command[0], path=env.get("PATH")) is None and not (cwd / command[0]).is_file():
        raise CannotProbe(f"{command[0]} cannot be run", "it is not there", "Give the command as you give it in this folder.")
    try:
        process = subprocess.Popen(command, cwd=cwd, env=dict(env))
    except OSError as error:
        raise CannotProbe(f"{command[0]} cannot be run", str(error), "Give the command as you give it here.") from error
    try:
        return process.wait()
    except KeyboardInterrupt:  # it reaches the program as well, which ends in its own way, if it does so soon
        try:
            return process.wait(PATIENCE)
        except (KeyboardInterrupt, subprocess.TimeoutExpired):
            return -signal.SIGKILL
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _rows(path: Path) -> list[dict[str, Any]]:
    try:
        lines = path.read_bytes().splitlines()
    except OSError:
        return []
    out = []
    for line in lines:
        try:
            out.append(json.loads(line))
        except ValueError:  # the last line of a program that was killed
            continue
    return out


# Reading


@dataclass
class _Model:
    """One wrapped model, as its rows are read."""

    name: str
    framework: str
    places: list[tuple[str, int]] = field(default_factory=list)
    flag: bool | None = None
    static_graph: bool | None = None
    stand_in: bool = False
    steps: int = 0
    missing: Counter[str] = field(default_factory=Counter)
    outputs: Counter[str] = field(default_factory=Counter)
    aside: set[str] = field(default_factory=set)
    hidden: bool = False


def _probe(rows: Sequence[Mapping[str, Any]], status: int, command: Sequence[str], root: Path, training: Training) -> Probe:
    models: dict[int, _Model] = {}
    for row in rows:
        if row["t"] == "wrap":
            model = models.setdefault(row["model"], _Model(row["name"], row["framework"]))
            model.framework = row["framework"]
            model.places = [(_below(p[0], root), p[1]) for p in row["places"]]
            model.flag = model.flag if row["flag"] is None else row["flag"]
            model.static_graph = model.static_graph if row["static_graph"] is None else row["static_graph"]
            model.stand_in = model.stand_in or row["stand_in"]
        elif row["t"] == "step":
            model = models[row["model"]]
            model.steps += 1
            model.missing.update(row["missing"])
            model.outputs.update(row["outputs"])
            model.aside |= set(row["aside"])
            model.hidden = model.hidden or row["hidden"]
    versions: dict[str, str] = {}
    for row in rows:
        if row["t"] == "versions":
            versions = {"python": row["python"], **row["versions"]}
    notes = dict.fromkeys(r["text"] for r in rows if r["t"] == "note")
    if training.launcher:
        notes[f"{training.launcher} was left out: the program was started as one process"] = None
    observed = tuple(_observed(m) for m in models.values() if m.steps)
    evidence = EvidenceFile(observed, _told_command(command), versions, _base(root))
    return Probe(
        status,
        any(r["t"] == "stopped" for r in rows),
        any(r["t"] == "start" for r in rows),
        evidence,
        tuple(f"{m.name} ({FRAMEWORKS[m.framework]})" for m in models.values() if not m.steps),
        tuple(notes),
    )


def _observed(model: _Model) -> Observed:
    never = tuple(n for n, times in model.missing.items() if times == model.steps)
    sometimes = tuple(n for n, times in model.missing.items() if times < model.steps)
    outputs = tuple(name for name, times in model.outputs.items() if times)
    return Observed(
        kind="probe",
        file="",
        text=_text(model, never, sometimes),
        parameters=(*never, *sometimes),
        places=tuple(model.places),
        framework=model.framework,
        model=model.name,
        steps=model.steps,
        never=never,
        sometimes=sometimes,
        counts=tuple(model.missing.items()),
        outputs=outputs,
        flag=model.flag,
        static_graph=model.static_graph,
        missed=chances(model.steps),
        reentrant=model.hidden,
    )


def _text(model: _Model, never: Sequence[str], sometimes: Sequence[str]) -> str:
    steps = f"{model.steps} step{'s' if model.steps != 1 else ''}"
    if not never and not sometimes:
        text = f"every parameter of {model.name} had a path to the loss in each of {steps} (a branch taken in "
        return text + ", ".join(f"{p:.0%}" for p, _ in chances(model.steps)) + " of the steps would have been missed with " + (
            ", ".join(f"{c:.1%}" for _, c in chances(model.steps)) + ")"
        )
    parts = []
    if never:
        parts.append(f"{short(never)} of {model.name} had no path to the loss in any of {steps}")
    if sometimes:
        most = max(model.missing[n] for n in sometimes)
        least = min(model.missing[n] for n in sometimes)
        often = f"{least}" if least == most else f"{least} to {most}"
        parts.append(f"{short(sometimes)} of {model.name} had none in {often} of {steps}")
    aside = [n for n in (*never, *sometimes) if n in model.aside]
    if aside:
        names = ", ".join(list(model.outputs)[:3])
        parts.append(f"{short(aside)} led only to what the loss does not use ({names})")
    return "; ".join(parts)


def short(names: Sequence[str], most: int = 4) -> str:
    """Parameters by their modules: `aux (2 parameters), mask_token`."""
    groups = Counter(n.rpartition(".")[0] or n for n in names)
    shown = [f"{g} ({k} parameters)" if k > 1 else next(n for n in names if (n.rpartition(".")[0] or n) == g)
             for g, k in groups.items()]  # fmt: skip
    return ", ".join(shown[:most]) + (f" and {len(shown) - most} more" if len(shown) > most else "")


def _below(path: str, root: Path) -> str:
    """A file as the project names it; as it is where it lies elsewhere."""
    full = Path(path).resolve()
    return full.relative_to(root).as_posix() if full.is_relative_to(root) else str(full)


def _told_command(command: Sequence[str]) -> str:
    import shlex

    return shlex.join(Path(w).name if os.path.isabs(w) else w for w in command)


def _base(root: Path) -> str:
    """The commit that the program stood at, "" where there is none."""
    from ddpfix import git

    try:
        return git.snapshot(root).base if (root / ".git").exists() else ""
    except git.GitRefusal:
        return ""
