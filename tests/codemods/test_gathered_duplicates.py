from __future__ import annotations

import pytest

from codemods.files.left_alone import Left, hearing
from codemods.metrics.gathered_duplicates import GatheredDuplicates
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

HEAD = (
    "import torch\nimport torch.distributed as dist\nfrom accelerate import Accelerator\n"
    "from torch.utils.data import DataLoader, DistributedSampler\nfrom tqdm import tqdm\n\n\n"
)


PADS = "DistributedSampler(data, shuffle=False)"


def raw(*join: str, sampler: str = PADS, each: str = "hits += (model(x) == y).sum()") -> str:
    body = "".join(f"    {line}\n" for line in join)
    return (
        f"{HEAD}@torch.no_grad()\ndef evaluate(model, loader, data):\n    hits = torch.zeros(())\n    for x, y in tqdm(loader):\n"
        f"        {each}\n{body}    return hits / len(data)\n\n\n"
        f"def main(model, data):\n    loader = DataLoader(data, 4, sampler={sampler})\n    evaluate(model, loader, data)\n"
    )


def accelerated(*lines: str, head: str = "@torch.no_grad()\ndef evaluate") -> str:
    body = "".join(f"        {line}\n" for line in lines)
    return f"{HEAD}{head}(accelerator: Accelerator, model, loader, metric):\n    for x, labels in loader:\n{body}"


PREDICT = "preds = model(x).argmax(-1)"


@pytest.mark.parametrize(
    "join", ["dist.all_reduce(hits)", "dist.all_reduce(hits, op=dist.ReduceOp.SUM)", "dist.reduce(hits, 0)"]
)
def test_a_sampler_that_pads_is_told(join: str) -> None:
    found = check_told(GatheredDuplicates, raw(join), reason="share without padding")
    assert found.span.line == 18 and len(found.evidence) == 2


def test_counts_that_an_object_puts_together() -> None:
    source = raw("meter = Meter()", "meter.join()", each="hits += 1").replace(
        "@torch", "class Meter:\n    def join(self):\n        dist.all_reduce(self.confusion)\n\n\n@torch", 1
    )
    check_told(GatheredDuplicates, source, reason="share without padding")


def test_an_evaluation_that_is_an_object() -> None:
    source = (
        f"{HEAD}class Evaluation:\n    @torch.no_grad()\n    def __call__(self, model, loader):\n"
        "        rounds = enumerate(loader)\n"
        "        for i, x in rounds:\n            self.hits += model(x)\n        dist.all_reduce(self.hits)\n\n\n"
        "def main(model, data):\n    loader = DataLoader(data, 4, sampler=DistributedSampler(data))\n    run = Evaluation()\n"
        "    run(model, loader)\n"
    )
    check_told(GatheredDuplicates, source, reason="share without padding")


@pytest.mark.parametrize("argument", ["preds", "(preds, labels)", "outputs.logits"])
def test_predictions_are_gathered_for_metrics(argument: str) -> None:
    before = accelerated(PREDICT, f"metric.add(accelerator.gather({argument}))")
    check_transformed(GatheredDuplicates, before, before.replace(".gather(", ".gather_for_metrics("), unsafe=True)


@pytest.mark.parametrize(
    "join",
    ["dist.all_reduce(loss)", "dist.barrier()", "dist.all_reduce(mean_hits)", "dist.all_reduce(hits, dist.ReduceOp.MAX)"],
)
def test_nothing_of_what_counts_no_samples(join: str) -> None:
    check_nothing(GatheredDuplicates, raw(join))


@pytest.mark.parametrize(
    "sampler",
    [
        "DistributedSampler(data, drop_last=True)",
        "torch.utils.data.SequentialSampler(data)",
        "OwnShare(data)",
        "None",
        "DistributedSampler(data, **options)",
    ],
)
def test_nothing_of_a_sampler_that_may_not_pad(sampler: str) -> None:
    check_nothing(GatheredDuplicates, raw("dist.all_reduce(hits)", sampler=sampler))


def test_nothing_of_a_loader_that_leaves_the_last_batch_out() -> None:
    whole = raw("dist.all_reduce(hits)")
    check_nothing(GatheredDuplicates, whole.replace("DataLoader(data, 4, ", "DataLoader(data, 4, drop_last=True, "))
    helper = "def make(data, sampler, rest=True):\n    return DataLoader(data, 4, sampler=sampler, drop_last=rest)\n\n\n"
    made = whole.replace("def main", f"{helper}def main").replace("DataLoader(data, 4, sampler=D", "make(data, sampler=D")
    check_nothing(GatheredDuplicates, made)


def test_nothing_where_the_function_asks_whether_the_data_divide() -> None:
    source = raw("dist.all_reduce(hits)").replace(
        "    loader = ", "    if len(data) % dist.get_world_size() != 0:\n        print('not even')\n    loader = "
    )
    check_nothing(GatheredDuplicates, source)
    check_told(GatheredDuplicates, source.replace("dist.get_world_size()", "1000"), reason="share without padding")


def test_nothing_where_the_results_are_collected_and_cut() -> None:
    helpers = (
        "def collect(hits, size):\n    parts = [None] * dist.get_world_size()\n    dist.all_gather_object(parts, hits)\n"
        "    return [p for part in zip(*parts) for p in part][:size]\n\n\n"
        "def scores(hits, size):\n    return sum(collect(hits, size))\n\n\n"
    )
    source = raw("total = scores(hits, len(data))").replace("@torch", f"{helpers}@torch", 1)
    check_nothing(GatheredDuplicates, source)


def test_nothing_of_data_in_memory() -> None:
    source = raw("dist.all_reduce(hits)", sampler="DistributedSampler(torch.utils.data.TensorDataset(data))")
    check_nothing(GatheredDuplicates, source)


def test_nothing_of_the_sampler_of_the_training() -> None:
    source = raw("dist.all_reduce(hits)", sampler="sampler").replace(
        "    loader =", "    sampler = DistributedSampler(data)\n    sampler.set_epoch(1)\n    loader ="
    )
    check_nothing(GatheredDuplicates, source)


