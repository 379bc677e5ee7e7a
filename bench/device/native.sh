#!/usr/bin/env bash
# Our trainer on this machine's GPU, one question a call; each ends within 8 minutes and resumes where the last one ended.
#   bench/device/native.sh attention    a  do the GPU's tests pass, those of cuDNN's attention among them?
#   bench/device/native.sh step         b  how long does a step of Llama 3.1 8B take, and which operations take it?
#   bench/device/native.sh peers        c  how long does it take in PyTorch and Transformers, rounds in turn with ours?
#   bench/device/native.sh parity       d  do the losses of a small model match the CPU's?
#   bench/device/native.sh fp8          e  how much faster is a step with FP8 products?
#   bench/device/native.sh memcheck     f  are the tests clean under compute-sanitizer?
# The status is 0 where the call answered its question, 1 where something stays open or another call is at work,
# 2 for wrong input, 4 for a missing component. docs/gpu.md says what each call decides.
# PROGRAMS  folder with the programs or programs.tar.xz (build/carried; without a bundle there build/nvd, built here)
# PYTHON    Python 3.10 or newer with torch and transformers (python3)
# OUT       where results go, at most five files a call (bench/results/<date>_<card>)
# A call skips work that does not fit the remaining time. Changes no GPU settings.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)  # paths on the command line are relative to the caller's folder
python=${PYTHON:-python3}
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
  echo "error: $python is no Python 3.10 or newer; name one in PYTHON" >&2
  exit 4
fi
if [[ " $* " == *" --help "* || " $* " == *" -h "* ]]; then
  sed -n '2,/^set /{s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"
  echo
fi
exec "$python" "$here/measure.py" "$@"
