"""Where a model is made ready for several processes: DistributedDataParallel, Lightning, transformers' Trainer, Accelerate."""

from __future__ import annotations

import functools
import string
import sys
from collections.abc import Callable
from typing import Any

from _ddpfix_tracer import call_sites, models, recorder

from _ddpfix_probe import one_process, steps

_training: list[tuple[str, list[Any], Any]] = []  # the trainers at work: framework, places, the trainer
_made: dict[int, list[Any]] = {}  # of a trainer, its arguments or an accelerator: the user's line that made it


# torch


def _torch(module: Any) -> None:
    models.hook(module, init=_watched_init, forward=_watched_forward, backward=steps.watched_backward)
    one_process.patch_wrapper(module.DistributedDataParallel)


def _watched_init(init: Any) -> Any:
    @functools.wraps(init)
    def call(self: Any, module: Any, *args: Any, **kwargs: Any) -> None:
        if not recorder.recording():
            init(self, module, *args, **kwargs)
            return
        given = one_process.named(init, args, kwargs)
        alone = one_process.make_stand_in(self, module, given)
        if not alone:
            init(self, module, *args, **kwargs)
        framework, places = _training[-1][:2] if _training else ("torch", [])
        flag = bool(given.get("find_unused_parameters", False))
        static = bool(given.get("static_graph", False))
        places = [*places, steps.here()]
        try:
            steps.register(module, framework, places, flag=flag, static_graph=static, stand_in=alone)
        except Exception as error:
            recorder.write("note", text="a wrap is not watched: %s" % error)

    return call


def _watched_forward(forward: Any) -> Any:
    @functools.wraps(forward)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        model = steps.entered(self)
        run = one_process.forward if one_process.is_stand_in(self) else forward
        out = run(self, *args, **kwargs)
        steps.left(model, out)
        return out

    return call


# A module without a wrapper: what Accelerate and the Trainer of transformers train with where there is one process


_NOTHING = string.Formatter().check_unused_args  # takes three arguments and does nothing, in any Python that unpickles it


class Before:
    """A hook before the forward. Copies of the module are no wrapped models; in a pickle of it the hook does nothing."""

    def __call__(self, module: Any, _: Any) -> None:
        steps.entered(module)

    def __deepcopy__(self, _: Any) -> Before:
        return self

    def __reduce__(self) -> Any:
        return functools.partial, (_NOTHING, None)


class After:
    """The same after the forward."""

    def __call__(self, module: Any, _: Any, out: Any) -> None:
        steps.left(steps.known(module), out)

    def __deepcopy__(self, _: Any) -> After:
        return self

    def __reduce__(self) -> Any:
        return functools.partial, (_NOTHING,)


def _watch_module(model: Any) -> None:
    if not any(isinstance(h, Before) for h in model.module._forward_pre_hooks.values()):
        model.module.register_forward_pre_hook(Before())
        model.module.register_forward_hook(After())


# Accelerate


def _accelerate(module: Any) -> None:
    cls = module.Accelerator
    _remember_makers(cls)
    prepare = cls.prepare_model

    @functools.wraps(prepare)
    def prepare_model(self: Any, model: Any, *args: Any, **kwargs: Any) -> Any:
        out = prepare(self, model, *args, **kwargs)
        evaluated = kwargs.get("evaluation_mode", args[1] if len(args) > 1 else False)
        if recorder.recording() and not evaluated:
            steps.quietly(_prepared, self, out)
        return out

    cls.prepare_model = prepare_model


def _prepared(accelerator: Any, out: Any) -> None:
    handler = getattr(accelerator, "ddp_handler", None)
    framework, places = _training[-1][:2] if _training else ("Accelerate", _places(accelerator, handler))
    flag = getattr(handler, "find_unused_parameters", None) if handler is not None and not _training else None
    static = getattr(handler, "static_graph", None) if handler is not None else None
    given = flag if flag is None else bool(flag)
    _watch_module(steps.register(out, framework, [*places, steps.here()], flag=given, static_graph=static))


def _accelerate_arguments(module: Any) -> None:
    _remember_makers(module.DistributedDataParallelKwargs)


# transformers


