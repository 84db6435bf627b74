"""How long a repository takes: recorded on real trees, those of the packages that are installed here, one after the other.

`python -m benchmarks.fleet_times 100` writes benchmarks/fleet_times.json: for each of a hundred the files, the bytes, the seconds
of a processor that `ddpfix fleet` took for it with its process and its git, and whether there was a safe fix. What else the
machine does is not in it. `benchmarks.fleet_scale` draws from these.
"""

from __future__ import annotations

import json
import os
import random
import resource
import site
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from ddpfix.fleet.work import Job, work_on

RECORD = Path(__file__).with_suffix(".json")
MOST_BYTES = 8 * 1024 * 1024  # of what is read; repositories of models are smaller
KINDS = (".py", ".toml", ".cfg", ".yaml", ".yml", ".sh", ".md", ".rst", ".txt", ".json")


def trees() -> Iterator[list[tuple[str, bytes]]]:
    """(path, content) of each installed package, and of each large part of one, in an order that is drawn once."""
    folders: list[tuple[Path, Path]] = []
    for root in map(Path, site.getsitepackages()):
        folders += [(root, folder) for folder in sorted(root.iterdir()) if (folder / "__init__.py").exists()]
        folders += [(root, folder) for folder in sorted(root.glob("*/*")) if (folder / "__init__.py").exists()]
    random.Random(23).shuffle(folders)
    for root, folder in folders:
        files = [path for path in sorted(folder.rglob("*")) if path.suffix in KINDS and path.is_file()]
        sizes = sum(path.stat().st_size for path in files)
        if len(files) >= 5 and sizes <= MOST_BYTES:
            yield [(path.relative_to(root).as_posix(), path.read_bytes()) for path in files]


def recorded(folder: Path, files: list[tuple[str, bytes]]) -> dict[str, Any]:
    """What one repository takes."""
    repo = folder / "repo.git"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(repo)], check=True)
    who = b"Ada <ada@example.test> 1700000000 +0000"
    out = [b"commit refs/heads/main\ncommitter %s\ndata 5\nfirst\n" % who]
    out += [b"M 100644 inline %s\ndata %d\n%s\n" % (name.encode(), len(data), data) for name, data in files]
    subprocess.run(["git", "-C", str(repo), "fast-import", "--quiet"], input=b"".join(out), check=True)
    before = _used()
    result = work_on(Job(repo.as_uri()).plain())
    used = _used() - before
    subprocess.run(["rm", "-rf", str(repo)], check=True)
    safe = any(row[1] == "safe" for row in result["findings"])
    size = sum(len(data) for _, data in files)
    return {"files": len(files), "bytes": size, "seconds": round(used, 3), "safe": safe, "cause": result["cause"]}


def _used() -> float:
    found = resource.getrusage(resource.RUSAGE_CHILDREN)
    return found.ru_utime + found.ru_stime


def main(count: int) -> None:
    os.environ |= {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        for files in islice(trees(), count):
            rows.append(recorded(Path(name), files))
            rows.sort(key=lambda row: float(row["seconds"]))
            RECORD.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n", encoding="utf-8")
    middle = rows[len(rows) // 2]["seconds"]
    sys.stdout.write(f"{len(rows)} repositories, {middle} s in the middle, {rows[-1]['seconds']} s at most\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 100)
