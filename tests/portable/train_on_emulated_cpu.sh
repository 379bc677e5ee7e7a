#!/usr/bin/env bash
# train_on_emulated_cpu.sh PROGRAM CPU SPEC: three steps under an emulator of that CPU must give the losses of this machine to 4 digits.
set -euo pipefail
command -v qemu-x86_64 >/dev/null || { echo "skipped: no qemu-x86_64; apt-get install qemu-user"; exit 77; }

losses() { grep -o 'lm loss: [^|]*' | cut -c10-14; }

here=$("$1" train --spec "$3" | losses)
there=$(qemu-x86_64 -cpu "$2" "$1" train --spec "$3" 2>/dev/null | losses)
echo "this machine:" $here
echo "$2:" $there
[ "$(wc -l <<<"$here")" -eq 3 ] && [ "$here" = "$there" ]
