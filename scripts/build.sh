# Sourced by benchmark.sh and test.sh: installs what is missing, then builds a preset.

# progress SENTENCE: what happens now, and the minutes and seconds since the start.
progress() {
  local bold='' plain=''
  [ ! -t 2 ] || { bold=$'\033[1m'; plain=$'\033[0m'; }
  printf '%s==> %d:%02d %s%s\n' "$bold" $((SECONDS / 60)) $((SECONDS % 60)) "$*" "$plain" >&2
}

fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# The version of the project, where it stands.
project_version() { sed -n 's/^project(tprimat VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt; }

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

# listed [GROUP]: the first words of dependencies.txt's lines above all groups, or below [GROUP].
listed() {
  sed -e 's/#.*//' dependencies.txt |
    awk -v wanted="${1:+[$1]}" '/^\[/ { group = $1; next } NF && group == wanted { print $1 }'
}

instead_of_building="install the finished program, which needs no compiler: the wheel with python3 -m pip install ./tprimat-*.whl, or the Debian package with apt-get install ./tprimat_*.deb (docs/install.md)"

# lowest_version PACKAGE: what dependencies.txt asks for, (>= 3.24) in its reason; else nothing.
lowest_version() { sed -n "s/^$1 .*(>= \([0-9.]*\)).*/\1/p" dependencies.txt; }

# is_too_old PACKAGE VERSION: an unknown version is not.
is_too_old() {
  local lowest
  lowest=$(lowest_version "$1")
  [ -n "$lowest" ] && [ -n "$2" ] && dpkg --compare-versions "$2" lt "$lowest"
}

missing_packages() {
  local package state
  listed "$@" | while read -r package; do
    state=$(dpkg-query -W -f='${Status} ${Version}' "$package" 2>/dev/null) || state=
    [[ "$state" == 'install ok installed'* ]] && ! is_too_old "$package" "$(cut -s -d' ' -f4 <<<"$state")" || echo "$package"
  done
}

# unavailable_packages PACKAGE...: those that this system's apt does not have, or only in a version that is too old.
unavailable_packages() {
  local package candidate
  for package; do
    candidate=$(LC_ALL=C apt-cache policy "$package" 2>/dev/null | sed -n 's/^ *Candidate: *//p')
    if [ -z "$candidate" ] || [ "$candidate" = '(none)' ]; then
      echo "$package"
    elif is_too_old "$package" "$candidate"; then
      echo "$package $(lowest_version "$package") (it has $candidate)"
    fi
  done
}

os_name() { (. "${TPRIMAT_OS_RELEASE:-/etc/os-release}" && echo "$PRETTY_NAME") 2>/dev/null || echo "this system"; }

# Before minutes of downloads: what cannot be had here.
require_available() {
  local lacking
  lacking=$(unavailable_packages "$@" | paste -sd, | sed 's/,/, /g')
  [ -z "$lacking" ] || fail "$(os_name) lacks packages that the build needs: $lacking. Build on Debian 12, Ubuntu 24.04 or later (on Ubuntu with the component universe), or $instead_of_building"
}

# A password can only be asked for on a terminal.
can_be_root() { [ "$(id -u)" -eq 0 ] || { command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; }; }

# install_dependencies [GROUP]
install_dependencies() {
  command -v apt-get >/dev/null || fail "this script installs packages of Debian and Ubuntu, and $(os_name) has no apt-get. Install what dependencies.txt lists, then: cmake --preset release && cmake --build --preset release; or $instead_of_building"
  local packages
  packages=$(missing_packages "$@" | paste -sd' ')
  [ -n "$packages" ] || return 0
  # shellcheck disable=SC2086
  if ! can_be_root; then
    [ -z "$(apt-cache policy cmake 2>/dev/null)" ] || require_available $packages
    fail "$(wc -w <<<"$packages") packages are missing, and to install them takes root or sudo. Ask an administrator to run:
    apt-get update && apt-get install --no-install-recommends $packages
or $instead_of_building"
  fi
  progress "Installing $(wc -w <<<"$packages") packages: $packages"
  as_root apt-get update -qq || fail "apt-get update failed; is the network there?"
  # shellcheck disable=SC2086
  require_available $packages
  # shellcheck disable=SC2086
  DEBIAN_FRONTEND=noninteractive as_root apt-get install -y -qq --no-install-recommends $packages >build/apt.log 2>&1 ||
    fail "apt-get install failed; see build/apt.log"
}

# install_wheels GROUP: Python packages that bring compilers and libraries, not Python, into build/cuda.
install_wheels() {
  local group=$1 wanted
  wanted=$(listed "$group")
  [ "$wanted" != "$(cat "build/cuda/$group.txt" 2>/dev/null)" ] || return 0
  progress "Installing into build/cuda: $(echo $wanted)"
  # shellcheck disable=SC2086
  { python3 -m venv build/cuda && build/cuda/bin/pip install -q --no-deps $wanted; } \
    >build/cuda.log 2>&1 || fail "installing Python packages failed; see build/cuda.log"
  echo "$wanted" >"build/cuda/$group.txt"
}

# The Python packages that tests compare with, in build/python; made again when their list changes.
install_python_packages() {
  local wanted=tests/parity/requirements.txt alone=tests/parity/requirements_alone.txt amdsmi=tests/parity/requirements_amdsmi.txt
  ! cat "$wanted" "$alone" "$amdsmi" | cmp -s - build/python/installed.txt || return 0
  progress "Installing the Python packages of $wanted, $alone and $amdsmi"
  rm -rf build/python
  { python3 -m venv build/python && build/python/bin/pip install -q -r "$wanted" &&
    build/python/bin/pip install -q --no-deps -r "$alone" && install_beside "$amdsmi"; } >build/pip.log 2>&1 ||
    fail "installing Python packages failed; see build/pip.log"
  cat "$wanted" "$alone" "$amdsmi" >build/python/installed.txt
}

# install_beside LIST: versions of one package, each in build/python/<package>-<version>.
install_beside() {
  local package
  for package in $(sed 's/#.*//' "$1"); do
    build/python/bin/pip install -q --no-deps --target "build/python/${package/==/-}" "$package" || return 1
  done
}

# configure PRESET [OPTION...]
configure() {
  progress "Configuring $1"
  cmake --preset "$@" >"build/configure-$1.log" 2>&1 || { cat "build/configure-$1.log" >&2; fail "configuring $1 failed"; }
}

# How far a build is that writes to LOG, every 20 seconds until the process PID ends: tell_progress LOG PID
tell_progress() {
  local log=$1 pid=$2 start=$SECONDS done steps left
  while sleep 20 >/dev/null 2>&1 & wait -n "$pid" $! 2>/dev/null; kill -0 "$pid" 2>/dev/null; do
    read -r done steps <<<"$(grep -oE '^\[[0-9]+/[0-9]+\]' "$log" | tail -n 1 | tr -d '[]' | tr / ' ')"
    [ "${done:-0}" -gt 0 ] || continue
    left=$(((SECONDS - start) * (steps - done) / done))
    progress "$done of $steps steps, about $((left / 60)):$(printf %02d $((left % 60))) left"
  done
}

# build PRESET [TARGET...]
build() {
  local preset=$1 log="build/build-$1.log"
  shift
  [ -f "build/$preset/build.ninja" ] || configure "$preset"
  progress "Building $preset${*:+ ($*)}"
  local command=(cmake --build --preset "$preset" --target "${@:-all}")
  if [ -t 2 ]; then
    "${command[@]}" >&2 || fail "building $preset failed"
    return
  fi
  "${command[@]}" >"$log" 2>&1 &
  local pid=$!
  tell_progress "$log" "$pid"
  wait "$pid" || { tail -n 60 "$log" >&2; fail "building $preset failed"; }
}

mkdir -p build
