"""Run a proof: before and after on two ranks, both alone, and a trap's naive edit."""

from __future__ import annotations

import atexit
import importlib.util
import json
import math
import os
import re
import shutil
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from packaging.specifiers import SpecifierSet

from codemods.api.findings import Applicability, Finding
from codemods.engine.fix_source import safe, with_unsafe
from codemods.files.text_file import TEXT_KINDS
from ddpfix import catalog, engine
from ddpfix.diagnosis import probe
from ddpfix.diagnosis.probe import Probe
from ddpfix.discovery import Tree
from ddpfix.prove.compare import weights_that_differ
from ddpfix.prove.ranks import TRACER, Ended, Start, run_ranks, spawned
from ddpfix.settings import Settings
from tests.proofs import warm_command
from tests.proofs.expectation import FileCheck, Proof, Run
from tests.proofs.warm import Warm

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "fixtures" / "proofs"
RANKS = 2


def folders() -> list[Path]:
    return sorted(p.parent for p in FOLDER.glob("*/expect.toml"))


# Environments


def base_env() -> dict[str, str]:
    """The tester's own environment without a launcher, a display or a network in it."""
    kept = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "TMPDIR", "LANG", "VIRTUAL_ENV", "LD_LIBRARY_PATH")}
    more = {
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "CUDA_VISIBLE_DEVICES": "",
        "TERM": "dumb",
        "COLUMNS": "200",
    }
    return {**kept, **more}


# what importing a needed package really costs, beyond its own first module
_IMPORTS = {
    "lightning": ["lightning.pytorch"],
    "pytorch_lightning": ["pytorch_lightning"],
    "transformers": ["transformers", "transformers.trainer", "transformers.models.bert.modeling_bert",
                     "transformers.models.gpt2.modeling_gpt2"],
    "accelerate": ["accelerate"],
}  # fmt: skip
_warm: dict[tuple[str, ...], Warm] = {}  # by what watches the ranks, and the modules that are imported
_commands: dict[tuple[str, ...], str] = {}
_lock = threading.Lock()


TORCH = ("torch", "torch._dynamo")  # DistributedDataParallel imports the second: 1.3 s of CPU a rank with torch 2.13


def starter(proof: Proof) -> Start:
    """How the ranks of a proof are started: forked from a process that has its frameworks imported."""
    beforehand = sorted(set(proof.needs) - set(proof.imports_itself))
    modules = (*TORCH, *(m for need in beforehand for m in _IMPORTS.get(need, ())))
    if not proof.own_hashes:
        return forked(*modules)
    return lambda launch, out, err: forked(*modules, copy=int(launch.env.get("RANK", "0")))(launch, out, err)


def forked(*modules: str, copy: int = 0) -> Start:
    """Ranks as forks of a process that has these modules imported; there is one for all tests that ask for the same.

    copy: those of another one hash texts with another seed.
    """
    return spawned if os.environ.get("DDPFIX_PROOFS_COLD") else warm("_ddpfix_tracer", *modules, copy=copy).start


def warm(injected: str, *modules: str, copy: int = 0) -> Warm:
    """The process that has these modules imported, watched by `injected` (`warm.INJECTED`)."""
    with _lock:
        return _ready(injected, modules, copy)


def _ready(injected: str, modules: tuple[str, ...], copy: int) -> Warm:
    key = (injected, *modules, str(copy))
    if key not in _warm:
        more = modules[len(TORCH) :] if modules[: len(TORCH)] == TORCH else ()
        _warm[key] = (
            _ready(injected, TORCH, copy).with_more(more) if more else Warm.begun(modules, base_env(), injected)
        )  # fmt: skip
        if not copy:  # what a program starts itself is forked, too: not watched, or as its environment asks for it
            _warm[key].python = _command("", modules)
        atexit.register(_warm[key].close)
    return _warm[key]


def warm_python(injected: str, *modules: str) -> str:
    """A command to give where a test would give `sys.executable`: its processes have those of these modules that there are."""
    if os.environ.get("DDPFIX_PROOFS_COLD"):
        return sys.executable
    with _lock:
        return _command(injected, tuple(m for m in modules if importlib.util.find_spec(m.partition(".")[0])))


def _command(injected: str, modules: tuple[str, ...]) -> str:
    key = (injected, *modules)
    if key not in _commands:
        folder = tempfile.TemporaryDirectory(prefix="ddpfix-python-")
        atexit.register(folder.cleanup)
        _commands[key] = warm_command.made(Path(folder.name), lambda env: warm(_watching(env) or injected, *modules))
    return _commands[key]


