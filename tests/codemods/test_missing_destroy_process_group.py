"""DDP304: nobody takes the process group down."""

from __future__ import annotations

import pytest

from codemods.sync.missing_destroy_process_group import MissingDestroyProcessGroup
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of, fix

RULE = MissingDestroyProcessGroup
HEAD = "import torch.distributed as dist\n\n\n"
MAIN = "\n\nif __name__ == '__main__':\n    main()\n"
END = "    dist.destroy_process_group()\n"
RUN = {"run.sh": "torchrun --nproc_per_node=4 module.py\n"}
ASKED = "    if dist.is_initialized():\n        dist.destroy_process_group()\n"


def test_the_example_of_the_documentation() -> None:
    sections = RULE.sections()
    before, after = (sections[s].removeprefix("```python\n").removesuffix("```") for s in ("Example", "Use instead"))
    check_transformed(RULE, before, after)


def test_in_front_of_a_plain_return() -> None:
    before = f"{HEAD}def main():\n    dist.init_process_group('nccl')\n    best = train()\n    return best\n{MAIN}"
    check_transformed(RULE, before, before.replace("    return", f"{END}    return"))


def test_an_early_return_moves_it_behind_the_call() -> None:
    before = f"{HEAD}def main():\n    dist.init_process_group('nccl')\n    if evaluate():\n        return\n    train()\n{MAIN}"
    check_transformed(RULE, before, before + END)


@pytest.mark.parametrize(
    "start",
    [
        "    if args.many:\n        dist.init_process_group('nccl')\n",
        "    dist.init_process_group('nccl') if args.many else None\n",
        "    args.many and dist.init_process_group('nccl')\n",
        "    try:\n        dist.init_process_group('nccl')\n    except RuntimeError:\n        pass\n",
        "    set_up()\n",
    ],
)
def test_a_start_that_may_be_left_out_is_asked_for(start: str) -> None:
    helper = "def set_up():\n    if one_device():\n        return\n    dist.init_process_group('nccl')\n\n\n"
    head = HEAD + (helper if "set_up" in start else "")
    before = f"{head}def main(args):\n{start}    train()\n{MAIN.replace('main()', 'main(parse())')}"
    check_transformed(RULE, before, before.replace("    train()\n", f"    train()\n{ASKED}"), files=RUN)


def test_the_question_of_a_script_that_knows_torch_alone() -> None:
    tools = TOOLS.replace("    dist.init", "    if many():\n        dist.init")
    files = {"main.py": f"import torch\n{SCRIPT}", "run.sh": "torchrun --nproc_per_node=4 main.py\n"}
    made = fix(RULE, tools, files, path="tools/dist.py")
    assert made.changed["main.py"].decode() == f"import torch\n{SCRIPT}".replace(
        "    train()\n",
        "    train()\n    if torch.distributed.is_available() and torch.distributed.is_initialized():\n"
        "        torch.distributed.destroy_process_group()\n",
    )


def test_a_question_that_is_asked_before_the_start_finds_a_group() -> None:
    start = "    if not dist.is_initialized():\n        dist.init_process_group('nccl')\n"
    before = f"{HEAD}def main():\n{start}    train()\n{MAIN}"
    check_transformed(RULE, before, before.replace("    train()\n", f"    train()\n{END}"))


def test_a_function_that_a_script_hands_to_spawn() -> None:
    before = f"""{HEAD}import torch.multiprocessing as mp

def worker(rank, world):
  setup(rank, world)
  train(rank)

def setup(rank, world):
  dist.init_process_group('nccl', rank=rank, world_size=world)

if __name__ == "__main__":
  mp.spawn(worker, nprocs=2, args=(2,))
"""
    after = before.replace("  train(rank)\n", "  train(rank)\n  dist.destroy_process_group()\n")
    check_transformed(RULE, before, after)