def test_nothing_where_nothing_is_put_together() -> None:
    check_nothing(GatheredDuplicates, raw("print(hits)"))


def test_nothing_where_samples_are_told_apart() -> None:
    lines = ("rows = [None] * 2", "dist.all_gather_object(rows, hits)", "hits = len(set(sum(rows, [])))")
    check_nothing(GatheredDuplicates, raw(*lines))


def test_nothing_where_what_is_gathered_is_cut() -> None:
    lines = ("rows = [None] * 2", "dist.all_gather_object(rows, hits)", "hits = rows[: len(data)]")
    check_nothing(GatheredDuplicates, raw(*lines))


def test_nothing_of_a_loop_that_trains() -> None:
    source = raw("dist.all_reduce(hits)", each="model(x).backward()").replace("@torch.no_grad()\ndef evaluate", "def evaluate")
    check_nothing(GatheredDuplicates, source)


@pytest.mark.parametrize(
    "line",
    [
        "loss = accelerator.gather(loss)",
        "loss = accelerator.gather(labels).mean()",
        "preds = accelerator.gather(preds)[:10]",
        "metric.add(accelerator.gather_for_metrics(preds))",
        "metric.add(other.gather(preds))",
        "metric.add(torch.gather(preds, 0, labels))",
    ],
)
def test_nothing_of_other_gathers(line: str) -> None:
    check_nothing(GatheredDuplicates, accelerated(PREDICT, line))


def test_nothing_where_the_result_is_cut_by_hand() -> None:
    lines = (PREDICT, "preds = accelerator.gather(preds)", "preds = preds[: len(loader.dataset) - seen]")
    check_nothing(GatheredDuplicates, accelerated(*lines))


def test_nothing_of_a_training_loop_that_gathers() -> None:
    lines = (PREDICT, "accelerator.backward(preds)", "metric.add(accelerator.gather(preds))")
    check_nothing(GatheredDuplicates, accelerated(*lines, head="def train"))


def test_nothing_of_the_repositorys_own_tests() -> None:
    assert not findings_of(GatheredDuplicates, raw("dist.all_reduce(hits)"), path="tests/test_metric.py")


MEAN = (
    "def mean_of(value):\n    out = value.clone()\n    dist.all_reduce(out)\n    return out / dist.get_world_size()\n\n\n@torch"
)


def test_scores_of_batches_that_a_helper_averages() -> None:
    source = raw(each="hits += mean_of(accuracy(model(x), y))").replace("@torch", MEAN, 1)
    check_told(GatheredDuplicates, source, reason="share without padding")
    check_nothing(GatheredDuplicates, source.replace("accuracy(model(x), y)", "loss_of(model(x), y)"))
    check_nothing(GatheredDuplicates, source.replace("dist.all_reduce(out)", "out = out.float()"))


def test_batches_of_one_sample_drop_nothing() -> None:
    source = raw("dist.all_reduce(hits)").replace("data, 4, sampler", "data, 1, drop_last=True, sampler")
    check_told(GatheredDuplicates, source, reason="share without padding")
    check_nothing(GatheredDuplicates, source.replace("data, 1,", "data, 2,"))


@pytest.mark.parametrize(("size", "told"), [("5000", False), ("1013", True), ("500", True)])
def test_a_size_that_the_program_writes_out(size: str, told: bool) -> None:
    source = raw("dist.all_reduce(hits)").replace("    loader = DataLoader", f"    num_samples = {size}\n    loader = DataLoader")
    assert bool(findings_of(GatheredDuplicates, source)) is told


def test_options_that_a_file_holds() -> None:
    source = raw("dist.all_reduce(hits)").replace("data, 4, sampler", "data, **data.options, sampler")
    check_nothing(GatheredDuplicates, source, files={"run.yaml": "valid:\n  batch_size: 4\n  drop_last: true\n"})
    check_told(GatheredDuplicates, source, reason="share without", files={"run.yaml": "valid:\n  batch_size: 4\n"})


def by_mode(*body: str, test: str = 'phase == "train"', sampler: str = PADS) -> str:
    lines = "".join(f"        {line}\n" for line in body)
    return (
        f"{HEAD}def run(model, loader, optimizer, phase, data):\n    hits = torch.zeros(())\n    for x, y in loader:\n"
        f'        with torch.set_grad_enabled(phase == "train"):\n            out = model(x)\n        if {test}:\n'
        "            optimizer.zero_grad()\n            out.mean().backward()\n            optimizer.step()\n"
        f"{lines}        hits += (out.argmax(1) == y).sum()\n    dist.all_reduce(hits)\n    return hits\n\n\n"
        f"def main(model, optimizer, data):\n    loader = DataLoader(data, 4, sampler={sampler})\n"
        '    run(model, loader, optimizer, "val", data)\n'
    )


def test_a_function_that_trains_or_evaluates_by_its_mode() -> None:
    check_told(GatheredDuplicates, by_mode(), reason="share without padding")
    check_told(GatheredDuplicates, by_mode(test="optimizer is not None"), reason="share without padding")
    check_nothing(GatheredDuplicates, by_mode(sampler="DistributedSampler(data)"))
    check_nothing(GatheredDuplicates, by_mode(test="model.steps % 4 == 0"))
    check_nothing(GatheredDuplicates, by_mode("out.sum().backward()"))


def test_metrics_that_put_themselves_together() -> None:
    source = raw(each="metric.update(model(x), y)").replace("import torch\n", "import torch\nimport torchmetrics\n", 1)
    made = "    metric = torchmetrics.classification.BinaryAccuracy().to('cuda')\n"
    source = source.replace("    hits = torch.zeros(())\n", made)
    source = source.replace("return hits / len(data)", "return metric.compute()")
    check_told(GatheredDuplicates, source, reason="share without padding")
    check_nothing(GatheredDuplicates, source.replace("classification.BinaryAccuracy", "MeanMetric"))
    check_nothing(GatheredDuplicates, source.replace("torchmetrics.classification.BinaryAccuracy()", "data.metric()"))
    check_nothing(GatheredDuplicates, source.replace("sampler=DistributedSampler(data, shuffle=False)", "shuffle=False"))