def _watching(env: Mapping[str, str]) -> str:
    """What a Python that starts with this environment would import to be watched, "" for nothing."""
    tracer = str(TRACER) in env.get("PYTHONPATH", "").split(os.pathsep)
    return "_ddpfix_tracer" if tracer and "DDPFIX_INJECTED" not in env else ""


def missing(proof: Proof) -> list[str]:
    gone = [name for name in proof.needs if importlib.util.find_spec(name) is None]
    wanted = {} if gone else proof.versions
    return gone + [f"{name} {wants}" for name, wants in wanted.items() if version(name) not in SpecifierSet(wants)]


# One run


@dataclass(frozen=True, slots=True)
class Seen:
    """A run and what it left in OUT."""

    ended: Ended
    out: Path
    values: tuple[Mapping[str, Any], ...]  # rank-<n>.json

    def output(self) -> str:
        return "".join(r.stdout + r.stderr for r in self.ended.ranks)


def run(proof: Proof, program: Path, out: Path, *, world_size: int) -> Seen:
    """Run the program in the folder `program`; world_size 0 for one process without a launcher."""
    out.mkdir(parents=True)
    env = {**base_env(), "OUT": str(out), **proof.env}
    command = [sys.executable, proof.entry, *proof.arguments]
    ended = run_ranks(
        command, world_size=world_size, cwd=program, env=env, timeout=proof.launch_timeout, start=starter(proof)
    )
    found = [out / f"rank-{rank}.json" for rank in range(max(world_size, 1))]
    return Seen(ended, out, tuple(json.loads(p.read_text()) if p.is_file() else {} for p in found))


def copied(proof: Proof, target: Path) -> Path:
    shutil.copytree(proof.folder, target, ignore=shutil.ignore_patterns("expect.toml", "__pycache__", "out"))
    return target


def tree_of(folder: Path) -> Tree:
    files = tuple(sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()))
    return Tree(folder, files, tuple(f for f in files if f.endswith((".py", *TEXT_KINDS))))


def fixed(proof: Proof, folder: Path) -> tuple[Finding, ...]:
    """Make `folder`, a copy of before, into after: what ddpfix does with that codemod alone, at that level."""
    accept = with_unsafe if proof.level == "unsafe" else safe
    tree = tree_of(folder)
    if proof.probe:
        tree = replace(tree, observed=probed(proof, folder).evidence.observed)
    result = engine.fix(tree, Settings(launched=True), [catalog.lookup(proof.code)], accept)
    for path, data in result.after.items():
        (folder / path).write_bytes(data)
    return result.fixed


def probed(proof: Proof, folder: Path) -> Probe:
    """What `ddpfix probe -- torchrun --nproc_per_node=1 …` sees of the program as one process."""
    out = folder.parent / f"{folder.name}-probe"
    env = {**base_env(), "OUT": str(out), **proof.env}
    out.mkdir()
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=1", proof.entry, *proof.arguments]
    return probe.probe(command, cwd=folder, steps=proof.probe, env=env)


def findings(folder: Path, code: str = "") -> tuple[Finding, ...]:
    """All that ddpfix says of a folder: with every codemod but those for speed, of which only `code` is asked."""
    codemods = [c for c in catalog.all_codemods() if c.topic() != "tuning" or c.code == code]
    return engine.check(tree_of(folder), Settings(launched=True), codemods, use_cache=False).findings


def has_fix(finding: Finding) -> bool:
    return finding.applicability is not Applicability.DISPLAY


# What is asserted: each function returns the sentences that are not true


def wrong(seen: Seen, wanted: Run) -> list[str]:
    """What of `wanted` a run does not show, a sentence each; with its output where something is wrong."""
    ended = seen.ended
    out = [] if ended.outcome == wanted.outcome else [f"it should end as {wanted.outcome}, it ended as {ended.outcome}"]
    if wanted.error and not re.search(wanted.error, "".join(r.stderr for r in ended.ranks)):
        out.append(f"stderr does not hold {wanted.error!r}")
    out += [text for place in wanted.stands_at for text in _not_standing(ended, place)]
    out += _values(seen, wanted)
    lines = [text for _, _, text in ended.lines]
    for text, count in wanted.printed.items():
        if (got := sum(text in line for line in lines)) != count:
            out.append(f"{text!r} should stand in {count} lines, it stands in {got}")
    for name, check in wanted.files.items():
        out += _file(seen.out / name, name, check)
    issued = [c.op for c in ended.traces[0].calls]
    for op, bounds in wanted.collectives.items():
        got = issued.count(op)
        if got < bounds.least or (bounds.most is not None and got > bounds.most):
            out.append(f"rank 0 should issue {op} {bounds.least} to {bounds.most} times, it did {got} times: {issued}")
    if wanted.weights and (wanted.weights == "agree") != (not weights_that_differ(ended.traces)):
        out.append(f"weights should {wanted.weights}")
    if wanted.weights and not all(t.weights for t in ended.traces):
        out.append("no wrapped model was seen at the end")
    if wanted.unused is not None:
        got_unused = tuple(n for u in ended.traces[0].unused.values() for n in u.never)
        if set(got_unused) != set(wanted.unused):
            out.append(f"without gradient: {got_unused}, should be {wanted.unused}")
    return out


