#!/usr/bin/env bash
# emulated_programs.sh TPRIMAT TRAINER SOURCES EMULATOR...: both programs under an emulator of another processor.
# Three steps of the trainer give the losses of an x86 processor to 4 digits, and tprimat reads a log to the last bit
# as there. Each program is started by itself: the emulator does not follow one into another.
set -euo pipefail
tprimat=$1 trainer=$2 sources=$3
shift 3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

expect() {  # WHAT FOUND WANTED
  [ "$2" = "$3" ] || { printf '%s\nfound:  %s\nwanted: %s\n' "$1" "$2" "$3"; exit 1; }
  echo "$1: as wanted"
}
field() { python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$folder/$1" "$2"; }

losses=$("$@" "$trainer" train --spec "$sources/tests/portable/tiny_spec.json" 2>/dev/null |
  grep -o 'lm loss: [^|]*' | cut -c10-14)
# shellcheck disable=SC2086
expect "losses of three steps" "$(echo $losses)" "5.683 5.627 5.550"

"$@" "$tprimat" extract "$sources/tests/cli/extract/megatron.log" --json --quiet >"$folder/log.json"
mean=$(field log.json 'r["performance_metrics"]["avg_step_time_seconds"]')
expect "mean step time of a log" "$mean" 0.5000727272727272

"$@" "$tprimat" detect --json >"$folder/machine.json"
expect "architecture" "$(field machine.json 'r["architecture"]')" aarch64

"$@" "$tprimat" completion bash >"$folder/tprimat.bash"
bash -n "$folder/tprimat.bash"
expect "completions of bash" "$(grep -c '^complete .*tprimat' "$folder/tprimat.bash")" 1
