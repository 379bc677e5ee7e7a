#!/usr/bin/env bash
# Makes what users install, in build/packages, out of the static build of the preset `package`.
#   scripts/package.sh KIND...
# Kinds:
#   wheel      what `pip install tprimat` installs: the programs and the Python package
#   wheel-nvd  what `pip install tprimat[nvd]` adds: the module for NVIDIA GPUs (tprimat-nvd)
#   deb    a package for Debian 12, Ubuntu 22.04 and later
#   tar    the same files for any place: tprimat-VERSION-linux-ARCHITECTURE.tar.gz and .tar.zst
# The same sources give the same bytes: files bear the time of the last commit, or SOURCE_DATE_EPOCH.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/build.sh
source scripts/build.sh

packages=$PWD/build/packages
preset=${TPRIMAT_PACKAGE_PRESET:-package}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH

version() { sed -n 's/^project(tprimat VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt; }

build_programs() {
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
  name=tprimat-$(version)-linux-$(uname -m)
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
  rm -f "$packages/${name//-/_}-$(version)"-*.whl
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

[ $# -gt 0 ] || fail "name what to make: wheel, wheel-nvd, deb, tar; see the head of scripts/package.sh"
for kind in "$@"; do
  declare -F "make_${kind//-/_}" >/dev/null || fail "unknown kind '$kind'; see the head of scripts/package.sh"
done
mkdir -p "$packages"
for kind in "$@"; do "make_${kind//-/_}"; done
ls -l "$packages"
