"""DDP711: a number of Slurm that is asked for before the launcher's."""

from __future__ import annotations

import pytest

from codemods.launch.scheduler_before_launcher import SchedulerBeforeLauncher
from ddpfix.testing import check_nothing, check_transformed, findings_of

RULE = SchedulerBeforeLauncher
STARTS = {"README.md": "# How to run\n\n```bash\ntorchrun --nproc_per_node=4 train.py\n```\n"}
HEAD = "import os\n\n\ndef begin(options):\n"


def program(*lines: str) -> str:
    return HEAD + "".join(f"    {line}\n" for line in lines)


LAUNCHED = "options.rank = int(os.environ['RANK'])"


def arms(test: str, *slurm: str, other: tuple[str, ...] = (LAUNCHED,), head: str = "else:") -> str:
    return program(f"if {test}:", *(f"    {line}" for line in slurm), head, *(f"    {line}" for line in other))


TASK = "options.rank = int(os.environ['SLURM_PROCID'])"


@pytest.mark.parametrize(
    ("test", "said"),
    [
        ("'SLURM_PROCID' in os.environ", "`SLURM_PROCID` stands before what torchrun sets: "),
        ("'SLURM_JOB_ID' in os.environ", "`SLURM_PROCID`, taken where `SLURM_JOB_ID` is set, stands before what torchrun sets: "),
    ],
)
def test_the_message_names_the_variable_that_stands_in_the_line(test: str, said: str) -> None:
    (found,) = findings_of(RULE, arms(test, TASK), files=STARTS)
    assert found.message.startswith(said)


def test_the_example_of_the_documentation() -> None:
    sections = RULE.sections()
    before, after = (sections[s].removeprefix("```python\n").removesuffix("```") for s in ("Example", "Use instead"))
    check_transformed(RULE, before, after, files=STARTS, unsafe=True)


def first_of(names: str, variable: str = "name") -> str:
    return program(
        f"for {variable} in {names}:", f"    if {variable} in os.environ:",
        f"        options.number = int(os.environ[{variable}])", "        break",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('("SLURM_PROCID", "RANK")', '("RANK", "SLURM_PROCID")'),
        ("['SLURM_LOCALID', 'OMPI_COMM_WORLD_LOCAL_RANK', 'LOCAL_RANK']",
         "['LOCAL_RANK', 'SLURM_LOCALID', 'OMPI_COMM_WORLD_LOCAL_RANK']"),
        ("('PMI_SIZE', 'SLURM_NTASKS', 'WORLD_SIZE', 'SIZE')", "('WORLD_SIZE', 'PMI_SIZE', 'SLURM_NTASKS', 'SIZE')"),
    ],
)  # fmt: skip
def test_the_first_name_of_a_list(before: str, after: str) -> None:
    check_transformed(RULE, first_of(before), first_of(after), files=STARTS, unsafe=True)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("os.environ.get('SLURM_PROCID', os.environ.get('RANK', 0))",
         "os.environ.get('RANK', os.environ.get('SLURM_PROCID', 0))"),
        ('os.getenv("SLURM_LOCALID", os.getenv("LOCAL_RANK", "0"))', 'os.getenv("LOCAL_RANK", os.getenv("SLURM_LOCALID", "0"))'),
    ],
)  # fmt: skip
def test_the_default_of_a_variable(before: str, after: str) -> None:
    check_transformed(
        RULE, program(f"options.rank = int({before})"), program(f"options.rank = int({after})"), files=STARTS, unsafe=True
    )


@pytest.mark.parametrize(
    ("test", "asked"),
    [
        ('"SLURM_PROCID" in os.environ', '"SLURM_PROCID" in os.environ and "RANK" not in os.environ'),
        ("'SLURM_JOB_ID' in os.environ", "'SLURM_JOB_ID' in os.environ and 'RANK' not in os.environ"),
        ("'SLURM_JOB_ID' in os.environ and options.many",
         "'SLURM_JOB_ID' in os.environ and options.many and 'RANK' not in os.environ"),
    ],
)  # fmt: skip
def test_the_arms_of_a_test(test: str, asked: str) -> None:
    check_transformed(RULE, arms(test, TASK), arms(asked, TASK), files=STARTS, unsafe=True)