SCRIPT = "from tools.dist import init\n\ndef main():\n    init()\n    train()\n\nif __name__ == '__main__':\n    main()\n"
TOOLS = "import torch.distributed as dist\n\ndef init():\n    dist.init_process_group('nccl')\n"


def test_the_group_is_started_in_another_file() -> None:
    made = fix(RULE, TOOLS, {"main.py": f"import torch\n{SCRIPT}"}, path="tools/dist.py")
    assert made.changed["main.py"].decode() == f"import torch\n{SCRIPT}".replace(
        "    train()\n",
        "    train()\n    torch.distributed.destroy_process_group()\n",
    )


def test_two_starts_of_one_program_are_one_finding() -> None:
    files = {"main.py": "import torch\nimport other\n" + SCRIPT.replace("train()", "other.init()"), "other.py": TOOLS}
    first = findings_of(RULE, TOOLS, files, path="tools/dist.py")
    files = {**files, "tools/dist.py": TOOLS}
    del files["other.py"]
    assert len(first) + len(findings_of(RULE, TOOLS, files, path="other.py")) == 1


def test_a_script_without_functions() -> None:
    before = f"{HEAD}dist.init_process_group('nccl')\ntrain()\n"
    check_transformed(RULE, before, f"{before}dist.destroy_process_group()\n")


# Told


@pytest.mark.parametrize("end", ["    return train()\n", "    while True:\n        train()\n"])
def test_an_end_that_is_no_place(end: str) -> None:
    body = f"{HEAD}import torch.multiprocessing as mp\ndef worker(rank):\n    dist.init_process_group('nccl')\n{end}"
    check_told(RULE, f"{body}mp.spawn(worker)\n", reason="the place has to be chosen")


def test_a_script_that_does_not_import_torch() -> None:
    found = check_told(RULE, TOOLS, reason="does not import torch", files={"main.py": SCRIPT}, path="tools/dist.py")
    assert found.path == "main.py"


# Nothing to say


TOOLBOX = "import torch.distributed as dist\n\n\ndef end():\n    dist.destroy_process_group()\n"


@pytest.mark.parametrize(
    "source",
    [
        f"{HEAD}def main():\n    dist.init_process_group('nccl')\n    dist.destroy_process_group()\n{MAIN}",
        f"{HEAD}from toolbox import end\n\ndef main():\n    dist.init_process_group('nccl')\n    end()\n{MAIN}",
        f"{HEAD}import atexit\nimport toolbox\n\natexit.register(toolbox.end)\n\ndef main():\n"
        f"    dist.init_process_group('nccl')\n{MAIN}",
    ],
)
def test_the_program_destroys_its_group(source: str) -> None:
    check_nothing(RULE, source, files={"toolbox.py": TOOLBOX})


def test_another_program_destroys_its_own() -> None:
    other = f"{HEAD}from toolbox import end\n\ndef main():\n    dist.init_process_group('nccl')\n    end()\n{MAIN}"
    source = f"{HEAD}import toolbox\n\ndef main():\n    dist.init_process_group('nccl')\n    train()\n{MAIN}"
    files = {"toolbox.py": TOOLBOX, "other.py": other, "end.py": other.replace("    end()", "    dist.destroy_process_group()")}
    check_transformed(RULE, source, source.replace("    train()\n", f"    train()\n{END}"), files=files)


def test_destroyed_only_in_the_tests_is_not_destroyed() -> None:
    files = {"tests/test_train.py": "import torch.distributed as dist\ndef test_end():\n    dist.destroy_process_group()\n"}
    assert findings_of(RULE, f"{HEAD}def main():\n    dist.init_process_group('nccl')\n{MAIN}", files=files)


def test_a_library() -> None:
    check_nothing(RULE, f"{HEAD}def setup():\n    dist.init_process_group('nccl')\n")


def test_a_module_that_others_import() -> None:
    check_nothing(RULE, f"{HEAD}dist.init_process_group('nccl')\n", files={"a.py": "import setup_dist\n"}, path="setup_dist.py")


