"""Faults at the model and its checkpoints: DDP0xx, 3xx, 5xx."""

from __future__ import annotations

from tests.generated.records import fault, way

_WRAP = (
    "net = Net().to(device)\nmodel = DDP(net, device_ids=[device.index])\n"
    "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
)
_RESUMED = _WRAP.replace(
    "model = ", "if os.path.exists('last.pt'):\n    net.load_state_dict(torch.load('last.pt', map_location='cpu'))\nmodel = "
)
_RESUMED_BY_KEY = _RESUMED.replace("map_location='cpu')", "map_location='cpu')['model']")

FAULTS = (
    fault(
        "DDP502",
        "raw",
        wrong=(
            way(wrap=_RESUMED, epoch_end="if $first:\n    torch.save($model.state_dict(), 'last.pt')  #!"),
            way(
                wrap=_RESUMED_BY_KEY,
                after="if $first:\n"
                "    state = {'model': $model.state_dict(), 'optimizer': $optimizer.state_dict()}  #!\n"
                "    torch.save(state, 'last.pt')",
            ),
            way(after="if $first:\n    torch.save($model, 'last.pt')  #!"),
            way(
                wrap=_RESUMED_BY_KEY,
                helpers="def save(model, path):\n    torch.save({'model': model.state_dict()}, path)  #!\n\n\n",
                epoch_end="if $first:\n    save($model, 'last.pt')",
            ),
        ),
        right=(
            way(wrap=_RESUMED, epoch_end="if $first:\n    torch.save($inner.state_dict(), 'last.pt')"),
            way(
                wrap=_RESUMED,
                after="if $first:\n    inner = $model.module if hasattr($model, 'module') else $model\n"
                "    torch.save(inner.state_dict(), 'last.pt')",
            ),
        ),
        not_in={
            "file": "missed: the wrapper is not followed into a function that saves it, called in another file than it is made in"
        },
    ),
    fault(
        "DDP503",
        "raw",
        wrong=(
            way(
                before="if os.path.exists('last.pt'):\n    state = torch.load('last.pt')  #!\n"
                "    $inner.load_state_dict(state['model'])",
                epoch_end="if $first:\n    torch.save({'model': $inner.state_dict()}, 'last.pt')",
            ),
            way(
                main="if os.path.exists('last.pt'):\n    net.load_state_dict(torch.load('last.pt'))  #!",
                epoch_end="if $first:\n    torch.save($inner.state_dict(), 'last.pt')",
            ),
        ),
        right=(
            way(
                main="if os.path.exists('last.pt'):\n    net.load_state_dict(torch.load('last.pt', map_location='cpu'))",
                epoch_end="if $first:\n    torch.save($inner.state_dict(), 'last.pt')",
            ),
            way(
                main="if os.path.exists('last.pt'):\n    net.load_state_dict(torch.load('last.pt', map_location=device))",
                epoch_end="if $first:\n    torch.save($inner.state_dict(), 'last.pt')",
            ),
        ),
        not_in=dict.fromkeys(("helper", "class", "file"), "missed: the file of the load does not show which GPU the rank has"),
    ),
    fault(
        "DDP504",
        "raw",
        wrong=(
            way(loss="loss = F.cross_entropy($inner(x), y)  #!"),
            way(before="inner = $model.module", loss="loss = F.cross_entropy(inner(x), y)  #!"),
            way(loss="loss = F.cross_entropy($inner.head($inner.encode(x)), y)  #!"),
        ),
        right=(
            way(epoch_end="with torch.no_grad():\n    print($inner(x).shape)"),
            way(loss="loss = loss + 0.1"),
        ),
    ),
    fault(
        "DDP505 DDP506",
        "raw",
        wrong=(
            way(main="for p in model.module.body.parameters():\n    p.requires_grad = False  #!"),
            way(main="model.module.body.requires_grad_(False)  #!"),
            way(main="for name, p in model.named_parameters():\n    if 'body' in name:\n        p.requires_grad_(False)  #!"),
            way(epoch_end="if epoch == 3:\n    for p in $inner.body.parameters():\n        p.requires_grad = False  #!"),
            way(
                wrap="net = Net().to(device)\nfor p in net.body.parameters():\n    p.requires_grad = False\n"
                "model = DDP(net, device_ids=[device.index])\n"
                "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)",
                epoch="if epoch == 5:\n    for p in $inner.body.parameters():\n        p.requires_grad = True  #!",
            ),
        ),
        right=(
            way(
                wrap="net = Net().to(device)\nnet.body.requires_grad_(False)\n"
                "model = DDP(net, device_ids=[device.index])\noptimizer = torch.optim.SGD(net.head.parameters(), lr=0.1)"
            ),
        ),
    ),
    fault(
        "DDP507",
        "raw",
        wrong=(
            way(epoch_end="with torch.no_grad():\n    print($model.encode(x).shape)  #!"),
            way(epoch_end="print($model.head.weight.norm())  #!"),
            way(main="print(model.head)  #!"),
        ),
        right=(
            way(epoch_end="with torch.no_grad():\n    print($inner.encode(x).shape)"),
            way(epoch_end="print(sum(p.numel() for p in $model.parameters()))"),
        ),
    ),
    fault(
        "DDP308",
        "raw",
        wrong=(
            way(before="if $first:\n    $inner.load_state_dict(torch.load('last.pt', map_location='cpu'))  #!"),
            way(
                before="if $first and os.path.exists('last.pt'):\n"
                "    $optimizer.load_state_dict(torch.load('last.pt', map_location='cpu'))  #!"
            ),
            way(
                before="scheduler = torch.optim.lr_scheduler.StepLR($optimizer, 3)",
                epoch_end="if $first:\n    scheduler.step()  #!",
            ),
            way(
                before="start = 0", epoch="if $first:\n    for group in $optimizer.param_groups:\n        group['lr'] = 0.01  #!"
            ),
        ),
        right=(
            way(before="$inner.load_state_dict(torch.load('last.pt', map_location='cpu'))"),
            way(
                before="scheduler = torch.optim.lr_scheduler.StepLR($optimizer, 3)",
                epoch_end="scheduler.step()\nif $first:\n    print(epoch)",
            ),
            way(
                before="state = torch.load('last.pt', map_location='cpu') if $first else None\nbox = [state]\n"
                "dist.broadcast_object_list(box, src=0)\n$inner.load_state_dict(box[0])"
            ),
        ),
    ),
    fault(
        "DDP314 DDP305 DDP411",
        "raw",
        wrong=(
            way(loss="if torch.isnan(loss):\n    loss = torch.zeros(1, device=$device, requires_grad=True)  #!"),
            way(backward="if not torch.isnan(loss):\n    loss.backward()  #!"),
        ),
        right=(way(loss="loss = torch.nan_to_num(loss)"),),
    ),
    fault(
        "DDP210",
        "raw",
        wrong=(
            way(before="if $first:\n    names = ['a', 'b']", after="print(names)  #!"),
            way(
                imports="from torch.utils.tensorboard import SummaryWriter",
                before="if $first:\n    writer = SummaryWriter()",
                step="writer.add_scalar('loss', loss.item())  #!",
            ),
            way(
                imports="from torch.utils.tensorboard import SummaryWriter",
                before="writer = None\nif $first:\n    writer = SummaryWriter()",
                step="writer.add_scalar('loss', loss.item())  #!",
            ),
            way(
                imports="from torch.utils.tensorboard import SummaryWriter",
                before="writer = SummaryWriter() if $first else None",
                epoch_end="writer.add_scalar('epoch', epoch)  #!",
            ),
            way(imports="import wandb", before="if $first:\n    run = wandb.init()", after="run.finish()  #!"),
        ),
        right=(
            way(
                imports="from torch.utils.tensorboard import SummaryWriter",
                before="if $first:\n    writer = SummaryWriter()",
                step="if $first:\n    writer.add_scalar('loss', loss.item())",
            ),
            way(
                imports="from torch.utils.tensorboard import SummaryWriter",
                before="writer = SummaryWriter() if $first else None",
                epoch_end="if writer is not None:\n    writer.add_scalar('epoch', epoch)",
            ),
        ),
    ),
    fault(
        "DDP309 DDP305",
        "raw",
        wrong=(
            way(loss="try:\n    loss = F.cross_entropy($model(x), y)\nexcept RuntimeError:\n    continue  #!"),
            way(backward="try:\n    loss.backward()\nexcept RuntimeError as error:\n    print(error)  #!\n    continue"),
        ),
        right=(way(loss="try:\n    loss = F.cross_entropy($model(x), y)\nexcept RuntimeError:\n    print('failed')\n    raise"),),
    ),
)
