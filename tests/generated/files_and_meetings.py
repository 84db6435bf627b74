"""Faults at what all ranks must do together, and at the files that they write: DDP2xx, 3xx, 5xx."""

from __future__ import annotations

from tests.generated.records import fault, way

LOOPS = "raw accelerate"
ALL = "raw accelerate lightning trainer"

FAULTS = (
    fault(
        "DDP301 DDP305",
        "raw",
        wrong=(
            way(epoch_end="if $first:\n    dist.barrier()  #!"),
            way(epoch_end="total = loss.detach()\nif $first:\n    dist.all_reduce(total)  #!\n    print(total.item())"),
            way(after="if $first:\n    torch.save($inner.state_dict(), 'last.pt')\n    dist.barrier()  #!"),
            way(
                helpers="def mean_of(value):\n    dist.all_reduce(value)\n    return value / dist.get_world_size()\n\n\n",
                epoch_end="if $first:\n    print(mean_of(loss.detach()))  #!",
            ),
            way(
                helpers="def evaluate(model, loader, device):\n    total = torch.zeros(1, device=device)\n"
                "    for x, y in loader:\n        total += F.cross_entropy(model(x), y)\n"
                "    dist.all_reduce(total)\n    return total\n\n\n",
                epoch_end="if $first and epoch % 2 == 0:\n    score = evaluate($model, $loader, $device)  #!",
            ),
            way(step="if $first and epoch > 2:\n    dist.broadcast(loss.detach(), 0)  #!"),
            way(epoch_end="if not $first:\n    pass\nelse:\n    dist.barrier()  #!"),
            way(
                epoch_end="total = loss.detach()\nout = [torch.zeros_like(total) for _ in range($world)]\n"
                "if $rank == 0:\n    dist.all_gather(out, total)  #!"
            ),
            way(epoch_end="if $rank != 0:\n    dist.barrier()  #!"),
        ),
        right=(
            way(epoch_end="if $first:\n    print(epoch)\ndist.barrier()"),
            way(epoch_end="total = loss.detach()\ndist.all_reduce(total)\nif $first:\n    print(total.item())"),
            way(epoch_end="if $world > 1:\n    dist.barrier()"),
            way(epoch_end="if $first:\n    print(epoch)\n    dist.barrier()\nelse:\n    dist.barrier()"),
            way(epoch_end="if not $first:\n    dist.barrier()\nprint(epoch)\nif $first:\n    dist.barrier()"),
            way(epoch_end="total = loss.detach()\ndist.reduce(total, 0)\nif $first:\n    print(total)"),
        ),
    ),
    fault(
        "DDP301",
        "accelerate",
        wrong=(
            way(epoch_end="if $first:\n    $accelerator.wait_for_everyone()  #!"),
            way(epoch_end="if $first:\n    print($accelerator.gather(loss).mean())  #!"),
        ),
        right=(
            way(epoch_end="$accelerator.wait_for_everyone()\nif $first:\n    print(epoch)"),
            way(epoch_end="every = $accelerator.gather(loss)\nif $first:\n    print(every.mean())"),
            way(epoch_end="if $first:\n    $accelerator.save_state('last')"),  # nothing shows another engine than DDP
        ),
    ),
    fault(
        "DDP301",
        "lightning",
        wrong=(
            way(epoch_end="if $first:\n    $wait  #!"),
            way(epoch_end="if $first:\n    total = $own.all_gather(torch.ones(1))  #!"),
            way(epoch_end="if $first:\n    $trainer.save_checkpoint('last.ckpt')  #!"),
            way(validation="if self.trainer.is_global_zero:\n    self.log('val', loss, sync_dist=True)  #!"),
            way(after="if trainer.global_rank == 0:\n    trainer.save_checkpoint('last.ckpt')  #!"),
        ),
        right=(
            way(epoch_end="$wait\nif $first:\n    print(epoch)"),
            way(validation="self.log('val', loss, sync_dist=True)"),
            way(after="trainer.save_checkpoint('last.ckpt')"),
        ),
    ),
    fault(
        "DDP303 DDP301",
        "raw",
        wrong=(
            way(epoch_end="if not $first:\n    continue\nprint(epoch)\ndist.barrier()  #!"),
            way(after="if not $first:\n    return\ntorch.save($inner.state_dict(), 'last.pt')\ndist.barrier()  #!"),
            way(after="if $rank > 0:\n    return\nprint('done')\ndist.barrier()  #!"),
            way(
                helpers="def finish(rank):\n    if rank != 0:\n        return\n    print('done')\n    dist.barrier()  #!\n\n\n",
                after="finish($rank)",
            ),
        ),
        right=(
            way(after="dist.barrier()\nif not $first:\n    return\nprint('done')"),
            way(epoch_end="if not $first:\n    continue\nprint(epoch)"),
            way(
                helpers="def finish(rank):\n    if rank != 0:\n        dist.barrier()\n        return\n"
                "    print('done')\n    dist.barrier()\n\n\n",
                after="finish($rank)",
            ),
        ),
    ),
    fault(
        "DDP305",
        LOOPS,
        wrong=(
            way(step="if loss.item() > 100:\n    break  #!"),
            way(step="if torch.isnan(loss):\n    continue  #!"),
            way(
                before="best = 1e9\nbad = 0",
                epoch_end="if loss.item() < best:\n    best, bad = loss.item(), 0\nelse:\n    bad += 1\n"
                "if bad > 3:\n    break  #!",
            ),
            way(
                imports="import time", before="started = time.time()", epoch_end="if time.time() - started > 3600:\n    break  #!"
            ),
            way(
                helpers="class Stopper:\n    def __init__(self):\n        self.best = 1e9\n"
                "        self.bad = 0\n\n    def step(self, value):\n"
                "        if value < self.best:\n            self.best = value\n            self.bad = 0\n"
                "        else:\n            self.bad += 1\n"
                "        return self.bad > 3\n\n\n",
                before="stopper = Stopper()",
                epoch_end="if stopper.step(loss.item()):\n    break  #!",
            ),
            way(
                before="best = 1e9",
                epoch_end="stop = False\nif $first:\n    stop = loss.item() > best\n"
                "    best = min(best, loss.item())\nif stop:\n    break  #!",
            ),
            way(
                before="losses = []",
                step="losses.append(loss.item())",
                epoch_end="if sum(losses) / len(losses) < 0.01:\n    break  #!",
            ),
        ),
        right=(
            way(epoch_end="total = loss.detach()\n$reduce\nif total.item() < 0.1:\n    break"),
            way(epoch_end="if epoch > 5:\n    break"),
            way(
                before="best = 1e9\nbad = 0",
                epoch_end="total = loss.detach()\n$reduce\nif total.item() < best:\n"
                "    best, bad = total.item(), 0\nelse:\n    bad += 1\nif bad > 3:\n    break",
            ),
            way(before="steps = 0", step="steps += 1\nif steps >= 1000:\n    break"),
        ),
    ),
    fault(
        "DDP302",
        "raw",
        wrong=(
            way(
                after="if $first:\n    torch.save($inner.state_dict(), 'best.pt')\n"
                "state = torch.load('best.pt', map_location='cpu')  #!"
            ),
            way(
                before="path = os.path.join($args.out, 'best.pt')",
                after="if $first:\n    torch.save($inner.state_dict(), path)\n"
                "$inner.load_state_dict(torch.load(path, map_location=$device))  #!",
            ),
            way(
                imports="import json",
                before="if $first:\n    with open('vocab.json', 'w') as file:\n"
                "        json.dump({'a': 1}, file)\nwith open('vocab.json') as file:  #!\n    vocab = json.load(file)",
            ),
            way(
                imports="import numpy as np",
                before="if $rank == 0:\n    np.save('mean.npy', np.zeros(3))\nmean = np.load('mean.npy')  #!",
            ),
            way(
                imports="from pathlib import Path",
                helpers="def prepare(path, rank):\n    if rank == 0:\n        torch.save(torch.randn(4), path)\n\n\n",
                before="path = Path($args.out) / 'noise.pt'\nprepare(path, $rank)\nnoise = torch.load(path)  #!",
            ),
        ),
        right=(
            way(
                after="if $first:\n    torch.save($inner.state_dict(), 'best.pt')\ndist.barrier()\n"
                "state = torch.load('best.pt', map_location='cpu')"
            ),
            way(
                imports="import json",
                before="if $first:\n    with open('vocab.json', 'w') as file:\n"
                "        json.dump({'a': 1}, file)\ndist.barrier()\nwith open('vocab.json') as file:\n"
                "    vocab = json.load(file)",
            ),
            way(
                after="if $first:\n    torch.save($inner.state_dict(), 'best.pt')\n"
                "    state = torch.load('best.pt', map_location='cpu')"
            ),
            way(
                after="if $first:\n    torch.save($inner.state_dict(), 'best.pt')\n"
                "dist.all_reduce(torch.ones(1, device=$device))\nstate = torch.load('best.pt', map_location='cpu')"
            ),
        ),
    ),
    fault(
        "DDP204",
        ALL,
        wrong=(
            way(before="if not os.path.exists('runs/a'):\n    os.makedirs('runs/a')  #!"),
            way(before="if not os.path.isdir('runs'):\n    os.mkdir('runs')  #!"),
            way(
                imports="from pathlib import Path",
                before="folder = Path('runs') / 'a'\nif not folder.exists():\n    folder.mkdir(parents=True)  #!",
            ),
            way(before="folder = os.path.join('runs', 'a')\nif os.path.exists(folder) is False:\n    os.makedirs(folder)  #!"),
            way(
                helpers="def ensure(path):\n    if not os.path.exists(path):\n        os.makedirs(path)  #!\n\n\n",
                before="ensure('runs/a')",
            ),
            way(imports="from pathlib import Path", before="Path('runs').mkdir(parents=True)  #!"),
        ),
        right=(
            way(before="os.makedirs('runs/a', exist_ok=True)"),
            way(before="if $first:\n    os.makedirs('runs/a')"),
            way(imports="from pathlib import Path", before="Path('runs').mkdir(parents=True, exist_ok=True)"),
            way(before="try:\n    os.makedirs('runs/a')\nexcept FileExistsError:\n    pass"),
            way(before="if $first and not os.path.exists('runs/a'):\n    os.makedirs('runs/a')"),
        ),
    ),
    fault(
        "DDP501",
        LOOPS,
        wrong=(
            way(epoch_end="torch.save($inner.state_dict(), 'last.pt')  #!"),
            way(
                epoch_end="torch.save({'model': $inner.state_dict(), 'epoch': epoch}, os.path.join($args.out, f'{epoch}.pt'))  #!"
            ),
            way(
                before="best = 1e9",
                epoch_end="if loss.item() < best:\n    best = loss.item()\n    torch.save($inner.state_dict(), 'best.pt')  #!",
            ),
            way(after="path = $args.out + '/model.pt'\nstate = {'model': $inner.state_dict()}\ntorch.save(state, path)  #!"),
            way(
                helpers="def save_checkpoint(model, path):\n    torch.save(model.state_dict(), path)  #!\n\n\n",
                epoch_end="if epoch % 5 == 0:\n    save_checkpoint($inner, 'last.pt')  #!",
            ),
            way(imports="from pathlib import Path", epoch_end="torch.save($inner.state_dict(), Path($args.out) / 'last.pt')  #!"),
        ),
        right=(
            way(epoch_end="if $first:\n    torch.save($inner.state_dict(), 'last.pt')"),
            way(epoch_end="torch.save($inner.state_dict(), f'last-{$rank}.pt')"),
            way(
                helpers="def save_checkpoint(model, path):\n    torch.save(model.state_dict(), path)\n\n\n",
                epoch_end="if $first and epoch % 5 == 0:\n    save_checkpoint($inner, 'last.pt')",
            ),
            way(epoch_end="if not $first:\n    continue\ntorch.save($inner.state_dict(), 'last.pt')"),
            way(epoch_end="torch.save($inner.state_dict(), os.path.join($args.out, f'rank{$rank}.pt'))"),
        ),
    ),
    fault(
        "DDP202 DDP211",
        LOOPS,
        wrong=(
            way(epoch_end="with open('log.txt', 'a') as file:  #!\n    file.write(f'epoch {epoch}')  #!"),
            way(
                imports="import json",
                after="with open(os.path.join($args.out, 'result.json'), 'w') as file:  #!\n"
                "    json.dump({'loss': loss.item()}, file)  #!",
            ),
            way(imports="import shutil", before="if os.path.exists('runs'):\n    shutil.rmtree('runs')  #!"),
            way(
                imports="import numpy as np",
                before="losses = []",
                step="losses.append(loss.item())",
                after="np.save('losses.npy', losses)  #!",
            ),
            way(
                imports="import matplotlib.pyplot as plt",
                before="losses = []",
                step="losses.append(loss.item())",
                after="plt.plot(losses)\nplt.savefig('loss.png')  #!",
            ),
            way(imports="import shutil", after="shutil.copy('last.pt', 'best.pt')  #!"),
            way(after="os.rename('last.pt', 'best.pt')  #!"),
        ),
        right=(
            way(epoch_end="if $first:\n    with open('log.txt', 'a') as file:\n        file.write(f'{epoch} {loss.item()}')"),
            way(epoch_end="with open(f'log-{$rank}.txt', 'a') as file:\n    file.write(f'{epoch} {loss.item()}')"),
            way(imports="import shutil", before="if $first and os.path.exists('runs'):\n    shutil.rmtree('runs')"),
            way(imports="import tempfile", before="with open(tempfile.mkstemp()[1], 'w') as file:\n    file.write('a')"),
        ),
    ),
)
