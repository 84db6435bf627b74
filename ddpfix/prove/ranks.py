"""Run a program as several ranks on this machine, watched, within bounds of time and memory, and leave nothing behind."""

from __future__ import annotations

import os
import re
import secrets
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from ddpfix.prove import spawned as spawning
from ddpfix.prove.environment import devices, free_port, rank_environment
from ddpfix.prove.launchers import of_rank
from ddpfix.prove.streams import Stream
from ddpfix.prove.traces import Place, Trace, read_page, read_stack, read_trace, with_text
from ddpfix.prove.watchdog import Watchdog, memory, pulse

Outcome = Literal["completes", "hang", "error", "timeout", "memory"]
TRACER = Path(__file__).parent / "tracer"
STACK_SIGNAL = getattr(signal, "SIGRTMIN", signal.SIGUSR2) + (9 if hasattr(signal, "SIGRTMIN") else 0)
POLL = 0.05
PARTING = 5.0  # seconds that the process which started the ranks has for its end when one has failed
PARENT = -1  # in the place of a rank: the process that started them

# What gloo and the store say to a rank whose peer has left, or does not come.
LOST_PEER = re.compile(
    r"Connection closed by peer|Connection reset by peer|Broken pipe|Timed out waiting|[Tt]imed out after|Read error|"
    r"op\.preamble\.length|Application timeout caused pair closure|[Ss]ocket closed|wait timeout after|"
    r"Connection was likely closed"
)


@dataclass(frozen=True, slots=True)
class Launch:
    """One process to start."""

    command: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]


class Process(Protocol):
    """What is needed of a started process; `poll` is its exit status, negative for a signal, None while it lives."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None: ...


Start = Callable[[Launch, int, int], Process]  # launch, file descriptors for stdout and stderr


@dataclass(frozen=True, slots=True)
class RankEnd:
    """How a rank ended. status: its own exit status, None where it had to be killed; stack: the user's frames, innermost
    first, at which it stood then; waited: it failed only because another rank had left."""

    rank: int
    status: int | None
    stdout: str
    stderr: str
    stack: tuple[Place, ...] = ()
    waited: bool = False

    @property
    def stood_at(self) -> Place | None:
        return self.stack[0] if self.stack else None


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run of several ranks ended, what each said and did. lines: (rank, stream, text) in the order they came."""

    outcome: Outcome
    ranks: tuple[RankEnd, ...]
    traces: tuple[Trace, ...]
    seconds: float
    lines: tuple[tuple[int, str, str], ...] = field(default=(), repr=False)

    def marked(self) -> str:
        """All output, each line with the rank that wrote it."""
        return "".join(f"[{_who(rank)}] {text}\n" for rank, _, text in self.lines)

    def steps(self) -> int:
        return min((t.steps for t in self.traces), default=0)


def _who(rank: int) -> str:
    return "parent" if rank == PARENT else f"rank {rank}"


def spawned(launch: Launch, stdout: int, stderr: int) -> Process:
    """A process of its own, in a session and process group of its own."""
    return subprocess.Popen(
        launch.command, cwd=launch.cwd, env=dict(launch.env), stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr,
        start_new_session=True,
    )  # fmt: skip


def run_ranks(
    command: Sequence[str],
    *,
    world_size: int,
    cwd: Path,
    env: Mapping[str, str],
    timeout: float,
    steps: int = 0,
    swap: bool = False,
    memory_limit: int = 0,
    gpu: bool = False,
    spawns: bool = False,
    start: Start = spawned,
) -> Ended:
    """Run `command` once for each rank with the environment that torchrun gives, on the CPU; alone for a world size of 0.

    spawns: run it once, as it is: the ranks are the workers that it starts by torch.multiprocessing.spawn.

    env: the environment without what a launcher adds. steps: stop after as many optimizer steps, 0: let it end. swap: gloo
    where NCCL is asked for. memory_limit: bytes that all ranks together may hold, 0 for no limit. gpu: leave the GPUs to be
    seen. start: how a process is started. Raises OSError where the command cannot be started. Every process of the run has
    ended on return.
    """
    with tempfile.TemporaryDirectory(prefix="ddpfix-trace-") as folder:
        run = _Run(Path(folder), cwd, time.monotonic())
        port = free_port()
        try:
            if spawns:
                run.start_parent(start, command, env, world_size, steps, swap)
            for rank in () if spawns else range(max(world_size, 1)):
                full = rank_environment(env, rank, world_size, port) | run.environment(env, rank, steps, swap)
                if gpu:
                    full = {k: v for k, v in full.items() if k != "CUDA_VISIBLE_DEVICES"} | devices(env)
                run.start(start, Launch(of_rank(command, rank), cwd, full), rank)
            outcome = run.watch(timeout, memory_limit)
        finally:
            run.kill()
        return run.ended(outcome)


