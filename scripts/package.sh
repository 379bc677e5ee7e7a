#!/usr/bin/env bash
# Makes what users install, in build/packages, out of the static build of the preset `package`.
#   scripts/package.sh [--built PRESET] [--into FOLDER] KIND...
#     --built PRESET   packs the build in build/PRESET as it is, instead of bringing build/package up to date
#     --into FOLDER    instead of build/packages
# Kinds:
#   wheel      what `pip install tprimat` installs: the programs and the Python package
#   wheel-nvd  what `pip install tprimat[nvd]` adds: the module for NVIDIA GPUs (tprimat-nvd)
#   deb        a package for Debian 12, Ubuntu 22.04 and later
#   tar        the same files for any place: tprimat-VERSION-linux-ARCHITECTURE.tar.gz and .tar.zst
#   sdist      the sources of the last commit, from which pip builds the wheel: tprimat-VERSION.tar.gz
#   sbom       what the programs contain and what the packages beside it are, with licences: tprimat-VERSION.spdx.json
#   sums       SHA256SUMS of this version's packages
# The same sources give the same bytes: files bear the time of the last commit, or SOURCE_DATE_EPOCH.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/build.sh
source scripts/build.sh

packages=$PWD/build/packages
preset=${TPRIMAT_PACKAGE_PRESET:-package}
built=no
while [[ "${1:-}" == --* ]]; do
  [ $# -ge 2 ] || fail "$1 needs a value; see the head of scripts/package.sh"
  case "$1" in
    --built) preset=$2 built=yes && [ -f "build/$2/build.ninja" ] || fail "there is no build in build/$2" ;;
    --into) packages=$(realpath -m "$2") ;;
    *) fail "unknown option $1; see the head of scripts/package.sh" ;;
  esac
  shift 2
done

# A source distribution has no git: PKG-INFO bears the time of the commit, REVISION its name.
commit_time() { if [ -f PKG-INFO ]; then stat -c %Y PKG-INFO; else git log -1 --format=%ct; fi; }
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(commit_time)}
export SOURCE_DATE_EPOCH

build_programs() {
  [ "$built" = no ] || return 0
  install_dependencies
  install_dependencies package
  scripts/package/third_party.sh
  build "$preset" tprimat
}

