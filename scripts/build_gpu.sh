#!/usr/bin/env bash
# Builds both programs and the GPU module for trainings on GPUs, in build/nvd or build/amd; see docs/gpu.md.
#   scripts/build_gpu.sh nvd|amd [TARGET...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/build.sh
source scripts/build.sh
# shellcheck source=scripts/gpu.sh
source scripts/gpu.sh

case "${1:-}" in
  nvd | amd) build_for_gpus "$@" ;;
  *) fail "for which GPUs: scripts/build_gpu.sh nvd, or scripts/build_gpu.sh amd" ;;
esac
