"""The steps of each wrapped model: from one forward to the next, and what the backward passes between them lead to.

That is the span in which DistributedDataParallel waits for the gradient of every parameter.
"""

from __future__ import annotations

import atexit
import functools
import os
import sys
import threading
from typing import Any

from _ddpfix_tracer import call_sites, recorder

from _ddpfix_probe import graph

PATIENCE = 30.0  # seconds for the program's own way out
_WRAPPERS = ("_LightningModuleWrapperBase", "_LightningPrecisionModuleWrapperBase")  # Lightning 1 puts them into the wrap

_models: dict[int, Model] = {}
_most = 50
_depth = 0  # backward passes under way: a reentrant checkpoint runs one inside of another, perhaps on another thread
_stops = 0


class Step:
    """What is known of a step that is not over."""

    def __init__(self) -> None:
        self.outputs: list[tuple[str, Any]] = []
        self.used: set[str] = set()
        self.reached: set[int] = set()
        self.passes = 0
        self.hidden = False


class Model:
    """A wrapped model, by the module inside of the wrapper, and the parameters that require a gradient when it is wrapped.

    The wrapper waits for those, also where they are frozen later: torch 2.13, two processes.
    """

    def __init__(self, module: Any) -> None:
        self.module = module  # held: its id must stay its own
        ignored = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        self.parameters = [(n, p) for n, p in module.named_parameters() if p.requires_grad and n not in ignored]
        self.number = len(_models)
        self.framework = ""
        self.places: list[list[Any]] = []
        self.step: Step | None = None
        self.steps = 0
        self.each_backward = False

    def enter(self) -> None:
        """A forward begins."""
        if self.step is not None and self.step.passes:
            self.finish()
        if self.step is None:
            self.step = Step()

    def leave(self, out: Any) -> None:
        """A forward has returned `out`."""
        if self.step is not None and not self.step.passes:
            self.step.outputs = [(n, t.grad_fn) for n, t in graph.outputs(out) if t.grad_fn is not None]

    def finish(self) -> None:
        step, self.step = self.step, None
        if step is None or not step.passes:
            return
        self.steps += 1
        missing = [n for n, p in self.parameters if id(p) not in step.reached]
        left = [] if step.hidden else [(n, fn) for n, fn in step.outputs if n not in step.used]
        behind: set[int] = graph.walk([fn for _, fn in left])[1] if left and missing else set()
        aside = [n for n, p in self.parameters if id(p) in behind and id(p) not in step.reached]
        names = [n for n, _ in left]
        recorder.write(
            "step", model=self.number, n=self.steps, missing=missing, outputs=names, aside=aside, hidden=step.hidden
        )  # fmt: skip


def begin(most: int) -> None:
    """most: the steps after which the program is ended."""
    global _most
    _most = most
    atexit.register(_end)


def _end() -> None:
    if recorder.recording():
        for model in list(_models.values()):
            model.finish()
        write_versions()
        recorder.write("end")


def write_versions() -> None:
    """Of what the program runs with."""
    names = ("torch", "lightning", "pytorch_lightning", "transformers", "accelerate", "peft")
    found = {n: str(getattr(sys.modules[n], "__version__", "")) for n in names if n in sys.modules}
    recorder.write("versions", versions={k: v for k, v in found.items() if v}, python=sys.version.split()[0])


def inner_of(module: Any) -> Any:
    """The user's model: without DistributedDataParallel, DataParallel and what Lightning 1 and torch.compile put around it."""
    for _ in range(8):
        if type(module).__name__ in (*_WRAPPERS, "DistributedDataParallel", "DataParallel", "OptimizedModule"):
            inner = getattr(module, "_orig_mod", None) or getattr(module, "module", None)
            inner = inner if inner is not None else getattr(module, "_forward_module", None)
            if inner is None:
                break
            module = inner
        else:
            break
    return module


def register(
    module: Any, framework: str, places: list[Any], *, flag: Any = None, static_graph: Any = None, stand_in: bool = False
) -> Model:  # fmt: skip
    """Note that `module` is wrapped, at `places` of the user's; a framework around DDP is told rather than DDP."""
    inner = inner_of(module)
    model = _models.get(id(inner))
    if model is None:
        model = _models[id(inner)] = Model(inner)
    if not model.framework or framework != "torch":
        model.framework = framework
    if framework == "Lightning":
        model.each_backward = not getattr(inner, "automatic_optimization", True)
    for place in (_absolute(p) for p in places if p):
        if place not in model.places:
            model.places.append(place)
    recorder.write(
        "wrap", model=model.number, name=type(inner).__qualname__, module=type(inner).__module__,
        framework=model.framework, places=model.places, flag=flag, static_graph=static_graph, stand_in=stand_in,
        parameters=len(model.parameters),
    )  # fmt: skip
    return model


