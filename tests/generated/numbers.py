"""Faults that give wrong numbers: DDP1xx."""

from __future__ import annotations

from tests.generated.records import fault, way

LOOPS = "raw accelerate"
_EVALUATE = """\
def evaluate(model, loader, device):
    model.eval()
    correct, count = 0, 0
    with torch.no_grad():
        for x, y in loader:
            out = model(x.to(device))
            correct += (out.argmax(1) == y.to(device)).sum().item()
            count += y.size(0)
    <reduced>return correct / count


"""
_REDUCED = """\
pair = torch.tensor([correct, count], device=device)
    dist.all_reduce(pair)
    correct, count = pair.tolist()
    """
_OWN = _EVALUATE.replace("<reduced>", "")
_ALL = _EVALUATE.replace("<reduced>", _REDUCED)

_METER = """\
class Meter:
    def __init__(self):
        self.sum = 0
        self.count = 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n

    @property
    def avg(self):
        return self.sum / self.count


def validate(model, loader, device):
    meter = Meter()
    for x, y in loader:
        with torch.no_grad():
            meter.update(F.cross_entropy(model(x.to(device)), y.to(device)).item(), x.size(0))
    return meter.avg


"""
_LIST = """\
@torch.no_grad()
def score(model, loader, device):
    losses = []
    for x, y in loader:
        losses.append(F.cross_entropy(model(x.to(device)), y.to(device)).item())
    return {"loss": sum(losses) / len(losses)}


"""