@pytest.mark.parametrize("owner", ["from accelerate import Accelerator", "import lightning", "import deepspeed", "import ray"])
def test_a_framework_owns_the_group(owner: str) -> None:
    check_nothing(RULE, f"{owner}\n{HEAD}def main():\n    dist.init_process_group('nccl')\n{MAIN}")


def test_an_own_function_of_that_name() -> None:
    check_nothing(RULE, f"from engine import init_process_group\ndef main():\n    init_process_group('nccl')\n{MAIN}")


def test_the_tests_of_a_repository_are_left_alone() -> None:
    check_nothing(RULE, f"{HEAD}def main():\n    dist.init_process_group('nccl')\n{MAIN}", path="tests/test_dist.py")


@pytest.mark.parametrize("backend", ["'gloo'", "backend='gloo'", "rank=0, backend='mpi'", "'cpu:gloo'"])
def test_a_backend_that_leaves_without_a_warning(backend: str) -> None:
    check_nothing(RULE, f"{HEAD}def main():\n    dist.init_process_group({backend})\n{MAIN}")


@pytest.mark.parametrize("backend", ["", "'NCCL'", "backend='cpu:gloo,cuda:nccl'", "args.backend", "None"])
def test_a_backend_that_is_or_may_be_nccl(backend: str) -> None:
    assert findings_of(RULE, f"{HEAD}def main(args=None):\n    dist.init_process_group({backend})\n{MAIN}")


@pytest.mark.parametrize(("rest", "found"), [("", 0), ("    pick('nccl')\n", 1)])
def test_a_backend_that_is_the_default_of_a_parameter(rest: str, found: int) -> None:
    source = f"{HEAD}def main(backend='gloo'):\n    dist.init_process_group(backend, world_size=2)\n{rest}{MAIN}"
    assert len(findings_of(RULE, source)) == found


def test_a_program_that_starts_either_is_told_of_the_one_that_warns() -> None:
    starts = "    if cpu:\n        dist.init_process_group('gloo')\n    else:\n        dist.init_process_group('nccl')\n"
    (found,) = findings_of(RULE, f"{HEAD}def main(cpu=False):\n{starts}{MAIN}")
    assert (found.evidence[0].text, found.evidence[0].line) == ("dist.init_process_group starts it", 8)


@pytest.mark.parametrize(("size", "found"), [("1", 0), ("1, rank=0", 0), ("2", 1), ("args.size", 1), ("int(size)", 1)])
def test_a_group_of_one_process(size: str, found: int) -> None:
    source = f"{HEAD}def main(args=None, size=1):\n    dist.init_process_group('nccl', world_size={size})\n{MAIN}"
    assert len(findings_of(RULE, source)) == found


@pytest.mark.parametrize(("given", "asked"), [("", "args"), ("1, 2", "args"), ("depth=2", "args=None"), ("", "*, args")])
def test_a_way_whose_call_does_not_fit(given: str, asked: str) -> None:
    source = f"{HEAD}def setup({asked}):\n    dist.init_process_group('nccl')\n\n\ndef main():\n    setup({given})\n{MAIN}"
    check_nothing(RULE, source)


@pytest.mark.parametrize(
    ("given", "asked"), [("1", "args"), ("args=1", "args"), ("*rest", "args"), ("1, 2", "*args"), ("", "args=1")]
)
def test_a_way_whose_call_fits(given: str, asked: str) -> None:
    setup = f"def setup({asked}):\n    dist.init_process_group()\n"
    assert findings_of(RULE, f"{HEAD}{setup}\n\ndef main():\n    setup({given})\n{MAIN}")


@pytest.mark.parametrize("pin", ["torch==1.13.1", "torch>=1.8,<2.0", "torch==2.3.*"])
def test_a_torch_that_does_not_warn(pin: str) -> None:
    check_nothing(RULE, f"{HEAD}def main():\n    dist.init_process_group('nccl')\n{MAIN}", files={"requirements.txt": f"{pin}\n"})


