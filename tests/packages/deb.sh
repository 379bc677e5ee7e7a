#!/usr/bin/env bash
# The Debian package in build/packages, on bare systems: it installs where nothing else is, trains, compares and plans; beside
# what it recommends it starts ranks over MPI; bash, zsh and fish complete and man finds its pages; apt-get purge leaves nothing.
# The image for CPUs is made with the same commands as docker/cpu.Dockerfile's.
#   tests/packages/deb.sh [SUITE...]     bookworm (Debian 12); jammy (Ubuntu 22.04), where its archive and its keys are there
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=tests/packages/chroot.sh
source tests/packages/chroot.sh

fail() { printf 'error: %s\n' "$*" >&2; exit 1; }

package=$(find build/packages -name "tprimat_*_$(dpkg --print-architecture).deb" 2>/dev/null | sort -V | tail -n 1)
[ -n "$package" ] || fail "there is no Debian package: scripts/package.sh deb"

# The file alone: lintian finds no error but the libraries inside, which are meant, and glibc is all that it depends on.
check_file() {
  local depends
  depends=$(dpkg-deb --field "$package" Depends)
  [[ "$depends" =~ ^libc6\ \(\>=\ 2\.([0-9]+)\)$ ]] && [ "${BASH_REMATCH[1]}" -le 35 ] ||
    fail "$package depends on '$depends', not on libc6 of 2.35 or older alone"
  command -v lintian >/dev/null || { echo "not checked: lintian is not installed"; return 0; }
  lintian --allow-root --fail-on error --tag-display-limit 0 --suppress-tags embedded-library,initial-upload-closes-no-bugs "$package" || fail "lintian finds errors"
  echo "$package: $(stat -c %s "$package") bytes, depends on $depends"
}

# What every script within a system begins with.
begin() {
  cat <<'BEGIN'
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
files() {
  find / \( -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /home -o -path /root -o -path /var/cache \
    -o -path /var/log -o -path /var/lib/apt -o -path /var/lib/dpkg \) -prune -o -print | sort
}
as_visitor() { su visitor -c "cd && $1"; }
purge() {
  apt-get purge -y -qq tprimat >/root/purge.txt 2>&1 || { cat /root/purge.txt; exit 1; }
  ! dpkg-query -W tprimat 2>/dev/null || { echo "error: dpkg still knows tprimat"; exit 1; }
  find / -xdev -iname '*tprimat*' ! -path '/proc/*' ! -path '/root/*' ! -path '/home/*' ! -path '/opt/tprimat*' ! -path '/var/log/*' >/root/left
  [ ! -s /root/left ] || { echo "error: apt-get purge leaves:"; cat /root/left; exit 1; }
}
BEGIN
}

# Nothing but the system and the package.
use_alone() {
  begin
  cat <<'USE'
useradd --create-home visitor
files >/root/before
start=$(date +%s.%N)
since() { date +%s.%N | awk -v start="$start" '{ printf "%.1f", $1 - start }'; }
apt-get install -y -qq --no-install-recommends /root/*.deb >/root/apt.txt 2>&1 || { cat /root/apt.txt; exit 1; }
echo "seconds until the package is installed: $(since)"
dpkg --verify tprimat
as_visitor 'tprimat run --quiet >run.txt 2>&1' || { tail -n 40 /home/visitor/run.txt; exit 1; }
as_visitor 'tprimat compare >compare.txt 2>&1' || { tail -n 40 /home/visitor/compare.txt; exit 1; }
echo "seconds until the comparison: $(since)"
(cd /home/visitor && find output -type f | sort && head -n 12 compare.txt)
[ "$(find /home/visitor/output -name '*.json' | wc -l)" -ge 2 ] || { echo "error: there are no two results"; exit 1; }
as_visitor 'tprimat plan llama3_8b --gpus 64 --gpu H100 --top 1' | head -n 8
purge
files | diff /root/before - >/root/left || { echo "error: installing and purging changes:"; cat /root/left; exit 1; }
USE
}

# With what it recommends, as docker/cpu.Dockerfile installs it, and what users have beside it.
use_beside_others() {
  begin
  cat <<'USE'
sh /opt/tprimat/source/docker/install_cpu.sh >/root/image.txt 2>&1 || { tail -n 40 /root/image.txt; exit 1; }
tail -n 1 /root/image.txt
apt-get update -qq
apt-get install -y -qq --no-install-recommends bash-completion zsh fish man-db python3 >/root/apt.txt 2>&1 || { cat /root/apt.txt; exit 1; }
echo 'autoload -Uz compinit && compinit' >/home/visitor/.zshrc
apt-get install -y -qq --reinstall /root/*.deb >/root/apt.txt 2>&1 || { cat /root/apt.txt; exit 1; }  # now with Python
as_visitor 'mpirun --oversubscribe -n 2 tprimat probe --collectives' | head -n 6
for page in tprimat tprimat-run tprimat-train; do
  as_visitor "man $page" | grep -q '^NAME' || { echo "error: man does not show $page"; exit 1; }
done
as_visitor "python3 -c \"import tprimat; print(tprimat.plan('llama3_8b', gpu='H100', gpus=64).best)\"" | cut -c1-160
USE
}

try_on() {
  local suite=$1 name=deb-$1 root=$chroots/deb-$1
  echo "== $suite"
  make_chroot "$name" "$suite" || fail "no bare system $suite; see build/chroots/$name.log"
  cp "$package" "$root/root/"
  use_alone >"$root/root/alone.sh"
  in_chroot "$name" taskset -c 0,1 bash /root/alone.sh || fail "$suite: see above"
  mkdir -p "$root/opt/tprimat/source/build/packages"
  cp -r docker "$root/opt/tprimat/source/"
  cp "$package" "$root/opt/tprimat/source/build/packages/"
  cp /etc/resolv.conf "$root/etc/"
  use_beside_others >"$root/root/beside.sh"
  in_chroot "$name" bash /root/beside.sh || fail "$suite: see above"
  python3 tests/packages/press_tab.py "$root" visitor bash zsh fish
  { begin && echo purge; } >"$root/root/purge.sh"
  in_chroot "$name" bash /root/purge.sh || fail "$suite: see above"
  remove_chroot "$name"
}

require_root
check_file
try_suites "" "$@"
