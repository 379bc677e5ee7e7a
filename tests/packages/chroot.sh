# Sourced by the tests of packages: bare systems into which these are installed, in build/chroots. Root alone can make one.

chroots=$PWD/build/chroots
debian_mirror=${TPRIMAT_DEBIAN_MIRROR:-http://deb.debian.org}/debian

require_root() {
  [ "$(id -u)" -eq 0 ] || { echo "skipped: only root can make a chroot"; exit 77; }
  command -v debootstrap >/dev/null || { echo "skipped: debootstrap is not installed"; exit 77; }
}

# make_chroot NAME [PACKAGE...]: build/chroots/NAME, made afresh: Debian 12's smallest system with these packages. What
# debootstrap makes of a list of packages is kept and copied.
make_chroot() {
  local name=$1 root=$chroots/$1 base
  shift
  base=$chroots/base-$(printf '%s\n' "$@" | sort | sha256sum | cut -c1-12)
  if [ ! -f "$base/.complete" ]; then
    rm -rf "$base"
    mkdir -p "$base"
    debootstrap --variant=minbase ${*:+--include="$(IFS=, && echo "$*")"} bookworm "$base" "$debian_mirror" \
      >"$chroots/$name.log" 2>&1 || { tail -n 20 "$chroots/$name.log" >&2; return 1; }
    rm -f "$base"/var/cache/apt/archives/*.deb
    touch "$base/.complete"
  fi
  rm -rf "$root"
  cp -a --reflink=auto "$base" "$root"
  rm "$root/.complete"
}

# in_chroot NAME COMMAND...: as root, with /proc and the processes of its own; nothing else of this machine but its network.
in_chroot() {
  local root=$chroots/$1
  shift
  env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
    unshare --mount --pid --fork --kill-child --mount-proc="$root/proc" chroot "$root" "$@"
}

remove_chroot() { rm -rf "${chroots:?}/$1"; }
