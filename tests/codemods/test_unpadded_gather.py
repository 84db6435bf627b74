from __future__ import annotations

import pytest

from codemods.metrics.unpadded_gather import UnpaddedGather
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

HEAD = "import torch.nn.functional as F\nfrom accelerate import Accelerator\n\n\n"
MADE = 'tokens = model.generate(batch["input_ids"], max_new_tokens=64)'
READ = "texts += tokenizer.batch_decode(tokens)"


def evaluation(*lines: str, read: str = READ, arguments: str = "accelerator: Accelerator, model, loader, tokenizer") -> str:
    body = "".join(f"        {line}\n" for line in (*lines, read))
    return f"{HEAD}def evaluate({arguments}):\n    texts = []\n    for batch in loader:\n{body}    return texts\n"


def padded(tokens: str = "tokens", tokenizer: str = "tokenizer") -> str:
    return f"accelerator.pad_across_processes({tokens}, dim=1, pad_index={tokenizer}.pad_token_id)"


def test_example_of_the_page() -> None:
    sections = UnpaddedGather.sections()
    before, after = (sections[n].removeprefix("```python\n").removesuffix("```") for n in ("Example", "Use instead"))
    check_transformed(UnpaddedGather, before, after, unsafe=True)


@pytest.mark.parametrize(
    ("gathered", "fixed"),
    [
        ("tokens = accelerator.gather(tokens)", f"tokens = accelerator.gather({padded()})"),
        ("tokens = accelerator.gather_for_metrics(tokens).cpu()", f"tokens = accelerator.gather_for_metrics({padded()}).cpu()"),
        ("tokens, y = accelerator.gather((tokens, y))", f"tokens, y = accelerator.gather(({padded()}, y))"),
        ("tokens = accelerator.gather(tokens[:, 8:])", f"tokens = accelerator.gather({padded('tokens[:, 8:]')})"),
    ],
)
def test_the_tokens_are_padded_first(gathered: str, fixed: str) -> None:
    y = 'y = batch["labels"]'
    check_transformed(UnpaddedGather, evaluation(MADE, y, gathered), evaluation(MADE, y, fixed), unsafe=True)


@pytest.mark.parametrize(
    "made",
    [
        "tokens = accelerator.unwrap_model(model).generate(**batch, **gen_kwargs).detach()",
        'tokens = model.module.my_generate(input_ids=batch["x"], max_seq_len=9)',
        "tokens = generator.generate(prompts)  # decoded below",
    ],
)
def test_what_generates_tokens(made: str) -> None:
    assert findings_of(UnpaddedGather, evaluation(made, "tokens = accelerator.gather(tokens)"))


def test_a_tokenizer_of_the_object() -> None:
    made = ("tokens = self.model.generate(batch, max_new_tokens=9)", "tokens = accelerator.gather({})")
    read = "texts += self.tokenizer.batch_decode(tokens)"
    before, after = (
        evaluation(made[0], made[1].format(given), read=read, arguments="self, accelerator: Accelerator, loader")
        for given in ("tokens", padded(tokenizer="self.tokenizer"))
    )
    check_transformed(UnpaddedGather, before, after, unsafe=True)


def test_without_a_tokenizer_it_is_told() -> None:
    source = evaluation(MADE, "tokens = accelerator.gather(tokens)", read="texts.append(tokens)")
    check_told(UnpaddedGather, source, reason="no tokenizer is at hand here")


@pytest.mark.parametrize(
    "lines",
    [
        (MADE, "tokens = accelerator.pad_across_processes(tokens, dim=1)", "tokens = accelerator.gather(tokens)"),
        (MADE, "tokens = F.pad(tokens, (0, 64 - tokens.shape[1]))", "tokens = accelerator.gather(tokens)"),
        (MADE, "tokens = pad_to_length(tokens, 64)", "tokens = accelerator.gather(tokens)"),
        (MADE, "texts = accelerator.gather_for_metrics(tokenizer.batch_decode(tokens))"),
        ("tokens = model(batch).argmax(-1)", "tokens = accelerator.gather(tokens)"),
        ("tokens = model.generate(batch, min_new_tokens=9, max_new_tokens=9)", "tokens = accelerator.gather(tokens)"),
        (MADE, "tokens = store.gather(tokens)"),
        (MADE, "lengths = accelerator.gather(sizes)"),
    ],
)
def test_what_is_right_or_not_seen_stays(lines: tuple[str, ...]) -> None:
    check_nothing(UnpaddedGather, evaluation(*lines))