def test_a_sampler_of_the_evaluation_that_is_told_the_epoch() -> None:
    source = raw("dist.all_reduce(hits)", sampler="sampler").replace(
        "    loader = DataLoader(", "    sampler = DistributedSampler(data)\n    sampler.set_epoch(1)\n    loader = DataLoader("
    ).replace("from accelerate import Accelerator\n", "")
    check_nothing(GatheredDuplicates, source)
    trained = (
        "\n\ndef train(model, rows, optimizer):\n    loader = DataLoader(rows, 4, sampler=DistributedSampler(rows))\n"
        "    for x in loader:\n        optimizer.zero_grad()\n        model(x).mean().backward()\n        optimizer.step()\n"
    )
    check_told(GatheredDuplicates, source + trained, reason="share without padding")
    own = trained.replace("    loader = DataLoader(rows, 4, sampler=DistributedSampler(rows))\n", "").replace("rows", "loader")
    handed = source.replace("    evaluate(model", "    train(model, loader, None)\n    evaluate(model")
    check_nothing(GatheredDuplicates, handed + own)


def test_rows_that_are_put_at_the_number_of_their_sample() -> None:
    each = "dist.all_gather(rows, y); kept.index_copy_(0, torch.cat(rows), model(x))"
    check_nothing(GatheredDuplicates, raw("dist.all_reduce(hits)", each=each))
    summed = raw("dist.all_reduce(hits)", each=each.replace("index_copy_", "add_"))
    check_told(GatheredDuplicates, summed, reason="share without padding")


def test_a_name_that_is_given_a_second_sampler_tells_of_that_one() -> None:
    source = raw("dist.all_reduce(hits)").replace(
        f"    loader = DataLoader(data, 4, sampler={PADS})\n",
        f"    sampler = {PADS}\n    train = DataLoader(data, 4, sampler=sampler)\n"
        f"    sampler = {PADS}\n    loader = DataLoader(data, 4, sampler=sampler)\n",
    )
    found = check_told(GatheredDuplicates, source, reason="share without padding")
    assert found.span.line == 20


def test_what_one_loop_gathers_goes_together() -> None:
    before = accelerated(
        "output = model(x)", "all_of_it = accelerator.gather(output)", "ids = accelerator.gather(labels)",
        "loss = accelerator.gather(loss_of(output)).mean()", "metric.add(all_of_it, ids)",
    )  # fmt: skip
    after = before.replace("accelerator.gather(output)", "accelerator.gather_for_metrics(output)")
    after = after.replace("accelerator.gather(labels)", "accelerator.gather_for_metrics(labels)")
    check_transformed(GatheredDuplicates, before, after, unsafe=True)


PROGRAM = """\
dist.init_process_group("nccl")
data = Images("val")
loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data, shuffle=False))
QUIET
for x, y in loader:
    hits += (net(x) == y).sum()
    STEP
dist.all_reduce(hits)
"""


@pytest.mark.parametrize("inside", ["", "def main(net, hits):"])
def test_a_program_that_switches_gradients_off_for_good(inside: str) -> None:
    def written(quiet: str, step: str = "pass") -> str:
        lines = PROGRAM.replace("QUIET", quiet).replace("STEP", step).splitlines()
        return HEAD + (f"{inside}\n" + "".join(f"    {line}\n" for line in lines) if inside else "\n".join(lines))

    check_told(GatheredDuplicates, written("torch.set_grad_enabled(False)"), reason="share without padding")
    check_nothing(GatheredDuplicates, written("torch.set_grad_enabled(True)"))
    check_nothing(GatheredDuplicates, written("torch.set_grad_enabled(False)", "hits.backward()"))


SCRIPT = HEAD + """\
accelerator = Accelerator()
net, optimizer, loader, rows = accelerator.prepare(net, optimizer, loader, rows)
for epoch in range(10):
    for x, y in loader:
        accelerator.backward(loss_of(net(x), y))
        optimizer.step()
    outputs, truths, masks = [], [], []
    for x, labels, loss_masks in rows:
        with torch.no_grad():
            output = net(x)
        outputs.append(accelerator.gather(output))
        truths.append(accelerator.gather(labels))
        masks.append(accelerator.gather(loss_masks))
    print(loss_of(torch.cat(outputs)[torch.cat(masks)], torch.cat(truths)))
"""


def test_a_script_that_trains_and_evaluates() -> None:
    check_transformed(GatheredDuplicates, SCRIPT, SCRIPT.replace(".gather(", ".gather_for_metrics("), unsafe=True)


def test_a_script_that_gathers_its_loss_as_well() -> None:
    before = SCRIPT.replace("accelerator.gather(loss_masks)", "accelerator.gather(loss_of(output, labels))")
    after = before.replace("gather(output)", "gather_for_metrics(output)").replace("gather(labels)", "gather_for_metrics(labels)")
    check_transformed(GatheredDuplicates, before, after, unsafe=True)


@pytest.mark.parametrize(
    ("old", "new"),
    [("        truths.append(accelerator.gather(labels))\n        masks.append(accelerator.gather(loss_masks))\n", ""),
     ("            output = net(x)\n", "            output = net(x)\n        accelerator.backward(output)\n"),
     ("        with torch.no_grad():\n            output", "        output"),
     ("            output = net(x)\n", "            output = net(x)\n        exit()\n"),
     ("torch.cat(outputs)[", "torch.cat(outputs)[: len(rows.dataset) - 0][")],
)  # fmt: skip
def test_a_script_that_keeps_predictions_or_cuts_them(old: str, new: str) -> None:
    """Kept by their order, trained with, behind an exit, or cut."""
    assert old in SCRIPT
    check_nothing(GatheredDuplicates, SCRIPT.replace(old, new))


@pytest.mark.parametrize(
    "cut", ["rows = rows[:-over]", "rows = rows[: -(seen - len(data))]", "print(rows[:-over])"]
)
def test_what_is_over_is_cut_off_at_the_end(cut: str) -> None:
    lines = ("dist.all_reduce(hits)", "seen = count(hits)", "over = seen - len(data)", "rows = take(hits)", cut)
    check_nothing(GatheredDuplicates, raw(*lines))


