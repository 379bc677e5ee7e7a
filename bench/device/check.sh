#!/usr/bin/env bash
# Checks without a GPU that the bundle and all calls of native.sh are complete.
#   bench/device/check.sh [FOLDER]      FOLDER/programs.tar.xz (build/carried)
# --build           builds and packs first where that is needed (scripts/build_gpu.sh nvd, bench/device/bundle.sh)
# --preset NAME     preset of the build to check and pack (nvd)
# CARRY_LIMIT_MIB   the most that the bundle and the checkout may weigh together (64)
# The status is 0 where nothing is missing, 1 where something is, 2 for wrong input.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
exec python3 bench/device/check.py "$@"
