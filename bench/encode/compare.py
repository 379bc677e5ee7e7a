#!/usr/bin/env python3
"""How fast text becomes tokens, beside the Rust library `tokenizers`; both in one run, interleaved, on the same cores.

    bench/encode/compare.py build/release/tprimat --text text.jsonl --tokenizer tokenizer.json [--rounds 5] [--threads 2]

The peer's time is that of its own multi-threaded encode_batch_fast alone, on documents that lie in memory as Python strings. Ours is
that of the whole process: start, vocabulary, reading and parsing JSON, encoding, writing .bin and .idx. All tokens are compared.
"""
import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

PEER = """
import json, resource, sys, time
import numpy, tokenizers
tokenizer = tokenizers.Tokenizer.from_file(sys.argv[2])
documents = [json.loads(line)["text"] for line in open(sys.argv[1])]
encode = getattr(tokenizer, "encode_batch_fast", tokenizer.encode_batch)
cpu = lambda: sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
seconds, before = 0.0, cpu()
ids = []
for start in range(0, len(documents), 1000):
    begin = time.perf_counter()
    batch = encode(documents[start:start + 1000], add_special_tokens=False)
    seconds += time.perf_counter() - begin
    ids.extend(numpy.array(each.ids, dtype=numpy.int32) for each in batch)
busy = cpu() - before
numpy.concatenate(ids).tofile(sys.argv[3])
print(json.dumps({"seconds": seconds, "cpu": busy, "version": tokenizers.__version__}))
"""


def run_peer(options, out):
    environment = {**os.environ, "RAYON_NUM_THREADS": str(options.threads), "TOKENIZERS_PARALLELISM": "true"}
    done = subprocess.run([sys.executable, "-c", PEER, options.text, options.tokenizer, out], env=environment, check=True,
                          capture_output=True, text=True)
    return json.loads(done.stdout)


def run_ours(options, prefix):
    command = [options.tprimat, "data", "encode", options.text, "--tokenizer", options.tokenizer, "--output", prefix, "--threads",
               str(options.threads), "--quiet", "--json"]
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"seconds": seconds, "cpu": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
            "text_bytes": json.loads(done.stdout)["text_bytes"]}


def same_tokens(prefix, peer):
    import numpy
    ours = numpy.fromfile(prefix + ".bin", dtype=numpy.uint16).astype(numpy.int32)
    theirs = numpy.fromfile(peer, dtype=numpy.int32)
    return len(ours), len(ours) == len(theirs) and bool((ours == theirs).all())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tprimat")
    parser.add_argument("--text", required=True)
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    ours, theirs = [], []
    with tempfile.TemporaryDirectory() as folder:
        prefix, peer = str(pathlib.Path(folder) / "ours"), str(pathlib.Path(folder) / "peer.bin")
        for _ in range(options.rounds):
            ours.append(run_ours(options, prefix))
            theirs.append(run_peer(options, peer))
        tokens, same = same_tokens(prefix, peer)
    size = ours[0]["text_bytes"]
    print(f"{size / 1e6:.1f} MB of text, {tokens} tokens, {options.threads} threads, {options.rounds} rounds, medians")
    print(f"tokens {'are the same' if same else 'DIFFER'}")
    for name, rounds in (("tprimat data encode", ours), (f"tokenizers {theirs[0]['version']}", theirs)):
        wall, cpu = (statistics.median(each[key] for each in rounds) for key in ("seconds", "cpu"))
        print(f"{name:22} {size / wall / 1e6:8.1f} MB/s   {size / cpu / 1e6:8.1f} MB per CPU second")
    for key, what in (("seconds", "by the clock"), ("cpu", "by CPU time")):
        ratio = statistics.median(b[key] for b in theirs) / statistics.median(a[key] for a in ours)
        print(f"ratio {what:16} {ratio:8.1f}")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
