#!/usr/bin/env bash
# emulated_tests.sh MODULE PROGRAM...: runs the unit tests of a module under an emulator of another processor. PROGRAM
# is the emulator's command and the test program. What the emulator cannot do is listed in beyond_qemu.txt beside this
# script: each such test is named as skipped, with the reason, and a line that matches no test is an error.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
module=$1
shift
names=$("$@" --gtest_list_tests | awk '/^[^ ]/ { suite = $1; next } { print suite $1 }')

excluded='' skipped=0
while read -r listed pattern reason; do
  [ "$listed" = "$module" ] || continue
  # shellcheck disable=SC2053
  matching=$(while read -r name; do [[ $name != $pattern ]] || echo "$name"; done <<<"$names")
  [ -n "$matching" ] ||
    { echo "beyond_qemu.txt: no test of $module is called $pattern; mend or remove that line"; exit 1; }
  sed "s|.*|skipped under QEMU: $module.&: $reason|" <<<"$matching"
  skipped=$((skipped + $(wc -l <<<"$matching")))
  excluded+=:$pattern
done < <(sed 's/#.*//' "$here/beyond_qemu.txt")

log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
"$@" --gtest_brief=1 --gtest_filter="-$excluded" 2>&1 | tee "$log" || status=$?
# Briefly, Google Test counts those that passed, and names each of the others with its time.
ended() { grep -cE "^\[ *$1 *\] [^ ]+.* \([0-9]+ ms\)$" "$log" || true; }
passed=$(sed -nE 's/^\[ *PASSED *\] ([0-9]+) tests?.*/\1/p' "$log" | tail -n 1)
echo "$module: ${passed:-0} passed, $(ended FAILED) failed, $((skipped + $(ended SKIPPED))) skipped"
exit "$status"
