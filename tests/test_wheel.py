"""What a user gets from `pip install`: both packages, typed, and one command."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_wheel_holds_both_packages_whole(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        points = archive.read(next(n for n in names if n.endswith("entry_points.txt"))).decode()
    source = {p.relative_to(ROOT).as_posix() for top in ("ddpfix", "codemods") for p in (ROOT / top).rglob("*.py")}
    assert {n for n in names if n.endswith(".py")} == source
    assert {"ddpfix/py.typed", "codemods/py.typed"} <= names
    page = {p.relative_to(ROOT).as_posix() for p in (ROOT / "ddpfix" / "review" / "static").iterdir()}
    assert len(page) == 9 and page <= names
    assert points.split() == ["[console_scripts]", "ddpfix", "=", "ddpfix.__main__:main"]