class _Run:
    """The processes of one run, from the first start to the last kill."""

    def __init__(self, folder: Path, cwd: Path, started: float) -> None:
        self.folder, self.cwd, self.started = folder, cwd, started
        self.id = secrets.token_hex(12)
        self.processes: list[Process] = []
        self.parent: Process | None = None  # that started them, where we have not
        self.status: dict[int, int] = {}  # of those that ended by themselves
        self.stacks: dict[int, tuple[Place, ...]] = {}
        self.streams: list[Stream] = []
        self.lines: list[tuple[int, str, str]] = []
        self.selector = selectors.DefaultSelector()

    def environment(self, env: Mapping[str, str], rank: int, steps: int, swap: bool) -> dict[str, str]:
        path = env.get("PYTHONPATH", "")
        return {
            "DDPFIX_RUN": self.id,
            "DDPFIX_TRACE_FOLDER": str(self.folder),
            "DDPFIX_TRACE_RANK": str(rank),
            "DDPFIX_TRACE_STEPS": str(steps),
            "DDPFIX_TRACE_SWAP": "1" if swap else "",
            **({"ACCELERATE_USE_CPU": "true"} if swap else {}),  # without it, it takes each rank for alone where there is no GPU
            "DDPFIX_TRACE_PYTHONPATH": path,
            "PYTHONPATH": os.pathsep.join(p for p in (str(TRACER), path) if p),
        }

    def start(self, start: Start, launch: Launch, rank: int) -> None:
        self.processes.append(self._started(start, launch, rank))

    def start_parent(
        self, start: Start, command: Sequence[str], env: Mapping[str, str], ranks: int, steps: int, swap: bool
    ) -> None:
        """Start the process that spawns `ranks` workers, and be ready for them."""
        full = spawning.environment(env, self.environment(env, 0, steps, swap), self.folder, ranks)
        for rank in range(ranks):
            for name, mine in zip(("stdout", "stderr"), spawning.pipes(self.folder, rank), strict=True):
                self._read_from(mine, rank, name)
        self.parent = self._started(start, Launch(of_rank(command, 0), self.cwd, full), PARENT)
        self.processes += [spawning.SpawnedRank(self.folder, rank, self.parent) for rank in range(ranks)]

    def _started(self, start: Start, launch: Launch, rank: int) -> Process:
        ends = []
        for name in ("stdout", "stderr"):
            mine, theirs = os.pipe()
            self._read_from(mine, rank, name)
            ends.append(theirs)
        try:
            return start(launch, *ends)
        finally:
            for end in ends:
                os.close(end)

    def _read_from(self, mine: int, rank: int, name: str) -> None:
        os.set_blocking(mine, False)
        stream = Stream(rank, name, os.fdopen(mine, "rb", buffering=0))
        self.streams.append(stream)
        self.selector.register(stream.pipe, selectors.EVENT_READ, stream)

    # Watching

    def watch(self, timeout: float, memory_limit: int) -> Outcome | None:
        """Wait for the end. None where all ended by themselves."""
        dog = Watchdog()
        last_seen = self.started
        while True:
            self.read(POLL)
            live = self.live()
            now = time.monotonic()
            if live:
                last_seen = now
            elif self.parent is None or self.parent.poll() is not None:
                return None
            elif any(self.status.values()) and now - last_seen > PARTING:
                return None  # it waits for something of a rank that has failed
            if now - self.started > timeout:
                return self.stopped_as("timeout")
            if memory_limit and sum(memory(self.processes[r].pid) for r in live) > memory_limit:
                return self.stopped_as("memory")
            pulses = [pulse(self.processes[r].pid, read_page(self.folder, r)) for r in live]
            if dog.hangs(now, pulses, failed=any(self.status.values())):
                return self.stopped_as("hang")

    def live(self) -> list[int]:
        for rank, process in enumerate(self.processes):
            if rank not in self.status and (status := process.poll()) is not None:
                self.status[rank] = status
        return [r for r in range(len(self.processes)) if r not in self.status]

    def read(self, wait: float) -> bool:
        """Take what the ranks have written; False where there was nothing."""
        if not self.selector.get_map():
            time.sleep(wait)
            return False
        ready = self.selector.select(wait)
        for key, _ in ready:
            stream: Stream = key.data
            data = stream.pipe.read(1 << 16)
            if data:
                self.lines += [(stream.rank, stream.name, line) for line in stream.take(data)]
            elif data is not None:
                self.selector.unregister(stream.pipe)
        return bool(ready)

    def stopped_as(self, outcome: Outcome) -> Outcome:
        """Ask each live rank where it stands, before it is killed.

        All are held while they are asked: the question ends a rank whose handler is gone (Lightning's `fit` takes it off), and
        one that waits for that rank would go on with the error of a lost peer before its own turn comes.
        """
        asked = {rank: self.processes[rank].pid for rank in self.live()}
        for pid in asked.values():
            _quietly(os.kill, pid, signal.SIGSTOP)
        for rank, pid in asked.items():
            if (self.folder / f"stacks-{rank}.txt").exists():  # the signal ends a process that does not wait for it
                _quietly(os.kill, pid, STACK_SIGNAL)
        for pid in asked.values():
            _quietly(os.kill, pid, signal.SIGCONT)
        until = time.monotonic() + 1.0
        while time.monotonic() < until:
            self.read(POLL)
            for rank in self.live():
                self.stacks[rank] = read_stack(self.folder, read_trace(self.folder, rank), self.cwd)
            if all(self.stacks.get(r) for r in self.live()):
                break
        return outcome

    # The end

    def kill(self) -> None:
        """End every process of the run, in its groups and outside of them, and take what they still wrote."""
        self.live()
        processes = [*([self.parent] if self.parent else []), *self.processes]  # the workers are in its group
        for process in processes:  # first all are held: a rank whose peer is gone would say so, and show a hang as an error
            _quietly(os.killpg, process.pid, signal.SIGSTOP)
        for process in processes:
            _quietly(os.killpg, process.pid, signal.SIGKILL)
            if process.poll() is None:
                _quietly(os.kill, process.pid, signal.SIGKILL)
        for pid in strays(self.id):
            _quietly(os.kill, pid, signal.SIGKILL)
        until = time.monotonic() + 5
        while time.monotonic() < until and any(p.poll() is None for p in processes):
            time.sleep(0.01)
        until = time.monotonic() + 1
        while self.selector.get_map() and time.monotonic() < until:
            if not self.read(0.02) and all(p.poll() is not None for p in processes):
                break
        for stream in self.streams:
            if stream.open_line:
                self.lines.append((stream.rank, stream.name, stream.open_line.decode(errors="replace")))
            stream.pipe.close()
        self.selector.close()

    def ended(self, stopped: Outcome | None) -> Ended:
        if self.parent and not stopped and not any(self.status.values()) and (status := self.parent.poll()):
            self.status[0] = status  # before it started a rank, or after all of them
        traces = tuple(read_trace(self.folder, rank) for rank in range(len(self.processes)))
        ranks = tuple(self._rank_end(rank, traces[rank]) for rank in range(len(self.processes)))
        return Ended(_outcome(stopped, ranks), ranks, traces, time.monotonic() - self.started, tuple(self.lines))

    def _rank_end(self, rank: int, trace: Trace) -> RankEnd:
        stdout, stderr = (s.text() for s in self.streams if s.rank == rank)
        status = self.status.get(rank)
        if self.parent:
            status = None if status == spawning.LEFT else status
            if status and not stderr:
                stderr = next(s.text() for s in self.streams if (s.rank, s.name) == (PARENT, "stderr"))
        # Lightning's fit gives every signal back to what Python knows of it at its end: our question for the stack is then a kill
        asked = status == -STACK_SIGNAL and trace.waiting
        status = None if asked else status
        waited = bool(status) and _lost_a_peer(status or 0, trace, stderr)
        stack = self.stacks.get(rank, ())
        if (waited or asked) and not stack and trace.calls and (at := trace.calls[-1].at):
            stack = (with_text(at, self.cwd),)
        return RankEnd(rank, status, stdout, stderr, stack, waited)


def _lost_a_peer(status: int, trace: Trace, stderr: str) -> bool:
    """True where the last collective of a rank failed for want of the others, or met another one of theirs."""
    if not LOST_PEER.search(stderr[-20_000:]) or not trace.calls:
        return False
    # gloo aborts the process where the sizes do not match: no exception is seen, the collective was never left
    return bool(LOST_PEER.search(trace.calls[-1].raised)) or (status == -signal.SIGABRT and trace.waiting)


def _outcome(stopped: Outcome | None, ranks: Sequence[RankEnd]) -> Outcome:
    """A rank's own error comes before the waiting of the others; one that failed only by waiting has hung."""
    if any(r.status and not r.waited for r in ranks):
        return "error"
    if stopped is not None:
        return stopped
    return "hang" if any(r.waited for r in ranks) else "completes"


def _quietly(call: Callable[[int, int], None], pid: int, number: int) -> None:
    try:
        call(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def strays(run_id: str) -> list[int]:
    """Processes that a run has started and that left its process groups: they carry its id in their environment."""
    mark = f"DDPFIX_RUN={run_id}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in entry.read_bytes().split(b"\0"):
                found.append(int(entry.parent.name))
        except OSError:
            continue
    return found

