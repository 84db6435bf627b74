"""DDP705: a model that is spread over the GPUs of the machine, in a training of several processes."""

from __future__ import annotations

import pytest

from codemods.launch.device_map_auto import DeviceMapAuto
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

RULE = DeviceMapAuto
README = {"README.md": "# Start\n\n    torchrun --nproc_per_node 4 tune.py --lr 1e-4\n"}
HEAD = """\
from accelerate import Accelerator
from peft import PeftModel, get_peft_model
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments


"""


def accelerated(*lines: str, device_map: str = '"auto"') -> str:
    body = lines or (f"model = AutoModelForCausalLM.from_pretrained(name, device_map={device_map})",)
    text = "".join(f"    {line}\n" for line in ("accelerator = Accelerator()", *body))
    return f"{HEAD}def main(name, optimizer):\n{text}    model, optimizer = accelerator.prepare(model, optimizer)\n"


def trained(*lines: str, device_map: str = '"auto"', start: str = "args = TrainingArguments('out')") -> str:
    body = lines or (f"model = AutoModelForCausalLM.from_pretrained(name, device_map={device_map})",)
    text = "".join(f"    {line}\n" for line in (*([start] if start else []), *body))
    given = "" if start else ", args=None"
    return f"{HEAD}def main(name, rows{given}):\n{text}    Trainer(model=model, args=args, train_dataset=rows).train()\n"


def own(text: str, holder: str, count: str, given: str = '"auto"') -> str:
    return text.replace(f"device_map={given}", f'device_map={{"": {holder}.device}} if {holder}.{count} > 1 else {given}')


def test_the_example_of_the_documentation() -> None:
    sections = RULE.sections()
    before, after = (sections[s].removeprefix("```python\n").removesuffix("```") for s in ("Example", "Use instead"))
    check_transformed(RULE, before, after, unsafe=True)


@pytest.mark.parametrize("given", ['"auto"', "'balanced'", '"sequential"', '"balanced_low_0"'])
def test_a_model_that_accelerate_prepares(given: str) -> None:
    before = accelerated(device_map=given)
    check_transformed(RULE, before, own(before, "accelerator", "num_processes", given), unsafe=True)


@pytest.mark.parametrize(
    "lines",
    [
        ('base = AutoModelForCausalLM.from_pretrained(name, device_map="auto")', "model = get_peft_model(base, None)"),
        ('model = AutoModelForCausalLM.from_pretrained(name, device_map="auto")', "model = get_peft_model(model, None)"),
        ('base = AutoModelForCausalLM.from_pretrained(name, device_map="auto")', "model = PeftModel.from_pretrained(base, 'x')"),
        ("if name == 'a':", '    model = AutoModelForCausalLM.from_pretrained(name, device_map="auto")',
         "else:", "    model = None"),
    ],
)  # fmt: skip
def test_models_on_their_way(lines: tuple[str, ...]) -> None:
    before = accelerated(*lines)
    check_transformed(RULE, before, own(before, "accelerator", "num_processes"), unsafe=True)


@pytest.mark.parametrize(
    "files",
    [
        README,
        {"run.sh": "accelerate launch --multi_gpu tune.py\n"},
        {"run.sh": "accelerate launch --config_file configs/gpus.yaml tune.py\n", "configs/gpus.yaml": "num_processes: 8\n"},
        {"run.sh": "deepspeed tune.py\n"},
    ],
)
def test_a_trainer_that_a_command_starts_on_several_processes(files: dict[str, str]) -> None:
    before = trained()
    check_transformed(RULE, before, own(before, "args", "world_size"), unsafe=True, path="tune.py", files=files)


def test_arguments_that_are_handed_in() -> None:
    before = trained(start="").replace(", args=None", ", args")
    check_transformed(RULE, before, own(before, "args", "world_size"), unsafe=True, path="tune.py", files=README)


def test_told_where_nothing_at_hand_knows_the_device() -> None:
    check_told(RULE, trained(start=""), reason='device_map={"": int(os.environ["LOCAL_RANK"])}', path="tune.py", files=README)
    load = 'model = AutoModelForCausalLM.from_pretrained(name, device_map="auto")'
    late = trained(load, "args = TrainingArguments('o')", start="").replace(", args=None", "")
    check_told(RULE, late, reason="needs FSDP or DeepSpeed", path="tune.py", files=README)


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"README.md": "    python tune.py\n"},
        {"run.sh": "accelerate launch tune.py\n"},
        {"run.sh": "torchrun --nproc_per_node 1 tune.py\n"},
        {"run.sh": "accelerate launch --config_file one.yaml tune.py\n", "one.yaml": "num_processes: 1\n"},
    ],
)
def test_one_process_may_spread_its_model(files: dict[str, str]) -> None:
    check_nothing(RULE, trained(), path="tune.py", files=files)


