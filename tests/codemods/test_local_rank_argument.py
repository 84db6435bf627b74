"""DDP701: a script learns its local rank from `--local_rank` alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from codemods.launch.local_rank_argument import LocalRankArgument
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

RULE = LocalRankArgument
HEAD = "import argparse\nimport os\n\nimport torch\nimport torch.distributed as dist\n\nparser = argparse.ArgumentParser()\n"
TAIL = "args = parser.parse_args()\ntorch.cuda.set_device(args.local_rank)\ndist.init_process_group('nccl')\n"


def script(call: str, tail: str = TAIL) -> str:
    return f"{HEAD}{call}\n{tail}"


def test_the_example_of_the_documentation() -> None:
    sections = RULE.sections()
    before, after = (sections[s].removeprefix("```python\n").removesuffix("```") for s in ("Example", "Use instead"))
    check_transformed(RULE, before, after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("'--local_rank', default=-1, type=int, help='rank'",
         "'--local_rank', '--local-rank', default=int(os.environ.get('LOCAL_RANK', -1)), type=int, help='rank'"),
        ("'--local-rank', type=int, required=True",
         "'--local-rank', '--local_rank', type=int, default=os.environ.get('LOCAL_RANK')"),
        ("'--local_rank', '--local-rank', type=int, default=0",
         "'--local_rank', '--local-rank', type=int, default=int(os.environ.get('LOCAL_RANK', 0))"),
    ],
)  # fmt: skip
def test_forms_of_the_option(before: str, after: str) -> None:
    check_transformed(RULE, script(f"parser.add_argument({before})"), script(f"parser.add_argument({after})"))


def test_the_device_chosen_in_other_ways() -> None:
    option = "parser.add_argument('--local_rank', type=int, default=0)"
    for use in ("net = net.cuda(args.local_rank)", "d = torch.device('cuda', args.local_rank)", "net.to(args.local_rank)"):
        tail = TAIL.replace("torch.cuda.set_device(args.local_rank)", use)
        after = script(option, tail).replace("'--local_rank'", "'--local_rank', '--local-rank'")
        after = after.replace("default=0", "default=int(os.environ.get('LOCAL_RANK', 0))")
        check_transformed(RULE, script(option, tail), after)


@pytest.mark.parametrize(
    "call",
    ["parser.add_argument('--local_rank', default=0)", "parser.add_argument('--local_rank', type=int, default=first())",
     "parser.add_argument(\n    '--local_rank',  # of the launcher\n    type=int, default=0,\n)"],
)  # fmt: skip
def test_what_is_told(call: str) -> None:
    check_told(RULE, script(call), reason="os.environ")


def test_an_option_for_each_spelling_is_not_widened() -> None:
    one = "parser.add_argument('--local_rank', type=int, default=0)"
    two = f"{one}\n{one.replace('local_rank', 'local-rank')}"
    check_told(RULE, script(two), reason="leave one option of that name")


def test_another_meaning_of_os() -> None:
    source = script("parser.add_argument('--local_rank', type=int, default=0)").replace("import os\n", "os = 'linux'\n")
    check_told(RULE, source, reason="another meaning")


OPTION = "parser.add_argument('--local_rank', type=int, default=0)"


@pytest.mark.parametrize(
    "source",
    [
        script(OPTION, TAIL + "rank = os.environ['LOCAL_RANK']\n"),
        script(OPTION, TAIL + "import deepspeed\n"),
        script(OPTION, TAIL.replace("torch.cuda.set_device(args.local_rank)\n", "")),
        script(OPTION, TAIL.replace("dist.init_process_group('nccl')\n", "")),
        script("parser.add_argument('--rank', type=int, default=0)"),
    ],
)
def test_nothing_is_said(source: str) -> None:
    check_nothing(RULE, source)


def test_another_file_takes_it_from_the_environment() -> None:
    setup = "import os\n\ndef setup(args):\n    args.local_rank = int(os.environ['LOCAL_RANK'])\n"
    check_nothing(RULE, script(OPTION), files={"setup_ranks.py": setup})


def test_another_script_takes_its_own_from_the_environment() -> None:
    other = "import os\n\n\ndef main():\n    local_rank = int(os.environ['LOCAL_RANK'])\n\n\n"
    other += "if __name__ == '__main__':\n    main()\n"
    assert findings_of(RULE, script(OPTION), {"train_more.py": other})
    start = "import train_more\nimport module\n"  # both are parts of a program
    check_nothing(RULE, script(OPTION), files={"train_more.py": other, "start.py": start})
    check_nothing(RULE, script(OPTION), files={"train_more.py": "import module\n" + other})


def test_an_old_torch_and_own_tests() -> None:
    check_nothing(RULE, script(OPTION), files={"requirements.txt": "torch==1.12.1\n"})
    check_nothing(RULE, script(OPTION), path="tests/test_ranks.py")


def test_a_spelling_that_the_launcher_of_the_repository_passes() -> None:
    both = script("parser.add_argument('--local_rank', '--local-rank', type=int, default=0)")
    fixed = both.replace("default=0", "default=int(os.environ.get('LOCAL_RANK', 0))")
    launched = {"run.sh": "python -m torch.distributed.launch --nproc_per_node 2 train.py\n"}
    check_nothing(RULE, both, files=launched)
    check_transformed(RULE, both, fixed, files={**launched, "README.md": "Or: `torchrun train.py`\n"})
    one, other = both.replace("'--local-rank', ", ""), fixed
    check_transformed(RULE, one, other, files=launched)


# Files that a command of the repository starts

OPTION = "parser.add_argument('--local_rank', type=int, default=0)"
LAUNCH = "python -m torch.distributed.launch --nproc_per_node=2 \\\n    module.py --epochs 3\n"
PARSER = f"import argparse\n\nparser = argparse.ArgumentParser()\n{OPTION}\nargs = parser.parse_args()\n"
BOTH = PARSER.replace("'--local_rank'", "'--local_rank', '--local-rank'")
OUTER = (
    "import subprocess\nimport sys\n\n\ndef again(script):\n"
    "    subprocess.run([sys.executable, '-m', 'torch.distributed.launch', '--nproc_per_node', '2', script, *sys.argv[1:]])\n"
)


@pytest.mark.parametrize("name", ["run.sh", "README.md", "jobs/train.slurm"])
def test_a_script_that_the_launcher_starts(name: str) -> None:
    found = check_transformed(RULE, PARSER, BOTH, files={name: LAUNCH})
    assert f"{name} (line 1) starts this script" in found[0].message
    check_transformed(RULE, f"import os\n\nprint(os.environ['LOCAL_RANK'])\n{PARSER}",
                      f"import os\n\nprint(os.environ['LOCAL_RANK'])\n{BOTH}", files={name: LAUNCH})  # fmt: skip


def test_the_new_spelling_alone_where_the_launcher_is_older() -> None:
    dashed = PARSER.replace("_rank'", "-rank'")
    both = BOTH.replace("'--local_rank', '--local-rank'", "'--local-rank', '--local_rank'")
    old = {"run.sh": LAUNCH, "requirements.txt": "torch==1.8.0+cu111\n"}
    found = check_transformed(RULE, dashed, both, files=old)
    assert "passes `--local_rank` before torch 2.0 (requirements.txt names an older one)" in found[0].message
    for pin in ("torch>=1.8\n", "torch==2.1\n", "numpy\n"):
        check_nothing(RULE, dashed, files={**old, "requirements.txt": pin})
    check_nothing(RULE, dashed, files={**old, "run.sh": LAUNCH.replace("--nproc", "--use_env --nproc")})
    check_nothing(RULE, dashed, files={**old, "run.sh": "python module.py\n"})
    check_nothing(RULE, dashed.replace("args = parser.parse_args()", "args, _ = parser.parse_known_args()"), files=old)
    check_nothing(RULE, both, files=old)


def test_options_that_the_started_script_imports() -> None:
    files = {"main.py": "from module import args\n", "run.sh": LAUNCH.replace("module", "main")}
    check_transformed(RULE, PARSER, BOTH, files=files)


def test_a_program_that_starts_the_script_again() -> None:
    check_transformed(RULE, f"import start\n{PARSER}", f"import start\n{BOTH}", files={"start.py": OUTER})
    check_nothing(RULE, PARSER, files={"start.py": OUTER})


@pytest.mark.parametrize(
    "files",
    [{}, {"run.sh": LAUNCH.replace("launch", "launch --use_env")}, {"run.sh": LAUNCH.replace("module.py", "other.py")},
     {"run.sh": "torchrun --nproc_per_node=2 module.py\n"}, {"run.sh": LAUNCH, "requirements.txt": "torch==1.12.1\n"},
     {"run.sh": LAUNCH, "README.md": "    conda install pytorch==1.7.1\n"},
     {"old/run.sh": LAUNCH, "old/module.py": PARSER}],
)  # fmt: skip
def test_what_no_new_launcher_starts(files: dict[str, str]) -> None:
    check_nothing(RULE, PARSER, files=files)


def test_a_script_that_passes_over_what_it_does_not_know() -> None:
    check_nothing(RULE, PARSER.replace("parse_args", "parse_known_args"), files={"run.sh": LAUNCH})


PARSER_APART = f"import argparse\n\n\ndef options():\n    parser = argparse.ArgumentParser()\n    {OPTION}\n    return parser\n"
PARSES_APART = (
    "from module import options\n\nif __name__ == '__main__':\n    parser = options()\n"
    "    args, rest = parser.parse_known_args()\n"
)


@pytest.mark.parametrize(
    ("user", "left"),
    [
        (PARSES_APART, True),
        (PARSES_APART.replace("parser = options()\n    args, rest = parser", "args, rest = options()"), True),
        (PARSES_APART.replace("args, rest = parser.parse_known_args()", "args = parser.parse_args()"), False),
        (f"{PARSES_APART}    print(parser.parse_args())\n", False),
    ],
)
def test_a_parser_of_another_file_that_passes_over_what_it_does_not_know(user: str, left: bool) -> None:
    after = PARSER_APART.replace("'--local_rank'", "'--local_rank', '--local-rank'")
    files = {"main.py": user, "run.sh": LAUNCH.replace("module.py", "main.py")}
    (found,) = check_transformed(RULE, PARSER_APART, after, files=files)
    assert ("leaves it among the rest" in found.message) is left
    assert ("argparse refuses it" in found.message) is not left


def test_an_option_with_a_comment_that_the_launcher_fills() -> None:
    source = PARSER.replace("type=int,", "type=int,  # of the launcher\n   ")
    check_told(RULE, source, reason="both spellings", files={"run.sh": LAUNCH})


def test_an_old_torch_that_the_texts_speak_of() -> None:
    source = script("parser.add_argument('--local_rank', type=int, default=0)")
    options = "'--local_rank', '--local-rank', type=int, default=int(os.environ.get('LOCAL_RANK', 0))"
    after = script(f"parser.add_argument({options})")
    for said in ("pip install torch==1.9.0\n", "Python 3.7, PyTorch 1.7.1\n", "conda install pytorch cudatoolkit=10.1\n"):
        check_nothing(RULE, source, files={"README.md": said})
        files = {"README.md": said, "docs/new.md": "PyTorch 2.1 works, too.\n"}
        (found,) = check_transformed(RULE, source, after, files=files, unsafe=True)
        assert "README.md names an older one" in found.reason
    check_transformed(RULE, source, after, files={"README.md": "PyTorch 1.7 or newer\n"})
    check_transformed(RULE, source, after, files={"requirements.txt": "torch>=2.1\n", "README.md": "PyTorch 1.7\n"})


def test_options_beside_those_of_the_started_script() -> None:
    check_nothing(RULE, PARSER, files={"main.py": f"import module\n{PARSER}", "run.sh": LAUNCH.replace("module", "main")})


def test_the_call_stays_as_it_is_laid_out() -> None:
    before = script("parser.add_argument(\n    '--local_rank',\n    type=int,\n    default=-1,\n)")
    after = before.replace("    '--local_rank',", "    '--local_rank', '--local-rank',").replace(
        "default=-1", "default=int(os.environ.get('LOCAL_RANK', -1))"
    )
    check_transformed(RULE, before, after)


# Where the argument comes to the device on a way

SIMPLE = "parser.add_argument('--local_rank', type=int, default=0)"
AWARE = "parser.add_argument('--local_rank', '--local-rank', type=int, default=int(os.environ.get('LOCAL_RANK', 0)))"
START = "dist.init_process_group('nccl')"


@pytest.mark.parametrize(
    "tail",
    [
        f"args = parser.parse_args()\ngpu = args.local_rank\ntorch.cuda.set_device(gpu)\n{START}\n",
        f"args = parser.parse_args()\nargs.gpu = int(args.local_rank)\nnet = net.cuda(args.gpu)\n{START}\n",
        f"args = vars(parser.parse_args())\ntorch.cuda.set_device(args['local_rank'])\n{START}\n",
        f"args = parser.parse_args()\nargs.device = 'cuda:%d' % args.local_rank\n{START}\n",
        f"args = parser.parse_args()\nname = f'cuda:{{args.local_rank}}'\n{START}\n",
        f"args = parser.parse_args()\nname = 'cuda:{{}}'.format(args.local_rank)\n{START}\n",
        f"def run(place, n):\n    torch.cuda.set_device(place)\n    {START}\n\n\n"
        "args = parser.parse_args()\nrun(args.local_rank, 2)\n",
        f"def run(n, place):\n    gpu = place\n    {START}\n    torch.device('cuda', gpu)\n\n\n"
        "run(2, place=parser.parse_args().local_rank)\n",
        f"class Run:\n    def __init__(self, args):\n        self.gpu = args.local_rank\n        {START}\n\n"
        "    def place(self, net):\n        return net.to(self.gpu)\n",
        f"args = parser.parse_args()\ngpus = [args.local_rank]\nnet = net.cuda(gpus[0])\n{START}\n",
        f"args = parser.parse_args()\ngpu = args.local_rank + 1\ntorch.cuda.set_device(gpu)\n{START}\n",
        f"def run(each, n):\n    {START}\n    gpus = list(range(n * each, (n + 1) * each))\n    net.to(gpus[0])\n\n\n"
        "run(1, parser.parse_args().local_rank)\n",
    ],
)  # fmt: skip
def test_the_way_of_the_argument_to_the_device(tail: str) -> None:
    check_transformed(RULE, script(SIMPLE, tail), script(AWARE, tail))


@pytest.mark.parametrize(
    "tail",
    [
        f"args = parser.parse_args()\nnumber = args.local_rank\nprint(number)\n{START}\n",
        f"args = parser.parse_args()\ngpu = args.local_rank\ngpu = choose()\ntorch.cuda.set_device(gpu)\n{START}\n",
        f"def run(place):\n    place = choose(place)\n    torch.cuda.set_device(place)\n    {START}\n\n\n"
        "run(parser.parse_args().local_rank)\n",
        f"def run(gpu, args):\n    args.local_rank = gpu\n    number = args.local_rank\n"
        f"    torch.cuda.set_device(number)\n    {START}\n",
        f"def run(gpu, args):\n    number = args.local_rank\n    torch.cuda.set_device(number)\n    {START}\n\n\n"
        "torch.multiprocessing.spawn(run)\n",
        f"args = parser.parse_args()\nname = f'run {{args.local_rank}}'\n{START}\n",
        f"args = parser.parse_args()\nseed = args.seed + args.local_rank\ntorch.manual_seed(seed)\n{START}\n",
        f"args = parser.parse_args()\ngpu = choose(args.local_rank)\ntorch.cuda.set_device(gpu)\n{START}\n",
        f"args = parser.parse_args()\nparts = [args.local_rank, 2]\nprint(parts)\n{START}\n",
    ],
)  # fmt: skip
def test_ways_to_no_device(tail: str) -> None:
    check_nothing(RULE, script(SIMPLE, tail))


GROUP = (
    "import torch\nimport torch.distributed as dist\n\n\n"
    "def begin(options):\n    torch.cuda.set_device(options.local_rank)\n    {}\n"
)
OPTIONS = (
    "import argparse\nimport os\n\nfrom group import begin\n\n"
    "parser = argparse.ArgumentParser()\n{}\nbegin(parser.parse_args())\n"
)


def test_a_group_that_a_file_beside_the_parser_starts() -> None:
    check_transformed(RULE, OPTIONS.format(SIMPLE), OPTIONS.format(AWARE), files={"group.py": GROUP.format(START)})
    alone = OPTIONS.replace("from group import begin\n\n", "").replace("begin(", "print(")
    above = GROUP.format(START).replace("import torch\n", "import torch\nfrom module import parser\n", 1)
    check_transformed(RULE, alone.format(SIMPLE), alone.format(AWARE), files={"group.py": above})


@pytest.mark.parametrize(
    "files",
    [
        {"group.py": GROUP.format("pass")},  # no group is started
        {"group.py": GROUP.format("pass") + "\n# dist.init_process_group('nccl')\n"},
        {"group.py": GROUP.format(START) + "\n\nWHERE = 'LOCAL_RANK'\n"},
        {"group.py": "import deepspeed\n" + GROUP.format(START)},
        {"group.py": GROUP.format(START).replace("options.local_rank", "0")},
        {"group.py": GROUP.format(START), "start.py": "def worker(gpu, args):\n    args.local_rank = gpu\n"},
        {"other.py": GROUP.format(START)},
    ],
)
def test_files_beside_the_parser_that_do_not_need_it(files: dict[str, str]) -> None:
    check_nothing(RULE, OPTIONS.format(SIMPLE), files=files)


def test_a_parser_that_passes_over_the_new_spelling() -> None:
    tail = TAIL.replace("args = parser.parse_args()", "args, _ = parser.parse_known_args()")
    (found,) = check_transformed(RULE, script(SIMPLE, tail), script(AWARE, tail))
    assert "refuses" not in found.message
    first = "given, rest = first.parse_known_args()\n"  # of a parser for the configuration file
    (found,) = check_transformed(RULE, script(SIMPLE, first + TAIL), script(AWARE, first + TAIL))
    assert "refuses" in found.message


def test_a_script_in_a_folder_that_a_variable_names() -> None:
    start = LAUNCH.replace("module.py", "${ROOT}/module.py")
    check_transformed(RULE, PARSER, BOTH, files={"run.sh": start})
    check_nothing(RULE, PARSER, files={"run.sh": start, "old/module.py": ""})


def test_a_script_that_a_variable_of_the_job_file_names() -> None:
    start = LAUNCH.replace("module.py", "$method.py")
    check_transformed(RULE, PARSER, BOTH, files={"run.sh": f"method='module'\n{start}"})
    check_nothing(RULE, PARSER, files={"run.sh": f"method=$1\n{start}"})


@pytest.mark.parametrize(
    ("job", "start", "is_meant"),
    [
        ("scripts/run.sh", LAUNCH, True),
        ("more/a/scripts/run.sh", LAUNCH, False),
        ("run.sh", f"cd more/a\n{LAUNCH}", False),
        ("more/a/run.sh", f'cd "$(dirname "$0")/../.."\n{LAUNCH}', True),
        ("more/b/run.sh", f"cd $WHERE\n{LAUNCH}", False),  # any of the three
        ("more/b/run.sh", LAUNCH, True),
    ],
)
def test_a_command_means_the_script_of_the_folder_it_runs_in(job: str, start: str, is_meant: bool) -> None:
    others = {"more/a/module.py": "", "other/c/module.py": ""}
    found = findings_of(RULE, PARSER, {job: start, **others})
    assert bool(found) is is_meant


# Flags of absl

FLAGS = (
    "from absl import app, flags\n\nFLAGS = flags.FLAGS\nflags.DEFINE_integer('local_rank', 0, 'of this process')\n\n\n"
    "def main(argv):\n    train(FLAGS.local_rank)\n\n\nif __name__ == '__main__':\n    app.run(main)\n"
)
ALIAS = "flags.DEFINE_alias('local-rank', 'local_rank')\n"
DEFINED = "'of this process')\n"


def test_a_flag_of_absl_gets_an_alias() -> None:
    (found,) = check_transformed(RULE, FLAGS, FLAGS.replace(DEFINED, DEFINED + ALIAS), files={"run.sh": LAUNCH})
    assert "every process ends with \"Unknown command line flag 'local-rank'\"" in found.message


def test_a_flag_in_a_file_that_the_started_script_imports() -> None:
    options = "from absl import flags\n\nRANK = flags.DEFINE_integer('local_rank', 0, 'of this process')\n"
    main = "from absl import app\n\nfrom module import RANK\n\napp.run(print)\n"
    files = {"main.py": main, "run.sh": LAUNCH.replace("module", "main")}
    check_transformed(RULE, options, options + ALIAS, files=files)


def test_an_older_torch_makes_the_alias_unsafe() -> None:
    files = {"run.sh": LAUNCH, "README.md": "Needs torch 1.13 or later, and was run with torch 1.10.\n"}
    found = findings_of(RULE, FLAGS, files)
    assert all(f.applicability.value != "safe" for f in found)


def test_flags_of_absl_that_are_told() -> None:
    bare = FLAGS.replace("from absl import app, flags\n", "from absl import app, flags\nfrom absl.flags import DEFINE_integer\n")
    bare = bare.replace("flags.DEFINE_integer", "DEFINE_integer")
    check_told(RULE, bare, reason="give the flag an alias", files={"run.sh": LAUNCH})


@pytest.mark.parametrize(
    ("source", "command"),
    [
        (FLAGS, "torchrun --nproc_per_node=2 module.py"),
        (FLAGS, LAUNCH.replace("launch", "launch --use_env")),
        (FLAGS, LAUNCH.replace("module.py", "other.py")),
        (FLAGS.replace(DEFINED, DEFINED + ALIAS), LAUNCH),
        (FLAGS.replace("app.run(main)", "FLAGS(sys.argv, known_only=True)"), LAUNCH),
        (FLAGS.replace("from absl import app, flags", "from own import app, flags  # not absl"), LAUNCH),
        (FLAGS.replace("'local_rank'", "'rank'"), LAUNCH),
    ],
)
def test_flags_that_no_launcher_hands_over_or_that_are_taken(source: str, command: str) -> None:
    check_nothing(RULE, source, files={"run.sh": command, "requirements.txt": "torch>=2.1\n"})


def test_a_flag_of_absl_for_an_old_torch() -> None:
    check_nothing(RULE, FLAGS, files={"run.sh": LAUNCH, "requirements.txt": "torch==1.12.1\n"})


def test_a_line_that_is_commented_out_asks_for_nothing() -> None:
    note = "# args.local_rank = os.environ['LOCAL_RANK']\n"
    before = script("parser.add_argument('--local_rank', type=int, default=0)", f"{note}{TAIL}")
    option = "parser.add_argument('--local_rank', '--local-rank', type=int, default=int(os.environ.get('LOCAL_RANK', 0)))"
    check_transformed(RULE, before, script(option, f"{note}{TAIL}"), files={"other.py": f"import os\n\n{note}"})
    check_nothing(RULE, before.replace("# args", "args"))


def test_a_group_that_is_commented_out() -> None:
    check_nothing(RULE, script(SIMPLE, TAIL.replace("dist.init", "# dist.init")))


def test_further_lines_of_a_call_in_a_function_stay_as_deep() -> None:
    head = "import argparse\nimport torch.distributed as dist\n\n\ndef options():\n    parser = argparse.ArgumentParser()\n"
    call = "    parser.add_argument(\n        '--local_rank',\n        type=int,\n    )\n"
    source = f"{head}{call}    return parser.parse_args()\n\n\ndef main():\n    args = options()\n    run(args.local_rank)\n"
    source += "    dist.init_process_group('nccl')\n\n\nmain()\n"
    files = {"run.sh": LAUNCH, "requirements.txt": "torch>=2.1\n"}
    (found,) = findings_of(RULE, source, files)
    assert found.edits
    check_transformed(RULE, source, source.replace("'--local_rank',\n", "'--local_rank', '--local-rank',\n"), files=files)


# A start of the group that is fetched by its name

KINDS = (
    "import torch\nimport torch.distributed as dist\n\n\n"
    "def start_slurm(port, place):\n    dist.init_process_group('nccl')\n\n\n"
    "def start_torch(port, place):\n    torch.cuda.set_device(place % torch.cuda.device_count())\n"
    "    dist.init_process_group('nccl')\n\n\n"
    "def stop_torch(port, place):\n    torch.cuda.set_device(place)\n"
)
FETCHES = (
    "import argparse\nimport os\n\nimport kinds\n\nparser = argparse.ArgumentParser()\nparser.add_argument('--kind')\n"
    "{}\nargs = parser.parse_args()\n"
)


@pytest.mark.parametrize(
    "call",
    [
        "getattr(kinds, 'start_%s' % args.kind)(1, args.local_rank)",
        "count, node.LOCAL_RANK = getattr(kinds, f'start_{args.kind}')(1, place=args.local_rank)",
        "begin = getattr(kinds, 'start_' + args.kind)\nbegin(1, args.local_rank)",
        "getattr(kinds, 'start_{}'.format(args.kind))(1, args.local_rank)",
    ],
)
def test_a_function_that_is_fetched_by_a_part_of_its_name(call: str) -> None:
    before, after = (f"{FETCHES.format(option)}{call}\n" for option in (SIMPLE, AWARE))
    check_transformed(RULE, before, after, files={"kinds.py": KINDS})


@pytest.mark.parametrize(
    ("call", "kinds"),
    [
        ("getattr(kinds, 'begin_%s' % args.kind)(1, args.local_rank)", KINDS),  # no function is called so
        ("getattr(kinds, 'start_%s' % args.kind)(args.local_rank, 1)", KINDS),  # it is the port
        ("getattr(kinds, args.kind)(1, args.local_rank)", KINDS),  # any function
        ("getattr(others, 'start_%s' % args.kind)(1, args.local_rank)", KINDS),  # of another module
        ("getattr(kinds, 'start_%s' % args.kind)(1, args.local_rank)", KINDS.replace("(place % ", "(0 % ")),
        ("getattr(kinds, 'start_%s' % args.kind)(1, args.local_rank)", f"import os\n\nP = os.environ['LOCAL_RANK']\n{KINDS}"),
        ("begin = getattr(kinds, 'start_' + args.kind)\nbegin = print\nbegin(1, args.local_rank)", KINDS),
    ],
)
def test_no_function_that_chooses_the_device_is_fetched(call: str, kinds: str) -> None:
    check_nothing(RULE, f"{FETCHES.format(SIMPLE)}{call}\n", files={"kinds.py": kinds})


MAIN = "\n\nif __name__ == '__main__':\n    main()\n"
EVALUATES = (
    "import argparse\nimport os\n\nimport torch\nimport torch.distributed as dist\n\n\n"
    "def evaluate(net):\n    return net\n\n\n"
    f"def main():\n    parser = argparse.ArgumentParser()\n    {{}}\n    args = parser.parse_args()\n"
    f"    torch.cuda.set_device(args.local_rank)\n    {START}\n{MAIN}"
)
TRAINS = (
    "import argparse\nimport os\n\nfrom module import evaluate\n\n\n"
    "def main():\n    parser = argparse.ArgumentParser()\n    parser.add_argument('--local_rank', type=int)\n"
    "    args = parser.parse_args()\n    if args.local_rank is None:\n"
    f"        args.local_rank = int(os.environ.get('LOCAL_RANK', '0'))\n    evaluate(args)\n{MAIN}"
)


def test_a_script_that_imports_a_function_of_this_one_has_options_of_its_own() -> None:
    check_transformed(RULE, EVALUATES.format(SIMPLE), EVALUATES.format(AWARE), files={"train.py": TRAINS})
    shared = TRAINS.replace("    parser.add_argument('--local_rank', type=int)\n", "")  # it may be the parser of this file
    check_nothing(RULE, EVALUATES.format(SIMPLE), files={"train.py": shared})
    check_nothing(RULE, EVALUATES.format(SIMPLE).replace(MAIN, ""), files={"train.py": TRAINS})
    check_nothing(RULE, EVALUATES.format(SIMPLE), files={"train.py": TRAINS, "all.py": "import module\nimport train\n"})


def test_a_field_of_the_name_of_the_variable() -> None:
    shares = "def share(cfg, count):\n    local_rank = cfg.LOCAL_RANK % count\n    return local_rank\n"
    check_transformed(RULE, script(SIMPLE), script(AWARE), files={"shares.py": shares})
    filled = "import os\n\n\ndef fill(cfg):\n    cfg.LOCAL_RANK = int(os.environ['LOCAL_RANK'])\n"
    check_nothing(RULE, script(SIMPLE), files={"shares.py": shares, "fill.py": filled})


def test_a_commit_says_whether_the_variable_is_read() -> None:
    (read,) = findings_of(LocalRankArgument, script('parser.add_argument("--local_rank", type=int, default=0)'))
    assert LocalRankArgument.commit_subject([read]) == "Take the local rank as launchers give it"
    spelled = replace(read, message="README.md (line 3) starts this script with torch.distributed.launch")
    assert LocalRankArgument.commit_subject([spelled]) == "Accept `--local_rank` and `--local-rank`"
    assert LocalRankArgument.commit_subject([spelled, read]) == "Take the local rank as launchers give it"


def test_a_start_that_is_commented_out_comes_behind_a_live_one() -> None:
    option = script("parser.add_argument('--local_rank', type=int, default=0)", "args = parser.parse_args()\n")
    live = "python -m torch.distributed.launch --nproc_per_node 2 module.py\n"
    (both,) = findings_of(RULE, option, {"a.sh": f"# {live}\n{live}"}, path="module.py")
    assert both.message.startswith("a.sh (line 3) starts")
    (first,) = findings_of(RULE, option, {"a.sh": f"# {live}", "b.sh": live}, path="module.py")
    assert first.message.startswith("b.sh (line 1) starts")
    (alone,) = findings_of(RULE, option, {"a.sh": f"# {live}"}, path="module.py")
    assert alone.message.startswith("a comment in a.sh (line 1) starts")
