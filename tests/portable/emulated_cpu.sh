#!/usr/bin/env bash
# emulated_cpu.sh TPRIMAT TRAINER CPU SPEC LOG: under an emulator of that CPU, three steps of the trainer must give the
# losses of this machine to 4 digits, and tprimat must read the same out of a log. Each program is started by itself: the
# emulator does not follow one into another.
set -euo pipefail
command -v qemu-x86_64 >/dev/null || { echo "skipped: no qemu-x86_64; apt-get install qemu-user"; exit 77; }
tprimat=$1 trainer=$2 cpu=$3 spec=$4 log=$5

losses() { grep -o 'lm loss: [^|]*' | cut -c10-14; }

here=$("$trainer" train --spec "$spec" | losses)
there=$(qemu-x86_64 -cpu "$cpu" "$trainer" train --spec "$spec" 2>/dev/null | losses)
echo "this machine:" $here
echo "$cpu:" $there
[ "$(wc -l <<<"$here")" -eq 3 ] && [ "$here" = "$there" ]

read_here=$("$tprimat" extract "$log" --json) read_there=$(qemu-x86_64 -cpu "$cpu" "$tprimat" extract "$log" --json)
[ "${#read_here}" -gt 1000 ] && [ "$read_here" = "$read_there" ] || { echo "tprimat reads another result on $cpu"; exit 1; }
