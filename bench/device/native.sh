#!/usr/bin/env bash
# Our trainer on this machine's GPU, one question a call; each ends within 8 minutes and goes on where the last one ended.
#   bench/device/native.sh attention    a  do the GPU's tests pass, those of cuDNN's attention among them?
#   bench/device/native.sh step         b  how long does a step of Llama 3.1 8B take, and which operations take it?
#   bench/device/native.sh peers        c  how long does it take in PyTorch and Transformers, rounds in turn with ours?
#   bench/device/native.sh parity       d  are the losses of a small model those of the processor?
#   bench/device/native.sh fp8          e  how much faster is a step with FP8 products?
#   bench/device/native.sh memcheck     f  are the tests clean under compute-sanitizer?
# --budget SECONDS   the time of the call (450); nothing starts for which too little is left
# --resume FOLDER    earlier results to go on from (the newest of this card in bench/results); --again: none
# --dry-run          print the command lines and start none; measure.py --help lists the other options
# The status is 0 where the call answered its question. docs/gpu.md says what each one decides.
# PROGRAMS  folder of the programs (build/carried, packed by bundle.sh for a machine without our libraries; else
#           build/nvd, built here)
# PYTHON    a Python with torch and transformers (python3)
# OUT       where results go, at most five files a call (bench/results/<date>_<card>)
# Nothing of the card is set: no clocks, no power limit, no modes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
python=${PYTHON:-python3}
calls=" attention a step b peers c parity d fp8 e memcheck f "
if [[ $calls != *" ${1:-none} "* ]]; then
  echo "error: the first word names a call, one of$calls; the head of native.sh says what each one asks" >&2
  exit 2
fi

unpack() {
  local archive=$1/programs.tar.xz into=$1/unpacked file known
  [ -f "$archive" ] || return 0
  rm -rf "$into"
  mkdir -p "$into"
  "$python" -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2])' "$archive" "$into"
  known=$(ldconfig -p 2>/dev/null || true)  # whole: a reader that ends early would fail the pipe
  for file in "$into"/base/*; do
    [[ $known == *"${file##*/} "* ]] || cp "$file" "$into/lib/"
  done
}

build_here() {
  { [ -f build/nvd/build.ninja ] || cmake --preset nvd; } >build/configure-nvd.log 2>&1 &&
    cmake --build --preset nvd --target tprimat gpu_tests gpu_engine_tests >build/build-nvd.log 2>&1
}

programs=${PROGRAMS:-build/carried}
unpack "$programs" || echo "$programs/programs.tar.xz cannot be unpacked: pack it again with bench/device/bundle.sh" >&2
[ ! -d "$programs/unpacked" ] || programs=$programs/unpacked
if [ ! -x "$programs/tprimat" ]; then
  programs=build/nvd
  mkdir -p build
  if [[ " $* " != *" --dry-run "* ]] && ! build_here; then
    tail -n 5 build/configure-nvd.log build/build-nvd.log >&2 2>/dev/null || true
    echo "the program cannot be built here (docs/gpu.md): pack it elsewhere with bench/device/bundle.sh" >&2
  fi
fi
exec "$python" bench/device/measure.py --programs "$programs" "$@"
