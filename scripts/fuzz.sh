#!/usr/bin/env bash
# Fuzzes readers of foreign files with libFuzzer under the address and undefined-behaviour sanitizers.
#   scripts/fuzz.sh SECONDS [TARGET...]     each target that long, two at a time; without a target: all
# A finding is kept in build/fuzz/findings and named; the exit status is then 1.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/build.sh
source scripts/build.sh

[ $# -ge 1 ] || fail "usage: scripts/fuzz.sh SECONDS [TARGET...]"
seconds=$1
shift
build fuzz fuzz
program=$PWD/build/fuzz/tests/fuzz/fuzz
targets=("$@")
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <("$program" 2>&1 | sed -n 's/^  //p')

# What happened, and the input that makes it happen again, also where only the output is kept.
report_finding() {
  local log="build/fuzz/logs/${1//:/_}.log" input
  echo "$1: FINDING, see $log"
  grep -E -A 25 '==[0-9]+== ?(ERROR|WARNING)|runtime error|libFuzzer: ' "$log" | head -n 40
  input=$(sed -n 's/.*Test unit written to //p' "$log" | head -n 1)
  [ -z "$input" ] || { echo "Its input, $(wc -c <"$input") bytes (base64 of gzip):" && gzip -9 <"$input" | base64; }
}

fuzz_one() {
  local target=$1 place="build/fuzz/corpus/${1//:/_}" seeds
  mkdir -p "$place" build/fuzz/findings build/fuzz/logs
  case $target in
    log:*) seeds=tests/unit/extract/fixtures/${target#log:} ;;
    log | gzip) seeds=tests/unit/extract/fixtures ;;
    *) seeds=tests/fuzz/corpus/$target ;;
  esac
  [ -d "$seeds" ] || seeds=
  TPRIMAT_FUZZ_TARGET=$target ASAN_OPTIONS=detect_leaks=1 "$program" "$place" $seeds -max_total_time="$seconds" \
    -entropic=0 -timeout=20 -rss_limit_mb=3000 -max_len=20000 -artifact_prefix="build/fuzz/findings/${target//:/_}-" \
    >"build/fuzz/logs/${target//:/_}.log" 2>&1 || { report_finding "$target" >&2; return 1; }
  echo "$target: $(grep -E '^Done' "build/fuzz/logs/${target//:/_}.log"), no finding"
}
export -f fuzz_one report_finding
export program seconds
printf '%s\n' "${targets[@]}" | xargs -P "${TPRIMAT_FUZZ_JOBS:-2}" -I{} bash -c 'fuzz_one {}'