@pytest.mark.parametrize("pin", ["torch", "torch>=1.13", "torch==2.4.0"])
def test_a_torch_that_may_warn(pin: str) -> None:
    source = f"{HEAD}def main():\n    dist.init_process_group('nccl')\n{MAIN}"
    assert findings_of(RULE, source, files={"requirements.txt": f"{pin}\n"})


SET_UP = """\
import torch.distributed as dist


def set_up():
    dist.init_process_group("nccl")


if __name__ == "__main__":
    set_up()
    train()
"""


def test_a_set_up_that_the_program_calls_first_is_not_its_end() -> None:
    check_transformed(MissingDestroyProcessGroup, SET_UP, SET_UP + END)


def test_a_program_that_is_run_for_each_of_several_files_ends_each_time() -> None:
    before = SET_UP.replace("    set_up()\n    train()\n", "    for name in names():\n        set_up()\n")
    body = '    dist.init_process_group("nccl")\n'
    after = before.replace(body, body + END)
    check_transformed(MissingDestroyProcessGroup, before, after)


ENGINE = f"""{HEAD}class Engine:
    def __init__(self, config):
        dist.init_process_group('nccl')
        self.model = build(config)

    def train(self):
        self.model.fit()


if __name__ == '__main__':
"""


@pytest.mark.parametrize(
    "block",
    [
        "    engine = Engine(config)\n    engine.train()\n",
        "    Engine(config).train()\n",
        "    with quiet():\n        engine = Engine(config)\n        engine.train()\n",
    ],
)
def test_the_object_that_starts_the_group_works_on_behind_its_constructor(block: str) -> None:
    check_transformed(RULE, ENGINE + block, ENGINE + block + END)


def test_what_the_start_gives_back_works_on() -> None:
    before = f"{HEAD}def build():\n    dist.init_process_group('nccl')\n    model = net()\n    return model\n"
    before += "\n\nif __name__ == '__main__':\n    train(build())\n"
    check_transformed(RULE, before, before + END)


def test_the_script_goes_on_behind_the_function_that_starts_the_group() -> None:
    before = f"{HEAD}def main():\n    dist.init_process_group('nccl')\n    train()\n{MAIN}    evaluate()\n"
    check_transformed(RULE, before, before + END)


def test_in_front_of_the_exit_of_a_script() -> None:
    before = f"{HEAD}def main():\n    dist.init_process_group('nccl')\n    train()\n{MAIN}    sys.exit(0)\n"
    check_transformed(RULE, before, before.replace("    sys.exit", f"{END}    sys.exit"))


@pytest.mark.parametrize("leave", ["sys.exit(0)", "exit()", "quit()"])
def test_in_front_of_the_exit_that_a_function_ends_with(leave: str) -> None:
    before = f"import sys\n{HEAD}def main():\n    dist.init_process_group('nccl')\n    train()\n    {leave}\n{MAIN}"
    check_transformed(RULE, before, before.replace(f"    {leave}", f"{END}    {leave}"))


def test_the_exit_of_a_function_that_computes_its_status_is_told() -> None:
    source = f"import sys\n{HEAD}def main():\n    dist.init_process_group('nccl')\n    sys.exit(train())\n{MAIN}"
    check_told(RULE, source, reason="the place has to be chosen")


@pytest.mark.parametrize(
    "source",
    [
        f"import os\n{HEAD}def main():\n    dist.init_process_group('nccl')\n    train()\n    os._exit(0)\n{MAIN}",
        f"from os import _exit\n{HEAD}def main():\n    dist.init_process_group('nccl')\n    train()\n    _exit(0)\n{MAIN}",
        f"import os\n{HEAD}def main():\n    dist.init_process_group('nccl')\n    train()\n{MAIN}    os._exit(0)\n",
    ],
)
def test_an_end_without_destructors_warns_of_nothing(source: str) -> None:
    check_nothing(RULE, source)