# make_deb: CPack packs what `cmake --install` lays (cmake/Package.cmake).
make_deb() {
  build_programs
  progress "Packing the Debian package"
  (umask 022 && cpack -G DEB --config "build/$preset/CPackConfig.cmake" -B build/cpack) >build/cpack.log 2>&1 ||
    { tail -n 20 build/cpack.log >&2; fail "cpack failed; see build/cpack.log"; }
  mv build/cpack/*.deb "$packages/"
}

# make_tar: sorted, of root, of one time; without the name of the compressed file.
make_tar() {
  build_programs
  progress "Packing the archives"
  local name folder
  name=tprimat-$(project_version)-linux-$(uname -m)
  folder=build/cpack/$name
  rm -rf "$folder"
  (umask 022 && cmake --install "build/$preset" --strip --prefix "$folder") >build/install.log 2>&1 ||
    { tail -n 20 build/install.log >&2; fail "cmake --install failed; see build/install.log"; }
  tar --directory build/cpack --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
    --format=gnu -cf "build/cpack/$name.tar" "$name"
  gzip -9nc "build/cpack/$name.tar" >"$packages/$name.tar.gz"
  zstd -q -19 -T1 -f "build/cpack/$name.tar" -o "$packages/$name.tar.zst"
}

# pack_wheel NAME PRESET [OPTION...]: what `cmake --install` lays, as a wheel (scripts/package/wheel.py).
pack_wheel() {
  local name=$1 preset=$2 installed=build/cpack/$1 log=build/$1-wheel.log
  shift 2
  install_packing
  progress "Packing the wheel $name"
  rm -rf "$installed"
  rm -f "$packages/${name//-/_}-$(project_version)"-*.whl
  (umask 022 && cmake --install "build/$preset" --strip --prefix "$installed" "$@" &&
    { [ -e "$installed/share/doc/tprimat/copyright" ] || scripts/licences.py "build/$preset" "$installed/share/doc/tprimat"; } &&
    build/packing/bin/python scripts/package/wheel.py "$name" "$installed" "$packages") >"$log" 2>&1 ||
    { tail -n 20 "$log" >&2; fail "packing the wheel failed; see $log"; }
}

# The Python packages that pack wheels, in build/packing.
install_packing() {
  local wanted
  wanted=$(listed wheel)
  [ "$wanted" != "$(cat build/packing/installed.txt 2>/dev/null)" ] || return 0
  progress "Installing into build/packing: $(paste -sd' ' <<<"$wanted")"
  # shellcheck disable=SC2086
  { python3 -m venv --clear build/packing && build/packing/bin/pip install -q $wanted; } >build/packing.log 2>&1 ||
    fail "installing Python packages failed; see build/packing.log"
  echo "$wanted" >build/packing/installed.txt
}

make_wheel() {
  build_programs
  pack_wheel tprimat "$preset"
}

# make_wheel_nvd: compiled with the nvcc of dependencies.txt, whatever the machine has, so that it is the same everywhere.
make_wheel_nvd() {
  local nvcc
  install_dependencies
  install_dependencies package
  scripts/package/third_party.sh
  install_wheels nvcc
  install_wheels cudnn
  nvcc=$(find "$PWD"/build/cuda/lib/ -path '*/nvidia/cu13/bin/nvcc' | head -n 1)
  [ -f build/package-nvd/build.ninja ] || configure package-nvd -DTPRIMAT_GPU_COMPILER="$nvcc"
  build package-nvd tprimat_nvd
  pack_wheel tprimat-nvd package-nvd --component gpu
}

# make_sdist: what git has of the last commit, and what says without git which one that was.
make_sdist() {
  progress "Packing the sources"
  local name information
  name=tprimat-$(project_version)
  git rev-parse -q --verify HEAD >/dev/null || fail "sources are packed out of a git checkout, and this is none"
  information=$(printf '%s\n' 'Metadata-Version: 2.1' 'Name: tprimat' "Version: $(project_version)" \
    'Summary: Honest LLM training benchmarks' 'License: Apache-2.0' 'Requires-Python: >=3.10')
  git -c tar.umask=0022 archive --format=tar --prefix="$name/" \
    --add-virtual-file="$name/PKG-INFO:$information"$'\n' \
    --add-virtual-file="$name/REVISION:$(git describe --always --abbrev=12 '--match=v[0-9]*' HEAD)"$'\n' HEAD |
    gzip -9n >"$packages/.$name.tar.gz"
  mv "$packages/.$name.tar.gz" "$packages/$name.tar.gz"
}

make_sbom() {
  build_programs
  install_packing
  progress "Listing what the packages contain"
  build/packing/bin/python scripts/package/sbom.py "build/$preset" "$packages"
}

make_sums() {
  local version files
  version=$(project_version)
  files=$(cd "$packages" && find . -maxdepth 1 -type f -name "tprimat*[-_]$version[-.]*" -printf '%P\n' | LC_ALL=C sort)
  [ -n "$files" ] || fail "there is no package of version $version in $packages"
  # shellcheck disable=SC2086
  (cd "$packages" && sha256sum $files >.sums && mv .sums SHA256SUMS)
}

[ $# -gt 0 ] || fail "name what to make: wheel, wheel-nvd, deb, tar, sdist, sbom, sums; see the head of scripts/package.sh"
for kind in "$@"; do
  declare -F "make_${kind//-/_}" >/dev/null || fail "unknown kind '$kind'; see the head of scripts/package.sh"
done
mkdir -p "$packages"
for kind in "$@"; do "make_${kind//-/_}"; done
ls -l "$packages"