def _transformers(module: Any) -> None:
    cls = module.Trainer
    _remember_makers(cls)
    train = cls.train

    @functools.wraps(train)
    def watched(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not recorder.recording():
            return train(self, *args, **kwargs)
        _training.append(("transformers", [*_places(self, getattr(self, "args", None)), steps.here()], self))
        try:
            steps.quietly(_trained_by_transformers, self)
            return train(self, *args, **kwargs)
        finally:
            del _training[-1]

    cls.train = watched


def _trained_by_transformers(trainer: Any) -> None:
    if getattr(trainer, "model", None) is not None:
        arguments = trainer.args
        flag = getattr(arguments, "ddp_find_unused_parameters", None)
        static = getattr(arguments, "ddp_static_graph", None)
        _watch_module(steps.register(trainer.model, "transformers", _training[-1][1], flag=flag, static_graph=static))


def _transformers_arguments(module: Any) -> None:
    _remember_makers(module.TrainingArguments)


# Lightning


def _lightning(module: Any) -> None:
    cls = module.Trainer
    one_process.patch_lightning(cls)
    _remember_makers(cls)
    fit = cls.fit

    @functools.wraps(fit)
    def watched(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not recorder.recording():
            return fit(self, *args, **kwargs)
        strategy = getattr(self, "strategy", None)
        _training.append(("Lightning", [*_places(self, strategy), steps.here()], self))
        try:
            return fit(self, *args, **kwargs)
        finally:
            del _training[-1]

    cls.fit = watched


def _lightning_strategy(module: Any) -> None:
    for cls in [c for c in vars(module).values() if isinstance(c, type) and c.__module__ == module.__name__]:
        step = vars(cls).get("training_step")
        if step is not None:
            setattr(cls, "training_step", _watched_training_step(step))  # noqa: B010 - a type knows no such attribute
        if cls.__name__ == "DDPStrategy":
            _remember_makers(cls)


def _watched_training_step(step: Any) -> Any:
    @functools.wraps(step)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        model = _trained_by_lightning(self) if recorder.recording() else None
        out = step(self, *args, **kwargs)
        steps.left(model, out)
        return out

    return call


def _trained_by_lightning(strategy: Any) -> Any:
    module = getattr(strategy, "lightning_module", None)
    if module is None:
        return None
    model = steps.known(module)
    if model is None or model.framework != "Lightning":
        asked = getattr(strategy, "_ddp_kwargs", None)
        flag = bool(asked.get("find_unused_parameters", False)) if isinstance(asked, dict) else None
        static = bool(asked.get("static_graph", False)) if isinstance(asked, dict) else None
        places = _training[-1][1] if _training else []
        steps.quietly(lambda: steps.register(module, "Lightning", places, flag=flag, static_graph=static))
    return steps.entered(module)


# Who made what


def _remember_makers(cls: Any) -> None:
    init = cls.__init__

    @functools.wraps(init)
    def call(self: Any, *args: Any, **kwargs: Any) -> None:
        if recorder.recording():
            steps.quietly(_remember, self)
        init(self, *args, **kwargs)

    cls.__init__ = call


def _remember(made: Any) -> None:
    """The user's line that makes the object: not one of its own constructors on the way."""
    frame: Any = sys._getframe(3)
    while frame is not None:
        code = frame.f_code
        own = code.co_name == "__init__" and frame.f_locals.get(code.co_varnames[0] if code.co_varnames else "") is made
        if not own and call_sites.is_users(code.co_filename):
            _made[id(made)] = [code.co_filename, frame.f_lineno, code.co_name]
            return
        frame = frame.f_back


def _places(*objects: Any) -> list[Any]:
    return [_made[id(o)] for o in objects if o is not None and id(o) in _made]


PATCHES: dict[str, Callable[[Any], None]] = {
    "torch.nn.parallel.distributed": _torch,
    "accelerate.accelerator": _accelerate,
    "accelerate.utils.dataclasses": _accelerate_arguments,
    "transformers.trainer": _transformers,
    "transformers.training_args": _transformers_arguments,
    "lightning.pytorch.trainer.trainer": _lightning,
    "pytorch_lightning.trainer.trainer": _lightning,
    "lightning.pytorch.strategies.strategy": _lightning_strategy,
    "pytorch_lightning.strategies.strategy": _lightning_strategy,
    "lightning.pytorch.strategies.ddp": _lightning_strategy,
    "pytorch_lightning.strategies.ddp": _lightning_strategy,
}