def test_a_cut_by_no_difference() -> None:
    check_told(GatheredDuplicates, raw("dist.all_reduce(hits)", "rows = take(hits)[:-1]"), reason="share without padding")


MODES = """\
class Rows:
    def __init__(self, data, mode, world=None):
        if mode == "train":
            self.loader = DataLoader(data, 4, sampler=DistributedSampler(data))
        elif mode == "valid":
            self.loader = DataLoader(data, 4, sampler={sampler})
        else:
            self.loader = DataLoader(data, 4)


def main(model, data):
    rows = Rows(data, {mode})
    evaluate(model, rows.loader, data)
"""


def of_modes(mode: str, sampler: str = "Whole(data)") -> str:
    return raw("dist.all_reduce(hits)").partition("def main(")[0] + MODES.format(mode=mode, sampler=sampler)


@pytest.mark.parametrize("mode", ["'valid'", "mode='valid'", "'test', world=4"])
def test_a_loader_of_another_mode_pads(mode: str) -> None:
    check_nothing(GatheredDuplicates, of_modes(mode))


@pytest.mark.parametrize("mode", ["'train'", "model.mode", "mode='train'"])
def test_the_loader_of_the_mode_pads(mode: str) -> None:
    check_told(GatheredDuplicates, of_modes(mode), reason="share without padding")


def test_the_loader_of_the_evaluations_mode_pads() -> None:
    check_told(GatheredDuplicates, of_modes("'valid'", PADS), reason="share without padding")


BY_PARAMETER = """\
def make(data, rows, {name}):
{sampler}
    return DataLoader(data, 4, sampler=sampler)


def loaders(data, training):
    return make(data, 8, training)


def main(model, data):
    {first} = loaders(data, {given}){second}
    evaluate(model, held, data)
"""
UNDER = "    sampler = None\n    if {test}:\n        sampler = DistributedSampler(data)"
CHOSEN = "    sampler = DistributedSampler(data) if {test} else None"
BOTH = "\n    held = loaders(data, {other})"


def by_parameter(sampler: str, test: str, given: str, other: str, name: str = "training") -> str:
    second = BOTH.format(other=other) if other else ""
    made = BY_PARAMETER.format(
        name=name, sampler=sampler.format(test=test), first="trained" if other else "held", given=given, second=second
    )
    return raw("dist.all_reduce(hits)").partition("def main(")[0] + made


@pytest.mark.parametrize("sampler", [UNDER, CHOSEN])
@pytest.mark.parametrize(
    ("test", "given", "other", "name"),
    [
        ("training and rows > 4", "True", "False", "training"),
        ("training", "True", "training=False", "training"),
        ("mode == 'train'", "'train'", "'val'", "mode"),
    ],
)
def test_a_sampler_under_a_test_for_the_training(sampler: str, test: str, given: str, other: str, name: str) -> None:
    heard: list[Left] = []
    with hearing(heard.append):
        check_nothing(GatheredDuplicates, by_parameter(sampler, test, given, other, name))
    assert any("lets the training alone come here" in said.why for said in heard)


@pytest.mark.parametrize("sampler", [UNDER, CHOSEN])
@pytest.mark.parametrize(
    ("test", "given", "other", "name"),
    [
        ("training", "True", "", "training"),
        ("training", "True", "data.training", "training"),
        ("not training", "True", "False", "training"),
        ("mode != 'train'", "'train'", "'val'", "mode"),
        ("training or rows > 4", "True", "False", "training"),
        ("rows > 4", "True", "False", "training"),
    ],
)
def test_a_sampler_that_an_evaluation_may_go_through(sampler: str, test: str, given: str, other: str, name: str) -> None:
    check_told(GatheredDuplicates, by_parameter(sampler, test, given, other, name), reason="share without padding")


EPOCH = """\
from accelerate import Accelerator


class Epochs:
    def __init__(self, model, optimizer, train, valid):
        self.accelerator = Accelerator()
        self.model, self.optimizer, self.train, self.valid = self.accelerator.prepare(model, optimizer, train, valid)

    def epoch(self, tokenizer, score):
        self.model.train()
        for x, y in self.train:
            self.optimizer.zero_grad()
            self.accelerator.backward(self.model(x, y))
            self.optimizer.step()
        {mode}
        texts = []
        for x, y in self.valid:
            seq_ids = self.model(x, mode="sample")
            texts += tokenizer.batch_decode(self.accelerator.gather(seq_ids))
        return score(texts)
"""


def test_an_epoch_that_trains_and_then_evaluates() -> None:
    found = findings_of(GatheredDuplicates, EPOCH.format(mode="self.model.eval()"))
    assert [(f.span.line, f.applicability.value) for f in found] == [(19, "unsafe")]


@pytest.mark.parametrize("mode", ["self.model.train()", "pass", "if score:\n            self.model.eval()"])
def test_an_epoch_of_which_nothing_says_that_it_evaluates(mode: str) -> None:
    check_nothing(GatheredDuplicates, EPOCH.format(mode=mode))


PARTS = """\
import pickle

import torch.distributed as dist


def all_together(counter, folder):
    world_size = dist.get_world_size()
    with open(f"{folder}/part_{dist.get_rank()}.pkl", "wb") as file:
        pickle.dump(counter, file)
    dist.barrier()
    for i in range(1, world_size):
        part = pickle.load(open(f"{folder}/part_{i}.pkl", "rb"))
        counter.add(part)
    return counter
"""


def through_files(parts: str = PARTS, sampler: str = PADS) -> dict[str, str]:
    source = raw("counter = parts.all_together(counter, '/tmp/x')", sampler=sampler)
    source = source.replace("import torch\n", "import torch\nimport parts\n", 1).replace("hits += (", "counter.see(")
    return {"main.py": source, "parts.py": parts}


def told_in(files: dict[str, str]) -> int:
    others = {k: v for k, v in files.items() if k != "main.py"}
    return len(findings_of(GatheredDuplicates, files["main.py"], path="main.py", files=others))


