# Sourced after scripts/build.sh: the GPUs of this machine, and the build that trains on them.

# nvidia_smi [OPTION...]: empty where it is missing, fails or hangs, as it does with a broken driver.
nvidia_smi() {
  timeout 60 nvidia-smi "$@" 2>/dev/null || true
}

# gpu_platform: nvd or amd where their drivers list a GPU, else cpu.
gpu_platform() {
  if grep -q '^GPU ' <<<"$(nvidia_smi -L)"; then
    echo nvd
  elif [ -n "$(amd_architectures)" ]; then
    echo amd
  else
    echo cpu
  fi
}

# Why the processor is measured on a machine that has a GPU's driver, so that no GPU is overlooked in silence.
explain_no_gpu() {
  ! command -v nvidia-smi >/dev/null && [ ! -e /dev/nvidiactl ] ||
    progress "NVIDIA's driver is installed, but nvidia-smi lists no GPU, so the processor is measured"
  [ ! -e /dev/kfd ] ||
    progress "AMD's driver is installed (/dev/kfd), but ROCm's rocm_agent_enumerator lists no GPU, so the processor is measured"
}

# Of AMD's GPUs, by ROCm, one a line: gfx942. A processor is gfx000.
amd_architectures() {
  local lister
  lister=$(command -v rocm_agent_enumerator || echo "${ROCM_PATH:-/opt/rocm}/bin/rocm_agent_enumerator")
  { timeout 60 "$lister" 2>/dev/null || true; } | { grep -E '^gfx[0-9a-f]+$' || true; } | { grep -v '^gfx000$' || true; } | sort -u
}

# The first answer of nvidia-smi to this question; empty where it has none.
ask_nvidia() {
  nvidia_smi --query-gpu="$1" --format=csv,noheader | head -n 1
}

instead="; to measure the processor instead: ./benchmark.sh --platform cpu"

# Before minutes of building, what a module built here could not run on.
require_usable_gpus() {
  local platform=$1 cuda capability architecture compiled
  if [ "$platform" = nvd ]; then
    cuda=$(nvidia_smi | sed -n 's/.*CUDA Version: *\([0-9][0-9]*\).*/\1/p' | head -n 1)
    [ "${cuda:-13}" -ge 13 ] ||
      fail "NVIDIA's driver $(ask_nvidia driver_version) supports CUDA $cuda, but trainings need CUDA 13: install driver 580 or later$instead"
    capability=$(ask_nvidia compute_cap)
    [[ ! "$capability" =~ ^[1-7]\. ]] ||
      fail "this NVIDIA GPU has compute capability $capability, but trainings need 8.0 (Ampere) or later$instead"
    return
  fi
  compiled=$(sed -n 's/^set(TPRIMAT_GPU_ARCHITECTURES_amd \([^)]*\)).*/\1/p' cmake/Gpu.cmake)
  for architecture in $(amd_architectures); do
    [[ " $compiled " != *" $architecture "* ]] || break
    architecture=
  done
  [ -n "$architecture" ] || fail "the AMD GPU $(amd_architectures | tr '\n' ' ')is none of $compiled, for which kernels are compiled$instead"
  [ -x "${ROCM_PATH:-/opt/rocm}/bin/amdclang++" ] || command -v amdclang++ >/dev/null ||
    fail "ROCm's compiler amdclang++ is missing: install ROCm 6 or later (docs/gpu.md)$instead"
}

# nvcc of CUDA 13 or later that the machine brings; else nothing.
machine_nvcc() {
  local nvcc release
  for nvcc in "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" "$(command -v nvcc || true)"; do
    [ -x "$nvcc" ] || continue
    release=$({ "$nvcc" --version 2>/dev/null || true; } | sed -n 's/.*release \([0-9][0-9]*\).*/\1/p')
    [ "${release:-0}" -lt 13 ] || { echo "$nvcc"; return; }
  done
}

# What compiles for NVIDIA's GPUs: the machine's nvcc, else the Python packages of dependencies.txt; and cuDNN's headers.
install_nvcc() {
  [ -n "$(machine_nvcc)" ] || install_wheels nvcc
  install_wheels cudnn
}

# Where there is a GPU to train on and PyTorch has not brought them.
install_cuda_libraries() {
  [ "$(gpu_platform)" = nvd ] || return 0
  python3 -c 'import importlib.util as u, sys; sys.exit(u.find_spec("torch") is None)' 2>/dev/null ||
    install_wheels cuda-libraries
}

# With that very nvcc: CMake on its own takes the first one, however old it is.
configure_nvd() {
  local nvcc
  [ ! -f build/nvd/build.ninja ] || return 0
  nvcc=$(machine_nvcc)
  [ -n "$nvcc" ] ||
    nvcc=$({ find "$PWD"/build/cuda/lib/ -path '*/nvidia/cu13/bin/nvcc' 2>/dev/null || true; } | head -n 1)
  configure nvd ${nvcc:+-DTPRIMAT_GPU_COMPILER="$nvcc"}
}

# build_for_gpus nvd|amd [TARGET...]: into build/nvd or build/amd, with what that needs.
build_for_gpus() {
  install_dependencies
  if [ "$1" = nvd ]; then
    install_nvcc
    install_cuda_libraries
    configure_nvd
  fi
  build "$@"
}
