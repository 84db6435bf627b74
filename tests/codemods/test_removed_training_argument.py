"""DDP602: parameters of the Hugging Face Trainer that the pinned version calls otherwise, or no longer has."""

from __future__ import annotations

import pytest

from codemods.api.findings import Finding
from codemods.trainer.removed_training_argument import RemovedTrainingArgument as Removed
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

V5 = {"requirements.txt": "transformers>=5.0,<6\n"}
V4 = {"requirements.txt": "transformers>=4.46,<4.50\n"}
HEAD = "from transformers import Trainer, TrainingArguments\n\n"


def call(arguments: str) -> str:
    return f"{HEAD}args = TrainingArguments({arguments})\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"out", evaluation_strategy="epoch"', '"out", eval_strategy="epoch"'),
        ('"out", evaluation_strategy=wanted, eval_steps=5', '"out", eval_strategy=wanted, eval_steps=5'),
        ('"out", no_cuda=True, seed=1', '"out", use_cpu=True, seed=1'),
        ('"out", include_inputs_for_metrics=True', '"out", include_for_metrics=["inputs"]'),
        ('"out", include_inputs_for_metrics=False, seed=1', '"out", seed=1'),
        ('"out", adafactor=True', '"out", optim="adafactor"'),
        ('"out", fp16_backend="auto", fp16=True', '"out", fp16=True'),
        ('"out", past_index=-1', '"out"'),
        ('"out", push_to_hub_token=token', '"out", hub_token=token'),
    ],
)
def test_a_keyword_of_version_5(before: str, after: str) -> None:
    check_transformed(Removed, call(before), call(after), files=V5)


def test_a_call_over_several_lines_keeps_its_layout() -> None:
    before = call('\n    output_dir="out",  # where\n    evaluation_strategy="epoch",  # when\n    past_index=-1,\n    seed=1,\n')
    after = call('\n    output_dir="out",  # where\n    eval_strategy="epoch",  # when\n    seed=1,\n')
    check_transformed(Removed, before, after, files=V5)


def test_a_deprecated_name_stays_as_long_as_every_version_takes_it() -> None:
    check_nothing(Removed, call('"o", evaluation_strategy="no"'), files=V4)
    check_nothing(Removed, call('"o", group_by_length=True, save_safetensors=False'), files=V4)


def test_version_5_15_takes_a_share_as_warmup_steps() -> None:
    new = {"requirements.txt": "transformers==5.16.0\n"}
    check_transformed(Removed, call('"o", warmup_ratio=0.03'), call('"o", warmup_steps=0.03'), files=new)
    check_told(Removed, call('"o", warmup_ratio=1'), reason="from 1 on for steps", files=new)
    check_told(Removed, call('"o", warmup_ratio=share'), reason="not shown", files=new)
    check_nothing(Removed, call('"o", warmup_ratio=share'), files={"requirements.txt": "transformers==5.3.0\n"})


def test_checkpointing_is_left_alone_while_its_old_name_is_taken() -> None:
    code = call('"o", gradient_checkpointing=True, gradient_checkpointing_kwargs={"use_reentrant": False}')
    check_nothing(Removed, code, files=V5)
    check_nothing(Removed, code, files={"requirements.txt": "transformers>=5.23\n"})


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            'more = {"evaluation_strategy": "epoch", \'no_cuda\': True}\n',
            'more = {"eval_strategy": "epoch", \'use_cpu\': True}\n',
        ),
        ('more = {"seed": 1}\nmore["evaluation_strategy"] = "no"\n', 'more = {"seed": 1}\nmore["eval_strategy"] = "no"\n'),
        ('more = dict(evaluation_strategy="no", adafactor=False)\n', 'more = dict(eval_strategy="no")\n'),
        ('more = {"past_index": -1, "seed": 1}\n', 'more = {"seed": 1}\n'),
        ("more = {'past_index': -1}\n", "more = {}\n"),
        (
            'more = {\n    "seed": 1,  # fixed\n    # not used\n    "past_index": -1,  # never\n}\n',
            'more = {\n    "seed": 1,  # fixed\n}\n',
        ),
        ('more = {\n    "seed": 1,\n    "past_index": -1\n}\n', 'more = {\n    "seed": 1\n}\n'),
        ('more = {**other, "past_index": -1, "no_cuda": True}\n', 'more = {**other, "use_cpu": True}\n'),
        ('more = {"seed": 1}\nmore["past_index"] = -1\n', 'more = {"seed": 1}\n'),
    ],
)
def test_a_dictionary_behind_two_stars(before: str, after: str) -> None:
    use = 'args = TrainingArguments("out", **more)\n'
    check_transformed(Removed, HEAD + before + use, HEAD + after + use, files=V5)


