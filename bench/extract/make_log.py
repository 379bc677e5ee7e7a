#!/usr/bin/env python3
"""Writes a synthetic Megatron-LM log of many interleaved ranks, of a given size.

    bench/extract/make_log.py --gigabytes 2 --ranks 64 > /dev/shm/megatron.log
    bench/extract/make_log.py --gigabytes 0.38 --ranks 1 --other-lines 12 > /dev/shm/wordy.log

Every rank prints every iteration, in an order that changes from step to step, with its own clock: nothing on two lines
of a step is the same but the training's own figures. Between the steps stand what such logs hold besides: warnings,
data-loader lines, timers, evaluations. The same arguments give the same bytes. With --other-lines, that many lines that are no records follow
each step: 0.38 GB are 200 000 steps.
"""
import argparse
import datetime
import math
import random
import sys


def iteration_lines(step, total, ranks, rng, clock):
    loss = 2 + 9 * math.exp(-step / 4000) + rng.gauss(0, 0.01)
    stamp = clock.strftime("%Y-%m-%d %H:%M:%S.%f")
    order = list(range(ranks))
    rng.shuffle(order)
    tail = (f"learning rate: {3e-4 * min(1, step / 2000):.6E} | global batch size:  1024 | lm loss: {loss:.6E} | "
            f"loss scale: 1.0 | grad norm: {0.3 + rng.random() / 9:.3f} | number of skipped iterations:   0 | "
            f"number of nan iterations:   0 |\n")
    head = f"iteration {step:8d}/{total:8d} | consumed samples: {step * 1024:12d} | "
    for rank in order:
        ms = 1200 + 9 * rng.random()
        yield (f"[default{rank}]: [{stamp}] {head}elapsed time per iteration (ms): {ms:.1f} | "
               f"throughput per GPU (TFLOP/s/GPU): {5.3e5 / ms:.1f} | {tail}")


def other_lines(step, ranks, rng):
    rank = rng.randrange(ranks)
    yield f"[default{rank}]:time (ms) | forward-compute: {400 + rng.random():.2f} | backward-compute: {700 + rng.random():.2f}\n"
    if step % 7 == 0:
        yield (f"[default{rank}]:/usr/lib/python3/dist-packages/torch/utils/checkpoint.py:429: UserWarning: "
               "please pass in use_reentrant=True or use_reentrant=False explicitly.\n")
    if step % 50 == 0:
        for each in range(ranks):
            yield f"[default{each}]:[Rank {each}] data loader: {rng.randrange(1000)} batches prefetched, queue {rng.random():.3f}\n"


def wordy_lines(step, count, rng):
    """What data loaders, NCCL, HTTP clients and timers print at their most talkative."""
    kinds = (
        lambda: f"DEBUG:dataloader.worker: worker {rng.randrange(8)} fetched batch {step * 12} of shard "
                f"{rng.randrange(100):05d} in {rng.random():.4f} s, queue depth {rng.randrange(16)}, cache hits "
                f"{rng.randrange(4096)}, misses {rng.randrange(64)}\n",
        lambda: f"node{rng.randrange(8):02d}:{rng.randrange(99999)}:{rng.randrange(99999)} [{rng.randrange(8)}] NCCL INFO Channel "
                f"{rng.randrange(32):02d}/0 : {rng.randrange(8)}[{rng.randrange(8)}] -> {rng.randrange(8)}[{rng.randrange(8)}] via "
                f"P2P/CUMEM/read, {rng.randrange(1 << 20)} bytes\n",
        lambda: f"INFO:urllib3.connectionpool:https://metrics.example.com:443 \"POST /files/team/run/file_stream HTTP/1.1\" 200 "
                f"{rng.randrange(999)} in {rng.random():.3f} s\n",
        lambda: f"time (ms) | forward-compute: {400 + rng.random():.2f} | backward-compute: {700 + rng.random():.2f} | "
                f"optimizer: {20 + rng.random():.2f} | all-grads-sync: {9 + rng.random():.2f}\n",
        lambda: "/usr/lib/python3/dist-packages/torch/utils/checkpoint.py:429: UserWarning: please pass in use_reentrant=True "
                "or use_reentrant=False explicitly.\n",
        lambda: f"(trainer) step cache: {rng.randrange(4096)} entries, {rng.random() * 80:.3f} GB of 80 GB on device "
                f"{rng.randrange(8)}, fragmentation {rng.random():.3f}\n",
    )
    for number in range(count):
        yield kinds[number % len(kinds)]()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=2.0)
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--other-lines", type=int, default=0, help="lines after each step that are no records")
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    size, wanted, step, total = 0, options.gigabytes * 1e9, 0, 500000
    clock = datetime.datetime(2026, 1, 1)
    out = sys.stdout
    while size < wanted:
        step += 1
        clock += datetime.timedelta(milliseconds=1205)
        block = "".join(iteration_lines(step, total, options.ranks, rng, clock)) + "".join(
            wordy_lines(step, options.other_lines, rng) if options.other_lines else other_lines(step, options.ranks, rng))
        size += len(block)
        out.write(block)


if __name__ == "__main__":
    main()
