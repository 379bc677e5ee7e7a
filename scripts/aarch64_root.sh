#!/usr/bin/env bash
# aarch64_root.sh: unpacks Debian's libraries for 64-bit Arm into build/aarch64-root, where cmake/aarch64.cmake finds
# them. Nothing is installed and nothing of this machine changes: apt keeps its lists and packages for Arm below
# build/, takes them from the servers that this machine is set up with, and needs no root.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/build.sh
source scripts/build.sh

root=$PWD/build/aarch64-root apt=$PWD/build/aarch64-apt
wanted=$({ listed | grep -E '^lib|-dev$'; echo libgtest-dev; } | tr '\n' ' ')
[ "$wanted" != "$(cat "$root/unpacked.txt" 2>/dev/null)" ] || exit 0

progress "Unpacking libraries for 64-bit Arm into build/aarch64-root"
rm -rf "$root" "$apt"
mkdir -p "$root" "$apt/lists" "$apt/archives"
: >"$apt/status"
cat >"$apt/apt.conf" <<END
APT::Architecture "arm64";
#clear APT::Architectures;
APT::Architectures { "arm64"; };
APT::Install-Recommends "false";
APT::Sandbox::User "";
Dir::State "$apt";
Dir::State::lists "$apt/lists";
Dir::State::status "$apt/status";
Dir::Cache "$apt";
Dir::Cache::archives "$apt/archives";
END
export APT_CONFIG=$apt/apt.conf
# shellcheck disable=SC2086
{ apt-get update && apt-get install --yes --download-only $wanted; } >build/aarch64-root.log 2>&1 ||
  fail "apt-get did not bring the libraries for arm64; see build/aarch64-root.log"
for package in "$apt"/archives/*.deb; do
  dpkg-deb --fsys-tarfile "$package" | tar -x -C "$root" --no-same-owner --exclude=./usr/share/{doc,man,locale,perl}
done
# Links to files of the whole system would lead to this machine's.
find "$root" -type l -lname '/*' | while read -r link; do
  ln -sfnr "$root$(readlink "$link")" "$link"
done
rm -rf "$apt"
echo "$wanted" >"$root/unpacked.txt"
