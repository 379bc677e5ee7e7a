#!/usr/bin/env bash
# Installs what is missing, builds, trains the configured models on this machine's GPUs, else on its processor, and
# prints their figures. The native trainer trains; on GPUs without a configuration so does PyTorch, where it is installed.
#   ./benchmark.sh [options of `tprimat run`]      e.g. ./benchmark.sh --steps 100 --model llama
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
# shellcheck source=scripts/build.sh
source scripts/build.sh
# shellcheck source=scripts/gpu.sh
source scripts/gpu.sh

# option_of NAME ARGUMENT...: the value of --NAME among the arguments; the last one counts.
option_of() {
  local name=$1 value=
  shift
  while [ $# -gt 0 ]; do
    case "$1" in
      "--$name") value=${2:-} ;;
      "--$name="*) value=${1#*=} ;;
    esac
    shift
  done
  echo "$value"
}

# build/release/tprimat is the program that the documentation names; a build of its own stays.
link_program() {
  mkdir -p build/release
  [ -e build/release/tprimat ] || ln -sf "../$1/tprimat" build/release/tprimat
}

asked=$(option_of platform "$@")
platform=$(gpu_platform)
[ "$platform" != cpu ] || [ "$asked" = cpu ] || explain_no_gpu
[ -z "$asked" ] || [ "$asked" = auto ] || [ "$asked" = "$platform" ] || platform=cpu
options=(--framework native)
if [ "$platform" = cpu ]; then
  program=build/release/tprimat
  install_dependencies
  build release tprimat
else
  program=build/$platform/tprimat
  progress "This machine has a GPU, so this builds $program; ./benchmark.sh --platform cpu measures the processor instead"
  require_usable_gpus "$platform"
  build_for_gpus "$platform" tprimat
  link_program "$platform"
  if [ ! -f config.yaml ] && [ -z "$(option_of config "$@")" ]; then  # tprimat's own default for these GPUs
    options=()
    [ -n "$asked" ] || options=(--platform "$platform")
  fi
fi

status=0
"$program" run "${options[@]}" "$@" || status=$?
"$program" compare || { compared=$?; [ "$status" -ne 0 ] || status=$compared; }
exit "$status"