@pytest.mark.parametrize(
    "lines",
    [
        ("if accelerator.num_processes > 1:", "    model = None", "else:",
         '    model = AutoModelForCausalLM.from_pretrained(name, device_map="auto")'),
        ('model = AutoModelForCausalLM.from_pretrained(name, device_map={"": accelerator.device})',),
        ("model = AutoModelForCausalLM.from_pretrained(name)",
         'teacher = AutoModelForCausalLM.from_pretrained("big", device_map="auto")'),
        ("given = choose()", "model = AutoModelForCausalLM.from_pretrained(name, device_map=given)"),
    ],
)  # fmt: skip
def test_what_is_chosen_or_not_trained(lines: tuple[str, ...]) -> None:
    check_nothing(RULE, accelerated(*lines))


def test_a_repository_s_own_test() -> None:
    check_nothing(RULE, accelerated(), path="tests/test_tune.py")


LOADER = """\
from dataclasses import dataclass

from torch import nn
from transformers import AutoModel


@dataclass
class Bundle:
    model: object
    name: str


class Scorer(nn.Module):
    def __init__(self, backbone, size):
        super().__init__()
        self.backbone = backbone
        self.head = nn.Linear(size, 1)


def load_bundle(name):
    model = AutoModel.from_pretrained(name, device_map="auto")
    return Bundle(model=model, name=name)


def load_scorer(name):
    backbone = AutoModel.from_pretrained(name, device_map="auto")
    return Scorer(backbone, 8), name
"""
OTHER = "class Bundle:\n    def __init__(self, model, name):\n        self.model = 0\n"
TRAINING = """\
from accelerate import Accelerator
from module import load_bundle, load_scorer


def main(name):
    accelerator = Accelerator()
    {made}
    {model} = accelerator.prepare({model})
"""


@pytest.mark.parametrize(
    ("made", "model", "line"),
    [("bundle = load_bundle(name)", "bundle.model", 21), ("scorer, _ = load_scorer(name)", "scorer", 26)],
)
def test_a_load_two_calls_away(made: str, model: str, line: int) -> None:
    files = {"train.py": TRAINING.format(made=made, model=model)}
    found = check_told(DeviceMapAuto, LOADER, reason="LOCAL_RANK", files=files)
    assert found.span.line == line
    assert {e.path for e in found.evidence} == {"train.py"}


@pytest.mark.parametrize(
    ("loader", "made", "model"),
    [
        (LOADER, "bundle = load_bundle(name)", "bundle.name"),
        (LOADER, "bundle = load_bundle(name)", "build(name)"),
        (LOADER.replace('"auto"', "None"), "bundle = load_bundle(name)", "bundle.model"),
        (LOADER.replace("self.backbone = backbone", "self.width = width(backbone)"), "scorer, _ = load_scorer(name)", "scorer"),
        (LOADER.replace("@dataclass\nclass Bundle:", OTHER), "bundle = load_bundle(name)", "bundle.model"),
    ],
    ids=["another field", "a model of another load", "loaded on one device", "the class keeps a part", "another constructor"],
)  # fmt: skip
def test_another_model_is_trained(loader: str, made: str, model: str) -> None:
    files = {"train.py": TRAINING.format(made=made, model="net").replace("(net)", f"({model})")}
    check_nothing(DeviceMapAuto, loader, files=files)


LOADS = (
    "from transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n\n\ndef main(name, rows, options):\n"
    "    args = TrainingArguments('out')\n    if options.{option}:\n"
    "        model = AutoModelForCausalLM.from_pretrained(name, device_map='auto')\n"
    "    else:\n        model = AutoModelForCausalLM.from_pretrained(name)\n"
    "    Trainer(model=model, args=args, train_dataset=rows).train()\n"
)
COMMANDS = "    torchrun --nproc_per_node 4 tune.py --lr 1e-4{launched}\n\n    python try.py {alone}\n"


@pytest.mark.parametrize(
    ("option", "launched", "alone", "silent"),
    [("spread", "", "--spread", True), ("args_spread", "", "--args_spread --lr 3", True),
     ("spread", " --spread", "--spread", False),
     ("spread", "", "--lr 3", False), ("spread", ' "$@"', "--spread", False)],
)  # fmt: skip
def test_an_option_that_commands_of_one_process_give(option: str, launched: str, alone: str, *, silent: bool) -> None:
    files = {"README.md": COMMANDS.format(launched=launched, alone=alone)}
    found = findings_of(RULE, LOADS.format(option=option), files, path="tune.py")
    assert bool(found) is not silent