def known(module: Any) -> Model | None:
    return _models.get(id(inner_of(module))) if recorder.recording() else None


def here() -> list[Any] | None:
    """The user's line that is being run."""
    place: list[Any] | None = call_sites.user_frame()[0]
    return place


def _absolute(place: list[Any]) -> list[Any]:
    return [os.path.abspath(place[0]), place[1], place[2]]


# Forward and backward


def entered(module: Any) -> Model | None:
    """A forward of a wrapped model begins; None where it is not watched. Ends the program after the last step."""
    import torch

    model = known(module)
    if model is None or not torch.is_grad_enabled():
        return None
    quietly(model.enter)
    if done():
        stop()
    return model


def left(model: Model | None, out: Any) -> None:
    if model is not None:
        quietly(model.leave, out)


def done() -> bool:
    """True once every model that takes part has had its steps; one that is seldom trained is not waited for for ever."""
    had = [m.steps for m in _models.values() if m.steps]
    return bool(had) and (min(had) >= _most or max(had) >= 5 * _most)


def stop() -> None:
    """End the program in its own way: what it has in `finally` and at exit is run."""
    global _stops
    _stops += 1
    if _stops == 1:
        write_versions()
        recorder.write("stopped")
        timer = threading.Timer(PATIENCE, leave_at_once)
        timer.daemon = True
        timer.start()
    if _stops > 3:  # somebody catches it
        leave_at_once()
    raise SystemExit(0)


def leave_at_once() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass
    os._exit(0)


def watched_backward(backward: Any) -> Any:
    """torch.autograd.backward, with a look at the graph before it."""

    @functools.wraps(backward)
    def call(tensors: Any, *args: Any, **kwargs: Any) -> Any:
        global _depth
        looks = Look(tensors, kwargs.get("inputs")) if not _depth and recorder.recording() else None
        _depth += 1
        try:
            out = backward(tensors, *args, **kwargs)
        finally:
            _depth -= 1
        if looks is not None:
            quietly(looks.after)
        return out

    return call


class Look:
    """One backward pass: what the graph shows before it, and where the graph is hidden, what the gradients show after it."""

    def __init__(self, tensors: Any, only: Any) -> None:
        self.open = [m for m in list(_models.values()) if m.step is not None]
        self.before: dict[int, Any] = {}
        self.hidden = False
        self.nodes: set[Any] = set()
        self.leaves: set[int] = set()
        if self.open:
            quietly(self.walk, tensors, only)

    def walk(self, tensors: Any, only: Any) -> None:
        roots = list(tensors) if isinstance(tensors, (list, tuple)) else [tensors]
        self.nodes, self.leaves, self.hidden = graph.walk([t.grad_fn for t in roots])
        self.leaves |= {id(t) for t in roots if t.grad_fn is None}
        if only is not None:
            self.leaves &= {id(t) for t in (only if isinstance(only, (list, tuple)) else [only])}
        if self.hidden:
            for model in self.open:
                self.before.update((id(p), _state(p)) for _, p in model.parameters if id(p) not in self.leaves)

    def after(self) -> None:
        for model in self.open:
            step = model.step
            if step is None:
                continue
            ids = {id(p) for _, p in model.parameters}
            hit = ids & self.leaves
            if self.hidden:
                hit |= {id(p) for _, p in model.parameters if id(p) in self.before and _state(p) != self.before[id(p)]}
            if not hit:
                continue
            step.reached |= hit
            step.passes += 1
            step.hidden = step.hidden or self.hidden
            step.used |= {name for name, fn in step.outputs if fn in self.nodes}
            if model.each_backward:
                model.finish()
                model.step = Step()


def _state(parameter: Any) -> Any:
    """What tells a gradient that was there before from one that was added to."""
    grad = parameter.grad
    return None if grad is None else (id(grad), grad._version)


def quietly(call: Any, *args: Any) -> None:
    """Call; an error is a note, never the user's."""
    try:
        call(*args)
    except Exception as error:
        recorder.write("note", text="a step is not seen: %s: %s" % (type(error).__name__, error))
