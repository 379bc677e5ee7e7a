#!/usr/bin/env bash
# Packs what native.sh needs for a machine that has a GPU and glibc, but neither our libraries nor a way to install them:
# the programs, their GPU module, the GPU's tests and every shared library that they load, without glibc itself.
#   bench/device/bundle.sh [FOLDER]      FOLDER/programs.tar.xz (build/carried)
# Built where glibc is the oldest (Debian 12), it runs on that and on newer ones. native.sh unpacks it by itself;
# check.sh checks that it is complete.
# PRESET    whose build is packed (nvd)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
preset=${PRESET:-nvd} folder=${1:-build/carried}
targets=(tprimat tprimat-train gpu_tests gpu_engine_tests)
[ -f "build/$preset/build.ninja" ] || cmake --preset "$preset" >/dev/null
cmake --build --preset "$preset" --target "${targets[@]}" tprimat_nvd

staged=$(mktemp -d)
trap 'rm -rf "$staged"' EXIT
mkdir "$staged/lib" "$staged/base"
find_built() {
  find "build/$preset" -name "$1" -type f -not -path '*/CMakeFiles/*' -print -quit
}
for name in "${targets[@]}" libtprimat_nvd.so; do
  file=$(find_built "$name")
  [ -n "$file" ] || { echo "error: the build left no $name" >&2; exit 1; }
  cp "$file" "$staged/"
  strip --strip-unneeded "$staged/$name"
done
# glibc stays behind. What every compiler brings lies apart: a machine's own is newer, and its other libraries want that.
{ ldd "$staged"/* 2>/dev/null || true; } | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u | while read -r library; do
  case ${library##*/} in
    libc.so.* | libm.so.* | libpthread.so.* | libdl.so.* | librt.so.* | libresolv.so.* | ld-linux*) ;;
    libstdc++.so.* | libgcc_s.so.* | libgomp.so.*) cp -L "$library" "$staged/base/" ;;
    *) cp -L "$library" "$staged/lib/" ;;
  esac
done
python3 bench/device/revision.py >"$staged/revision"
mkdir -p "$folder"
# Three files hold the same kernels: a window over all of them saves more than a thorough search, in half the time.
tar -C "$staged" -cf - . | xz --lzma2=preset=1,dict=256MiB >"$folder/programs.tar.xz.new"
mv "$folder/programs.tar.xz.new" "$folder/programs.tar.xz"
du -sh --apparent-size "$staged" | awk '{print $1 " packed as"}'
ls -lh "$folder/programs.tar.xz"