@pytest.mark.parametrize("test", ["'SLURM_PROCID' not in os.environ", "not 'SLURM_PROCID' in os.environ"])
def test_a_test_that_is_turned_round(test: str) -> None:
    before, after = (arms(t, LAUNCHED, other=(TASK,)) for t in (test, f"{test} or 'RANK' in os.environ"))
    check_transformed(RULE, before, after, files=STARTS, unsafe=True)
    check_nothing(RULE, arms(test, TASK, other=(LAUNCHED,)), files=STARTS)


def test_arms_that_ask_for_the_launcher_by_a_test_of_their_own() -> None:
    rest = ("options.rank = int(os.environ['RANK'])",)
    chain = {"other": rest, "head": "elif 'RANK' in os.environ:"}
    asked = "'SLURM_PROCID' in os.environ and 'RANK' not in os.environ"
    before, after = (arms(t, TASK, **chain) for t in ("'SLURM_PROCID' in os.environ", asked))  # type: ignore[arg-type]
    check_transformed(RULE, before, after, files=STARTS, unsafe=True)


OVERWRITTEN = ("os.environ['RANK'] = os.environ['SLURM_PROCID']", "options.rank = int(os.environ['RANK'])",
               "os.environ['LOCAL_RANK'] = str(options.rank % 4)", "options.gpu = int(os.environ['LOCAL_RANK'])")  # fmt: skip
GPU = "options.gpu = int(os.environ['LOCAL_RANK'])"


@pytest.mark.parametrize("other", [(LAUNCHED,), (GPU,), (LAUNCHED, GPU)])
def test_what_the_launcher_has_set_is_overwritten(other: tuple[str, ...]) -> None:
    key = "RANK" if LAUNCHED in other else "LOCAL_RANK"
    asked = f"'SLURM_PROCID' in os.environ and '{key}' not in os.environ"
    before, after = (arms(t, *OVERWRITTEN, other=other) for t in ("'SLURM_PROCID' in os.environ", asked))
    check_transformed(RULE, before, after, files=STARTS, unsafe=True)


@pytest.mark.parametrize(
    "slurm",
    [(*OVERWRITTEN[:2], GPU),  # the local rank is the launcher's
     OVERWRITTEN[:2],  # the second call would read a LOCAL_RANK that nobody has set
     (LAUNCHED, *OVERWRITTEN),
     ("if options.force:", f"    {OVERWRITTEN[0]}", TASK, *OVERWRITTEN[1:])],
)  # fmt: skip
def test_numbers_that_the_launcher_may_have_set(slurm: tuple[str, ...]) -> None:
    check_nothing(RULE, arms("'SLURM_PROCID' in os.environ", *slurm, other=(LAUNCHED, GPU)), files=STARTS)


def test_the_local_rank_alone() -> None:
    lines = {"other": ("options.gpu = int(os.environ['LOCAL_RANK'])",)}
    test = "'SLURM_PROCID' in os.environ"
    gpu = "options.gpu = int(os.environ['SLURM_LOCALID'])"
    before, after = (arms(t, gpu, **lines) for t in (test, f"{test} and 'LOCAL_RANK' not in os.environ"))  # type: ignore[arg-type]
    check_transformed(RULE, before, after, files=STARTS, unsafe=True)


def test_what_one_function_asks_is_told_once() -> None:
    both = first_of("('SLURM_NTASKS', 'WORLD_SIZE')") + first_of("('SLURM_PROCID', 'RANK')").removeprefix(HEAD)
    (found,) = findings_of(RULE, both, files=STARTS)
    assert "all processes of one torchrun take the same rank" in found.message
    (alone,) = findings_of(RULE, first_of("('SLURM_NTASKS', 'WORLD_SIZE')"), files=STARTS)
    assert "take the number of tasks for that of processes" in alone.message


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"README.md": "Start it with `srun python train.py`.\n"},
        {"install.sh": "pip install torchrun-helpers\n"},
        {"start.py": "import subprocess\nsubprocess.run(['torchrun', 'train.py'])\n"},  # what it starts is not seen here
    ],
)
def test_a_repository_that_no_torchrun_starts(files: dict[str, str]) -> None:
    check_nothing(RULE, arms("'SLURM_PROCID' in os.environ", TASK), files=files)


