#!/usr/bin/env bash
# Builds, into build/third_party/installed and once, the libraries that packages are linked with and that Debian 12 has no
# static form of, from Debian's source packages (groups [sources-bookworm] and [sources-trixie] of dependencies.txt).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=scripts/build.sh
source scripts/build.sh

folder=$PWD/build/third_party
installed=$folder/installed
mirror=${TPRIMAT_DEBIAN_MIRROR:-http://deb.debian.org}
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
flags="-O2 -DNDEBUG -fPIC -ffunction-sections -fdata-sections -ffile-prefix-map=$folder=."

# apt_of SUITE ARGUMENT...: apt-get with a list of its own, so that the machine's stays as it is.
apt_of() {
  local apt=$folder/apt-$1
  shift
  apt-get -q -o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts=/dev/null \
    -o Dir::State::lists="$apt/lists" -o Dir::Cache="$apt/cache" -o APT::Sandbox::User=root "$@"
}

# update SUITE: the list of its source packages, with its security updates.
update() {
  local apt=$folder/apt-$1
  [ ! -f "$apt/updated" ] || return 0
  mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
  printf 'deb-src [signed-by=%s] %s main\n' "$keyring" "$mirror/debian $1" \
    "$keyring" "$mirror/debian-security $1-security" >"$apt/sources.list"
  apt_of "$1" update >"$folder/apt-$1.log" 2>&1 || fail "apt-get update failed; see $folder/apt-$1.log"
  touch "$apt/updated"
}

# fetch SUITE PACKAGE: into build/third_party/PACKAGE/source. Where Debian's changes to a package cannot be fetched, its
# original sources do: what Debian changes in these is how it builds them.
fetch() {
  local place=$folder/$2 log=$folder/$2.log
  rm -rf "$place" && mkdir -p "$place"
  update "$1"
  (
    cd "$place"
    if apt_of "$1" source "$2" >"$log" 2>&1; then
      mv -- */ source
    else
      rm -rf -- */
      apt_of "$1" source --tar-only --download-only "$2" >>"$log" 2>&1
      mkdir source && tar -C source --strip-components=1 -xf ./*.orig.tar.*
    fi
  ) || fail "the sources of $2 cannot be fetched; see $log"
}

# cmake_target PACKAGE TARGET OPTION...
cmake_target() {
  local source=$folder/$1/source build=$folder/$1/build target=$2
  shift 2
  cmake -G Ninja -S "$source" -B "$build" -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF \
    -DCMAKE_INSTALL_PREFIX="$installed" -DCMAKE_INSTALL_LIBDIR=lib \
    -DCMAKE_C_FLAGS="$flags" -DCMAKE_CXX_FLAGS="$flags" -DCMAKE_C_FLAGS_RELEASE= -DCMAKE_CXX_FLAGS_RELEASE= "$@" &&
    cmake --build "$build" --target "$target"
}

# archive NAME FOLDER OPTION... -- SOURCE...: a library of a few files that needs no configuration.
archive() {
  local name=$1 source=$folder/$2/source options=() file objects=()
  shift 2
  while [ "$1" != -- ]; do options+=("$1"); shift; done
  shift
  for file; do
    # shellcheck disable=SC2086
    g++ $flags "${options[@]}" -c "$source/$file" -o "$source/$(basename "$file").o" || return 1
    objects+=("$source/$(basename "$file").o")
  done
  ar crD "$installed/lib/lib$name.a" "${objects[@]}"
}

build_fmtlib() { archive fmt fmtlib -std=c++17 "-I$folder/fmtlib/source/include" -- src/format.cc src/os.cc; }

build_simdjson() {
  archive simdjson simdjson -std=c++17 -DSIMDJSON_THREADS_ENABLED=1 "-I$folder/simdjson/source/include" \
    "-I$folder/simdjson/source/src" -- src/simdjson.cpp
}

build_highway() {
  archive hwy highway -std=c++17 "-I$folder/highway/source" -- \
    hwy/aligned_allocator.cc hwy/nanobenchmark.cc hwy/per_target.cc hwy/print.cc hwy/targets.cc
}

build_cminpack() {
  local source=$folder/cminpack/source
  # shellcheck disable=SC2046
  archive cminpack cminpack -xc -std=gnu99 -- $(cd "$source" && find . -maxdepth 1 -name '*.c' ! -name '*_.c' | sort)
}

# SentencePiece with the protobuf that its sources bring; Debian builds it shared alone.
build_sentencepiece() {
  sed -i 's/add_library(sentencepiece SHARED/add_library(sentencepiece STATIC/' "$folder/sentencepiece/source/src/CMakeLists.txt"
  cmake_target sentencepiece sentencepiece -DSPM_ENABLE_SHARED=ON -DSPM_ENABLE_TCMALLOC=OFF &&
    cp "$folder/sentencepiece/build/src/libsentencepiece.a" "$installed/lib/"
}

# Tar with gzip and zstd, and zip: what archives of results and workbooks are.
build_libarchive() {
  local off=() option
  for option in MBEDTLS NETTLE OPENSSL LIBB2 LZ4 LZO LZMA BZip2 LIBXML2 EXPAT PCREPOSIX LIBGCC CNG TAR CPIO CAT XATTR ACL TEST; do
    off+=("-DENABLE_$option=OFF")
  done
  # glibc 2.36 has a function of the name of one of its own; packages run with older ones too.
  sed -i 's/\barc4random/archive_arc4random/g' "$folder/libarchive/source/libarchive/archive_random.c"
  cmake_target libarchive archive_static "${off[@]}" &&
    cp "$folder/libarchive/build/libarchive/libarchive.a" "$installed/lib/"
}

# Matrix products and what orders their operands, for processors. Nothing else is compiled: two fifths of its files.
build_onednn() {
  local source=$folder/onednn/source unused
  unused='conv_|convolution[.]|jit_[a-z0-9_]*conv[^e]|pool|_norm|normalization[.]|lrn[.]|softmax[.]|shuffle|resampling|prelu|'
  unused+='reduction|inner_product[.]|inner_product_int8|/rnn/|sparse_matmul|jit_uni_eltwise[.]|jit_uni_eltwise_int|xf16_sum|'
  unused+='brgemm/capi|brgemm_inner'
  sed -i '/find_package(spdlog/d' "$source/src/CMakeLists.txt"  # of its logging, which is off
  for file in cpu cpu/x64; do
    sed -i "s#^set(OBJ_LIB #set(LISTS \${SOURCES})\nlist(FILTER LISTS INCLUDE REGEX \"_list\\\\\\\\.cpp\$\")\nlist(FILTER SOURCES EXCLUDE REGEX \"$unused\")\nlist(APPEND SOURCES \${LISTS})\nlist(REMOVE_DUPLICATES SOURCES)\n&#" "$source/src/$file/CMakeLists.txt"
  done
  cmake_target onednn install -DONEDNN_LIBRARY_TYPE=STATIC -DONEDNN_BUILD_GRAPH=OFF -DONEDNN_BUILD_DOC=OFF \
    -DONEDNN_BUILD_EXAMPLES=OFF -DONEDNN_BUILD_TESTS=OFF "-DONEDNN_ENABLE_PRIMITIVE=MATMUL;REORDER" \
    -DONEDNN_ARCH_OPT_FLAGS= -DONEDNN_ENABLE_JIT_PROFILING=OFF -DONEDNN_ENABLE_ITT_TASKS=OFF
}

# build_once SUITE PACKAGE: again where the way to build it changed.
build_once() {
  local suite=$1 package=$2 stamp=$folder/$2.built wanted
  wanted="$suite $flags $(declare -f "build_$package")"
  [ "$wanted" != "$(cat "$stamp" 2>/dev/null)" ] || return 0
  progress "Building $package of Debian's $suite"
  fetch "$suite" "$package"
  "build_$package" >>"$folder/$package.log" 2>&1 || { tail -n 40 "$folder/$package.log" >&2; fail "building $package failed; see $folder/$package.log"; }
  sed -n 's/^Version: //p' "$folder/$package"/*.dsc | head -n 1 >"$folder/$package.version"
  echo "$wanted" >"$stamp"
}

[ -f "$keyring" ] || fail "packages are built on Debian 12: $keyring is missing"
mkdir -p "$installed/lib"
for suite in bookworm trixie; do
  for package in $(listed "sources-$suite"); do build_once "$suite" "$package"; done
done