def test_an_end_without_destructors_under_a_test() -> None:
    body = "    dist.init_process_group('nccl')\n    train()\n    if broken():\n        os._exit(1)\n"
    assert findings_of(RULE, f"import os\n{HEAD}def main():\n{body}{MAIN}")


def test_a_script_that_ends_with_what_it_computes_is_told() -> None:
    code = f"{HEAD}def build():\n    dist.init_process_group('nccl')\n    return net()\n\n\nif __name__ == '__main__':\n"
    check_told(RULE, f"{code}    sys.exit(train(build()))\n", reason="the place has to be chosen")


def test_a_script_calls_the_set_up_of_another_file() -> None:
    script = "import torch\nfrom tools.dist import init\n\nif __name__ == '__main__':\n    init()\n    train()\n"
    made = fix(RULE, TOOLS, {"main.py": script}, path="tools/dist.py")
    assert made.changed["main.py"].decode() == script + "    torch.distributed.destroy_process_group()\n"


def test_a_start_on_import_ends_with_the_program() -> None:
    before = f"{HEAD}dist.init_process_group('nccl')\n\n\ndef main():\n    train()\n\n\nif __name__ == '__main__':\n    main()\n"
    check_transformed(RULE, before, before + END)


def test_a_torch_that_the_readme_lists() -> None:
    source = f"{HEAD}def main():\n    dist.init_process_group('nccl')\n{MAIN}"
    listed = "# Pairs\n\n## Needs\n* numpy==1.18.5\n* torch=={}\n* h5py==2.10.0\n"
    check_nothing(RULE, source, files={"README.md": listed.format("1.7.0")})
    assert findings_of(RULE, source, {"README.md": listed.format("2.5.1")})
    assert findings_of(RULE, source, {"README.md": listed.format("1.7.0"), "requirements.txt": "torch>=2.4\n"})
    check_nothing(RULE, source, files={"README.md": "## Environment\n\nPytorch=1.6.0\n"})
    check_nothing(RULE, source, files={"README.md": "pip install torch==1.8.1+cu102\n"})
    assert findings_of(RULE, source, {"README.md": "Needs PyTorch 1.7+.\n"})
    assert findings_of(RULE, source, {"README.md": "PyTorch 1.12 and PyTorch 2.5 were tried.\n"})


@pytest.mark.parametrize(
    "said",
    [
        "- [PyTorch](http://pytorch.org/) (currently tested on version 1.6.0)\n",
        "PyTorch (tested with 1.8)\n",
        "* torch, `conda install pytorch==1.11.0 -c pytorch`\n\nPyTorch >= 1.10.0 is recommended.\n",
        "Python 3.7<br /> \nPyTorch 1.6.0<br />\nTorchvision<br />\n",  # the end of markup is no "newer than"
        "Python 3.7<br>PyTorch 1.6.0<br>\n",
        "> PyTorch 1.6.0\n",
    ],
)
def test_a_torch_that_a_sentence_names(said: str) -> None:
    source = f"{HEAD}def main():\n    dist.init_process_group('nccl')\n{MAIN}"
    check_nothing(RULE, source, files={"README.md": said})
    newer = said.replace("1.6.0", "2.6.0").replace("1.8", "2.8").replace("1.11.0", "2.5.1")
    assert findings_of(RULE, source, {"README.md": newer})


@pytest.mark.parametrize("said", ["PyTorch > 1.6.0<br />\n", "A torch newer than PyTorch 1.6\n", "at least PyTorch 1.6\n"])
def test_a_torch_that_is_a_lower_bound(said: str) -> None:
    source = f"{HEAD}def main():\n    dist.init_process_group('nccl')\n{MAIN}"
    assert findings_of(RULE, source, {"README.md": said})


