#!/usr/bin/env bash
# Installs what is missing, builds, trains the configured models with the native trainer on this machine and prints their figures.
#   ./benchmark.sh [options of `tprimat run`]      e.g. ./benchmark.sh --steps 100 --model llama
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
# shellcheck source=scripts/build.sh
source scripts/build.sh

install_dependencies
build release tprimat

status=0
build/release/tprimat run --framework native "$@" || status=$?
build/release/tprimat compare || { compared=$?; [ "$status" -ne 0 ] || status=$compared; }
exit "$status"