def test_a_dictionary_that_serves_others_is_told() -> None:
    code = HEAD + 'more = {"evaluation_strategy": "no"}\nargs = TrainingArguments("out", **more)\nprint(more)\n'
    check_told(Removed, code, reason="more is used at line 5 as well", files=V5)


HEIRS = {
    "own.py": "from dataclasses import dataclass\nfrom transformers import TrainingArguments\n\n\n@dataclass\n"
    "class OwnArguments(TrainingArguments):\n    no_cuda: bool = False\n    depth: int = 1\n",
    "fit.py": "from trl import SFTConfig\n\n\nclass FitConfig(SFTConfig):\n    packed: bool = True\n",
    **V5,
}


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("from trl import SFTConfig", "SFTConfig"),
        ("from fit import FitConfig", "FitConfig"),
        ("from own import OwnArguments", "OwnArguments"),
        ("from transformers import Seq2SeqTrainingArguments", "Seq2SeqTrainingArguments"),
    ],
)
def test_heirs_of_training_arguments(source: str, name: str) -> None:
    before = f'{source}\nargs = {name}("o", evaluation_strategy="no")\n'
    check_transformed(Removed, before, before.replace("evaluation", "eval"), files=HEIRS)


def test_a_field_of_the_project_is_its_own() -> None:
    check_nothing(Removed, 'from own import OwnArguments\nargs = OwnArguments("o", no_cuda=True)\n', files=HEIRS)
    check_nothing(Removed, "from own import Other\nargs = Other(no_cuda=True)\nx = Config(no_cuda=True)\n", files=HEIRS)


# The Trainer

TRAINER = HEAD + "trainer = Trainer(model=model, tokenizer=tokenizer)\n"
OWN = (
    HEAD
    + "class Own(Trainer):\n    def __init__(self, *args, **kwargs):\n        super().__init__(*args, **kwargs)\n{more}\n\n"
    + "Own(tokenizer=t)\n"
)


def test_the_tokenizer_of_the_trainer() -> None:
    check_transformed(Removed, TRAINER, TRAINER.replace("tokenizer=", "processing_class="), files=V5)
    check_nothing(Removed, TRAINER, files=V4)  # a warning, and nothing more
    check_nothing(Removed, TRAINER, files={"requirements.txt": "transformers<4.46\n"})
    check_transformed(Removed, OWN.format(more=""), OWN.format(more="").replace("tokenizer=", "processing_class="), files=V5)


def test_a_call_of_super_in_a_trainer() -> None:
    code = HEAD + "class Own(Trainer):\n    def __init__(self, tok, **more):\n        super().__init__(tokenizer=tok, **more)\n"
    check_transformed(Removed, code, code.replace("tokenizer=tok", "processing_class=tok"), files=V5)


@pytest.mark.parametrize(
    "code",
    [
        OWN.format(more="        self.text = kwargs['tokenizer']\n"),
        HEAD
        + "class Own(Trainer):\n    def __init__(self, tokenizer, **k):\n        super().__init__(**k)\n\n\nOwn(tokenizer=t)\n",
        "from trl import SFTTrainer\nSFTTrainer(tokenizer=t)\n",
        "from elsewhere import Trainer\nTrainer(tokenizer=t)\n",
    ],
)
def test_a_trainer_that_handles_it_itself_is_left_alone(code: str) -> None:
    check_nothing(Removed, code, files=V5)


def test_a_reader_of_the_old_attribute_makes_it_unsafe() -> None:
    code = call('"o", evaluation_strategy="epoch"') + 'def f(args):\n    return args.evaluation_strategy == "epoch"\n'
    (found,) = check_transformed(Removed, code, code.replace('("o", evaluation_', '("o", eval_'), files=V5, unsafe=True)
    assert "module.py:5 reads as args.evaluation_strategy" in found.reason
    reader = TRAINER + "self.trainer.tokenizer.save()\n"
    check_transformed(Removed, reader, reader.replace("tokenizer=tok", "processing_class=tok"), files=V5, unsafe=True)


@pytest.mark.parametrize(
    "use",
    [
        'if args.evaluation_strategy == "epoch":\n    pass\n',
        "def f():\n    return [args.evaluation_strategy for _ in x]\n",
        'args.evaluation_strategy = "no"\nprint(args.evaluation_strategy.upper())\n',
    ],
)
def test_reads_of_the_same_object_go_along(use: str) -> None:
    code = call('"o", evaluation_strategy="epoch"') + use
    check_transformed(Removed, code, code.replace("evaluation_strategy", "eval_strategy"), files=V5)


