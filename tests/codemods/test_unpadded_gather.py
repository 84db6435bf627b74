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


def test_images_and_own_tests_stay() -> None:
    images = evaluation("images = model.generate(noise)", "images = accelerator.gather(images)", read="texts.append(images)")
    check_nothing(UnpaddedGather, images)
    check_nothing(UnpaddedGather, evaluation(MADE, "tokens = accelerator.gather(tokens)"), path="tests/test_a.py")
