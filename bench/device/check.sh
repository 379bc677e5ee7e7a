#!/usr/bin/env bash
# Says, without a GPU, what the bundle and the calls of native.sh would lack on a machine that has one.
#   bench/device/check.sh [FOLDER]      FOLDER/programs.tar.xz (build/carried)
# --build           builds and packs first where that is needed (scripts/build_gpu.sh nvd, bench/device/bundle.sh)
# --preset NAME     the build that is packed (nvd)
# CARRY_LIMIT_MIB   the most that the bundle and the checkout may weigh together (64)
# The status is 0 where nothing is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
exec python3 bench/device/check.py "$@"
