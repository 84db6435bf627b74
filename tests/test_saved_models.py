"""Whose `save_pretrained` is it, and may rank 0 call it alone?"""

from __future__ import annotations

import pytest

from codemods.api.findings import Applicability
from codemods.checkpoints.unguarded_save import UnguardedSave
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

UNWRAPPED = "bare = accelerator.unwrap_model(net)"
SAVE = "bare.save_pretrained(args.out)"


def prepared(*made: str, head: str, saved: tuple[str, ...] = (SAVE,)) -> str:
    lines = ("accelerator = Accelerator()", *made, "net = accelerator.prepare(net)", UNWRAPPED, *saved)
    return f"from accelerate import Accelerator\n{head}\n\ndef main(args):\n" + "".join(f"    {line}\n" for line in lines)


def started(*lines: str, head: str) -> str:
    """On several processes without a library that may shard the model."""
    body = "".join(f"    {line}\n" for line in ("dist.init_process_group('gloo')", *lines))
    return f"import torch.distributed as dist\n{head}\n\ndef main(args):\n{body}"


@pytest.mark.parametrize(
    ("head", "made"),
    [
        ("from diffusers import UNet2DModel\n", ("net = UNet2DModel.from_pretrained(args.net)",)),
        ("from diffusers import UNet2DModel\n", ("net = UNet2DModel(32)", "net.requires_grad_(True)")),
        ("from transformers import AutoModel\n", ("net = AutoModel.from_pretrained(args.net)",)),
        ("from transformers import AutoModel\nfrom diffusers import UNet2DModel\n",
         ("net = AutoModel.from_pretrained(args.net) if args.text else UNet2DModel(32)",)),
    ],
)  # fmt: skip
def test_all_ranks_would_write_the_weights_with_the_word_for_one(head: str, made: tuple[str, ...]) -> None:
    """diffusers and transformers 4 leave the configuration to one process, and the weights to each."""
    before = prepared(*made, head=head)
    after = prepared(*made, head=head, saved=("if accelerator.is_main_process:", f"    {SAVE}"))
    check_transformed(UnguardedSave, before, after, unsafe=True)


def test_peft_has_the_word_for_all_that_it_writes() -> None:
    head = "from peft import PeftModel\n"
    made = ("net = PeftModel.from_pretrained(args.base, args.net)",)
    wanted = "bare.save_pretrained(args.out, is_main_process=accelerator.is_main_process)"
    check_transformed(UnguardedSave, prepared(*made, head=head), prepared(*made, head=head, saved=(wanted,)))


@pytest.mark.parametrize(
    ("head", "made"),
    [
        ("from transformers import AutoModel\n", ("net = AutoModel.from_pretrained(args.net)",)),
        ("from transformers import AutoModel\n", ("net = AutoModel.from_pretrained(args.net)", "net = net.to(args.device)")),
        ("import transformers\n\nclass Tagger(transformers.BertPreTrainedModel):\n    pass\n",
         ("net = Tagger.from_pretrained(args.net)",)),
        ("from transformers import AutoModel\n\ndef build(args):\n    return AutoModel.from_pretrained(args.net)\n",
         ("net = build(args)",)),
        ("from torch.nn.parallel import DistributedDataParallel as DDP\nfrom transformers import AutoModel\n",
         ("net = AutoModel.from_pretrained(args.net)", "net = DDP(net).module")),
        ("from transformers import AutoModel\n",
         ("net = AutoModel.from_pretrained(args.net)", "net, rest = args.tool.prepare(net, args.rest)")),
    ],
)  # fmt: skip
def test_a_model_of_a_library_that_writes_all_of_it(head: str, made: tuple[str, ...]) -> None:
    (found,) = findings_of(UnguardedSave, started(*made, "net.save_pretrained('out')", head=head))
    assert found.applicability is Applicability.SAFE


@pytest.mark.parametrize(
    ("head", "made"),
    [
        ("from models import Net\n", ("net = Net(args)",)),
        ("class Net:\n    def save_pretrained(self, folder):\n        pass\n", ("net = args.net",)),
        ("from transformers import AutoModel\n", ("net = AutoModel.from_pretrained(args.net) if args.text else args.net",)),
    ],
)
def test_a_model_of_which_nothing_is_known(head: str, made: tuple[str, ...]) -> None:
    (found,) = findings_of(UnguardedSave, started(*made, "net.save_pretrained('out')", head=head))
    assert found.applicability is Applicability.UNSAFE
    assert "assumes that `net.save_pretrained` stores all of it" in found.reason


