#!/usr/bin/env bash
# One card, every framework that this machine has: trains the models of a configuration with each through `tprimat run`,
# compares, and keeps results and telemetry.
#   bench/device/run.sh [OPTION-OF-TPRIMAT-RUN...]
# native.sh beside it tests and times our own trainer on a GPU, down to single operations.
# PROGRAM   tprimat; with a GPU module beside it our trainer takes part on GPUs (build/release/tprimat, built here)
# CONFIG    the configuration (bench/device/h200.yaml)
# PLATFORM  nvd, amd or cpu (nvd)
# PYTHON    a Python with torch, for machines that cannot install: it stands for the framework environments that are
#           missing (python3)
# RESULTS   where results go (bench/results/<date>_<device>)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
config=${CONFIG:-bench/device/h200.yaml} platform=${PLATFORM:-nvd} python=${PYTHON:-python3}
program=${PROGRAM:-build/release/tprimat}
[ -x "$program" ] || { cmake --preset release >/dev/null && cmake --build --preset release --target tprimat; }

environments=${TPRIMAT_FRAMEWORKS:-${XDG_DATA_HOME:-$HOME/.local/share}/tprimat/frameworks}
mkdir -p "$environments"
frameworks=()
for pair in tran:transformers fsdp:torch deep:deepspeed; do
  id=${pair%%:*}
  if [ ! -e "$environments/$id/bin/python" ] && "$python" -c "import torch, transformers, ${pair#*:}" 2>/dev/null; then
    rm -f "$environments/$id"
    ln -s "$("$python" -c 'import sys; print(sys.prefix)')" "$environments/$id"
  fi
  [ ! -e "$environments/$id/bin/python" ] || frameworks+=("$id")
done
[ ! -f "${MEGATRON_PATH:-/opt/megatron-lm}/pretrain_gpt.py" ] || [ "$platform" = cpu ] || frameworks+=(mega)
if [ "$platform" = cpu ] || [ -e "$(dirname "$program")/libtprimat_$platform.so" ]; then frameworks+=(native); fi
[ ${#frameworks[@]} -gt 0 ] || { echo "error: no framework is here; frameworks/setup.sh tran fsdp deep installs them" >&2; exit 4; }

device=$("$program" detect --json | "$python" -c 'import json, sys
facts = json.load(sys.stdin)
gpus = facts.get("gpus") or []
print((gpus[0]["name"] if gpus else "cpu").replace(" ", "_"))')
results=${RESULTS:-bench/results/$(date -u +%Y-%m-%d)_$device}
mkdir -p "$results"
"$program" doctor --platform "$platform" --brief >"$results/doctor.txt" || true
status=0
"$program" run --config "$config" --platform "$platform" --framework "$(IFS=,; echo "${frameworks[*]}")" \
  --output "$results" "$@" || status=$?
"$program" compare "$results" --no-color >"$results/compare.txt" || true
rm -rf "$results/runs"
echo "results in $results"
exit "$status"
