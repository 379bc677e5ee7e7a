#!/usr/bin/env bash
# The wheel in build/packages, installed with pip on bare systems: the programs train, report and draw, Python calls them, and
# removal leaves nothing. On two processors the first result is there within 90 seconds from the start of pip: what is checked is
# the processors' time until both results and the comparison are there, which other programs on this machine do not change.
#   tests/packages/wheel.sh [SUITE...]     bookworm (Debian 12); jammy (Ubuntu 22.04), where its archive and its keys are there
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=tests/packages/chroot.sh
source tests/packages/chroot.sh

fail() { printf 'error: %s\n' "$*" >&2; exit 1; }

wheel=$(ls build/packages/tprimat-[0-9]*.whl 2>/dev/null) || fail "there is no wheel: scripts/package.sh wheel"

# The file alone.
check_file() {
  local bytes tag
  bytes=$(stat -c %s "$wheel")
  [ "$bytes" -le $((40 * 1000 * 1000)) ] || fail "$wheel has $bytes bytes, more than 40 MB"
  tag=$(sed -n 's/.*-py3-none-\(.*\)\.whl/\1/p' <<<"$wheel")
  build/packing/bin/auditwheel show "$wheel" >build/auditwheel.txt || fail "auditwheel show failed; see build/auditwheel.txt"
  tr '\n' ' ' <build/auditwheel.txt | grep -q "following platform tag: \"$tag\"" || {
    cat build/auditwheel.txt >&2
    fail "auditwheel names another tag than $tag"
  }
  echo "$wheel: $bytes bytes, $tag"
}

# Within the system: everything that a user does, with the seconds since the start of pip.
use() {
  cat <<'USE'
set -euo pipefail
python3 -m venv /environment
find /environment ! -type d | sort >/before
cd /root
start=$(date +%s.%N)
since() { date +%s.%N | awk -v start="$start" '{ printf "%.1f", $1 - start }'; }
/environment/bin/pip install --quiet --no-index /root/*.whl
echo "seconds until pip ended: $(since)"
export PATH=/environment/bin:$PATH
tprimat run --quiet >run.txt 2>&1 &
run=$!
while ! find output -maxdepth 1 -name 'train_*.json' 2>/dev/null | grep -q . && kill -0 $run 2>/dev/null; do sleep 0.1; done
first=$(since)
wait $run || { tail -n 40 run.txt; exit 1; }
echo "seconds until the first result: $first"
tprimat compare >compare.txt 2>&1 || { tail -n 40 compare.txt; exit 1; }
echo "seconds until the comparison: $(since)"
busy=$(awk -v ticks="$(getconf CLK_TCK)" '{ printf "%.1f", ($16 + $17) / ticks / 2 }' /proc/$$/stat)
echo "seconds that two processors were busy: $busy"
python -c "import tprimat; print(tprimat.plan('llama3_8b', gpu='H100', gpus=64).best)" >plan.txt
find output -type f | sort
head -n 30 compare.txt
cut -c1-200 plan.txt
awk -v busy="$busy" 'BEGIN { exit !(busy < 90) }' || { echo "error: the results took $busy s of two processors, more than 90"; exit 1; }
[ -s output/compare.svg ] || { echo "error: there is no output/compare.svg"; exit 1; }
pip uninstall --quiet --yes tprimat
find /environment ! -type d | sort | comm -13 /before - >/left
[ ! -s /left ] || { echo "error: removal leaves:"; cat /left; exit 1; }
USE
}

try_on() {
  local name=wheel-$1
  echo "== $1"
  make_chroot "$name" "$1" python3 python3-venv || fail "no bare system $1; see build/chroots/$name.log"
  cp "$wheel" "$chroots/$name/root/"
  use >"$chroots/$name/root/use.sh"
  in_chroot "$name" taskset -c 0,1 bash /root/use.sh
  remove_chroot "$name"
}

require_root
check_file
try_suites "python3 python3-venv" "$@"