@pytest.mark.parametrize(
    "made",
    [
        "tokens, ids = model.generate(batch)",
        "(tokens, ids), texts = accelerator.unwrap_model(model).generate(batch, max_length=9)",
    ],
)
def test_a_model_that_gives_several_things_stays(made: str) -> None:
    """Images of one size beside the texts that the function decodes."""
    check_nothing(UnpaddedGather, evaluation(made, "tokens = accelerator.gather(tokens)", read="texts += tokenizer.decode(ids)"))


def test_images_and_own_tests_stay() -> None:
    images = evaluation("images = model.generate(noise)", "images = accelerator.gather(images)", read="texts.append(images)")
    check_nothing(UnpaddedGather, images)
    check_nothing(UnpaddedGather, evaluation(MADE, "tokens = accelerator.gather(tokens)"), path="tests/test_a.py")


LOSS = '''import torch
import torch.distributed as dist


def all_rows(rows):
    if not dist.is_initialized():
        return rows
    found = [torch.ones_like(rows) for _ in range(dist.get_world_size())]
    dist.all_gather(found, rows)
    return torch.cat(found)


class Match(torch.nn.Module):
    def forward(self, samples):
        words = samples["caption"]
        texts = self.tokenizer({arguments}).to(self.device)
{lines}
'''
CUT = 'words, padding="longest", truncation=True, max_length=32, return_tensors="pt"'


def loss(*lines: str, arguments: str = CUT) -> str:
    return LOSS.replace("{arguments}", arguments).replace("{lines}", "\n".join(f"        {line}" for line in lines))


@pytest.mark.parametrize(
    "lines",
    [
        ("ids = all_rows(texts.input_ids)", "mask = all_rows(texts.attention_mask)"),
        ("ids = texts.input_ids.clone()", "ids[:, 0] = 5", "every = all_rows(ids)"),
        ("dist.all_gather(self.out, texts['input_ids'].contiguous())",),
        ("dist.all_gather(self.out, tensor=texts.input_ids)",),
        ("from torch.distributed.nn.functional import all_gather", "ids = all_gather(texts.input_ids)"),
    ],
)
def test_texts_as_long_as_the_longest_of_their_batch(lines: tuple[str, ...]) -> None:
    fixed = loss(*lines, arguments=CUT.replace("longest", "max_length"))
    check_transformed(UnpaddedGather, loss(*lines), fixed, unsafe=True)


def test_texts_without_a_length_to_pad_to_are_told() -> None:
    source = loss("ids = all_rows(texts.input_ids)", arguments='words, padding=True, return_tensors="pt"')
    check_told(UnpaddedGather, source, reason="bring all ranks to one length first")


def test_what_a_function_of_autograd_gathers() -> None:
    gather = (
        "\n\nclass Rows(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, rows):\n"
        "        out = [torch.empty_like(rows) for _ in range(dist.get_world_size())]\n"
        "        dist.all_gather(out, rows)\n        return torch.cat(out)\n"
    )
    assert findings_of(UnpaddedGather, loss("ids = Rows.apply(texts.input_ids)") + gather)


@pytest.mark.parametrize(
    "lines",
    [
        ("ids = torch.nn.functional.pad(texts.input_ids, (0, 4))", "every = all_rows(ids)"),
        ("features = self.encode(texts.input_ids)", "every = all_rows(features)"),
        ("texts.input_ids = self.fill(texts.input_ids)", "every = all_rows(texts.input_ids)"),
        ("picked = torch.gather(texts.input_ids, 1, self.order)",),
        ("out = [None, None]", "dist.all_gather_object(out, texts.input_ids)"),
        ("every = all_rows(texts.input_ids[:, 0])",),
        ("dist.all_gather(texts.input_ids, self.rows)",),
    ],
)
def test_texts_that_are_brought_to_one_length_stay(lines: tuple[str, ...]) -> None:
    check_nothing(UnpaddedGather, loss(*lines))


@pytest.mark.parametrize(
    "arguments",
    [
        CUT.replace("longest", "max_length"),
        CUT.replace("words", "self.prompts"),
        CUT.replace("words", '["a cat", "a dog"]'),
        CUT.replace(', return_tensors="pt"', ""),
    ],
)
def test_texts_of_one_length_stay(arguments: str) -> None:
    check_nothing(UnpaddedGather, loss("ids = all_rows(texts.input_ids)", arguments=arguments))


def test_a_function_that_asks_for_the_sizes_first() -> None:
    source = loss("ids = all_rows(texts.input_ids)").replace(
        "    found = [", "    sizes = torch.tensor(rows.shape)\n    dist.all_reduce(sizes, op=dist.ReduceOp.MAX)\n    found = ["
    )
    check_nothing(UnpaddedGather, source)
