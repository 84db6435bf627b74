"""DDP002: the pooler of a pretrained model whose hidden states alone are read."""

from __future__ import annotations

import pytest

from codemods.flags.missing_find_unused_parameters import MissingFindUnusedParameters
from ddpfix.testing import check_nothing, check_transformed

SOURCE = """
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from transformers import AutoModel, BertModel

class Reader(nn.Module):
    def __init__(self, name="bert-base-uncased"):
        super().__init__()
        self.bert = BertModel.from_pretrained(name)
        self.head = nn.Linear(768, 2)

    def forward(self, ids, mask):
        out = self.bert(ids, mask)
        hidden = out.last_hidden_state
        return self.head(hidden.mean(1))

def train(loader, name):
    model = DDP(Reader(name))
    for ids, mask in loader:
        model(ids, mask).mean().backward()
"""
CALL, MADE, READ = "out = self.bert(ids, mask)", "BertModel.from_pretrained(name)", "hidden = out.last_hidden_state"


def _on(source: str) -> str:
    return source.replace("DDP(Reader(name))", "DDP(Reader(name), find_unused_parameters=True)")


@pytest.mark.parametrize(
    "source",
    [
        SOURCE,
        SOURCE.replace(READ, "hidden = out[0]"),
        SOURCE.replace(CALL, "out = self.bert(ids, mask)[0]").replace(READ, "hidden = out"),
        SOURCE.replace(READ, "out = out['last_hidden_state']\n        hidden = out"),
        SOURCE.replace(READ, "hidden = out.hidden_states[-2]"),
        SOURCE.replace(MADE, "AutoModel.from_pretrained('roberta-base')"),
        SOURCE.replace(MADE, "AutoModel.from_pretrained(name)"),
    ],
)
def test_hidden_states_alone(source: str) -> None:
    check_transformed(MissingFindUnusedParameters, source, _on(source), unsafe=True)


def test_in_a_part_of_the_model() -> None:
    whole = SOURCE + """
class Pair(nn.Module):
    def __init__(self, name):
        super().__init__()
        self.left = Reader(name)
        self.right = Reader(name)

    def forward(self, ids, mask):
        return self.left(ids, mask) * self.right(ids, mask)
"""
    source = whole.replace("DDP(Reader(name))", "DDP(Pair(name))")
    after = source.replace("DDP(Pair(name))", "DDP(Pair(name), find_unused_parameters=True)")
    check_transformed(MissingFindUnusedParameters, source, after, unsafe=True)


@pytest.mark.parametrize(
    "source",
    [
        SOURCE.replace(READ, "hidden = out.last_hidden_state + out.pooler_output[:, None]"),  # the pooler is read
        SOURCE.replace(READ, "hidden = out[1][:, None]"),
        SOURCE.replace(READ, "hidden = join(out)"),  # whoever takes the whole answer may read it
        SOURCE.replace(CALL, "hidden, pooled = self.bert(ids, mask)").replace(READ, "hidden = hidden * pooled"),
        SOURCE.replace(MADE, "BertModel.from_pretrained(name, add_pooling_layer=False)"),
        SOURCE.replace(MADE, "BertModel.from_pretrained(name, **options)"),  # may take it away
        SOURCE.replace(MADE, "AutoModel.from_pretrained('distilbert-base-uncased')"),  # has none
        SOURCE.replace('name="bert-base-uncased"', "name").replace(MADE, "AutoModel.from_pretrained(name)"),  # which one?
        SOURCE.replace("from transformers", "from own"),
        SOURCE.replace("        self.head", "        self.bert.requires_grad_(False)\n        self.head"),  # frozen
        SOURCE.replace("        self.head", "        self.bert.pooler = None\n        self.head"),
        SOURCE.replace(CALL, "with torch.no_grad():\n            out = self.bert(ids, mask)"),  # no gradient for any of it
        SOURCE.replace("    model = DDP", "    prune(Reader(name).bert.pooler)\n    model = DDP"),
        SOURCE.replace("    model = DDP", "    take('bert')\n    model = DDP"),
        SOURCE.replace("DDP(Reader(name))", "DDP(Reader(name), static_graph=True)"),
        SOURCE.replace(".mean().backward()", ".mean()"),  # only evaluated
    ],
)  # fmt: skip
def test_poolers_that_are_read_frozen_or_not_there(source: str) -> None:
    check_nothing(MissingFindUnusedParameters, source)


@pytest.mark.parametrize(
    "more",
    [
        "def freeze(model):\n    for p in model.bert.parameters():\n        p.requires_grad = False\n",
        "def freeze(model):\n    for n, p in model.named_parameters():\n        p.requires_grad = 'pooler' not in n\n",
        "from peft import get_peft_model\n\ndef thin(model, config):\n    return get_peft_model(model, config)\n",
        "def both(reader, ids):\n    return reader.bert(ids).pooler_output\n",
    ],
)
def test_another_file_that_freezes_or_reads_it(more: str) -> None:
    check_nothing(MissingFindUnusedParameters, SOURCE, files={"more.py": more})