def test_commands_of_several_versions_beside_one_that_is_recommended() -> None:
    """The recommended one may be any of them: the texts name none that warns."""
    source = f"{HEAD}def main():\n    dist.init_process_group('nccl')\n{MAIN}"
    said = "conda install pytorch==1.11.0 -c pytorch\n\nconda install pytorch==1.8.0 -c pytorch\n\nPyTorch >= 1.10 is best.\n"
    check_nothing(RULE, source, files={"README.md": said})
    assert findings_of(RULE, source, {"README.md": said.replace("1.11.0", "1.9.0")})  # it is none of those


def test_a_torch_that_the_readme_of_a_carried_library_lists() -> None:
    source = f"{HEAD}def main():\n    dist.init_process_group('nccl')\n{MAIN}"
    assert findings_of(RULE, source, {"third/README.md": "conda install pytorch=1.6 cudatoolkit=10.2\n"})


def test_an_open_pin_of_a_part_of_the_project_beside_the_installed_one() -> None:
    source = f"{HEAD}def main():\n    dist.init_process_group('nccl')\n{MAIN}"
    part = {"ops/cuda/setup.py": "from setuptools import setup\n\nsetup(name='ops', install_requires=['torch>=1.5.1'])\n"}
    check_nothing(RULE, source, files={**part, "setup_env.sh": "conda install pytorch==1.13.1 torchvision==0.14.1\n"})
    assert findings_of(RULE, source, part)


def test_a_program_that_no_torch_which_warns_can_run() -> None:
    source = f"{HEAD}{{}}\n\n\ndef main():\n    dist.init_process_group('nccl')\n{MAIN}"
    misc = {
        "util/__init__.py": "",
        "util/misc.py": "from util.base import x\n",
        "util/base.py": "from torch._six import inf\n\nx = inf\n",
    }
    check_nothing(RULE, source.format("from util import misc"), files=misc)
    check_nothing(RULE, source.format("import util.misc as misc"), files={**misc, "README.md": "Works with PyTorch 2.5.\n"})
    assert findings_of(RULE, source.format("import math"), misc)
    tried = "try:\n    from torch._six import inf\nexcept ImportError:\n    from torch import inf\nx = inf\n"
    assert findings_of(RULE, source.format("from util import misc"), {**misc, "util/base.py": tried})


def test_a_loop_that_no_torch_which_warns_goes_through() -> None:
    loop = "\n\ndef train():\n    batches = iter(loader)\n    for i in range(9):\n        step({})\n"
    source = f"{HEAD}def main():\n    dist.init_process_group('nccl')\n{MAIN}"
    check_nothing(RULE, source.replace("\n\nif __name__", loop.format("batches.next()") + "\n\nif __name__"))
    assert findings_of(RULE, source.replace("\n\nif __name__", loop.format("next(batches)") + "\n\nif __name__"))


STREAM = """\
import torch.distributed as dist
import webdataset as wds


def main():
    dist.init_process_group("nccl")
    data = wds.WebDataset(urls, {given}).decode("pil"){more}
    for batch in data:
        train(batch)
        {step}


if __name__ == "__main__":
    main()
"""


def test_a_stream_that_never_ends() -> None:
    check_nothing(RULE, STREAM.format(given="resampled=True", more="", step="pass"))
    for given, more, step in (
        ("shardshuffle=True", "", "pass"),
        ("resampled=True", ".with_epoch(1000)", "pass"),
        ("resampled=True", "", "if done(batch):\n            break"),
        ("resampled=True", "", "count(max_steps)"),
    ):
        assert findings_of(RULE, STREAM.format(given=given, more=more, step=step))


def test_a_program_that_a_method_ends() -> None:
    run = "class Run:\n    def train(self):\n        step()\n        {}\n\n\n"
    source = f"{HEAD}{run}def main():\n    dist.init_process_group('nccl')\n    run = Run()\n    run.train()\n{MAIN}"
    check_told(RULE, source.format("exit()"), reason="the place has to be chosen")
    assert findings_of(RULE, source.format("step()"))[0].edits