@pytest.mark.parametrize(
    ("head", "made"),
    [
        ("from oslo import TensorParallel\nfrom transformers import AutoModel\n",
         ("net = AutoModel.from_pretrained(args.net)", "if args.parallel > 1:", "    net = TensorParallel(net, args.context)")),
        ("import tensor_parallel as tp\n", ("net = tp.tensor_parallel(args.net)",)),
        ("from colossalai.booster import Booster\n", ("net = args.task.build(args)",)),
        ("import nemo.core\n\nclass Net(nemo.core.ModelPT):\n    pass\n", ("net = Net(args)",)),
    ],
)  # fmt: skip
def test_a_model_of_which_each_rank_may_hold_a_part(head: str, made: tuple[str, ...]) -> None:
    """Its ranks write a part each, and wait for one another."""
    check_nothing(UnguardedSave, started(*made, "net.save_pretrained('out')", head=head))


def test_a_known_model_beside_such_a_library() -> None:
    head = "import oslo\nfrom transformers import AutoTokenizer\n"
    (found,) = findings_of(
        UnguardedSave, started("words = AutoTokenizer.from_pretrained('a')", "words.save_pretrained('out')", head=head)
    )
    assert found.applicability is Applicability.SAFE


SHARDS = (
    "from accelerate import DistributedType\nfrom diffusers import UNet2DModel\nfrom diffusers.training_utils import EMAModel\n"
    "from torch.distributed.fsdp import FullyShardedDataParallel as FSDP\n"
)
NET = "net = UNet2DModel.from_pretrained(args.net)"
OTHERWISE = ("if accelerator.distributed_type == DistributedType.FSDP:", "    keep(net)", "else:")


def test_the_branch_for_runs_that_shard_nothing() -> None:
    before = prepared(NET, head=SHARDS, saved=(*OTHERWISE, f"    {SAVE}"))
    after = prepared(NET, head=SHARDS, saved=(*OTHERWISE, "    if accelerator.is_main_process:", f"        {SAVE}"))
    check_transformed(UnguardedSave, before, after, unsafe=True)


@pytest.mark.parametrize(
    "saved",
    [
        (SAVE,),
        ("if accelerator.distributed_type == DistributedType.FSDP:", f"    {SAVE}"),
        ("if accelerator.distributed_type != DistributedType.FSDP:", "    keep(net)", "else:", f"    {SAVE}"),
        ("if accelerator.distributed_type == DistributedType.MULTI_GPU:", "    keep(net)", "else:", f"    {SAVE}"),
        ("if args.plain:", f"    {SAVE}"),
    ],
)
def test_branches_where_the_model_may_be_sharded(saved: tuple[str, ...]) -> None:
    check_told(UnguardedSave, prepared(NET, head=SHARDS, saved=saved), reason="the model may be sharded")


def test_deepspeed_is_another_question() -> None:
    source = prepared(NET, head=SHARDS + "import deepspeed\n", saved=(*OTHERWISE, f"    {SAVE}"))
    check_told(UnguardedSave, source, reason="the model may be sharded")


AVERAGE = "mean = EMAModel(net.parameters(), model_cls=UNet2DModel)"


def test_an_average_that_no_rank_shares_out() -> None:
    before = prepared(NET, AVERAGE, head=SHARDS, saved=("mean.save_pretrained(args.out)",))
    after = prepared(NET, AVERAGE, head=SHARDS, saved=("if accelerator.is_main_process:", "    mean.save_pretrained(args.out)"))
    check_transformed(UnguardedSave, before, after, unsafe=True)


def test_an_average_that_is_prepared_with_the_model() -> None:
    source = prepared(NET, AVERAGE, "mean = accelerator.prepare(mean)", head=SHARDS, saved=("mean.save_pretrained(args.out)",))
    check_told(UnguardedSave, source, reason="the model may be sharded")
