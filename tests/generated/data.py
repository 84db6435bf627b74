"""Faults of the data, the seeds and the steps: DDP4xx."""

from __future__ import annotations

from tests.generated.records import fault, way

_CIFAR = "dataset = datasets.CIFAR10('data', train=True, transform=transforms.ToTensor())\n"
_SET = _CIFAR + "sampler = DistributedSampler(dataset)\n"
_TRAIN_SET = _SET.replace("dataset = ", "train_set = ").replace("(dataset)", "(train_set)")
_BARE = _CIFAR + "sampler = None\n"
_ROWS = "rows = list(range(1000))\n"

FAULTS = (
    fault(
        "DDP401",
        "raw",
        wrong=(
            way(data=_BARE + "loader = DataLoader(dataset, batch_size=8, shuffle=True)  #!", set_epoch=""),
            way(data=_BARE + "loader = DataLoader(dataset, 8, True)  #!", set_epoch=""),
            way(
                data=_BARE + "loader = DataLoader(dataset, batch_size=8, sampler=torch.utils.data.RandomSampler(dataset))  #!",
                set_epoch="",
            ),
            way(
                helpers="def make_loader(dataset):\n"
                "    return DataLoader(dataset, batch_size=8, shuffle=True, drop_last=True)  #!\n\n\n",
                imports="",
                data=_BARE + "loader = make_loader(dataset)",
                set_epoch="",
            ),
            way(
                data=_BARE + "options = dict(batch_size=8, shuffle=True)\nloader = DataLoader(dataset, **options)  #!",
                set_epoch="",
            ),
        ),
        right=(
            way(data=_SET + "loader = DataLoader(dataset, batch_size=8, shuffle=sampler is None, sampler=sampler)"),
            way(
                data=_BARE
                + "loader = DataLoader(dataset.shard($rank), batch_size=8, shuffle=True)".replace(
                    "dataset.shard($rank)", "torch.utils.data.Subset(dataset, range($rank, 50000, $world))"
                ),
                set_epoch="",
            ),
        ),
        not_in={"file": "the helper that makes the loader stands in the file of the loop"},
    ),
    fault(
        "DDP402",
        "raw",
        wrong=(
            way(set_epoch=""),
            way(set_epoch="$sampler.set_epoch(0)"),
        ),
        right=(
            way(set_epoch="$loader.sampler.set_epoch(epoch)"),
            way(
                data=_SET.replace("DistributedSampler(dataset)", "DistributedSampler(dataset, shuffle=False)")
                + "loader = DataLoader(dataset, batch_size=8, sampler=sampler)",
                set_epoch="",
            ),
            way(set_epoch="if hasattr($loader.sampler, 'set_epoch'):\n    $loader.sampler.set_epoch(epoch)"),
        ),
    ),
    fault(
        "DDP403",
        "raw",
        wrong=(
            way(
                data=_CIFAR + "dataset, rest = torch.utils.data.random_split(dataset, [4000, 96])  #!\n"
                "sampler = DistributedSampler(dataset)\nloader = DataLoader(dataset, batch_size=8, sampler=sampler)"
            ),
            way(
                imports="import random",
                data=_ROWS
                + "random.shuffle(rows)  #!\ndataset = torch.utils.data.Subset(datasets.CIFAR10('data'), rows[:900])  #!\n"
                "sampler = DistributedSampler(dataset)\nloader = DataLoader(dataset, batch_size=8, sampler=sampler)",
            ),
        ),
        right=(
            way(
                data=_CIFAR
                + "dataset, rest = torch.utils.data.random_split("
                "dataset, [40, 9], generator=torch.Generator().manual_seed(0))\n"
                "sampler = DistributedSampler(dataset)\nloader = DataLoader(dataset, batch_size=8, sampler=sampler)"
            ),
            way(
                main="",
                arguments="args = parser.parse_args()\ntorch.manual_seed(0)",
                data="torch.manual_seed(0)\n"
                + _CIFAR
                + "dataset, rest = torch.utils.data.random_split(dataset, [4000, 96])\n"
                "sampler = DistributedSampler(dataset)\nloader = DataLoader(dataset, batch_size=8, sampler=sampler)",
            ),
        ),
    ),
    fault(
        "DDP404",
        "raw",
        wrong=(
            way(
                data="names = os.listdir('data')  #!\nlabels = {name: i for i, name in enumerate(names)}  #!\n"
                "dataset = torch.utils.data.TensorDataset(torch.tensor([labels[n] for n in names]))\n"
                "sampler = DistributedSampler(dataset)\n"
                "loader = DataLoader(dataset, batch_size=8, sampler=sampler)"
            ),
            way(
                data="words = [w for line in open('data.txt') for w in line.split()]\n"
                "labels = {w: i for i, w in enumerate(set(words))}  #!\n"
                "dataset = torch.utils.data.TensorDataset(torch.tensor([labels[w] for w in words]))\n"
                "sampler = DistributedSampler(dataset)\n"
                "loader = DataLoader(dataset, batch_size=8, sampler=sampler)"
            ),
            way(
                imports="import glob",
                data="names = glob.glob('data/*.txt')[$rank::$world]  #!\n"
                "dataset = torch.utils.data.TensorDataset(torch.arange(len(names)))\nsampler = None\n"
                "loader = DataLoader(dataset, batch_size=8)",
                set_epoch="",
            ),
        ),
        right=(
            way(
                data="names = sorted(os.listdir('data'))\nlabels = {name: i for i, name in enumerate(names)}\n"
                "dataset = torch.utils.data.TensorDataset(torch.tensor([labels[n] for n in names]))\n"
                "sampler = DistributedSampler(dataset)\n"
                "loader = DataLoader(dataset, batch_size=8, sampler=sampler)"
            ),
            way(
                data="words = [w for line in open('data.txt') for w in line.split()]\n"
                "labels = {w: i for i, w in enumerate(sorted(set(words)))}\n"
                "dataset = torch.utils.data.TensorDataset(torch.tensor([labels[w] for w in words]))\n"
                "sampler = DistributedSampler(dataset)\n"
                "loader = DataLoader(dataset, batch_size=8, sampler=sampler)"
            ),
        ),
    ),
    fault(
        "DDP409",
        "raw",
        wrong=(
            way(
                data=_CIFAR
                + "dataset, rest = torch.utils.data.random_split("
                "dataset, [40, 9], generator=torch.Generator().manual_seed($rank))  #!\n"
                "sampler = DistributedSampler(dataset)\nloader = DataLoader(dataset, batch_size=8, sampler=sampler)"
            ),
            way(
                data="torch.manual_seed(42 + $rank)  #!\n"
                + _CIFAR
                + "dataset, rest = torch.utils.data.random_split(dataset, [4000, 96])  #!\n"
                "sampler = DistributedSampler(dataset)\nloader = DataLoader(dataset, batch_size=8, sampler=sampler)"
            ),
        ),
        right=(
            way(
                data=_CIFAR
                + "dataset, rest = torch.utils.data.random_split("
                "dataset, [40, 9], generator=torch.Generator().manual_seed(1))\n"
                "torch.manual_seed(42 + $rank)\nsampler = DistributedSampler(dataset)\n"
                "loader = DataLoader(dataset, batch_size=8, sampler=sampler)"
            ),
        ),
    ),
    fault(
        "DDP411 DDP305 DDP301",
        "raw",
        wrong=(
            way(
                before=_ROWS + "rows = rows[$rank::$world]",
                after="for row in rows:\n    dist.all_reduce(torch.ones(row, device=$device))  #!",
            ),
            way(
                before=_ROWS,
                after="for row in rows[$rank::$world]:\n    total = torch.ones(1, device=$device)\n"
                "    dist.all_reduce(total)  #!",
            ),
            way(before=_ROWS, after="for i in range($rank, len(rows), $world):\n    dist.barrier()  #!"),
        ),
        right=(
            way(
                before=_ROWS + "rows = rows[:len(rows) // $world * $world][$rank::$world]",
                after="for row in rows:\n    dist.barrier()",
            ),
            way(
                before=_ROWS,
                after="total = torch.zeros(1, device=$device)\nfor row in rows[$rank::$world]:\n"
                "    total += row\ndist.all_reduce(total)",
            ),
        ),
    ),
    fault(
        "DDP414 DDP308",
        "raw",
        wrong=(
            way(
                loss="loss = loss + 0.1 * torch.randn(1, device=$device).mean()",
                epoch_end="if $first:\n    torch.manual_seed(0)  #!\n    print(torch.randn(1))",
            ),
        ),
        right=(
            way(epoch_end="torch.manual_seed(epoch)"),
            way(epoch_end="if $first:\n    generator = torch.Generator().manual_seed(0)"),
        ),
    ),
    fault(
        "DDP415 DDP106 DDP301",
        "raw",
        wrong=(
            way(epoch_end="if $first:\n    for x, y in $loader:  #!\n        print(x.sum())"),
            way(
                helpers="def scores(model, loader):\n    return [model(x).sum() for x, y in loader]\n\n\n",
                after="if $first:\n    print(scores($inner, $loader))  #!",
            ),
        ),
        right=(way(epoch_end="for x, y in $loader:\n    x.sum()"),),
    ),
    fault(
        "DDP417",
        "raw",
        wrong=(
            way(
                data="rows = list(range(4096))[$rank::$world]\n"
                "dataset = torch.utils.data.TensorDataset(torch.tensor(rows))\nsampler = DistributedSampler(dataset)  #!\n"
                "loader = DataLoader(dataset, batch_size=8, sampler=sampler)  #!"
            ),
        ),
        right=(
            way(
                data="rows = list(range(4096))[::2]\n"
                "dataset = torch.utils.data.TensorDataset(torch.tensor(rows))\nsampler = DistributedSampler(dataset)\n"
                "loader = DataLoader(dataset, batch_size=8, sampler=sampler)"
            ),
        ),
    ),
    fault(
        "DDP419",
        "raw",
        wrong=(way(data=_SET + "loader = DataLoader(dataset, batch_size=8, sampler=sampler, shuffle=True)  #!"),),
        right=(way(data=_SET + "loader = DataLoader(dataset, batch_size=8, sampler=sampler, shuffle=False)"),),
    ),
    fault(
        "DDP420",
        "raw",
        wrong=(
            way(
                data=_TRAIN_SET + "val_set = datasets.CIFAR10('data', train=False, transform=transforms.ToTensor())\n"
                "loader = DataLoader(val_set, batch_size=8, sampler=sampler)  #!"
            ),
        ),
        right=(
            way(
                data=_TRAIN_SET + "val_set = datasets.CIFAR10('data', train=False, transform=transforms.ToTensor())\n"
                "loader = DataLoader(train_set, batch_size=8, sampler=sampler)\nheld_out = DataLoader(val_set, batch_size=8)"
            ),
        ),
    ),
)