FAULTS = (
    fault(
        "DDP106 DDP105",
        "raw",
        wrong=(
            way(
                helpers=_OWN,
                epoch_end="accuracy = evaluate($model, $val_loader, $device)\nif $first:\n    print('accuracy', accuracy)",
            ),
            way(
                helpers=_OWN,
                epoch_end="score = evaluate($model, $val_loader, $device)\nif $first:\n    print(f'{epoch}: {score:.3f}')",
            ),
            way(
                helpers=_METER,
                epoch_end="val_loss = validate($model, $val_loader, $device)\nif $first:\n    print('validation loss', val_loss)",
            ),
            way(
                helpers=_LIST,
                epoch_end="result = score($model, $val_loader, $device)\nif $first:\n    print('validation', result['loss'])",
            ),
            way(
                helpers=_OWN,
                imports="import wandb",
                before="if $first:\n    wandb.init()",
                epoch_end="accuracy = evaluate($model, $val_loader, $device)\nif $first:\n    wandb.log({'accuracy': accuracy})",
            ),
            way(
                helpers=_OWN,
                imports="from torch.utils.tensorboard import SummaryWriter",
                before="writer = SummaryWriter() if $first else None",
                epoch_end="accuracy = evaluate($model, $val_loader, $device)\nif writer is not None:\n"
                "    writer.add_scalar('accuracy', accuracy, epoch)",
            ),
            way(
                helpers=_OWN,
                before="best = 0.0",
                epoch_end="accuracy = evaluate($model, $val_loader, $device)\nif $first and accuracy > best:\n"
                "    best = accuracy\n    torch.save($inner.state_dict(), 'best.pt')",
            ),
            way(
                helpers=_OWN,
                imports="import json",
                epoch_end="accuracy = evaluate($model, $val_loader, $device)\nif $first:\n"
                "    with open('log.txt', 'a') as file:\n        file.write(json.dumps({'accuracy': accuracy}))",
            ),
            way(
                epoch_end="correct = 0\n$model.eval()\nfor x, y in $val_loader:\n    with torch.no_grad():\n"
                "        correct += ($model(x.to($device)).argmax(1) == y.to($device)).sum().item()\n"
                "if $first:\n    print('accuracy', correct / len($val_loader.dataset))"
            ),
        ),
        right=(
            way(
                helpers=_ALL,
                epoch_end="accuracy = evaluate($model, $val_loader, $device)\nif $first:\n    print('accuracy', accuracy)",
            ),
            way(
                before="total = 0.0",
                step="total += loss.item()",
                epoch_end="if $first:\n    print(f'{epoch} loss {total / len($loader):.4f}')",
            ),
            way(
                helpers=_OWN,
                epoch_end="value = torch.tensor(evaluate($model, $val_loader, $device), device=$device)\n"
                "dist.all_reduce(value, op=dist.ReduceOp.AVG)\nif $first:\n    print('accuracy', value.item())",
            ),
            way(epoch_end="if $first:\n    print('epoch', epoch, $optimizer.param_groups[0]['lr'])"),
            way(helpers=_OWN, epoch_end="print($rank, 'accuracy', evaluate($model, $val_loader, $device))"),
            way(
                helpers=_ALL,
                before="best = 0.0",
                epoch_end="accuracy = evaluate($model, $val_loader, $device)\nif $first and accuracy > best:\n"
                "    best = accuracy\n    torch.save($inner.state_dict(), 'best.pt')",
            ),
            way(
                helpers=_OWN,
                epoch_end="out = [None for _ in range($world)]\n"
                "dist.all_gather_object(out, evaluate($model, $val_loader, $device))\nif $first:\n"
                "    print(sum(out) / len(out))",
            ),
        ),
    ),
    fault(
        "DDP106 DDP105",
        "accelerate",
        wrong=(
            way(
                helpers=_OWN,
                epoch_end="accuracy = evaluate($model, $val_loader, $device)\nif $first:\n    print('accuracy', accuracy)",
            ),
            way(helpers=_OWN, epoch_end="$accelerator.print('accuracy', evaluate($model, $val_loader, $device))"),
            way(
                helpers=_OWN,
                epoch_end="accuracy = evaluate($model, $val_loader, $device)\n"
                "$accelerator.log({'accuracy': accuracy}, step=epoch)",
            ),
        ),
        right=(
            way(epoch_end="mean = $accelerator.gather(loss).mean()\nif $first:\n    print('loss', mean.item())"),
            way(
                helpers=_OWN,
                epoch_end="value = torch.tensor(evaluate($model, $val_loader, $device), device=$device)\n"
                "value = $accelerator.reduce(value, 'mean')\n$accelerator.print('accuracy', value.item())",
            ),
        ),
    ),
    fault(
        "DDP101",
        "lightning",
        wrong=(
            way(validation="self.log('val_loss', loss)  #!"),
            way(validation="self.log_dict({'val_loss': loss})  #!"),
            way(validation="self.log('val_loss', loss, on_epoch=True, prog_bar=True)  #!"),
            way(validation="accuracy = (self(x).argmax(1) == y).float().mean()\nself.log('val_accuracy', accuracy)  #!"),
        ),
        right=(
            way(validation="self.log('val_loss', loss, sync_dist=True)"),
            way(step="self.log('loss', loss)"),
            way(validation="self.log('val_loss', loss, on_epoch=True, prog_bar=True, sync_dist=False)"),
            way(validation="self.log('val_loss', self.all_gather(loss).mean(), sync_dist=True)"),
        ),
    ),
    fault(
        "DDP101",
        "lightning",
        wrong=(
            way(
                init="self.losses = []",
                validation="self.losses.append(loss)",
                validation_end="mean = torch.stack(self.losses).mean()\nself.log('val_loss', mean)  #!\nself.losses.clear()",
            ),
            way(
                init="self.losses = []",
                validation="self.losses.append(loss.item())",
                validation_end="self.log('val_loss', sum(self.losses) / len(self.losses))  #!\nself.losses.clear()",
            ),
        ),
        right=(
            way(
                init="self.losses = []",
                validation="self.losses.append(loss)",
                validation_end="mean = torch.stack(self.losses).mean()\n"
                "self.log('val_loss', mean, sync_dist=True)\nself.losses.clear()",
            ),
            way(
                init="self.losses = []",
                validation="self.losses.append(loss)",
                validation_end="mean = self.all_gather(torch.stack(self.losses)).mean()\n"
                "self.log('val_loss', mean, sync_dist=True)\nself.losses.clear()",
            ),
        ),
    ),
    fault(
        "DDP107",
        "raw",
        wrong=(
            way(loss="loss = loss / $world  #!"),
            way(loss="loss /= $world  #!"),
            way(before="world_size = $world", loss="loss = loss / world_size  #!"),
            way(loss="loss = loss * (1.0 / $world)  #!"),
            way(backward="(loss / $world).backward()  #!"),
        ),
        right=(
            way(loss="loss = loss / 4"),
            way(epoch_end="total = loss.detach()\ndist.all_reduce(total)\ntotal /= $world\nif $first:\n    print(total)"),
            way(loss="shown = loss.detach() / $world"),
        ),
    ),
    fault(
        "DDP112",
        "accelerate",
        wrong=(
            way(epoch_end="$accelerator.gather(loss)  #!"),
            way(epoch_end="total = loss.detach()\n$accelerator.reduce(total)  #!\nif $first:\n    print(total)"),
        ),
        right=(way(epoch_end="every = $accelerator.gather(loss)\nif $first:\n    print(every)"),),
    ),
    fault(
        "DDP113",
        "raw",
        wrong=(
            way(epoch_end="out = [torch.zeros_like(loss)] * $world  #!\ndist.all_gather(out, loss.detach())  #!"),
            way(
                before="world_size = $world\nslot = torch.zeros(1, device=$device)",
                epoch_end="out = [slot for _ in range(world_size)]  #!\ndist.all_gather(out, loss.detach().view(1))  #!",
            ),
        ),
        right=(way(epoch_end="out = [torch.zeros_like(loss) for _ in range($world)]\ndist.all_gather(out, loss.detach())"),),
    ),
    fault(
        "DDP115",
        "raw",
        wrong=(
            way(
                epoch="total = torch.zeros(1, device=$device)",
                step="total += loss.detach()",
                epoch_end="dist.all_reduce(total)\nmean_loss = total.item() / len($loader)  #!\nif $first:\n"
                "    print('loss', mean_loss)  #!",
            ),
            way(epoch_end="mean = loss.detach().clone()\ndist.all_reduce(mean)\nif $first:\n    print('loss', mean.item())  #!"),
            way(
                epoch_end="mean = loss.detach().clone()\ndist.all_reduce(mean, op=dist.ReduceOp.AVG)\n"
                "mean /= $world  #!\nif $first:\n    print(mean)  #!"
            ),
        ),
        right=(
            way(
                epoch_end="mean = loss.detach().clone()\ndist.all_reduce(mean)\nmean /= $world\nif $first:\n"
                "    print('loss', mean.item())"
            ),
            way(
                epoch_end="mean = loss.detach().clone()\ndist.all_reduce(mean, op=dist.ReduceOp.AVG)\n"
                "if $first:\n    print('loss', mean.item())"
            ),
        ),
    ),
    fault(
        "DDP118",
        "raw",
        wrong=(
            way(
                before="total = torch.zeros(1, device=$device)",
                step="total += loss.detach()",
                epoch_end="dist.all_reduce(total)  #!\nif $first:\n    print(total.item())",
            ),
        ),
        right=(
            way(
                epoch="total = torch.zeros(1, device=$device)",
                step="total += loss.detach()",
                epoch_end="dist.all_reduce(total)\nif $first:\n    print(total.item())",
            ),
        ),
    ),
    fault(
        "DDP312",
        "raw",
        wrong=(
            way(before="dist.broadcast(torch.zeros(1, device=$device), src=$rank)  #!"),
            way(before="dist.broadcast(torch.zeros(1, device=$device), dist.get_rank())  #!"),
            way(before="names = ['a']\ndist.broadcast_object_list(names, src=$rank)  #!"),
            way(epoch_end="dist.reduce(loss.detach(), dst=$rank)  #!"),
        ),
        right=(
            way(before="dist.broadcast(torch.zeros(1, device=$device), src=0)"),
            way(before="for source in range($world):\n    dist.broadcast(torch.zeros(1, device=$device), src=source)"),
        ),
    ),
)
