"""Codemods of others: installed ones, those that a repository names, and broken ones."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ddpfix import catalog
from tests.gitrepos import make, own_settings
from tests.programs import MODULE, ddpfix
from tests.review.terminals import OnTerminal, plain

HERE = Path(__file__).parent.parent
GLOO = b'''
from pathlib import Path

from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, SetKeyword

Path("mark").touch()


class NoGloo(DdpCodemod):
    """The team trains on NCCL alone.

    ## What it does

    Writes `nccl` where `gloo` stands.
    """

    code = "TEAM001"
    TRIGGERS = ((b"gloo",),)

    def find(self, module, project):
        for call in module.calls_named("init_process_group"):
            edit = SetKeyword(module.path, module.span(call), "backend", '"nccl"')
            if b"nccl" not in module.data:
                yield self.finding(module, call, "gloo is slow on GPUs.", level=Applicability.SAFE, edits=[edit])
'''
SOURCE = b'from torch.distributed import init_process_group\n\ninit_process_group(backend="gloo")\n'
CONFIG = b'[tool.ddpfix]\nplugins = ["ci/no_gloo.py"]\n'
FILES = {"pyproject.toml": CONFIG, "ci/no_gloo.py": GLOO, "train.py": SOURCE}


def text(done: subprocess.CompletedProcess[bytes]) -> str:
    return (done.stdout + done.stderr).decode()


@pytest.mark.parametrize("command", [["check"], ["diff"], ["apply"], ["check", "--no-cache"]])
def test_a_repository_s_own_plug_in_does_not_run_unless_it_is_allowed(tmp_path: Path, command: list[str]) -> None:
    root = make(tmp_path, FILES)
    said = text(ddpfix(root, *command, "."))
    assert not (root / "mark").exists()
    assert "gloo is slow" not in said
    if command != ["apply"]:
        assert "ci/no_gloo.py" in said
        assert "runs only with --allow-plugins" in said


BROKEN_RUN = b"[rank1]: RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one.\n"
WAYS = [
    ["check"], ["check", "--with-edits", "--output-format", "json"], ["check", "--show-settings"], ["diff", "--explain"],
    ["apply", "--no-switch"], ["apply", "--in-place"], ["review", "--html", "page.html"],
    ["prove", "--timeout", "60", "--", sys.executable, "-c", "pass"], ["diagnose", "train.log", ".", "--apply"],
    ["explain", "TEAM001"], ["rules"],
]  # fmt: skip


@pytest.mark.parametrize("command", WAYS, ids=lambda words: "-".join(words[:2]))
def test_no_command_runs_what_a_repository_plants(tmp_path: Path, command: list[str]) -> None:
    planted = GLOO.replace(b'Path("mark")', b'Path(__file__).with_name("mark")')
    root = make(tmp_path, {**FILES, "ci/no_gloo.py": planted, "a.py": MODULE, "train.log": BROKEN_RUN})
    said = text(ddpfix(root, *command))
    assert not (root / "ci" / "mark").exists()
    assert "gloo is slow" not in said
    assert said and "Traceback" not in said and "Nothing to apply" not in said


def test_no_review_runs_what_a_repository_plants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_settings(monkeypatch, tmp_path)
    root = make(tmp_path, {**FILES, "a.py": MODULE})
    with OnTerminal(root, "review", "--apply", "--ignore", "DDP3") as person:
        shown = plain(person.until("? "))
        person.type("a")
        status, rest = person.end()
    assert status == 0 and "DDP101" in shown and "Branch ddpfix/fixes" in rest
    command = [sys.executable, "-P", "-m", "ddpfix.cli", "review", "--serve"]
    own = {**os.environ, "DDPFIX_CACHE_DIR": str(root / ".git" / "no-cache")}
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=own) as process:
        assert process.stdout
        assert process.stdout.readline().startswith("http://127.0.0.1:")
        process.kill()
    assert not (root / "mark").exists()


def test_a_review_shows_and_applies_what_an_allowed_plug_in_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_settings(monkeypatch, tmp_path)
    config = CONFIG + b'[tool.ddpfix.rewrites]\nfunctions = { is_main = "is_rank_zero" }\n'
    root = make(tmp_path, {**FILES, "pyproject.toml": config, "mine.py": b"def is_main():\n    return True\n"})
    with OnTerminal(root, "review", "--apply", "--allow-plugins", "--ignore", "DDP") as person:
        assert "`is_main` is called `is_rank_zero`" in plain(person.until("? "))
        person.type("y")
        assert "gloo is slow" in plain(person.until("? "))
        person.type("y")
        status, rest = person.end()
    assert status == 0 and "Rename is_main to is_rank_zero in mine.py (PRJ001)" in rest
    assert (root / "mine.py").read_bytes() == b"def is_rank_zero():\n    return True\n"
    assert b'"nccl"' in (root / "train.py").read_bytes()
    summary = (root / "DDPFIX_SUMMARY.md").read_text(encoding="utf-8")
    assert "What this repairs" not in summary
    assert "ddpfix apply --allow-plugins --ignore DDP --decisions ddpfix-decisions.json --ignore PRJ001" in summary
    assert "- `is_main` → `is_rank_zero`\n- Places: `mine.py` 1.\n" in summary
    assert "### Fix no-gloo (TEAM001): 1 place\n\n- `train.py:3`: gloo is slow on GPUs.\n" in summary


def test_a_proof_and_a_diagnosis_take_allowed_plug_ins(tmp_path: Path) -> None:
    root = make(tmp_path, {**FILES, "train.log": BROKEN_RUN})
    proof = ["--select", "TEAM001", "--timeout", "60", "--", sys.executable, "-c", "pass"]
    selected = ["--select", "TEAM001,DDP0", "train.log", "."]
    for command, words in (("prove", proof), ("diagnose", selected)):
        refused = ddpfix(root, command, *words)
        assert refused.returncode == 2 and "no codemod, name or topic is called 'TEAM001'" in text(refused)
        assert not (root / "mark").exists()
    proved = ddpfix(root, "prove", "--allow-plugins", *proof)
    assert proved.returncode == 0 and "after TEAM001" in text(proved)
    told = ddpfix(root, "diagnose", "--allow-plugins", *selected)
    assert told.returncode == 0 and "DDP002 missing-find-unused-parameters" in text(told)


def test_a_proof_names_the_plug_ins_that_it_leaves_out(tmp_path: Path) -> None:
    done = ddpfix(make(tmp_path, FILES), "prove", "--timeout", "60", "--", sys.executable, "-c", "pass")
    assert "ci/no_gloo.py: a plug-in that the repository names itself" in text(done)


def test_an_allowed_plug_in_finds_and_fixes(tmp_path: Path) -> None:
    root = make(tmp_path, FILES)
    assert "train.py:3:1: TEAM001 [fix] gloo is slow on GPUs." in text(ddpfix(root, "check", "--allow-plugins", "."))
    assert (root / "mark").exists()
    (root / "mark").unlink()
    assert "+init_process_group(backend=\"nccl\")" in text(ddpfix(root, "diff", "--allow-plugins", "."))
    (root / "mark").unlink()
    screen = text(ddpfix(root, "apply", "--allow-plugins", "."))
    assert "TEAM001 no-gloo" in screen
    assert b'"nccl"' in (root / "train.py").read_bytes()
    log = subprocess.run(["git", "log", "--format=%s"], cwd=root, capture_output=True, text=True, check=True)
    assert "Fix no-gloo in train.py (TEAM001)" in log.stdout
    assert not (root / "ci" / "__pycache__").exists()


def test_its_answer_is_never_taken_from_the_cache(tmp_path: Path) -> None:
    root = make(tmp_path, FILES)
    env = {"DDPFIX_CACHE_DIR": str(tmp_path / "cache")}
    for path in root.rglob("*"):
        os.utime(path, (1, 1))
    first = ddpfix(root, "check", "--allow-plugins", ".", env=env)
    (root / "ci/no_gloo.py").write_bytes(GLOO.replace(b"is slow", b"is very slow"))
    assert "is slow" in text(first)
    assert "is very slow" in text(ddpfix(root, "check", "--allow-plugins", ".", env=env))


BROKEN = [
    (b"x = 1 / 0\n", "ZeroDivisionError: division by zero"),
    (b"class A(:\n", "SyntaxError"),
    (b"import nowhere_to_be_found\n", "ModuleNotFoundError"),
    (b"x = 1\n", "it defines no DdpCodemod"),
    (GLOO.replace(b'"TEAM001"', b'"DDP101"'), "the code DDP101 of NoGloo is taken"),
    (GLOO.replace(b'"TEAM001"', b'"PRJ009"'), "the code PRJ009 of NoGloo is taken"),
    (GLOO.replace(b'code = "TEAM001"', b""), "NoGloo has no code"),
    (GLOO.replace(b'TRIGGERS = ((b"gloo",),)', b""), "NoGloo has no TRIGGERS"),
    (GLOO.replace(b"def find", b"def look"), "NoGloo has no find()"),
    (None, "FileNotFoundError"),
]


@pytest.mark.parametrize(("plugin", "why"), BROKEN)
def test_a_broken_plug_in_is_named_and_the_run_goes_on(tmp_path: Path, plugin: bytes | None, why: str) -> None:
    files = {**FILES, "a.py": MODULE, **({"ci/no_gloo.py": plugin} if plugin is not None else {})}
    if plugin is None:
        del files["ci/no_gloo.py"]
    done = ddpfix(make(tmp_path, files), "check", "--allow-plugins", ".")
    assert "ci/no_gloo.py" in text(done)
    assert "plug-in, left out" in text(done)
    assert why in text(done)
    assert "DDP101" in text(done)
    assert done.returncode == 1


def test_a_plug_in_that_fails_on_a_file_is_named_there(tmp_path: Path) -> None:
    failing = GLOO.replace(b'if b"nccl" not in module.data:', b"if 1 / 0:")
    done = ddpfix(make(tmp_path, {**FILES, "ci/no_gloo.py": failing}), "check", "--allow-plugins", ".")
    assert "train.py:1:1: TEAM001 [reported] The plug-in TEAM001 no-gloo failed on this file." in text(done)
    assert "ZeroDivisionError: division by zero" in text(done)


# Installed ones


def installed(tmp_path: Path, points: str, module: bytes = GLOO) -> dict[str, str]:
    """The environment with a distribution that offers entry points."""
    place = tmp_path / "site"
    info = place / "acme_ddp-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-ddp\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[ddpfix.codemods]\n{points}")
    package = place / "acme_ddp"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "no_gloo.py").write_bytes(module.replace(b'Path("mark").touch()', b""))
    commands = "from acme_ddp import no_gloo\nfrom codemods.libcst_commands import command_for\n\n"
    (package / "commands.py").write_text(f"{commands}NoGloo = command_for(no_gloo.NoGloo, __name__)\n")
    return {"PYTHONPATH": os.pathsep.join([str(place), str(HERE)])}


def test_an_installed_plug_in_runs_and_is_listed_and_explained(tmp_path: Path) -> None:
    env = installed(tmp_path, "gloo = acme_ddp.no_gloo:NoGloo\n")
    root = make(tmp_path, {"train.py": SOURCE})
    assert "train.py:3:1: TEAM001 [fix] gloo is slow on GPUs." in text(ddpfix(root, "check", ".", env=env))
    assert "TEAM001" in text(ddpfix(root, "rules", env=env))
    assert "Writes `nccl` where `gloo` stands." in text(ddpfix(root, "explain", "no-gloo", env=env))
    assert "TEAM001" not in text(ddpfix(root, "check", "--ignore", "TEAM", ".", env=env))
    assert "TEAM001" in text(ddpfix(root, "check", "--select", "plugins", ".", env=env))
    suppressed = SOURCE.replace(b"\n\n", b"\n\n# ddpfix: ignore[TEAM001] gloo is what we have\n")
    (root / "train.py").write_bytes(suppressed)
    assert "TEAM001" not in text(ddpfix(root, "check", ".", env=env))


def zipped(site: Path) -> Path:
    """The same in an archive, as sys.path may hold one."""
    return Path(shutil.make_archive(str(site.with_name("site")), "zip", site))


def as_egg(site: Path) -> Path:
    """The same as a folder of its own, as setuptools once laid them out."""
    (info,) = site.glob("*.dist-info")
    (info / "METADATA").rename(info / "PKG-INFO")
    info.rename(site / "EGG-INFO")
    return site.rename(site.with_name("acme_ddp-1.0-py3.11.egg"))


def develop(site: Path) -> Path:
    (info,) = site.glob("*.dist-info")
    info.rename(site / "acme_ddp.egg-info")
    return site


@pytest.mark.parametrize("laid_out", [zipped, as_egg, develop])
def test_a_plug_in_is_found_however_its_distribution_lies_on_the_path(tmp_path: Path, laid_out: Callable[[Path], Path]) -> None:
    installed(tmp_path, "gloo = acme_ddp.no_gloo:NoGloo\n")
    env = {"PYTHONPATH": os.pathsep.join([str(laid_out(tmp_path / "site")), str(tmp_path / "gone"), str(HERE)])}
    assert "TEAM001 [fix]" in text(ddpfix(make(tmp_path, {"train.py": SOURCE}), "check", ".", env=env))


FINDER = """
import sys
from importlib.metadata import DistributionFinder, PathDistribution