def _not_standing(ended: Ended, place: str) -> list[str]:
    file, _, text = place.partition(": ")
    stands = [(r.rank, p) for r in ended.ranks for p in r.stack]
    if any(p.file == file and text.strip() in p.text for _, p in stands):
        return []
    return [f"no rank stands at {place!r}; they stand at {[(n, str(p), p.text) for n, p in stands]}"]


def _values(seen: Seen, wanted: Run) -> list[str]:
    out = []
    for key in (*wanted.differ, *wanted.agree, *wanted.values):
        if any(key not in v for v in seen.values):
            out.append(f"{key!r} is not in every rank-*.json: {seen.values}")
            return out
    for key in wanted.differ:
        if all(same(v[key], seen.values[0][key]) for v in seen.values):
            out.append(f"{key} should differ between the ranks, it is {seen.values[0][key]} on all")
    for key in wanted.agree:
        if not all(same(v[key], seen.values[0][key]) for v in seen.values):
            out.append(f"{key} should agree on all ranks: {[v[key] for v in seen.values]}")
    for key, value in wanted.values.items():
        if not all(same(v[key], value) for v in seen.values):
            out.append(f"{key} should be {value}: {[v[key] for v in seen.values]}")
    return out


def same(a: Any, b: Any) -> bool:
    """Equal; numbers to five places."""
    if isinstance(a, (int, float)) and isinstance(b, (int, float)) and not isinstance(a, bool):
        return math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-5) or (math.isnan(a) and math.isnan(b))
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


def _file(path: Path, name: str, check: FileCheck) -> list[str]:
    if path.exists() != check.exists:
        return [f"{name} should {'' if check.exists else 'not '}be there"]
    if not path.is_file():
        return []
    text = path.read_text(errors="replace")
    rows = text.splitlines()
    out = []
    if check.lines is not None and len(rows) != check.lines:
        out.append(f"{name} should have {check.lines} lines, it has {len(rows)}:\n{text[:500]}")
    if check.text and check.text not in text:
        out.append(f"{name} does not hold {check.text!r}:\n{text[:500]}")
    if check.rows_whole and (not text.endswith("\n") or len({row.count(",") for row in rows}) > 1):
        out.append(f"{name} has torn rows:\n{text[:500]}")
    return out


def differing(before: Seen, after: Seen, names: Sequence[str], *, stdout: bool) -> list[str]:
    """In what two runs on one process are not the same."""
    out = []
    for end, which in ((before.ended, "before"), (after.ended, "after")):
        if end.outcome != "completes":
            out.append(f"{which} does not complete on one process: {end.outcome}\n{end.marked()[-3000:]}")
    if out:
        return out
    if stdout and before.ended.ranks[0].stdout != after.ended.ranks[0].stdout:
        out.append(f"stdout differs:\n{before.ended.ranks[0].stdout[-2000:]}\n---\n{after.ended.ranks[0].stdout[-2000:]}")
    for name in names:
        one, two = before.out / name, after.out / name
        if not (one.is_file() and two.is_file()):
            out.append(f"{name} is not there: before {one.is_file()}, after {two.is_file()}")
        elif one.read_bytes() != two.read_bytes():
            out.append(f"{name} differs:\n{one.read_text(errors='replace')[:500]}\n---\n{two.read_text(errors='replace')[:500]}")
    return out


def ended_by_gloo(seen: Seen) -> bool:
    """Did a process end by the SIGABRT of gloo's threads, behind its last line (`_ddpfix_tracer/groups.py` has the cause)?

    The tracer prevents it in the ranks that it watches; those of a launcher that the program starts itself have no tracer.
    """
    return any("terminate called without an active exception" in r.stderr for r in seen.ended.ranks)


def told(sentences: Sequence[str], seen: Seen) -> str:
    return "\n".join([*sentences, "--- output", seen.ended.marked()[-6000:]]) if sentences else ""
