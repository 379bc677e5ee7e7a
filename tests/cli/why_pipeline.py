#!/usr/bin/env python3
"""Writes the records of a pipeline's ranks, as Megatron's and Primus' timers do: one forward, one backward schedule.

usage: why_pipeline.py FOLDER [stages=2] [micro_batches=4] [last=MS]    last: forward time of the last stage; others: 10
"""

import json
import pathlib
import sys

FORWARD, BACKWARD = 10.0, 20.0


def main():
    given = {"stages": 2, "micro_batches": 4, "last": 10} | {
        name: int(value) for name, value in (word.split("=") for word in sys.argv[2:])}
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True)
    stages, count = given["stages"], given["micro_batches"]
    forward = [FORWARD] * (stages - 1) + [given["last"]]
    # All forward passes, then all backward passes: a stage begins when its neighbour has ended.
    ends = [[0.0] * count for _ in range(stages)]
    starts = [[0.0] * count for _ in range(stages)]
    for stage in range(stages):
        for batch in range(count):
            starts[stage][batch] = max(ends[stage - 1][batch] if stage else 0.0, ends[stage][batch - 1] if batch else 0.0)
            ends[stage][batch] = starts[stage][batch] + forward[stage]
    begins, done = [[0.0] * count for _ in range(stages)], [[0.0] * count for _ in range(stages)]
    for stage in reversed(range(stages)):
        for batch in range(count):
            begins[stage][batch] = max(done[stage + 1][batch] if stage + 1 < stages else ends[stage][-1],
                                       done[stage][batch - 1] if batch else ends[stage][-1])
            done[stage][batch] = begins[stage][batch] + BACKWARD
    total = max(map(max, done))
    for stage in range(stages):
        record = {"total": total, "fwd_start": starts[stage], "fwd_end": ends[stage], "bwd_start": begins[stage],
                  "bwd_end": done[stage]}
        (folder / f"pp_rank_{stage}.json").write_text(json.dumps({str(step): record for step in (1, 2, 3)}))
    (folder / "config.json").write_text(json.dumps({
        "world_size": stages, "dp_size": 1, "tp_size": 1, "ep_size": 1, "pp_size": stages, "vp_size": 1,
        "num_mbs": count, "train_iters": 3}))


main()
