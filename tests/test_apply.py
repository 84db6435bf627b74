"""`ddpfix apply` and `ddpfix undo` on real repositories, from outside."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gitrepos import blob, everything, make, own_settings, put, sh, start_merge, visible
from tests.programs import FIXED, MODULE, PLAIN, ddpfix

BRANCH = "ddpfix/fixes"
FILES = {"src/model.py": MODULE, "other.py": PLAIN}


@pytest.fixture(autouse=True)
def _own_git(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own_settings(monkeypatch, tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def text(data: bytes) -> str:
    return data.decode()


def subjects(repo: Path) -> list[str]:
    return sh(repo, "log", "--format=%s", f"main..{BRANCH}").splitlines()


def test_apply_commits_a_codemod_a_commit_then_the_summary_and_switches(tmp_path: Path) -> None:
    repo = make(tmp_path, FILES)
    done = ddpfix(repo, "apply", ".", afresh=True)
    assert done.returncode == 0, done.stderr
    assert sh(repo, "branch", "--show-current") == BRANCH
    made = subjects(repo)
    assert len(made) == 3
    assert "(DDP103)" in made[1]
    assert "(DDP101)" in made[2]
    assert (repo / "src/model.py").read_bytes() == FIXED
    assert (repo / "DDPFIX_SUMMARY.md").is_file()
    assert sh(repo, "status", "--porcelain") == ""
    screen = text(done.stdout)
    for words in (BRANCH, "git log -p", "git merge", "ddpfix undo"):
        assert words in screen
    assert len(screen.splitlines()) <= 40


def test_a_second_apply_on_the_branch_has_nothing_to_do(tmp_path: Path) -> None:
    repo = make(tmp_path, FILES)
    ddpfix(repo, "apply", ".")
    before = visible(repo)
    again = ddpfix(repo, "apply", ".")
    assert again.returncode == 0, again.stderr
    assert "Nothing to fix" in text(again.stdout)
    assert visible(repo) == before


def test_each_commit_stands_on_its_own(tmp_path: Path) -> None:
    repo = make(tmp_path, FILES)
    ddpfix(repo, "apply", "--no-switch", ".")
    first = blob(repo, f"{BRANCH}~2:src/model.py")
    assert first == MODULE.replace(b"prog_bar=True)", b"prog_bar=True, sync_dist=True)")
    assert blob(repo, f"{BRANCH}~1:src/model.py") == FIXED
    body = sh(repo, "log", "-1", "--format=%B", f"{BRANCH}~2")
    assert "src/model.py" in body
    assert "ddpfix-run: " in body


def test_a_fix_that_another_file_leads_to_has_a_commit_of_its_own(tmp_path: Path) -> None:
    comm = "import torch.distributed as dist\n\n\ndef start():\n    dist.init_process_group('nccl')\n"
    train = (
        "import argparse\nimport torch\nfrom comm import start\n\n\ndef main(args):\n    start()\n"
        "    torch.cuda.set_device(args.local_rank)\n    model = torch.nn.Linear(2, 2).cuda()\n"
        "    model = torch.nn.parallel.DistributedDataParallel(model)\n"
        "    model(torch.rand(2, 2).cuda()).sum().backward()\n\n\nif __name__ == '__main__':\n"
        "    parser = argparse.ArgumentParser()\n    parser.add_argument('--local_rank', type=int, default=0)\n"
        "    main(parser.parse_args())\n"
    )
    command = "python -m torch.distributed.launch --nproc_per_node=2 train.py\n"
    repo = make(tmp_path, {"comm.py": comm.encode(), "train.py": train.encode(), "run.sh": command.encode()})
    assert ddpfix(repo, "apply", "--select", "DDP304,DDP701", "--no-switch", ".").returncode == 0
    made = subjects(repo)
    assert [line[-8:] for line in made[1:]] == ["(DDP701)", "(DDP304)"]
    assert b"destroy_process_group" in blob(repo, f"{BRANCH}~2:train.py")


def test_a_fix_that_another_one_leads_to_has_a_commit_of_its_own_behind_it(tmp_path: Path) -> None:
    group = (
        "import os\nimport torch\nimport torch.distributed as dist\n\n\n"
        "def setup(rank, world_size):\n    dist.init_process_group('nccl', rank=rank, world_size=world_size)\n\n\n"
        "def ranks():\n    return int(os.environ['RANK']), int(os.environ['WORLD_SIZE'])\n\n\n"
        "def spread(model):\n    return torch.nn.parallel.DistributedDataParallel(model)\n"
    )
    train = (
        "import torch\nfrom group import ranks, setup, spread\n\n\ndef train(rank, world_size):\n    setup(rank, world_size)\n"
        "    model = spread(torch.nn.Linear(2, 1).cuda())\n    print('ready')\n    for _ in range(3):\n"
        "        model(torch.rand(3, 2)).sum().backward()\n\n\nif __name__ == '__main__':\n"
        "    rank, world_size = ranks()\n    train(rank, world_size)\n"
    )
    files = {"group.py": group, "train.py": train, "run.sh": "torchrun --nproc_per_node=4 train.py\n"}
    repo = make(tmp_path, {path: data.encode() for path, data in files.items()})
    assert ddpfix(repo, "apply", "--no-switch", ".").returncode == 0
    assert [line[-8:] for line in subjects(repo)[1:]] == ["(DDP203)", "(DDP304)"]
    assert b"if rank == 0:" not in blob(repo, f"{BRANCH}~2:train.py")
    assert b"if rank == 0:" in blob(repo, f"{BRANCH}~1:train.py")


def test_a_summary_in_the_repository_is_no_word_on_how_its_programs_are_started(tmp_path: Path) -> None:
    train = (
        "import argparse\nimport lightning.pytorch as pl\n\n\nclass Net(pl.LightningModule):\n"
        "    def on_train_epoch_start(self):\n        print('epoch', self.current_epoch)\n        self.schedule.advance()\n\n\n"
        "def main(args):\n    pl.Trainer(devices=args.devices).fit(Net())\n\n\nif __name__ == '__main__':\n"
        "    parser = argparse.ArgumentParser()\n    parser.add_argument('--devices', type=int)\n    main(parser.parse_args())\n"
    )
    repo = make(tmp_path, {"train.py": train.encode(), "README.md": b"```sh\npython train.py --devices 4\n```\n"})
    assert "DDP203" in text(ddpfix(repo, "check", ".").stdout)
    sh(repo, "mv", "README.md", "DDPFIX_SUMMARY.md")
    assert "DDP203" not in text(ddpfix(repo, "check", ".").stdout)


def test_what_diff_shows_is_what_apply_commits(tmp_path: Path) -> None:
    repo = make(tmp_path, {**FILES, "crlf.py": MODULE.replace(b"\n", b"\r\n"), "cut.py": MODULE.rstrip(b"\n")})
    patch = ddpfix(repo, "diff", ".").stdout
    assert ddpfix(repo, "apply", "--no-switch", "--no-summary-commit", ".").returncode == 0
    subprocess.run(["git", "apply", "--index", "-"], cwd=repo, input=patch, check=True)
    assert sh(repo, "write-tree") == sh(repo, "rev-parse", f"{BRANCH}^{{tree}}")


def test_no_switch_leaves_everything_byte_for_byte(tmp_path: Path) -> None:
    repo = make(tmp_path, FILES)
    put(repo, {"other.py": b"print('mine')\n", "untracked.txt": b"mine"})
    sh(repo, "add", "other.py")
    put(repo, {"other.py": b"print('mine, and more')\n"})
    before = everything(repo)
    done = ddpfix(repo, "apply", "--no-switch", ".")
    assert done.returncode == 0
    assert everything(repo) == before
    assert blob(repo, f"{BRANCH}:src/model.py") == FIXED
    assert blob(repo, f"{BRANCH}:other.py") == PLAIN


def test_uncommitted_work_elsewhere_comes_along(tmp_path: Path) -> None:
    repo = make(tmp_path, FILES)
    put(repo, {"other.py": b"print('mine')\n", "new.py": b"x = 1\n"})
    assert ddpfix(repo, "apply", ".").returncode == 0
    assert (repo / "other.py").read_bytes() == b"print('mine')\n"
    assert sh(repo, "status", "--porcelain").splitlines() == [" M other.py", "?? new.py"]


def test_uncommitted_changes_in_a_file_to_fix_refuse_before_anything_is_written(tmp_path: Path) -> None:
    repo = make(tmp_path, FILES)
    put(repo, {"src/model.py": MODULE + b"\n\nmine = 1\n"})
    before = visible(repo)
    done = ddpfix(repo, "apply", ".")
    assert done.returncode == 2
    assert "src/model.py" in text(done.stderr)
    assert "--no-switch" in text(done.stderr)
    assert "--include-dirty" in text(done.stderr)
    assert visible(repo) == before


def test_no_switch_fixes_what_is_committed_of_a_dirty_file(tmp_path: Path) -> None:
    repo = make(tmp_path, FILES)
    put(repo, {"src/model.py": MODULE + b"\n\nmine = 1\n"})
    assert ddpfix(repo, "apply", "--no-switch", ".").returncode == 0
    assert blob(repo, f"{BRANCH}:src/model.py") == FIXED
    assert (repo / "src/model.py").read_bytes() == MODULE + b"\n\nmine = 1\n"


def test_include_dirty_fixes_in_place_and_commits_nothing(tmp_path: Path) -> None:
    repo = make(tmp_path, FILES)
    put(repo, {"src/model.py": MODULE + b"\n\nmine = 1\n"})
    assert ddpfix(repo, "apply", "--include-dirty", ".").returncode == 0
    assert (repo / "src/model.py").read_bytes() == FIXED + b"\n\nmine = 1\n"
    assert sh(repo, "branch", "--list", "ddpfix/*") == ""
    assert ddpfix(repo, "undo").returncode == 0
    assert (repo / "src/model.py").read_bytes() == MODULE + b"\n\nmine = 1\n"


def test_an_untracked_file_to_fix_is_named(tmp_path: Path) -> None:
    repo = make(tmp_path, {"other.py": PLAIN})
    put(repo, {"model.py": MODULE})
    done = ddpfix(repo, "apply", ".")
    assert done.returncode == 2
    assert "model.py" in text(done.stderr)
    assert (repo / "model.py").read_bytes() == MODULE


def test_undo_takes_the_branch_back(tmp_path: Path) -> None:
    repo = make(tmp_path, FILES)
    before = visible(repo)
    ddpfix(repo, "apply", ".")
    done = ddpfix(repo, "undo")
    assert done.returncode == 0
    assert visible(repo) == before
    again = ddpfix(repo, "undo")
    assert again.returncode == 0
    assert "Nothing to undo" in text(again.stdout)
    assert visible(repo) == before
    assert not (repo / ".git" / "ddpfix").exists()


def test_undo_refuses_where_somebody_has_committed_since(tmp_path: Path) -> None:
    repo = make(tmp_path, FILES)
    ddpfix(repo, "apply", ".")
    put(repo, {"other.py": b"more = 1\n"})
    sh(repo, "commit", "-qam", "more")
    done = ddpfix(repo, "undo")
    assert done.returncode == 2
    assert sh(repo, "log", "-1", "--format=%s") == "more"


def test_a_second_apply_replaces_our_own_branch_and_finds_nothing_on_it(tmp_path: Path) -> None:
    repo = make(tmp_path, FILES)
    ddpfix(repo, "apply", "--no-switch", ".")
    first = sh(repo, "rev-parse", BRANCH)
    assert ddpfix(repo, "apply", "--no-switch", ".").returncode == 0
    assert sh(repo, "rev-parse", BRANCH) == first
    sh(repo, "switch", "-q", BRANCH)
    done = ddpfix(repo, "diff", ".")
    assert (done.returncode, done.stdout) == (0, b"")


def test_a_branch_of_that_name_made_by_somebody_else_is_refused(tmp_path: Path) -> None:
    repo = make(tmp_path, FILES)
    sh(repo, "branch", BRANCH)
    before = visible(repo)
    done = ddpfix(repo, "apply", ".")
    assert done.returncode == 2
    assert "--branch" in text(done.stderr)
    assert visible(repo) == before
    assert ddpfix(repo, "apply", "--branch", "mine/fixes", ".").returncode == 0
    assert sh(repo, "branch", "--show-current") == "mine/fixes"


def test_apply_takes_the_selection_and_the_subfolder_that_check_takes(tmp_path: Path) -> None:
    repo = make(tmp_path, {"a/model.py": MODULE, "b/model.py": MODULE})
    assert ddpfix(repo, "apply", "--select", "DDP103", "--no-summary-commit", "a").returncode == 0
    assert sh(repo, "diff", "--name-only", "main") == "a/model.py"
    assert b"sync_dist=True)" not in (repo / "a/model.py").read_bytes()


def test_nothing_to_fix_makes_no_branch_and_says_so(tmp_path: Path) -> None:
    repo = make(tmp_path, {"other.py": PLAIN})
    done = ddpfix(repo, "apply", ".")
    assert done.returncode == 0
    assert "Nothing distributed here" in text(done.stdout)
    assert "1 Python file" in text(done.stdout)
    assert sh(repo, "branch", "--list") == "* main"


def test_a_merge_in_progress_is_refused(tmp_path: Path) -> None:
    repo = make(tmp_path, {**FILES, "README.md": b"hi\n"})
    start_merge(repo)
    done = ddpfix(repo, "apply", ".")
    assert done.returncode == 2
    assert "merge" in text(done.stderr)


def test_a_repository_without_a_commit_is_refused(tmp_path: Path) -> None:
    repo = tmp_path / "new"
    repo.mkdir()
    sh(repo, "init", "-q")
    put(repo, FILES)
    done = ddpfix(repo, "apply", ".")
    assert done.returncode == 2
    assert "commit" in text(done.stderr)


def test_a_bare_repository_is_refused(tmp_path: Path) -> None:
    repo = make(tmp_path, FILES)
    sh(tmp_path, "clone", "-q", "--bare", str(repo), str(tmp_path / "bare.git"))
    done = ddpfix(tmp_path / "bare.git", "apply", ".")
    assert done.returncode == 2
    assert "bare" in text(done.stderr)


def test_outside_git_files_are_written_in_place_and_undo_brings_them_back(tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    folder.mkdir()
    put(folder, {"model.py": MODULE, "setup.py": b""})
    assert ddpfix(folder, "apply", "--in-place", ".").returncode == 0
    assert (folder / "model.py").read_bytes() == FIXED
    assert ddpfix(folder, "undo", ".").returncode == 0
    assert (folder / "model.py").read_bytes() == MODULE
    assert sorted(p.name for p in folder.iterdir()) == ["model.py", "setup.py"]


def test_outside_git_nothing_is_written_without_a_word_for_it(tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    put(folder, {"model.py": MODULE, "setup.py": b""})
    done = ddpfix(folder, "apply", ".")
    assert done.returncode == 2
    assert "is not in a git repository" in text(done.stderr)
    assert "--in-place" in text(done.stderr)
    assert (folder / "model.py").read_bytes() == MODULE
    (folder / "model.py").write_bytes(FIXED)
    assert ddpfix(folder, "apply", ".").returncode == 0  # nothing to write, nothing to ask


@pytest.mark.parametrize("answer", [b"y\n", b"\n"])
def test_outside_git_a_person_at_the_terminal_is_asked(tmp_path: Path, answer: bytes) -> None:
    folder = tmp_path / "plain"
    put(folder, {"model.py": MODULE, "setup.py": b""})
    ours, theirs = os.openpty()
    command = [sys.executable, "-P", "-m", "ddpfix.cli", "apply", "."]
    with subprocess.Popen(command, cwd=folder, stdin=theirs, stderr=theirs, stdout=subprocess.DEVNULL) as child:
        os.close(theirs)
        said = b""
        while b"[y/N]" not in said:
            said += os.read(ours, 1024)
        os.write(ours, answer)
        status = child.wait()
    os.close(ours)
    assert (status, (folder / "model.py").read_bytes()) == ((0, FIXED) if answer == b"y\n" else (2, MODULE))


@pytest.mark.parametrize("in_git", [True, False])
def test_with_nothing_to_undo_undo_says_so_and_is_content(tmp_path: Path, in_git: bool) -> None:
    folder = make(tmp_path, FILES) if in_git else tmp_path / "repo"
    put(folder, {"setup.py": b""})
    done = ddpfix(folder, "undo")
    assert (done.returncode, done.stderr) == (0, b"")
    assert text(done.stdout) == f"Nothing to undo: no apply is recorded for {folder}.\n"


@pytest.mark.parametrize("in_git", [True, False])
def test_the_commands_on_the_screen_can_be_pasted_where_apply_was_typed(tmp_path: Path, in_git: bool) -> None:
    (tmp_path / "my work").mkdir()
    root = tmp_path / "my work"
    if in_git:
        repo = make(root, FILES)
    else:
        repo = root / "repo"
        put(repo, {**FILES, "setup.py": b""})
    before = {path: (repo / path).read_bytes() for path in FILES}
    done = ddpfix(tmp_path, "apply", *([] if in_git else ["--in-place"]), "my work/repo/src")
    screen = text(done.stdout)
    assert done.returncode == 0, done.stderr
    assert "ddpfix undo 'my work/repo'" in screen
    if in_git:
        (look,) = [line.partition(":")[2] for line in screen.splitlines() if line.startswith("Look at")]
        assert subprocess.run(look.strip(), shell=True, cwd=tmp_path, capture_output=True, check=True).stdout
    assert ddpfix(tmp_path, "undo", "my work/repo").returncode == 0
    assert {path: (repo / path).read_bytes() for path in FILES} == before


def bound_by_permissions(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """ddpfix as a user whom permissions bind: root, too, once it has no right to pass them over."""
    command = [sys.executable, "-P", "-m", "ddpfix.cli", *arguments]
    if os.geteuid() == 0:
        command = ["setpriv", "--bounding-set", "-dac_override", *command]
    own = {"DDPFIX_CACHE_DIR": str(folder / ".git/no-cache")}
    return subprocess.run(command, cwd=folder, capture_output=True, check=False, env={**os.environ, **own})


@pytest.mark.skipif(sys.platform != "linux", reason="permissions and setpriv")
def test_a_folder_that_cannot_be_written_is_named_and_the_switch_taken_back(tmp_path: Path) -> None:
    repo = make(tmp_path, {**FILES, "closed/model.py": MODULE})
    before = visible(repo)
    (repo / "closed").chmod(0o555)
    done = bound_by_permissions(repo, "apply", ".")
    again = bound_by_permissions(repo, "undo")
    (repo / "closed").chmod(0o755)
    assert done.returncode == 2, done.stdout
    assert "git could not write closed/model.py" in text(done.stderr)
    assert "Every file is as it was" in text(done.stderr)
    assert "Nothing to undo" in text(again.stdout)
    assert visible(repo) == before


@pytest.mark.skipif(sys.platform != "linux", reason="permissions and setpriv")
def test_an_undo_that_cannot_write_a_folder_keeps_the_way_back(tmp_path: Path) -> None:
    repo = make(tmp_path, {**FILES, "closed/model.py": MODULE})
    before = visible(repo)
    assert ddpfix(repo, "apply", ".").returncode == 0
    (repo / "closed").chmod(0o555)
    done = bound_by_permissions(repo, "undo")
    assert done.returncode == 2
    assert "closed/model.py" in text(done.stderr)
    assert sh(repo, "branch", "--list", BRANCH)
    (repo / "closed").chmod(0o755)
    assert bound_by_permissions(repo, "undo").returncode == 0
    assert visible(repo) == before


def test_in_place_inside_git(tmp_path: Path) -> None:
    repo = make(tmp_path, FILES)
    assert ddpfix(repo, "apply", "--in-place", ".").returncode == 0
    assert sh(repo, "status", "--porcelain") == " M src/model.py"
    assert (repo / "src/model.py").read_bytes() == FIXED


def test_links_and_submodules_are_left_alone(tmp_path: Path) -> None:
    inner = make(tmp_path, FILES, name="inner")
    repo = make(tmp_path, {"model.py": MODULE})
    (repo / "link.py").symlink_to("model.py")
    sh(repo, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "sub")
    sh(repo, "add", "-A")
    sh(repo, "commit", "-qm", "link and submodule")
    done = ddpfix(repo, "apply", ".")
    assert done.returncode == 0, done.stderr
    assert sh(repo, "diff", "--name-only", "main").splitlines() == ["DDPFIX_SUMMARY.md", "model.py"]
    assert (repo / "sub/src/model.py").read_bytes() == MODULE
    summary = (repo / "DDPFIX_SUMMARY.md").read_text()
    assert "link.py" in summary
    assert "sub" in summary


def test_the_repositorys_own_formatter_has_its_say(tmp_path: Path) -> None:
    repo = make(tmp_path, FILES)
    script = tmp_path / "fmt.py"
    script.write_text("import sys\nfor name in sys.argv[1:]:\n    open(name, 'a').write('# done\\n')\n")
    done = ddpfix(repo, "apply", "--format-command", f"{sys.executable} {script}", ".")
    assert done.returncode == 0, done.stderr
    assert (repo / "src/model.py").read_bytes() == FIXED + b"# done\n"
    assert (repo / "other.py").read_bytes() == PLAIN


def test_the_formatter_that_a_repository_names_runs_only_if_the_user_says_so(tmp_path: Path) -> None:
    seen = tmp_path / "ran"
    named = {"ddpfix.toml": f"format-command = \"sh -c 'touch {seen}' --\"\n".encode()}
    repo = make(tmp_path, {**FILES, **named})
    for options in ((), ("--in-place",)):
        done = ddpfix(repo, "apply", *options, ".")
        assert done.returncode == 0, done.stderr
        assert "--allow-format-command" in text(done.stderr)
        assert not seen.exists()
        sh(repo, "checkout", "-qf", "main")
    done = ddpfix(repo, "apply", "--allow-format-command", ".")
    assert done.returncode == 0, done.stderr
    assert seen.exists()


def test_a_formatter_that_fails_leaves_everything_as_it_was(tmp_path: Path) -> None:
    repo = make(tmp_path, FILES)
    before = visible(repo)
    done = ddpfix(repo, "apply", "--format-command", "false", ".")
    assert done.returncode == 2
    assert "false" in text(done.stderr)
    assert visible(repo) == before


def test_line_ends_of_the_work_tree_do_not_reach_the_commit(tmp_path: Path) -> None:
    repo = make(tmp_path, {**FILES, ".gitattributes": b"*.py text eol=crlf\n"})
    (repo / "src/model.py").unlink()
    sh(repo, "checkout", "--", "src/model.py")
    assert (repo / "src/model.py").read_bytes() == MODULE.replace(b"\n", b"\r\n")
    assert ddpfix(repo, "apply", ".").returncode == 0
    assert blob(repo, f"{BRANCH}:src/model.py") == FIXED
    assert sh(repo, "status", "--porcelain") == ""


def test_two_repositories_at_once_are_refused(tmp_path: Path) -> None:
    one, two = make(tmp_path, FILES, name="one"), make(tmp_path, FILES, name="two")
    done = ddpfix(tmp_path, "apply", str(one), str(two))
    assert done.returncode == 2
    assert "one repository at a time" in text(done.stderr)
