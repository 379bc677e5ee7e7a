# Sourced by the tests of packages: bare systems into which these are installed, in build/chroots. Root alone can make one.

chroots=$PWD/build/chroots
debian_mirror=${TPRIMAT_DEBIAN_MIRROR:-http://deb.debian.org}/debian
ubuntu_mirror=${TPRIMAT_UBUNTU_MIRROR:-http://archive.ubuntu.com/ubuntu}

require_root() {
  [ "$(id -u)" -eq 0 ] || { echo "skipped: only root can make a chroot: run it by sudo"; exit 77; }
  command -v debootstrap >/dev/null || { echo "skipped: debootstrap is missing: apt-get install debootstrap"; exit 77; }
}

# base_of SUITE [PACKAGE...]: the folder of what debootstrap makes of this list.
base_of() { echo "$chroots/base-$1-$(shift && printf '%s\n' "$@" | sort | sha256sum | cut -c1-12)"; }

# make_chroot NAME SUITE [PACKAGE...]: build/chroots/NAME, made afresh: the smallest system of Debian 12 (bookworm) or of
# Ubuntu 22.04 (jammy) with these packages. What debootstrap makes of a list of packages is kept and copied.
make_chroot() {
  local name=$1 root=$chroots/$1 suite=$2 base mirror=$debian_mirror
  shift 2
  [ "$suite" != jammy ] || mirror=$ubuntu_mirror
  base=$(base_of "$suite" "$@")
  if [ ! -f "$base/.complete" ]; then
    rm -rf --one-file-system "$base"
    mkdir -p "$base"
    unshare --mount debootstrap --variant=minbase --components="main$([ "$suite" != jammy ] || echo ,universe)" \
      ${*:+--include="$(IFS=, && echo "$*")"} "$suite" "$base" "$mirror" \
      >"$chroots/$name.log" 2>&1 || { tail -n 20 "$chroots/$name.log" >&2; return 1; }
    rm -f "$base"/var/cache/apt/archives/*.deb
    touch "$base/.complete"
  fi
  rm -rf --one-file-system "$root"
  cp -a --reflink=auto "$base" "$root"
  rm "$root/.complete"
  echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/unsafe-io"  # nothing is lost with a test's system
}

# can_reach_ubuntu: whether Ubuntu's archive and the keys of its signatures are there.
can_reach_ubuntu() {
  [ -f /usr/share/keyrings/ubuntu-archive-keyring.gpg ] && command -v python3 >/dev/null &&
    python3 -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=20)' "$ubuntu_mirror/dists/jammy/Release" 2>/dev/null
}

# try_suites PACKAGES [SUITE...]: `try_on` each suite, in a base system with these packages; Debian 12 and Ubuntu 22.04 if none is
# named. Ubuntu is left out where it cannot be reached and no base is there.
try_suites() {
  local packages=$1 suite
  shift
  [ $# -gt 0 ] || set -- bookworm jammy
  for suite; do
    # shellcheck disable=SC2086
    if [ "$suite" = jammy ] && [ ! -f "$(base_of jammy $packages)/.complete" ] && ! can_reach_ubuntu; then
      echo "== jammy: not tried: Ubuntu's archive cannot be reached, or /usr/share/keyrings/ubuntu-archive-keyring.gpg is missing: it comes with Ubuntu's package ubuntu-keyring"
    else
      try_on "$suite"
    fi
  done
}

# in_chroot NAME COMMAND...: as root, with /proc and the processes of its own; nothing else of this machine but its network.
in_chroot() {
  local root=$chroots/$1
  shift
  env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
    unshare --mount --pid --fork --kill-child --mount-proc="$root/proc" chroot "$root" "$@"
}

remove_chroot() { rm -rf --one-file-system "${chroots:?}/$1"; }