@pytest.mark.parametrize(
    "source",
    [
        first_of("('RANK', 'SLURM_PROCID')"),
        first_of("('SLURM_JOB_ID', 'RANK')"),  # no number of a process
        first_of("('SLURM_PROCID', options.name, 'RANK')"),
        program("for name in ('SLURM_PROCID', 'RANK'):", "    print(name, os.environ.get(name))"),
        program("for name in ('SLURM_PROCID', 'RANK'):", "    if name in os.environ:", "        options.rank = os.environ[name]"),
        program("options.rank = int(os.environ.get('RANK', os.environ.get('SLURM_PROCID', 0)))"),
        program("options.rank = int(os.environ.get('SLURM_PROCID', 0))"),
        program("options.rank = int(os.environ.get('SLURM_PROCID', os.environ['RANK']))"),  # raises without a launcher
    ],
)
def test_orders_that_are_right_or_no_order(source: str) -> None:
    check_nothing(RULE, source, files=STARTS)


@pytest.mark.parametrize(
    "source",
    [
        arms("options.launcher == 'slurm'", TASK),
        arms("'SLURM_PROCID' in os.environ and 'LOCAL_RANK' not in os.environ", TASK),
        arms("'SLURM_PROCID' in os.environ and os.environ['SLURM_JOB_NAME'] != 'bash'", TASK),
        arms("'SLURM_PROCID' in os.environ", TASK, other=("options.rank = 0",)),
        arms("'SLURM_PROCID' in os.environ", TASK, other=("print(os.environ['RANK'])",)),
        arms("'SLURM_PROCID' in os.environ", "options.cluster = True"),
        arms("'SLURM_PROCID' in os.environ", TASK, "os.environ['RANK'] = str(options.rank)", other=("options.rank = 0",)),
        arms("'SLURM_PROCID' in os.environ or options.many", TASK),
        arms("'RANK' in os.environ", "options.rank = int(os.environ['RANK'])", head="elif 'SLURM_PROCID' in os.environ:",
             other=(TASK,)) + "    else:\n        options.rank = int(os.environ.get('RANK', 0))\n",
        program("if 'WORLD_SIZE' not in os.environ:", "    if 'SLURM_PROCID' in os.environ:", f"        {TASK}", "    else:",
                "        options.rank = int(os.environ.get('RANK', 0))"),
    ],
)  # fmt: skip
def test_tests_that_leave_the_launcher_its_say(source: str) -> None:
    check_nothing(RULE, source, files=STARTS)


def test_own_tests_stay() -> None:
    check_nothing(RULE, arms("'SLURM_PROCID' in os.environ", TASK), files=STARTS, path="tests/test_begin.py")


SET = 'if int(os.environ.get("RANK", -1)) != -1:'


@pytest.mark.parametrize(
    ("test", "line", "after"),
    [
        (SET, 'rank = int(os.environ["SLURM_PROCID"])', 'rank = int(os.environ["RANK"])'),
        ("if 'RANK' in os.environ and options.several:", "options.rank = int(os.environ['SLURM_PROCID'])",
         "options.rank = int(os.environ['RANK'])"),
        ("if os.environ.get('LOCAL_RANK') is not None:", "local_rank = int(os.getenv('SLURM_LOCALID', 0))",
         "local_rank = int(os.getenv('LOCAL_RANK', 0))"),
        ("if int(os.environ.get('RANK', '-1')) >= 0:",
         "start(rank=int(os.environ['SLURM_PROCID']), world_size=int(os.environ['WORLD_SIZE']))",
         "start(rank=int(os.environ['RANK']), world_size=int(os.environ['WORLD_SIZE']))"),
    ],
)  # fmt: skip
def test_a_task_is_taken_where_the_launcher_has_set_a_rank(test: str, line: str, after: str) -> None:
    check_transformed(RULE, program(test, f"    {line}"), program(test, f"    {after}"), files=STARTS, unsafe=True)


def test_a_name_for_the_test() -> None:
    given = "several = int(os.environ.get('RANK', -1)) != -1"
    before = program(given, "if options.on and several:", f"    {TASK}")
    check_transformed(RULE, before, before.replace("SLURM_PROCID", "RANK"), files=STARTS, unsafe=True)