@pytest.mark.parametrize(
    "body",
    [
        "for batch in loader():\n        print(batch)\n        exit()\n    save()",
        "look()",
    ],
)
def test_a_program_that_ends_in_what_it_calls(body: str) -> None:
    look = "def look():\n    first()\n    sys.exit()\n    second()\n\n\n"
    start = "def main():\n    dist.init_process_group('nccl')\n    train()\n"
    source = f"import sys\n{HEAD}{look}def train():\n    {body}\n\n\n{start}{MAIN}"
    check_told(RULE, source, reason="the place has to be chosen")


@pytest.mark.parametrize(
    "body",
    ["for batch in loader():\n        if bad(batch):\n            sys.exit()", "if first:\n        return\n    sys.exit()"],
)
def test_an_exit_under_a_test_ends_no_program(body: str) -> None:
    start = "def main():\n    dist.init_process_group('nccl')\n    train()\n    end()\n"
    source = f"import sys\n{HEAD}def train():\n    {body}\n\n\n{start}{MAIN}"
    assert findings_of(RULE, source)[0].edits


LEFT = """import torch.distributed as dist


def main(args):
    start(args)
    train()
    if args.distributed:
        dist.barrier()
        exit({})
    print("done on one device")


def start(args):
    if args.many:
        dist.init_process_group("nccl")


if __name__ == "__main__":
    main(parse())
"""


@pytest.mark.parametrize("status", ["", "0"])
def test_an_exit_that_only_runs_with_a_group_has_it_above(status: str) -> None:
    before = LEFT.format(status)
    after = before.replace("        exit(", "        dist.destroy_process_group()\n        exit(")
    check_transformed(RULE, before, after, files=RUN)


def test_an_exit_of_several_processes_that_computes_its_status() -> None:
    check_told(RULE, LEFT.format("evaluate()"), files=RUN, reason="the place has to be chosen")


@pytest.mark.parametrize("test", ["not args.distributed", "args.evaluate", "args.distributed and args.evaluate"])
def test_an_exit_that_does_not_stand_for_all_runs_with_a_group(test: str) -> None:
    before = LEFT.format("").replace("if args.distributed:", f"if {test}:").replace("        dist.barrier()\n", "")
    after = before.replace("    print(\"done on one device\")\n", f"    print(\"done on one device\")\n{ASKED}")
    check_transformed(RULE, before, after, files=RUN)


DEEP = """\
import torch.distributed as dist


def init_dist(backend="nccl"):
    dist.init_process_group(backend=backend)


if __name__ == "__main__":
    args = parse()
    if args.train:
        if args.dist:
            init_dist()
            rank = dist.get_rank()
        Runner(args).train()
    else:
        evaluate(args)
"""


def test_a_start_in_an_arm_of_the_last_statement_is_no_end_of_the_program() -> None:
    end = "    if dist.is_initialized():\n        dist.destroy_process_group()\n"
    check_transformed(RULE, DEEP, DEEP + end, files=RUN)
    last = DEEP.replace("            rank = dist.get_rank()\n        Runner(args).train()\n", "")
    run = "    dist.init_process_group(backend=backend)\n    Runner().train()\n"
    inside = last.replace("    dist.init_process_group(backend=backend)\n", run)
    check_transformed(RULE, inside, inside.replace(run, f"{run}    dist.destroy_process_group()\n"), files=RUN)


