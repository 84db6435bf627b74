"""Repositories for the soak of the fleet: generated ones, trees of the packages that are installed here, and planted faults."""

from __future__ import annotations

import random
import shutil
import site
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.bot.conftest import FILES
from tests.bot.githost import GitHost, git, import_commit
from tests.bot.test_strangers import tree_of_a_billion_paths
from tests.fleet.conftest import MODULE
from tests.programs import MODULE as LOGGED

# of a hundred repositories so many are of that kind; what is left is generated
SHARES = {
    "real": 20, "crash": 3, "memory": 3, "bomb": 3, "corrupt": 4, "settings": 3, "empty": 4, "missing": 2, "hang": 1, "huge": 2,
}  # fmt: skip
CAUSES = {
    "crash": "crash", "memory": "memory", "bomb": "size", "corrupt": "git", "settings": "settings", "missing": "git",
    "hang": "timeout", "huge": "size",
}  # fmt: skip
MOST_FILES = 40  # of a real tree
HUGE = 3_000  # paths, beyond what the run allows


def made(host: GitHost, owner: str, count: int, seed: int = 23) -> list[str]:
    """So many repositories of `owner` on a host; their names, each with its kind in front."""
    drawn = random.Random(seed)
    kinds = [kind for kind, share in SHARES.items() for _ in range(max(1, share * count // 100))]
    kinds += ["made"] * (count - len(kinds))
    drawn.shuffle(kinds)
    trees = real_trees(drawn)
    names = []
    for number, kind in enumerate(kinds):
        name = f"{kind}-{number}"
        names.append(name)
        if kind != "missing":
            fill(host, f"{owner}/{name}", kind, next(trees) if kind == "real" else generated(drawn))
    return names


def generated(drawn: random.Random) -> dict[str, bytes]:
    """A small training repository, with more or less to repair."""
    files = {"requirements.txt": b"lightning==2.5.0\n", "README.md": b"A model.\n"}
    files |= {f"train{n}.py": MODULE.replace("main", f"main{n}").encode() for n in range(drawn.randrange(4))}
    files |= {f"models/m{n}.py": LOGGED.replace(b"Model", b"Model%d" % n) for n in range(drawn.randrange(1, 6))}
    return files | (FILES if drawn.random() < 0.5 else {})


def real_trees(drawn: random.Random) -> Iterator[Mapping[str, bytes]]:
    """Folders of installed packages, with a few to some dozen files of Python."""
    folders = []
    for root in map(Path, site.getsitepackages()):
        for folder in sorted({path.parent for path in root.glob("*/*/*.py")} | {path.parent for path in root.glob("*/*/*/*.py")}):
            files = sorted(folder.glob("*.py"))
            if 5 <= len(files) <= MOST_FILES and sum(path.stat().st_size for path in files) < 600_000:
                folders.append((folder.relative_to(root), files))
    drawn.shuffle(folders)
    for folder, files in folders:
        yield {str(folder / path.name): path.read_bytes() for path in files}


def fill(host: GitHost, slug: str, kind: str, files: Mapping[str, bytes]) -> None:
    """A repository of a kind, on a host."""
    repo = host.create(slug, {} if kind == "empty" else files)
    match kind:
        case "bomb":
            tree = tree_of_a_billion_paths(repo)
            git(repo, "update-ref", "refs/heads/main", git(repo, "commit-tree", tree, "-m", "a lot"))
        case "settings":
            import_commit(repo, "main", {"ddpfix.toml": b"selct = 1\n"}, "more", parent="refs/heads/main^0")
        case "huge":
            paths = {f"data/{n}.py": b"x = 1\n" for n in range(HUGE)}
            import_commit(repo, "main", paths, "more", parent="refs/heads/main^0")
        case "corrupt":
            git(repo, "repack", "-adq")
            (pack,) = (repo / "objects" / "pack").glob("*.pack")
            data = bytearray(pack.read_bytes())
            data[12:-20] = bytes(len(data) - 32)
            pack.chmod(0o644)
            pack.write_bytes(data)
            shutil.rmtree(repo / "objects" / "info", ignore_errors=True)
