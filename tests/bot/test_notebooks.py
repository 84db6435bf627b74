"""A notebook in one pull request of the bot: made, shown, and not made again."""

from __future__ import annotations

import re

from ddpfix.bot import inside
from tests.bot.conftest import World
from tests.bot.githost import git
from tests.bot.test_review import pull_request, review
from tests.notebooks import GUARDED, LAUNCH, SETUP, TRAIN, TRAINING, code, jupyter, kaggle, notebook, sources, without_sources

NOTEBOOK = jupyter(TRAINING)


def test_a_notebook_is_fixed_in_one_pull_request(world: World) -> None:
    world.commit({"nb/train.ipynb": NOTEBOOK, "kaggle.ipynb": kaggle(TRAINING)})
    assert world.safe().action == "created"
    assert len(world.repo.pulls) == 1
    assert git(world.git, "diff", "--name-only", "main", "ddpfix/safe").split() == ["kaggle.ipynb", "model.py", "nb/train.ipynb"]
    after = world.file("nb/train.ipynb")
    assert sources(after) == [GUARDED if source == TRAIN else source for source in sources(NOTEBOOK)]
    assert without_sources(after) == without_sources(NOTEBOOK)
    assert git(world.git, "diff", "--numstat", "main", "ddpfix/safe", "--", "nb").split()[:2] == ["4", "2"]
    body = world.pull()["body"]
    assert "cell 4:line 6`: every rank prints in train" in body
    assert '+            print("epoch", epoch)' in body
    assert world.safe().action == "unchanged"


def test_a_pull_request_that_changes_a_notebook_is_reviewed_on_the_lines_of_its_file(world: World) -> None:
    pull_request(world, {"train.ipynb": NOTEBOOK})
    assert review(world).action == "reviewed"
    lines = NOTEBOOK.decode().split("\n")
    comments = [c for c in world.repo.reviews[0]["comments"] if "DDP703" not in c["body"]]  # that one assumes something
    assert [(c["path"], lines[c["line"] - 1].split("(")[0]) for c in comments] == [
        ("train.ipynb", '    "        print'),
        ("train.ipynb", '    "    torch.save'),
    ]
    for comment in reversed(comments):
        block = re.search(r"```suggestion\n(.*?)\n```", comment["body"], re.S)
        assert block
        lines[comment.get("start_line", comment["line"]) - 1 : comment["line"]] = block[1].split("\n")
    assert sources("\n".join(lines).encode()) == [GUARDED if source == TRAIN else source for source in sources(NOTEBOOK)]
    assert "`train.ipynb:cell 4:line 6`" in world.notes()[0]


def test_a_repository_of_very_many_notebooks_is_looked_at_without_them(world: World) -> None:
    many = notebook(code(SETUP), code(TRAIN), code(LAUNCH))
    files = {f"n{i}.ipynb": jupyter(many) for i in range(inside.MOST_NOTEBOOKS + 1)}
    world.commit(files)
    assert world.safe().action == "created"
    assert git(world.git, "diff", "--name-only", "main", "ddpfix/safe").split() == ["model.py"]