def test_a_read_of_the_trainers_tokenizer_goes_along() -> None:
    reader = TRAINER + "trainer.tokenizer.save()\n"
    after = reader.replace("tokenizer=tok", "processing_class=tok").replace("trainer.tokenizer", "trainer.processing_class")
    check_transformed(Removed, reader, after, files=V5)


@pytest.mark.parametrize(
    "use",
    [
        "args = other()\nprint(args.evaluation_strategy)\n",
        'print(f"{args.evaluation_strategy}")\n',
        "args.evaluation_strategy\nprint(trainer.args.evaluation_strategy)\n",
    ],
)
def test_a_read_of_what_may_be_another_object_makes_it_unsafe(use: str) -> None:
    code = call('"o", evaluation_strategy="epoch"') + use
    after = code.replace('("o", evaluation_', '("o", eval_').replace("\nargs.evaluation_strategy", "\nargs.eval_strategy")
    (found,) = check_transformed(Removed, code, after, files=V5, unsafe=True)
    assert "assumes that nobody needs the old name" in found.reason


# Refusals


@pytest.mark.parametrize(
    ("pins", "reason"),
    [
        ({}, "no file pins transformers: from 4.41 on it is eval_strategy"),
        ({"requirements.txt": "transformers\n"}, "allows versions with it and without"),
        ({"requirements.txt": "transformers>=4.38\n"}, "transformers >=4.38 (requirements.txt:1) allows versions with it and"),
        ({"requirements.txt": "transformers @ git+https://a.org/b.git@0dcb46e\n"}, "(requirements.txt:1) does not say which"),
    ],
)
def test_a_version_that_is_not_known_is_told(pins: dict[str, str], reason: str) -> None:
    check_told(Removed, call('"o", evaluation_strategy="no"'), reason=reason, files=pins)


def test_several_of_one_call_are_told_at_once() -> None:
    found = findings_of(Removed, call('"o", evaluation_strategy="no", logging_dir="runs", no_cuda=True'))
    assert len(found) == 1 and all(word in found[0].message for word in ("evaluation_strategy", "logging_dir", "no_cuda"))


def test_an_older_version_is_right() -> None:
    check_nothing(
        Removed, call('"o", evaluation_strategy="no", no_cuda=False'), files={"requirements.txt": "transformers==4.31\n"}
    )


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ('"o", evaluation_strategy="no", eval_strategy="no"', "eval_strategy is given as well"),
        ('"o", save_safetensors=False', "safetensors is the only format"),
        ('"o", fp16_backend="apex"', "only torch's own mixed precision"),
        ('"o", adafactor=wanted', "depends on the value"),
        ('"o", push_to_hub_organization="us"', "hub_model_id"),
        ('"o", fsdp_min_num_params=10', "min_num_params"),
    ],
)
def test_what_cannot_be_said_otherwise_is_told(arguments: str, reason: str) -> None:
    check_told(Removed, call(arguments), reason=reason, files=V5)


def test_a_log_folder_is_told_its_variable() -> None:
    new = {"requirements.txt": "transformers>=5.15\n"}
    check_told(Removed, call('"o", logging_dir="runs"'), reason="TENSORBOARD_LOGGING_DIR", files=new)


# Job files

SCRIPT = """\
from transformers import HfArgumentParser, Trainer, TrainingArguments

parser = HfArgumentParser(TrainingArguments)
(args,) = parser.parse_args_into_dataclasses()
Trainer(model=build(), args=args).train()
"""
JOB = {"train.py": SCRIPT, **V5}


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        (
            "run.sh",
            "torchrun train.py \\\n  --evaluation_strategy epoch \\\n  --overwrite_output_dir \\\n  --seed 1\n",
            "torchrun train.py \\\n  --eval_strategy epoch \\\n  --seed 1\n",
        ),
        ("run.slurm", "python train.py --no-cuda=True --adafactor\n", "python train.py --use-cpu=True --optim adafactor\n"),
        (
            "job.yaml",
            "command: >-\n  accelerate launch train.py\n  --evaluation_strategy=${{inputs.when}}\n  --past_index -1\n",
            "command: >-\n  accelerate launch train.py\n  --eval_strategy=${{inputs.when}}\n",
        ),
        (
            "job.yaml",
            "command: [python, train.py, --evaluation_strategy, epoch]\n",
            "command: [python, train.py, --eval_strategy, epoch]\n",
        ),
        ("Makefile", "train:\n\t@python train.py --fp16_backend auto --seed 1\n", "train:\n\t@python train.py --seed 1\n"),
        ("job.json", '{"run": "python train.py --no_cuda False"}', '{"run": "python train.py --use_cpu False"}'),
    ],
)
def test_flags_of_a_script_with_an_argument_parser(path: str, before: str, after: str) -> None:
    check_transformed(Removed, before, after, files=JOB, path=path)


