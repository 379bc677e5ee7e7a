#!/usr/bin/env bash
# Our trainer on this machine's GPU: tests, timings, and PyTorch and Transformers beside it on the same card. One call.
#   bench/device/native.sh                                   everything, within 9 minutes
#   bench/device/native.sh --only tests,parity --sanitize    does it compute what it should, under compute-sanitizer too
#   bench/device/native.sh --only peers --cells llama3.1_8b:8192x1:bf16
#   bench/device/native.sh --only ops --cells llama3.1_8b:8192x1     each operation: floor, ours, PyTorch's best
# Parts (--only, in this order unless named in another):
#   tests    gpu_tests and gpu_engine_tests; with --sanitize also under memcheck and racecheck
#   parity   losses of a small model on the GPU and on the processor, in fp32 and bf16
#   train    our trainer alone: every model of the list
#   peers    our trainer, PyTorch eager and compiled, Transformers: each in its best setting, rounds in turn, medians
#   ops      each operation of the first model: `tprimat train --profile`, PyTorch's forms of it, our own benchmarks
# A part, model or setting that fails is reported and leaves the rest alone. --budget SECONDS is the time for all of it
# (540); what does not fit is left out and said to be. --choices RESULTS.json takes the peers' settings that an earlier
# call found, and spends the time on rounds. measure.py --help lists the other options.
# PROGRAMS  folder of the programs (build/carried, packed by bundle.sh for a machine without our libraries; else
#           build/nvd, built here)
# PYTHON    a Python with torch and transformers (python3)
# OUT       where results go: results.json, table.txt, gpu.csv, logs.tar.gz (bench/results/<date>_<device>)
# Nothing of the card is set: no clocks, no power limit, no modes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
python=${PYTHON:-python3}

unpack() {
  local archive=$1/programs.tar.xz into=$1/unpacked file
  [ -f "$archive" ] || return 0
  rm -rf "$into"
  mkdir -p "$into"
  "$python" -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2])' "$archive" "$into"
  for file in "$into"/base/*; do
    ldconfig -p 2>/dev/null | grep -qF "${file##*/} " || cp "$file" "$into/lib/"
  done
}

build_here() {
  { [ -f build/nvd/build.ninja ] || cmake --preset nvd; } >build/configure-nvd.log 2>&1 &&
    cmake --build --preset nvd --target tprimat gpu_tests gpu_engine_tests >build/build-nvd.log 2>&1
}

mkdir -p build
programs=${PROGRAMS:-build/carried}
unpack "$programs" || echo "$programs/programs.tar.xz cannot be unpacked" >&2
[ ! -d "$programs/unpacked" ] || programs=$programs/unpacked
if [ ! -x "$programs/tprimat" ]; then
  programs=build/nvd
  if ! build_here; then
    tail -n 5 build/configure-nvd.log build/build-nvd.log >&2 2>/dev/null || true
    echo "the program cannot be built here (docs/gpu.md): pack it elsewhere with bench/device/bundle.sh" >&2
  fi
fi

card=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1 | tr ' /' '__') || card=
results=${OUT:-bench/results/$(date -u +%Y-%m-%d)_${card:-no_gpu}}
mkdir -p "$results"
work=$(mktemp -d)
sampler=
# shellcheck disable=SC2317  # called at the end
finish() {
  [ -z "$sampler" ] || kill "$sampler" 2>/dev/null || true
  tar -C "$work" -czf "$results/logs.tar.gz" . || true
  rm -rf "$work"
}
trap finish EXIT
for reasons in clocks_event_reasons.active clocks_throttle_reasons.active; do
  query=timestamp,clocks.sm,clocks.mem,power.draw,temperature.gpu,utilization.gpu,memory.used,$reasons
  if [ -n "$card" ] && nvidia-smi --query-gpu="$query" --format=csv,noheader >/dev/null 2>&1; then
    nvidia-smi --query-gpu="$query" --format=csv,noheader -lms 250 >"$results/gpu.csv" 2>/dev/null &
    sampler=$!
    break
  fi
done

status=0
TPRIMAT_PYTHON=$python "$python" bench/device/measure.py --programs "$programs" --results "$results" --work "$work" "$@" || status=$?
echo "results in $results"
exit "$status"
