#!/usr/bin/env bash
# Builds both programs and the GPU module for trainings on GPUs, in build/nvd or build/amd; see docs/gpu.md.
#   scripts/build_gpu.sh nvd|amd [TARGET...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/build.sh
source scripts/build.sh

case "${1:-}" in
  nvd) install_dependencies && install_nvcc ;;
  amd) install_dependencies ;;
  *) fail "for which GPUs: scripts/build_gpu.sh nvd, or scripts/build_gpu.sh amd" ;;
esac
# Where there is a GPU to train on and PyTorch has not brought them.
if [ "$1" = nvd ] && [ -e /dev/nvidiactl ] &&
  ! python3 -c 'import importlib.util as u, sys; sys.exit(u.find_spec("torch") is None)' 2>/dev/null; then
  install_wheels cuda-libraries
fi
build "$@"