RUN = "python train.py --evaluation_strategy epoch\n"


@pytest.mark.parametrize(
    "script",
    [
        SCRIPT.replace("HfArgumentParser", "ArgumentParser"),
        SCRIPT + "parser.add_argument('--evaluation_strategy')\n",
        SCRIPT + "\n\nclass Own(TrainingArguments):\n    evaluation_strategy: str = 'no'\n",
    ],
)
def test_a_script_with_flags_of_its_own_is_left_alone(script: str) -> None:
    check_nothing(Removed, RUN, files={"train.py": script, **V5}, path="run.sh")


def test_what_became_several_is_told_with_its_new_name() -> None:
    code = "from transformers import TrainingArguments\nargs = TrainingArguments('o', group_by_length=True, warmup_ratio=0.1)\n"
    finding = check_told(Removed, code, reason="from 5.2 on", files={"requirements.txt": "transformers>=4.38\n"})
    assert finding.reason == (
        "transformers >=4.38 (requirements.txt:1) allows versions with it and without: "
        "from 5.2 on it is train_sampling_strategy; from 5.15 on it is warmup_steps"
    )


def test_flags_that_are_told() -> None:
    many = "python elsewhere.py --evaluation_strategy epoch --output_dir o --seed 1 --learning_rate 1 --fp16 True\n"
    check_told(Removed, many, reason="which script elsewhere.py is, is not shown", files=JOB, path="run.sh")
    check_nothing(Removed, "python elsewhere.py --evaluation_strategy epoch\n", files=JOB, path="run.sh")
    check_told(Removed, RUN, reason="no file pins transformers", files={"train.py": SCRIPT}, path="run.sh")
    both = "python train.py --evaluation_strategy no --eval_strategy no\n"
    check_told(Removed, both, reason="eval_strategy is given as well", files=JOB, path="run.sh")


@pytest.mark.parametrize(
    ("job", "pinned", "told"),
    [
        ("environment:\n  build:\n    path: ./image\n", "image/requirements.txt", False),
        ("environment:\n  conda_file: ./gpu-env.yml\n", "gpu-env.yml", False),
        ("setup: pip install -r sets/requirements-job.txt\n", "sets/requirements-job.txt", False),
        ("environment:\n  build:\n    path: ./other\n", "image/requirements.txt", True),
        ("data:\n  folder: ./image\n", "image/requirements.txt", True),
    ],
)
def test_the_environment_that_a_job_file_names(job: str, pinned: str, told: bool) -> None:
    pin = "  - transformers==4.31\n" if pinned.endswith(".yml") else "transformers==4.31\n"
    files = {"run/train.py": SCRIPT, "run/requirements.txt": "transformers>=4.38\n", f"run/{pinned}": pin}
    job = f"{job}command: python train.py --evaluation_strategy epoch\n"
    assert bool(findings_of(Removed, job, files=files, path="run/job.yaml")) is told


def test_what_is_gone_leaves_a_command_that_is_a_list() -> None:
    before = "command: [python, train.py, --past_index, '-1', --seed, '1']  # now\n"
    check_transformed(Removed, before, before.replace(" --past_index, '-1',", ""), files=JOB, path="a.yaml")


READER = {"train.py": SCRIPT.replace("parse_args_into_dataclasses()", "parse_yaml_file(path)"), **V5}
FILLED = {"train.py": HEAD + "args = TrainingArguments(**load()['training'])\n", **V5}
YAML = "output_dir: out\nseed: 1\nlearning_rate: 1.0e-4  # fast\nevaluation_strategy: epoch  # when\noverwrite_output_dir: yes\n"
JSON = '{\n  "output_dir": "out",\n  "seed": 1,\n  "max_steps": 5,\n  "evaluation_strategy": "no",\n  "past_index": -1\n}\n'