def test_counts_that_come_together_through_files() -> None:
    assert told_in(through_files()) == 1
    at_once = PARTS.replace("part = pickle.load(", "counter.add(pickle.load(")
    at_once = at_once.replace('"rb"))\n        counter.add(part)', '"rb")))')
    assert told_in(through_files(at_once)) == 1
    assert told_in(through_files(PARTS.replace("counter.add(part)", "counter += part").replace("range(1, ", "range("))) == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("counter.add(part)", "counter.append(part)"),  # rows, which may be told apart or cut later
        ("counter.add(part)", "counter.update(part)"),  # a dict by keys
        ("counter.add(part)", "print(part)"),
        ("range(1, world_size)", "range(1, 4)"),
        ("        pickle.dump(counter, file)\n", "        file.flush()\n"),
        ("pickle.load(", "str("),
        ("    return counter", "    return counter[:len(folder)]"),
    ],
)
def test_files_that_add_up_no_counts(old: str, new: str) -> None:
    assert told_in(through_files(PARTS.replace(old, new))) == 0


HEIR = (
    "class Shares(DistributedSampler):\n    def __init__(self, rows, shuffle=True):\n"
    "        super().__init__(rows)\n        self.shuffle = shuffle\n\n    def __iter__(self):\n"
    "        rows = list(range(len(self.dataset)))\n        rows += rows[: (self.total_size - len(rows))]\n"
    "        return iter(rows[self.rank : self.total_size : self.num_replicas])\n\n\n@torch"
)


def test_an_heir_that_repeats_rows_in_a_pass_of_its_own() -> None:
    source = raw("dist.all_reduce(hits)", sampler="Shares(data, shuffle=False)").replace("@torch", HEIR, 1)
    check_told(GatheredDuplicates, source, reason="share without padding")
    check_nothing(GatheredDuplicates, source.replace("        rows += rows[: (self.total_size - len(rows))]\n", ""))


EVEN = (
    "class Shares(Sampler):\n    def __init__(self, rows, shuffle=True, even=True):\n"
    "        self.dataset = rows\n        self.shuffle = shuffle\n        self.fill = even\n"
    "        self.own_rows = len(range(self.rank, len(rows), self.num_replicas))\n\n    def __iter__(self):\n"
    "        rows = list(range(len(self.dataset)))\n        if self.fill:\n            if len(rows) < self.total_size:\n"
    "                rows += rows[: (self.total_size - len(rows))]\n"
    "        return iter(rows[self.rank : self.total_size : self.num_replicas])\n\n\n@torch"
)


def even(*join: str, sampler: str = "Shares(data, shuffle=False)", **given: str) -> str:
    source = raw(*(join or ("dist.all_reduce(hits)",)), sampler=sampler, **given).replace("@torch", EVEN, 1)
    return "from torch.utils.data import Sampler\n" + source


def test_a_sampler_that_repeats_rows_by_an_option_that_is_on() -> None:
    check_told(GatheredDuplicates, even(), reason="share without padding")
    check_nothing(GatheredDuplicates, even(sampler="Shares(data, shuffle=False, even=False)"))
    check_nothing(GatheredDuplicates, even(sampler="Shares(data, False, option)"))
    check_nothing(GatheredDuplicates, even(sampler="Shares(data, **options)"))
    check_nothing(GatheredDuplicates, even().replace("even=True", "even=False"))
    check_nothing(GatheredDuplicates, even().replace("if self.fill:", "if self.fill and self.shuffle:"))
    check_nothing(GatheredDuplicates, even().replace("self.fill = even\n", "self.fill = even\n        self.fill = kind()\n"))


BY_ROW = "for i, (x, y) in enumerate(loader):"


@pytest.mark.parametrize(
    ("each", "join", "found"),
    [
        ("hits += all_ranks(good, i < loader.sampler.own_rows)", "return hits", 0),
        ("counts = i < loader.sampler.own_rows; hits += all_ranks(good, counts)", "return hits", 0),
        ("hits += all_ranks(good, is_valid=True)", "return hits", 0),
        ("hits += good if i < loader.sampler.own_rows else 0", "dist.all_reduce(hits)", 0),
        ("hits += all_ranks(good, i < len(loader.sampler))", "return hits", 1),
        ("losses = all_ranks(loss, i < loader.sampler.own_rows); hits += all_ranks(good)", "return hits", 1),
    ],
)
def test_results_that_are_gathered_with_the_word_of_the_sampler(each: str, join: str, found: int) -> None:
    helper = "def all_ranks(hits, mask=None, is_valid=None):\n    dist.all_reduce(hits)\n    return hits\n\n\nclass Shares"
    source = even(join, each=each).replace("class Shares", helper, 1).replace("for x, y in tqdm(loader):", BY_ROW)
    assert len(findings_of(GatheredDuplicates, source)) == found


def test_scores_that_are_made_above_and_averaged() -> None:
    join = ("values = [m.avg for m in metrics.values()]", "values = torch.tensor(values)", "values = mean_of(values)")
    source = raw(*join).replace("@torch", MEAN, 1)
    check_told(GatheredDuplicates, source, reason="share without padding")
    check_nothing(GatheredDuplicates, source.replace("metrics.values()", "losses.values()"))
    check_nothing(GatheredDuplicates, source.replace("metrics.values()", "metric_logger.values()"))
    check_nothing(GatheredDuplicates, source.replace("mean_of(values)", "abs(values)"))


def test_rows_that_an_object_gathers() -> None:
    source = raw("hits = module.all_gather(hits)")
    source = source.replace("evaluate(model, loader, data)", "evaluate(model, loader, data, module)")
    check_told(GatheredDuplicates, source, reason="share without padding")
    check_nothing(GatheredDuplicates, source.replace("all_gather(hits)", "all_gather(mean_loss)"))
    check_nothing(GatheredDuplicates, source.replace("all_gather(hits)", "all_hits()"))


def left_out(loader: str = "DataLoader(data, 4, drop_last=True, sampler=DistributedSampler(data))", more: str = "") -> str:
    source = raw("dist.all_reduce(hits)").replace(f"DataLoader(data, 4, sampler={PADS})", loader)
    return source.replace("from accelerate import Accelerator\n", "") + more