class Vault(DistributionFinder):
    def find_spec(self, name, path=None, target=None): return None
    def find_distributions(self, context=DistributionFinder.Context()):
        from pathlib import Path
        return [PathDistribution(p) for p in Path(sys.argv.pop()).glob("*.dist-info")]

sys.meta_path.append(Vault())
from ddpfix import catalog
print(catalog.installed())
"""


def test_a_plug_in_is_found_where_a_finder_of_its_own_offers_it(tmp_path: Path) -> None:
    installed(tmp_path, "gloo = acme_ddp.no_gloo:NoGloo\n")
    done = subprocess.run([sys.executable, "-c", FINDER, tmp_path / "site"], cwd=HERE, capture_output=True, text=True, check=True)
    assert "acme_ddp.no_gloo:NoGloo" in done.stdout and "No module named 'acme_ddp'" in done.stdout


def test_a_distribution_with_other_entry_points_is_none_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(tmp_path, "gloo = acme_ddp.no_gloo:NoGloo\n")
    (points,) = (tmp_path / "site").glob("*/entry_points.txt")
    monkeypatch.setattr(sys, "path", ["", str(tmp_path / "gone"), str(tmp_path / "site")])
    assert catalog.any_plugged_in()
    points.write_text("[console_scripts]\nddpfix = ddpfix.__main__:main\n")
    assert not catalog.any_plugged_in()


def test_an_installed_plug_in_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    env = installed(tmp_path, "gloo = acme_ddp.no_gloo:Missing\nother = acme_ddp.nowhere:A\n")
    said = text(ddpfix(make(tmp_path, {"train.py": SOURCE}), "check", ".", env=env))
    assert "acme_ddp.no_gloo:Missing: not read: plug-in, left out: AttributeError" in said
    assert "acme_ddp.nowhere:A: not read: plug-in, left out: ModuleNotFoundError" in said


def test_libcst_s_runner_writes_the_same(tmp_path: Path) -> None:
    env = {**os.environ, **installed(tmp_path, "gloo = acme_ddp.no_gloo:NoGloo\n")}
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    ours, theirs = make(tmp_path / "a", {"train.py": SOURCE}), make(tmp_path / "b", {"train.py": SOURCE})
    ddpfix(ours, "apply", ".", "--in-place", env=env)
    runner = [sys.executable, "-P", "-m", "libcst.tool", "codemod", "-x", "acme_ddp.commands.NoGloo", "--no-format", "train.py"]
    subprocess.run(runner, cwd=theirs, env=env, check=True, capture_output=True)
    assert (ours / "train.py").read_bytes() == (theirs / "train.py").read_bytes() == SOURCE.replace(b"gloo", b"nccl")