QUESTIONS = [
    "def has_group():\n    return dist.is_available() and dist.is_initialized()\n",
    "def has_group():\n    'Whether.'\n    return dist.is_initialized()\n",
    "def has_group():\n    if not dist.is_available():\n        return False\n"
    "    if not dist.is_initialized():\n        return False\n    return True\n",
]
NO_QUESTIONS = [
    "def has_group():\n    return dist.is_available() or dist.is_initialized()\n",
    "def has_group():\n    if not dist.is_initialized():\n        return True\n    return False\n",
    "def has_group():\n    return dist.is_initialized() and dist.get_world_size() > 1\n",
    "def has_group(strict):\n    return dist.is_initialized()\n",
    "def has_group():\n    return dist.is_available()\n",
    "def has_group():\n    if not many():\n        return False\n    return dist.is_initialized()\n",
]
STARTS = "def set_up():\n    if one_device():\n        return\n    dist.init_process_group('nccl')\n\n\n"


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize(
    ("imported", "asked"),
    [("from tools import words", "words.has_group"), ("from tools.words import has_group as group", "group"), ("", "has_group")],
)
def test_the_project_asks_for_the_group_by_a_function(question: str, imported: str, asked: str) -> None:
    own = "" if imported else f"{question}\n\n"
    before = f"{imported}\n{HEAD}{own}{STARTS}def main():\n    set_up()\n    train()\n{MAIN}"
    after = before.replace("    train()\n", f"    train()\n    if {asked}():\n    {END}")
    files = {**RUN, "tools/__init__.py": "", "tools/words.py": f"{HEAD}{question}"}
    check_transformed(RULE, before, after, files=files)


@pytest.mark.parametrize("question", NO_QUESTIONS)
def test_a_function_that_asks_something_else(question: str) -> None:
    before = f"{HEAD}{question}\n\n{STARTS}def main():\n    set_up()\n    train()\n{MAIN}"
    check_transformed(RULE, before, before.replace("    train()\n", f"    train()\n{ASKED}"), files=RUN)


CALL = MAIN.replace("main()", "main(parse())")
STARTED = "    if args.many > 1:\n        dist.init_process_group('nccl')\n"
AGAIN = "    parts = 2 if args.many > 1 else 1\n"


def test_the_test_of_the_start_is_asked_again_at_the_end() -> None:
    before = f"{HEAD}def main(args):\n{STARTED}{AGAIN}    train(parts)\n{CALL}"
    after = before.replace("    train(parts)\n", f"    train(parts)\n    if args.many > 1:\n    {END}")
    check_transformed(RULE, before, after, files=RUN)
    by_name = "import torch\nfrom torch.distributed import init_process_group\n\n\n"
    before, after = (t.replace(HEAD, by_name).replace("dist.", "") for t in (before, after))
    after = after.replace("import init_process_group", "import destroy_process_group, init_process_group")
    check_transformed(RULE, before, after, files=RUN)


@pytest.mark.parametrize("other", ["print('one process')", "logging.info('one process')", "args.size = 1"])
def test_a_start_whose_other_way_only_tells_is_asked_again(other: str) -> None:
    before = f"{HEAD}def main(args):\n{STARTED}    else:\n        {other}\n{AGAIN}    train(parts)\n{CALL}"
    after = before.replace("    train(parts)\n", f"    train(parts)\n    if args.many > 1:\n    {END}")
    check_transformed(RULE, before, after, files=RUN)


@pytest.mark.parametrize(
    ("start", "again"),
    [
        (STARTED, ""),  # a test of the start alone
        (STARTED, f"{AGAIN}    args.many = 1\n"),
        (STARTED, f"{AGAIN}    args = args.next()\n"),
        (STARTED + "    else:\n        args.alone()\n", AGAIN),
        (STARTED.replace("args.many > 1", "many()"), AGAIN.replace("args.many > 1", "many()")),
    ],
)
def test_a_test_of_the_start_that_may_not_hold_at_the_end(start: str, again: str) -> None:
    before = f"{HEAD}def main(args):\n{start}{again}    train()\n{CALL}"
    check_transformed(RULE, before, before.replace("    train()\n", f"    train()\n{ASKED}"), files=RUN)