TRAINED = (
    "\n\ndef train(model, rows, optimizer):\n    loader = DataLoader(rows, 4, drop_last=True, sampler=DistributedSampler(rows))\n"
    "    for x in loader:\n        optimizer.zero_grad()\n        model(x).mean().backward()\n        optimizer.step()\n"
)


def test_an_evaluation_that_leaves_samples_out() -> None:
    for source in (left_out(), left_out(more=TRAINED)):
        found = check_told(GatheredDuplicates, source, reason="keep the last batch")
        assert "leaves out the last batch" in found.message and len(found.evidence) == 2
    named = left_out("DataLoader(data, batch_size=size, sampler=shares, drop_last=True)")
    named = named.replace("    loader = ", "    size = 8\n    shares = DistributedSampler(data, shuffle=True)\n    loader = ")
    check_told(GatheredDuplicates, named, reason="keep the last batch")


@pytest.mark.parametrize(
    "loader",
    [
        "DataLoader(data, 1, drop_last=True, sampler=DistributedSampler(data))",  # each batch is full
        "DataLoader(data, 4, drop_last=True, sampler=DistributedSampler(data, shuffle=False))",
        "DataLoader(data, 4, drop_last=True, sampler=DistributedSampler(data, drop_last=True))",
        "DataLoader(data, 4, drop_last=data.drops, sampler=DistributedSampler(data))",
        "DataLoader(data, 4, drop_last=True, shuffle=True)",
    ],
)
def test_an_evaluation_that_leaves_out_nothing_that_is_seen(loader: str) -> None:
    assert not any("leaves out" in f.message for f in findings_of(GatheredDuplicates, left_out(loader)))


def test_a_loader_that_trains_as_well_may_drop_its_rest() -> None:
    own = TRAINED.replace("    loader = DataLoader(rows, 4, drop_last=True, sampler=DistributedSampler(rows))\n", "")
    handed = left_out().replace("    evaluate(model", "    train(model, loader, None)\n    evaluate(model")
    check_nothing(GatheredDuplicates, handed + own.replace("rows", "loader"))


def by_part(one: str, other: str) -> str:
    arms = f"    if part == 'train':\n        shares = {one}\n    else:\n        shares = {other}\n"
    source = raw("dist.all_reduce(hits)", sampler="shares")
    source = source.replace("def main(model, data):\n", f"def main(model, data, part):\n{arms}")
    return source.replace("data, 4, ", "data, 4, drop_last=part is None, ")


def test_of_two_samplers_the_evaluation_has_the_one_that_keeps_the_order() -> None:
    found = findings_of(GatheredDuplicates, by_part("DistributedSampler(data)", PADS))
    assert [f.span.line for f in found] == [21]
    both = findings_of(GatheredDuplicates, by_part("DistributedSampler(data)", "DistributedSampler(data, seed=1)"))
    assert len(both) == 2
    dropping = by_part("DistributedSampler(data)", PADS).replace("drop_last=part is None", "drop_last=True")
    check_nothing(GatheredDuplicates, dropping)


# Results under the key of a sample

BY_KEY = ("for part in parts:", "    for key, row in part.items():", "        table[key] = row")


def keyed(*lines: str, each: str = "kept[y] = model(x)", loop: str = "for x, y in tqdm(loader):", more: str = "") -> str:
    body = "".join(f"    {line}\n" for line in lines)
    return (
        f"{HEAD}{more}@torch.no_grad()\ndef evaluate(model, loader, data, rank):\n    kept = {{}}\n    table = {{}}\n"
        f"    {loop}\n        {each}\n    parts = [None] * dist.get_world_size()\n{body}    return table\n\n\n"
        f"def main(model, data, rank):\n    loader = DataLoader(data, 4, sampler={PADS})\n"
        "    evaluate(model, loader, data, rank)\n"
    )


ALL = "dist.all_gather_object(parts, kept)"
MERGER = (
    "def merged(found):\n    parts = [None] * dist.get_world_size()\n    dist.all_gather_object(parts, found)\n    table = {}\n"
    "    for part in parts:\n        table.update(part)\n    return table\n\n\n"
)


@pytest.mark.parametrize(
    "source",
    [
        keyed(ALL, *BY_KEY),
        keyed(ALL, "for part in parts:", "    table.update(part)"),
        keyed(
            "dist.gather_object(kept, parts if rank == 0 else None)",
            "if rank == 0:", "    for part in parts:", "        table.update(part)",
        ),
        keyed(ALL, *BY_KEY, loop="for i, (x, keys) in enumerate(loader):",
              each="for key, row in zip(keys, model(x)): kept[key.item()] = row"),
        keyed(ALL, *BY_KEY, loop="for batch in loader:", each="keys = batch['key'].tolist(); kept[keys[0]] = model(batch)"),
        keyed(ALL, *BY_KEY, loop="for x, y in loader:", each="y = y.cpu(); kept[int(y)] = model(x)"),
        keyed("table = merged(kept)", more=MERGER),
    ],
)  # fmt: skip
def test_results_that_merge_by_the_key_of_the_sample(source: str) -> None:
    heard: list[Left] = []
    with hearing(heard.append):
        check_nothing(GatheredDuplicates, source)
    assert any("under the samples' keys" in h.why for h in heard)


