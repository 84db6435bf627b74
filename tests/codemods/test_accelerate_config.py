"""DDP603: configuration files of Accelerate that the launcher refuses, or takes for one process."""

from __future__ import annotations

import pytest

from codemods.trainer.accelerate_config import AccelerateConfig
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

HEAD = "# made by hand\ncompute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU  # two of them\nnum_processes: 2\n"
PATH = "conf/accelerate.yaml"


def transformed(before: str, after: str, *, unsafe: bool = False, pins: str = "") -> None:
    files = {"requirements.txt": pins} if pins else {}
    check_transformed(AccelerateConfig, HEAD + before, HEAD + after, files=files, path=PATH, unsafe=unsafe)


def told(text: str, reason: str, *, pins: str = "", head: str = HEAD) -> None:
    files = {"requirements.txt": pins} if pins else {}
    check_told(AccelerateConfig, head + text, reason=reason, files=files, path=PATH)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("mixed_precision: no  # full\n", 'mixed_precision: "no"  # full\n'),
        ("mixed_precision: False\n", 'mixed_precision: "no"\n'),
        ("dynamo_backend: no\n", 'dynamo_backend: "NO"\n'),
        ("find_unused_parameters: false  # why\ndebug: false\n", "debug: false\n"),
        ("ddp_bucket_cap_mb: 25\nddp_timeout: 1800\ndebug: true\n", "debug: true\n"),
        ("gradient_accumulation_steps: 1\n", ""),
        (
            "fsdp_config:\n  fsdp_version: 2\nfsdp_offload_params: true  # all\n",
            "fsdp_config:\n  fsdp_version: 2\n  fsdp_offload_params: true\n",
        ),
    ],
)
def test_what_only_stops_the_launch(before: str, after: str) -> None:
    transformed(before, after)


def test_a_key_of_deepspeed_goes_into_its_part() -> None:
    head = "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\n"
    before = head + "deepspeed_config:\n  zero_stage: 2\ngradient_accumulation_steps: 4\nnum_processes: 2\n"
    after = head + "deepspeed_config:\n  zero_stage: 2\n  gradient_accumulation_steps: 4\nnum_processes: 2\n"
    check_transformed(AccelerateConfig, before, after, path=PATH)
    check_told(AccelerateConfig, head + "gradient_clipping: 1.0\n", reason="belongs into deepspeed_config", path=PATH)
    twice = head + "deepspeed_config:\n  gradient_clipping: 0.5\ngradient_clipping: 1.0\n"
    check_told(AccelerateConfig, twice, reason="which of the two is meant", path=PATH)


def test_json_is_read_as_well() -> None:
    head = '{\n  "compute_environment": "LOCAL_MACHINE",\n  "distributed_type": "MULTI_GPU",\n'
    before = head + '  "mixed_precision": false,\n  "ddp_backend": null\n}\n'
    after = head + '  "mixed_precision": "no"\n}\n'
    check_transformed(AccelerateConfig, before, after, path="a.json")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("ddp_find_unused_parameters: true\n", ""),
        ("gradient_accumulation_steps: 4\n", ""),
        ("ddp_config:\n  bucket_cap_mb: 50\n  # more\n  static_graph: true\ndebug: no\n", "debug: no\n"),
    ],
)
def test_a_key_that_asks_for_something_is_unsafe(before: str, after: str) -> None:
    transformed(before, after, unsafe=True)


def test_removed_keys_go_by_version() -> None:
    transformed("ipex_config:\n  ipex: false\n", "", pins="accelerate>=1.13\n")
    transformed("tp_config: {}\n", "", pins="accelerate==1.10.0\n")
    told("ipex_config:\n  ipex: false\n", "no file pins accelerate")
    told("ipex_config:\n  ipex: false\n", "allows versions with it and without", pins="accelerate>=1.2\n")
    check_nothing(AccelerateConfig, HEAD + "ipex_config: {}\n", files={"requirements.txt": "accelerate<1.13\n"}, path=PATH)
    told("parallelism_config: {}\n", "allows no version that has it", pins="accelerate==1.4.0\n")


def test_the_type() -> None:
    head = "compute_environment: LOCAL_MACHINE\nnum_processes: 2\n"
    check_transformed(AccelerateConfig, head + "distributed_type: multi_gpu\n", head + "distributed_type: MULTI_GPU\n", path=PATH)
    check_transformed(
        AccelerateConfig, head + "distributed_type: DDP\n", head + "distributed_type: MULTI_GPU\n", path=PATH, unsafe=True
    )
    told("distributed_type: RING\n", "known are DEEPSPEED", head=head)
    told("", "which one is meant", head=head)


@pytest.mark.parametrize("kind", ["NO", "'NO'", "no", "MULTI_CPU"])
def test_several_processes_that_are_one(kind: str) -> None:
    told(f"distributed_type: {kind}\nnum_processes: 4\n", "write MULTI_GPU", head="compute_environment: LOCAL_MACHINE\n")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("num_process: 2\n", "num_processes may be meant"),
        ("learning_rate: 1\n", "what it is meant for is not shown"),
        ("mixed_precision: yes\n", "which mixed_precision is meant"),
        ("mixed_precision: &off no\nuse_cpu: *off\n", "an anchor that other keys take as well"),
    ],
)
def test_what_is_told(text: str, reason: str) -> None:
    told(text, reason)


@pytest.mark.parametrize(
    "text",
    [
        HEAD + "mixed_precision: 'no'\ndowncast_bf16: no\nuse_cpu: false\nmain_process_port: 29500\n",
        "compute_environment: LOCAL_MACHINE\ndistributed_type: NO\nnum_processes: 1\n",
        "compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_CPU\nnum_processes: 2\nmpirun_config: {mpirun_ccl: 1}\n",
        "compute_environment: AMAZON_SAGEMAKER\ndistributed_type: NO\nregion: x\nmixed_precision: no\n",
        "trainer:\n  distributed_type: MULTI_GPU\n  mixed_precision: no\n  num_processes: 2\n",
        "distributed_type: MULTI_GPU\nnames: x\n",
    ],
)
def test_what_is_right_or_no_such_file(text: str) -> None:
    check_nothing(AccelerateConfig, text, path=PATH)


COUNTLESS = "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\n"


@pytest.mark.parametrize(
    "job",
    ["", "accelerate launch --num_processes 2 train.py\n", f"accelerate launch --config_file {PATH} train.py\n"],
)
def test_several_processes_without_their_number(job: str) -> None:
    files = {"job.sh": job} if job else {}
    check_told(AccelerateConfig, COUNTLESS, reason="give --num_processes with each launch", files=files, path=PATH)


@pytest.mark.parametrize("flag", ["--num_processes 2", "--num-processes=$GPUS"])
def test_a_job_that_gives_the_number_with_the_launch(flag: str) -> None:
    job = f"accelerate launch --config_file ../{PATH} {flag} train.py\n"
    check_nothing(AccelerateConfig, COUNTLESS, files={"job.sh": job}, path=PATH)


def test_one_process_needs_no_number() -> None:
    check_nothing(AccelerateConfig, COUNTLESS.replace("FSDP", '"NO"'), path=PATH)


def test_what_the_start_of_deepspeed_does_not_read() -> None:
    config = "distributed_type: {}\nnum_processes: 8\ndynamo_backend: no\n"
    check_nothing(AccelerateConfig, config.format("DEEPSPEED"), path="config.yaml")
    assert findings_of(AccelerateConfig, config.format("MULTI_GPU"), path="config.yaml")
