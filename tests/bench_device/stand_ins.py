"""Stand-ins for what bench/device starts: a trainer, its peers, tests of a GPU, nvidia-smi, compute-sanitizer."""

import argparse
import contextlib
import io
import json
import pathlib
import shutil
import sys
import tempfile
import unittest

PROGRAM, SOURCE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
sys.dont_write_bytecode = True
sys.path.insert(0, str(SOURCE / "bench" / "device"))

import comparison  # noqa: E402
import measure  # noqa: E402
import programs  # noqa: E402
import trainings  # noqa: E402

TINY = {**comparison.SMALL, "name": "tiny", "num_layers": 2, "hidden_size": 64, "ffn_hidden_size": 96, "head_dim": 16,
        "vocab_size": 256}
# Each of them writes its arguments into the file `started` beside it.
NOTE = 'echo "$(basename "$0") $*" >>"$(dirname "$0")/started"\n'
# Trains nothing: its settings take the seconds that the test says, or fail as it says.
PEER = """#!/usr/bin/env python3
import json, pathlib, sys, time
here = pathlib.Path(__file__)
outcomes = json.loads(here.with_suffix(".json").read_text())
case = json.loads(pathlib.Path(sys.argv[2]).read_text())
print(json.dumps({"versions": {"torch": "0"}}), flush=True)
for setting in case["settings"]:
    name = " ".join(map(str, setting.values()))
    with open(here.parent / "started", "a") as started:
        started.write(f"{case['peer']} {name}\\n")
    outcome = outcomes.get(name, {"failed": "out of memory"})
    if outcome == "crash":
        sys.exit("segmentation fault")
    if outcome == "hang":
        time.sleep(60)
    print(json.dumps({"setting": setting, **outcome}), flush=True)
"""
TRAINER = """#!/usr/bin/env python3
import json, os, pathlib, sys
with open(pathlib.Path(__file__).parent / "started", "a") as started:
    started.write(" ".join(["tprimat", *sys.argv[1:]]) + "\\n")
if sys.argv[1] == "doctor":
    print(json.dumps({"findings": [{"severity": "ok", "area": "GPU libraries", "what": "cuDNN: 9", "remedy": ""}]}))
else:
    spec = json.loads(pathlib.Path(sys.argv[3]).read_text())
    line = json.dumps({"time_seconds": 0.5, "loss": 2.0})
    pathlib.Path(os.environ["TPRIMAT_STEPS"]).write_text((line + "\\n") * spec["steps"])
    print("  AdamW     1    31.50   10.0%\\nkernels | attention cudnn |")
"""
GPU_TESTS = "#!/bin/sh\n" + NOTE + """case "$*" in
  *--gtest_list_tests*) printf 'GpuAttention/0.  # TypeParam = float\\n  CudnnMatches\\nGpuNorm.\\n  One\\n  Two\\n' ;;
  *) cat "$0.txt" ;;
esac
"""
SANITIZER = "#!/bin/sh\n" + NOTE + """[ ! -e "$(dirname "$0")/fails_$2" ] || { echo "========= Invalid __global__ read"; exit 86; }
while [ ! -x "$1" ]; do shift; done
exec "$@"
"""
PASSED = "[ RUN      ] GpuAttention/1.CudnnMatches\n[       OK ] GpuAttention/1.CudnnMatches (3 ms)\n[  PASSED  ] 1 test.\n"
SKIPPED = """[ RUN      ] GpuAttention/0.CudnnMatches
/tests/attention_test.cpp:294: Skipped
cuDNN is not asked for float

[  SKIPPED ] GpuAttention/0.CudnnMatches (0 ms)
[ RUN      ] GpuAttention/1.CudnnMatches
/tests/attention_test.cpp:299: Skipped
cuDNN does not start: no libcudnn.so.9

[  SKIPPED ] GpuAttention/1.CudnnMatches (0 ms)
[  PASSED  ] 7 tests.
[  SKIPPED ] 2 tests, listed below:
[  SKIPPED ] GpuAttention/0.CudnnMatches
[  SKIPPED ] GpuAttention/1.CudnnMatches
"""
# Says that there is a card, and that it is busy.
NVIDIA_SMI = """#!/bin/sh
case "$*" in
  *-lms*) while :; do echo "$(date '+%Y/%m/%d %H:%M:%S.%N' | cut -c1-23), 1755 MHz, 3201 MHz, 612.00 W, 55, 97 %, 9 MiB, 0x0"
            sleep 0.02; done ;;
  *driver_version*) echo "NVIDIA H200, 580.1, 143771 MiB" ;;
  *timestamp*) echo "$*" | grep -q clocks_throttle_reasons && echo yes ;;
esac
"""


def write_program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


class Folder(unittest.TestCase):
    """A test with stand-ins in a folder of its own."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.bin = self.folder / "bin"
        self.tests = [write_program(self.bin / name, GPU_TESTS) for name in ("gpu_tests", "gpu_engine_tests")]
        write_program(self.bin / "tprimat", TRAINER)
        write_program(self.bin / "compute-sanitizer", SANITIZER)
        self.peer = write_program(self.bin / "peer", PEER)
        (self.bin / "revision").write_text("abc\n")
        self.print_tests(PASSED)

    def print_tests(self, text):
        for path in self.tests:
            path.with_name(path.name + ".txt").write_text(text)

    def started(self):
        """What was started since it was asked last."""
        path = self.bin / "started"
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return lines

    def options(self, call, **more):
        work = self.folder / "work"
        work.mkdir(exist_ok=True)
        plain = {"call": call, "programs": programs.Programs(self.bin), "budget": 450, "again": False, "dry_run": False,
                 "device": "nvd", "cells": [trainings.parse_cell("tiny:64x2")], "rounds": 2, "steps": 2, "choices": {},
                 "shapes": {"tiny": TINY}, "device_name": "no GPU", "out": self.folder / "out", "earlier": [],
                 "work": work, "python": self.peer, "torch_environment": {}}
        options = argparse.Namespace(**{**plain, **more})
        options.runner = programs.Runner(programs.Budget(options.budget), work, options.dry_run)
        options.out.mkdir(exist_ok=True)
        return options

    def ask(self, call, **more):
        """Status, part of the results and what was printed."""
        options, printed = self.options(call, **more), io.StringIO()
        with contextlib.redirect_stdout(printed):
            made = measure.Call(options)
            status = made.run()
        return status, made.part, printed.getvalue()

    def set_outcomes(self, outcomes):
        self.peer.with_suffix(".json").write_text(json.dumps(outcomes))