@pytest.mark.parametrize(
    "source",
    [
        keyed(ALL, "for part in parts:", "    rows.extend(part.values())"),
        keyed(ALL, "rows = [row for part in parts for row in part.values()]"),
        keyed(ALL, *BY_KEY, "print(sum(len(part) for part in parts))"),
        keyed(ALL, "for part in parts:", "    for key, row in part.items():", "        table[key] = table[key] + row"),
        keyed(ALL, "for part in parts:", "    for key, row in part.items():", "        table[row] = key"),
        keyed(ALL, "table = Counter()", "for part in parts:", "    table.update(part)"),
        keyed(ALL, *BY_KEY, "dist.all_reduce(hits)"),
        keyed(ALL, *BY_KEY, loop="for i, x in enumerate(loader):", each="kept[i] = model(x)"),
        keyed(ALL, *BY_KEY, each="kept[model(x)] = y"),
        keyed(ALL, *BY_KEY, each="y = model(x); kept[y] = x"),
        keyed(ALL, *BY_KEY, each="kept[y] = kept.get(y, 0) + 1"),
        keyed(ALL, *BY_KEY, each="kept[y] += 1"),
        keyed(ALL, *BY_KEY, each="for i, row in enumerate(model(x)): kept[i] = row"),
        keyed("table = merged(kept)", more=MERGER.replace("table.update(part)", "table[len(table)] = part")),
        keyed("table = merged(kept, hits)", more=MERGER.replace("found)", "found, hits)", 1)),
    ],
)  # fmt: skip
def test_results_that_have_no_key_of_the_sample_or_lose_it(source: str) -> None:
    check_told(GatheredDuplicates, source, reason="share without padding")


@pytest.mark.parametrize("use", ["loss = loss_sum / hits", "print(hits.item()); loss = loss_sum.item() / hits.item()"])
def test_a_count_that_only_weighs_losses(use: str) -> None:
    check_nothing(GatheredDuplicates, raw("dist.all_reduce(hits)", use).replace("return hits / len(data)", "return loss"))


@pytest.mark.parametrize(
    "use", ["loss = loss_sum / hits; acc = hits / len(data)", "acc = good / hits", "loss = hits / loss_sum", "print(hits)"]
)
def test_a_count_of_more_than_losses(use: str) -> None:
    source = raw("dist.all_reduce(hits)", use).replace("return hits / len(data)", "return loss")
    check_told(GatheredDuplicates, source, reason="share without padding")


def made_by_a_function(options: str, *, spec: str = "data, shuffle=True, drop_last=True, **more", of: str = "loader") -> str:
    """An evaluation whose loader a function makes; of: whose `drop_last` the function is told."""
    told = {"loader": ("", ", drop_last=drop_last"), "sampler": (", drop_last=drop_last", "")}[of]
    return raw("dist.all_reduce(hits)").replace(
        "def main(model, data):\n",
        f"def loader_for({spec}):\n    sampler = DistributedSampler(data, shuffle=shuffle{told[0]})\n"
        f"    return DataLoader(data, 4, sampler=sampler{told[1]}, **more)\n\n\n"
        f"def main(model, data, more):\n    training = loader_for(data, drop_last=True)\n    fit(model, training)\n",
    ).replace(f"DataLoader(data, 4, sampler={PADS})\n    evaluate", f"loader_for({options})\n    evaluate")


FILLED = "data, shuffle=False, drop_last=False, **more"


@pytest.mark.parametrize("of", ["loader", "sampler"])
@pytest.mark.parametrize("call", ["data, False, False", "data, shuffle=False, drop_last=False", "data, drop_last=False, **more"])
def test_a_loader_that_a_function_makes_for_the_evaluation(call: str, of: str) -> None:
    found = check_told(GatheredDuplicates, made_by_a_function(call, of=of), reason="share without padding")
    assert "repeats samples" in found.message


@pytest.mark.parametrize("of", ["loader", "sampler"])
@pytest.mark.parametrize("call", ["data", "data, drop_last=True", "data, False, True", "data, drop_last=options.drop"])
def test_a_loader_that_a_function_makes_without_its_rest(call: str, of: str) -> None:
    check_nothing(GatheredDuplicates, made_by_a_function(call, of=of))


def test_a_function_that_keeps_the_rest_unless_it_is_told_to_drop_it() -> None:
    check_nothing(GatheredDuplicates, made_by_a_function("data, drop_last=True", spec=FILLED))
    check_told(GatheredDuplicates, made_by_a_function("data", spec=FILLED), reason="share without padding")


def test_a_method_of_another_file_that_makes_the_loader() -> None:
    source = made_by_a_function("data, drop_last=False").replace("def loader_for(data", "def unused(data")
    source = source.replace("loader_for(", "rows.loader_for(")
    source = source.replace("def main(model, data, more):\n", "def main(model, data, more):\n    rows = Data()\n")
    other = (
        f"{HEAD}class Data:\n    def loader_for(self, data, drop_last=True):\n        sampler = DistributedSampler(data)\n"
        "        return DataLoader(data, 4, sampler=sampler, drop_last=drop_last)\n"
    )
    source = source.replace("import torch\n", "import torch\nfrom rows import Data\n", 1)
    found = findings_of(GatheredDuplicates, other, {"main.py": source}, path="rows.py")
    assert [f.span.line for f in found] == [10]
    dropped = source.replace("data, drop_last=False", "data")
    assert not findings_of(GatheredDuplicates, other, {"main.py": dropped}, path="rows.py")


LISTS = "from loops import fit\n" + HEAD + """\
def samplers_for(sets, orders, count, rank):
    made = []
    for data, order in zip(sets, orders):
        sampler = DistributedSampler(data, num_replicas=count, rank=rank, shuffle=order)
        made.append(sampler)
    return made


def loaders_for(sets, samplers, sizes, training):
    made = []
    for data, sampler, size, trains in zip(sets, samplers, sizes, training):
        if trains:
            drop = True
        else:
            drop = False
        loader = DataLoader(data, batch_size=size, sampler=sampler, drop_last=drop)
        made.append(loader)
    print(len(made))
    return made


@torch.no_grad()
def evaluate(model, loader, data):
    hits = torch.zeros(())
    for x, y in loader:
        hits += (model(x) == y).sum()
    dist.all_reduce(hits)
    return hits / len(data)


def main(model, data, held, distributed):
    if distributed:
        samplers = samplers_for([data, held], [True, False], dist.get_world_size(), dist.get_rank())
    else:
        samplers = [None, None]
    training, held_loader = loaders_for([data, held], samplers, [8, 8], [True, False])
    fit(model, training)
    evaluate(model, held_loader, held)
"""
MADE_IN_ONE = "made.append(DataLoader(data, batch_size=size, sampler=sampler, drop_last=drop))"