@pytest.mark.parametrize(
    "source",
    [
        program(SET, f"    {LAUNCHED}", "    options.task_rank = int(os.environ['SLURM_PROCID'])"),  # both are read
        program("if options.several:", f"    {TASK}"),
        program("if int(os.environ.get('RANK', 0)) >= 0:", f"    {TASK}"),  # holds without a launcher
        program(SET, "    print(os.environ['SLURM_PROCID'])"),
        program(SET, "    node_rank = int(os.environ['SLURM_PROCID'])"),
        program(SET, "    rank = int(os.environ['SLURM_PROCID']) * options.gpus + options.gpu"),
        program(SET, "    pass", "else:", f"    {TASK}"),
    ],
)
def test_a_task_that_is_no_rank_of_the_launcher(source: str) -> None:
    check_nothing(RULE, source, files=STARTS)


def test_a_project_without_a_launcher_may_set_the_rank_itself() -> None:
    check_nothing(RULE, program(SET, f"    {TASK}"))


OVER = "os.environ['LOCAL_RANK'] = os.environ['SLURM_LOCALID']"
COMMAND = {"README.md": "```bash\ntorchrun --nproc_per_node=4 module.py\n```\n"}
BEGIN = "import os\n\n\n"


def over(test: str, *lines: str) -> str:
    return BEGIN + f"if {test}:\n" + "".join(f"    {line}\n" for line in lines)


def called(test: str, body: str = OVER, more: str = "") -> str:
    asks = "def in_job():\n    return 'SLURM_JOB_ID' in os.environ\n\n\n"
    main = f"if __name__ == '__main__':\n    if {test}:\n        take_over()\n{more}"
    return f"{BEGIN}{asks}def take_over():\n    {body}\n\n\n{main}"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (over("'SLURM_JOB_ID' in os.environ", OVER),
         over("'SLURM_JOB_ID' in os.environ and 'LOCAL_RANK' not in os.environ", OVER)),
        (over("'SLURM_PROCID' in os.environ", "os.environ['RANK'] = str(int(os.environ['SLURM_PROCID']))"),
         over("'SLURM_PROCID' in os.environ and 'RANK' not in os.environ",
              "os.environ['RANK'] = str(int(os.environ['SLURM_PROCID']))")),
        (called("in_job()"), called('in_job() and "LOCAL_RANK" not in os.environ')),
        (called("'SLURM_JOB_ID' in os.environ"), called("'SLURM_JOB_ID' in os.environ and 'LOCAL_RANK' not in os.environ")),
    ],
)  # fmt: skip
def test_a_task_is_put_over_what_the_launcher_has_set(before: str, after: str) -> None:
    check_transformed(RULE, before, after, files=COMMAND, unsafe=True)
    check_nothing(RULE, before, files={"README.md": "```bash\nsrun python module.py\n```\n"})
    check_nothing(RULE, before, files={"README.md": "torchrun other.py\n", "other.py": "import os\n"})
    check_transformed(RULE, before, after, files={"README.md": "Or start it by `$ torchrun module.py …`.\n"}, unsafe=True)


@pytest.mark.parametrize(
    "source",
    [
        over("options.launcher == 'slurm'", OVER),
        over("'SLURM_JOB_ID' in os.environ and 'RANK' not in os.environ", OVER),
        over("'SLURM_JOB_ID' in os.environ", "os.environ['NODE'] = os.environ['SLURM_NODEID']"),
        over("'SLURM_JOB_ID' in os.environ", "os.environ['RANK'] = str(int(os.environ['SLURM_PROCID']) * 4 + gpu)"),
        called("options.slurm"),
        called("in_job()", more="        print(take_over)\n"),
        called("in_job()").replace("return 'SLURM_JOB_ID' in os.environ", "return options.slurm"),
        called("in_job()", "if 'RANK' not in os.environ:\n        " + OVER),
        BEGIN + OVER + "\n",  # for srun alone
    ],
)
def test_what_leaves_the_launcher_its_rank_or_is_for_slurm_alone(source: str) -> None:
    check_nothing(RULE, source, files=COMMAND)
