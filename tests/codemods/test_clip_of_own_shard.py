from __future__ import annotations

import pytest

from codemods.engine.fix_source import with_unsafe
from codemods.sync.clip_of_own_shard import ClipOfOwnShard
from ddpfix.testing import check_nothing, check_told, check_transformed, fix

RULE = ClipOfOwnShard
HEAD = """
import torch
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, ShardingStrategy, fully_shard
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.nn.utils import clip_grad_norm_

"""
CLIP = "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)"


def step(*lines: str, parameters: str = "net, batch, options") -> str:
    return f"{HEAD}\ndef step({parameters}):\n" + "".join(f"    {line}\n" for line in lines)


def test_example_of_the_page() -> None:
    sections = RULE.sections()
    before, after = (sections[n].removeprefix("```python\n").removesuffix("```") for n in ("Example", "Use instead"))
    check_transformed(RULE, before, after, unsafe=True)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (CLIP, "model.clip_grad_norm_(1.0)"),
        ("norm = clip_grad_norm_(model.parameters(), max_norm=1.0)", "norm = model.clip_grad_norm_(max_norm=1.0)"),
        ("clip_grad_norm_(parameters=model.parameters(), max_norm=2.0)", "model.clip_grad_norm_(max_norm=2.0)"),
        ("clip_grad_norm_(model.parameters(), 1.0, 1.0)", "model.clip_grad_norm_(1.0, 1.0)"),
    ],
)
@pytest.mark.parametrize("strategy", ["", ", sharding_strategy=ShardingStrategy.SHARD_GRAD_OP", ", use_orig_params=True"])
def test_the_method_of_the_wrapper(before: str, after: str, strategy: str) -> None:
    above = (f"model = FSDP(net{strategy})", "model(batch).sum().backward()")
    assert step(*above, after).partition("def step")[2] in fixed(step(*above, before))


def fixed(source: str) -> str:
    (text,) = fix(RULE, source, accept=with_unsafe).changed.values()
    return text.decode()


def test_a_model_that_the_caller_hands_over() -> None:
    source = step("model(batch).sum().backward()", CLIP, parameters="model, batch")
    wrapped = source + "\n\ndef main(net, batch):\n    wrapped = FSDP(net)\n    step(wrapped, batch)\n"
    assert "    model.clip_grad_norm_(1.0)\n" in fixed(wrapped)
    check_told(RULE, wrapped + "    step(net, batch)\n", reason="no other model has that method")
    check_nothing(RULE, source + "\n\ndef main(net, batch):\n    step(DDP(net), batch)\n")


def test_a_model_that_a_function_wraps() -> None:
    wrap = "\n\ndef wrap(net, options):\n    model = FSDP(net, use_orig_params=True)\n    return model\n"
    assert "    model.clip_grad_norm_(1.0)\n" in fixed(step("model = wrap(net, options)", CLIP) + wrap)
    either = wrap.replace("    model =", "    if options.plain:\n        return net\n    model =")
    check_told(RULE, step("model = wrap(net, options)", CLIP) + either, reason="no other model has that method")
    check_nothing(RULE, step("model = wrap(net, options)", CLIP) + wrap.replace("FSDP(net, use_orig_params=True)", "DDP(net)"))


def test_a_model_that_is_compiled_behind_the_wrap() -> None:
    check_told(RULE, step("model = torch.compile(FSDP(net))", CLIP), reason="where FSDP wraps the model")


def test_a_model_that_a_class_holds() -> None:
    source = (
        f"{HEAD}\nclass Trainer:\n    def __init__(self, net):\n        self.model = FSDP(net)\n\n"
        "    def step(self, batch):\n        self.model(batch).sum().backward()\n"
        "        clip_grad_norm_(self.model.parameters(), 1.0)\n"
    )
    assert "    self.model.clip_grad_norm_(1.0)\n" in fixed(source)


def test_a_model_that_one_way_wraps() -> None:
    lines = ("if options.shard:", "    model = FSDP(net)", "else:", "    model = DDP(net)", "model(batch).sum().backward()", CLIP)
    check_told(RULE, step(*lines), reason="where FSDP wraps the model")


def test_a_strategy_that_a_setting_picks() -> None:
    picked = 'strategy = {"full": ShardingStrategy.FULL_SHARD, "none": ShardingStrategy.NO_SHARD}[options.strategy]'
    wrap = "model = FSDP(net, sharding_strategy=strategy)"
    check_told(RULE, step(picked, wrap, CLIP), reason="where FSDP wraps the model and shares it out")
    check_nothing(RULE, step("strategy = ShardingStrategy[options.strategy]", wrap, CLIP))


def test_arguments_that_the_method_does_not_take() -> None:
    clip = "clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)"
    check_told(RULE, step("model = FSDP(net)", clip), reason="`max_norm` and `norm_type` alone")


@pytest.mark.parametrize(
    "lines",
    [
        ("model = DDP(net)", CLIP),  # each rank has all of the gradients
        ("model = fully_shard(net)", CLIP),  # DTensors, whose norm is that of all ranks
        ("model = FSDP(net, sharding_strategy=ShardingStrategy.NO_SHARD)", CLIP),
        ("model = FSDP(net, sharding_strategy=options.strategy)", CLIP),  # it may be NO_SHARD
        ("model = FSDP(net, **options)", CLIP),
        ("model = FSDP(net)", "model.clip_grad_norm_(1.0)"),
        ("model = FSDP(net)", "clip_grad_norm_(net.head.parameters(), 1.0)"),  # whether these are sharded is not followed
        ("model = FSDP(net)", "torch.nn.utils.clip_grad_value_(model.parameters(), 1.0)"),  # each value for itself
        ("model = net", "if options.fsdp:", "    model = FSDP(net)", "if not options.fsdp:", f"    {CLIP}"),
        ("model = net", "if options.shard:", "    model = FSDP(net)", "if isinstance(model, FSDP):",
         "    model.clip_grad_norm_(1.0)", "else:", f"    {CLIP}"),
        ("model = FSDP(net)", "if torch.distributed.get_world_size() == 1:", f"    {CLIP}"),
    ],
)  # fmt: skip
def test_norms_that_are_right_or_not_shown(lines: tuple[str, ...]) -> None:
    check_nothing(RULE, step(*lines))


def test_a_class_of_that_name_of_the_project() -> None:
    source = step("model = FSDP(net)", CLIP).replace("from torch.distributed.fsdp import", "from own.shards import")
    check_nothing(RULE, source)