@pytest.mark.parametrize(
    ("old", "new"),
    [("", ""), ("        made.append(loader)", f"        {MADE_IN_ONE}"),
     ("        if trains:\n            drop = True\n        else:\n            drop = False\n",
      "        drop = False\n        if trains:\n            drop = True\n"),
     ("if trains:\n            drop = True\n        else:\n            drop = False",
      "if not trains:\n            drop = False\n        else:\n            drop = True"),
     ("drop_last=drop", "drop_last=trains"), (", drop_last=drop", ""),
     ("training, held_loader = loaders_for([data, held], samplers, [8, 8], [True, False])\n    fit(model, training)",
      "held_loader = loaders_for([data, held], samplers, [8, 8], [True, False])[1]")],
)  # fmt: skip
def test_a_loader_at_a_place_of_a_list_that_a_loop_fills(old: str, new: str) -> None:
    assert old in LISTS
    source = LISTS.replace(old, new, 1) if old else LISTS
    found = check_told(GatheredDuplicates, source, reason="share without padding")
    assert source.splitlines()[found.span.line - 1].lstrip().startswith("sampler = DistributedSampler")


def test_of_two_calls_the_one_that_makes_the_loader_of_the_evaluation() -> None:
    made = "loaders_for([data], samplers_for([data], [False], 2, 0), [8], [False])[0]"
    other = f"def other(model, data):\n    evaluate(model, {made}, data)\n"
    lone = LISTS.replace("    evaluate(model, held_loader, held)\n", f"\n\n{other}")
    check_told(GatheredDuplicates, lone, reason="share without padding")
    check_nothing(GatheredDuplicates, lone.replace("[8], [False])[0]", "[8], [True])[0]"))
    check_nothing(GatheredDuplicates, lone.replace("samplers_for([data], [False], 2, 0)", "[None]"))


@pytest.mark.parametrize(
    ("old", "new"),
    [("[8, 8], [True, False]", "[8, 8], [True, True]"), ("[8, 8], [True, False]", "[8, 8], modes"),
     ("samplers_for([data, held], [True, False], dist.get_world_size(), dist.get_rank())",
      "samplers_for([data], [True], dist.get_world_size(), dist.get_rank()) + [None]"),
     ("        made.append(loader)", "        if size:\n            made.append(loader)"),
     ("        made.append(loader)", "        if not size:\n            continue\n        made.append(loader)"),
     ("    print(len(made))", "    made.reverse()"), ("    print(len(made))", "    made = more(made)"),
     ("evaluate(model, held_loader, held)", "evaluate(model, training, data)"),
     ("shuffle=order)", "shuffle=order, drop_last=True)"), ("            drop = False\n", "            drop = choose()\n")],
)  # fmt: skip
def test_a_list_whose_place_holds_no_such_loader(old: str, new: str) -> None:
    check_told(GatheredDuplicates, LISTS, reason="share without padding")
    assert old in LISTS
    check_nothing(GatheredDuplicates, LISTS.replace(old, new))


TWO_MODES = HEAD + """\
class Fit:
    def __init__(self, own, held, mode):
        self.own, self.held, self.mode = own, held, mode

    def one_pass(self, model, training):
        if training:
            rows = self.own
        else:
            rows = self.held
        hits = torch.zeros(())
        for x, y in tqdm(rows):
            with torch.set_grad_enabled(training):
                found = model(x)
            hits += (found == y).sum()
            if training:
                found.mean().backward()
        dist.all_reduce(hits)
        return hits


def main(model, data, others):
    own = DataLoader(data, 4, sampler=DistributedSampler(data), drop_last=True)
    held = DataLoader(others, 4, sampler=DistributedSampler(others))
    fit = Fit(own, held, True)
    fit.one_pass(model, True)
    fit.one_pass(model, False)
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [("", ""), ("if training:", "if self.mode:"),
     ("                found.mean().backward()", "                if x.sum() > 0:\n                    found.mean().backward()"),
     ("dist.all_reduce(hits)", "join([loss, confusion_of(hits)])")],
)  # fmt: skip
def test_the_loader_of_a_loop_of_two_modes_where_it_does_not_train(old: str, new: str) -> None:
    assert old in TWO_MODES
    source = TWO_MODES.replace(old, new) if old else TWO_MODES
    source = source.replace("class Fit", "def join(rows):\n    for row in rows:\n        dist.all_reduce(row)\n\n\nclass Fit")
    found = check_told(GatheredDuplicates, source, reason="share without padding")
    assert "sampler=DistributedSampler(others)" in source.splitlines()[found.span.line - 1]


@pytest.mark.parametrize(
    ("old", "new"),
    [("            if training:\n                found", "            if x is not None:\n                found"),
     ("            if training:\n                found", "            if self.mode:\n                found"),
     ("        hits = torch", "        training = choose()\n        hits = torch"),
     ("rows = self.held", "rows = self.own"),
     ("sampler=DistributedSampler(others)", "sampler=DistributedSampler(others, drop_last=True)"),
     ("dist.all_reduce(hits)", "join([loss, hits.mean()])")],
)  # fmt: skip
def test_a_loop_of_two_modes_whose_other_loader_is_not_seen(old: str, new: str) -> None:
    assert old in TWO_MODES
    source = TWO_MODES.replace(old, new)
    source = source.replace("class Fit", "def join(rows):\n    for row in rows:\n        dist.all_reduce(row)\n\n\nclass Fit")
    check_nothing(GatheredDuplicates, source)


@pytest.mark.parametrize(
    ("sampler", "told"),
    [("DistributedSampler(data, shuffle=False)", True), ("DistributedSampler(data, even_divisible=True, shuffle=False)", True),
     ("DistributedSampler(data, even_divisible=False, shuffle=False)", False),
     ("DistributedSampler(data, even_divisible=exact, shuffle=False)", False)],
)  # fmt: skip
def test_the_sampler_of_monai(sampler: str, told: bool) -> None:
    source = raw("dist.all_reduce(hits)", sampler=sampler).replace("torch.utils.data", "monai.data")
    if told:
        check_told(GatheredDuplicates, source, reason="share without padding")
    else:
        check_nothing(GatheredDuplicates, source)