def test_keys_of_files_that_a_parser_reads() -> None:
    after = YAML.replace("evaluation_", "eval_").replace("overwrite_output_dir: yes\n", "")
    check_transformed(Removed, YAML, after, files=READER, path="conf/a.yaml")
    wanted = JSON.replace("evaluation_", "eval_").replace(',\n  "past_index": -1', "")
    check_transformed(Removed, JSON, wanted, files=READER, path="a.json")


def test_a_mapping_inside_a_file_is_unsafe() -> None:
    before = "training:\n" + "".join(f"  {line}\n" for line in YAML.splitlines()[:4])
    (found,) = check_transformed(
        Removed, before, before.replace("evaluation_", "eval_"), files=FILLED, path="a.yaml", unsafe=True
    )
    assert "train.py" in found.reason


def test_keys_that_stay() -> None:
    check_nothing(Removed, YAML, files={"train.py": "x = 1\n", **V5}, path="a.yaml")
    check_nothing(Removed, "evaluation_strategy: epoch\nsteps: 4\n", files=READER, path="a.yaml")
    own = {**READER, "own.py": 'when = load(path)["evaluation_strategy"]\n'}
    check_told(Removed, YAML, reason="own.py:1 reads or defines 'evaluation_strategy' itself", files=own, path="a.yaml")
    gone = {**READER, "own.py": '    # when=load(path)["evaluation_strategy"],\n'}
    left = YAML.replace("overwrite_output_dir: yes\n", "")
    check_transformed(Removed, YAML, left, files=gone, path="a.yaml")  # nothing reads the key
    check_told(Removed, YAML + "eval_strategy: no\n", reason="eval_strategy is given as well", files=READER, path="a.yaml")
    check_told(Removed, YAML + "adafactor: true\n", reason="write optim", files=READER, path="a.yaml")


@pytest.mark.parametrize(
    "head", ["@dataclass\nclass Own(TrainingArguments):\n", "@dataclasses.dataclass(frozen=True)\nclass Own:\n"]
)
def test_a_key_that_a_dataclass_declares_is_its_own(head: str) -> None:
    files = {**READER, "own.py": f'{head}    evaluation_strategy: str = "no"\n'}
    left = YAML.replace("overwrite_output_dir: yes\n", "")
    check_transformed(Removed, YAML, left, files=files, path="conf/a.yaml")


def test_a_parameter_of_a_function_declares_no_key() -> None:
    own = {**READER, "own.py": 'def train(\n    evaluation_strategy: str = "no",\n) -> None: ...\n'}
    check_told(Removed, YAML, reason="own.py:2 reads or defines", files=own, path="a.yaml")


def test_an_install_script_pins_as_a_requirement_file_does() -> None:
    code = call('"o", evaluation_strategy="no"')
    check_nothing(Removed, code, files={"setup.sh": "pip install -e .\npip install transformers==4.33.3\n"})
    check_told(Removed, code, reason="no file pins transformers", files={"run.sh": "pip install 'transformers>=4.33'\n"})


def messages(found: list[Finding]) -> list[str]:
    return [f.message for f in found]


def test_what_the_user_reads() -> None:
    (found,) = findings_of(Removed, call('"o", evaluation_strategy="no"'), V5)
    assert messages([found]) == [
        "evaluation_strategy was last known to transformers 4.50; it has been eval_strategy since 4.41; TrainingArguments(…) has "
        "to say eval_strategy"
    ]
    assert [(e.kind, e.text, e.path, e.line) for e in found.evidence] == [
        ("version", "transformers >=5.0,<6", "requirements.txt", 1)
    ]


@pytest.mark.parametrize(("python", "told"), [("3.8", False), ("3.9", True), ("3.11", True)])
def test_the_python_of_the_environment(python: str, *, told: bool) -> None:
    """The parameter went in 4.51, which asks for Python 3.9."""
    files = {"environment.yml": f"dependencies:\n  - python={python}\n  - transformers\n"}
    assert bool(findings_of(Removed, call('evaluation_strategy="steps"'), files)) is told


@pytest.mark.parametrize(
    ("line", "told"), [("if transformers.__version__ >= '4.46':\n        settings()", False), ("settings()", True)]
)
def test_a_function_that_is_called_for_some_versions(line: str, *, told: bool) -> None:
    source = (
        "from transformers import TrainingArguments\n\n\ndef settings():\n"
        "    return TrainingArguments('out', evaluation_strategy='no')\n"
    )
    run = f"import transformers\nfrom module import settings\n\nif __name__ == '__main__':\n    {line}\n"
    files = {"requirements.txt": "transformers>=5.0\n", "run.py": run}
    assert bool(findings_of(Removed, source, files)) is told
