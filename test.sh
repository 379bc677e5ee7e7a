#!/usr/bin/env bash
# Installs what is missing, builds, and passes the tests.
#   ./test.sh            in about 15 minutes on 2 cores from scratch: the optimised program (command line, engine,
#                        ranks), and under the address and undefined-behaviour sanitizers the unit tests of all
#                        modules but train, nn, ops, probe and comm
#   ./test.sh --all      also the engine and short commands under those sanitizers, the engine on emulated GPUs, the
#                        commands of the documentation, and the long stages: Slurm, PyTorch, transformers and
#                        megatron-core beside us (pip installs them into build/python), clang-tidy of what is new,
#                        thread sanitizer, kernels compiled for the GPUs of both vendors (and tested where there is one),
#                        what is carried to a GPU
#   ./test.sh --stage S  one stage alone, as a hosted CI has a job for each: release, asan, tidy, tsan or amd, which --all
#                        consists of; fuzz (longer fuzzing, by libFuzzer); dev (each source and each header alone, without
#                        precompiled headers, warnings are errors); aarch64 (everything compiled for 64-bit Arm, unit
#                        tests in QEMU); packages (builds them with all that they contain, 25 minutes, packs them twice,
#                        and installs them on bare systems, as root); or reproducible (builds them twice and compares)
#   ./test.sh --again    also when nothing changed since the last pass
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
# shellcheck source=scripts/build.sh
source scripts/build.sh
# shellcheck source=scripts/gpu.sh
source scripts/gpu.sh

all=no again=no stage=''
while [ $# -gt 0 ]; do
  case "$1" in
    --all) all=yes ;;
    --again) again=yes ;;
    --stage)
      [[ " release asan tidy tsan amd fuzz dev aarch64 packages reproducible " == *" ${2:-} "* ]] ||
        fail "--stage is one of release, asan, tidy, tsan, amd, fuzz, dev, aarch64, packages, reproducible, not '${2:-}'"
      stage=$2 all=yes again=yes
      shift
      ;;
    *) fail "unknown option $1; see the head of test.sh" ;;
  esac
  shift
done

# A hash of every source file: a pass stays valid until one of them changes.
tree_hash() {
  git ls-files -z --cached --others --exclude-standard | sort -z | xargs -0 sha256sum 2>/dev/null | sha256sum | cut -c1-64
}

stamp=build/passed-$all
install_dependencies
install_dependencies test
hash=$(tree_hash)
if [ "$again" = no ] && [ -f "$stamp" ] && [ "$(head -n 1 "$stamp")" = "$hash" ]; then
  progress "Nothing changed since these tests passed ($(sed -n 2p "$stamp")); ./test.sh --again runs them again"
  sed -n '3,$p' "$stamp"
  exit 0
fi

# ./benchmark.sh may have configured without what tests need.
[ ! -f build/release/build.ninja ] || [ -d build/release/tests ] || configure release

passed=0 failed=0 skipped=0
# test_preset PRESET [CTEST-OPTION...]: runs ctest and counts its tests.
test_preset() {
  local preset=$1 log="build/ctest-$1.log"
  shift
  # Its expressions have at most nine groups. It runs every test where it does not understand one.
  ! ctest --preset "$preset" -N "$@" 2>&1 | grep '^RegularExpression::compile' >&2 ||
    fail "ctest does not understand which tests to run: $*"
  progress "Testing $preset${*:+ ($*)}"
  ctest --preset "$preset" -j "$(nproc)" "$@" >"$log" 2>&1 || true
  local line
  line=$(grep -E '^[0-9]+% tests passed' "$log") || { tail -n 40 "$log" >&2; fail "ctest did not finish; see $log"; }
  local bad total unrun
  unrun=$(grep -cE '^ *[0-9]+/[0-9]+ .*\*\*\*Skipped' "$log") || true
  bad=$(sed -E 's/.*, ([0-9]+) tests? failed out of.*/\1/' <<<"$line")
  total=$(sed -E 's/.*out of ([0-9]+)$/\1/' <<<"$line")
  passed=$((passed + total - bad - unrun)) failed=$((failed + bad)) skipped=$((skipped + unrun))
  [ "$bad" -eq 0 ] || { grep -vE '^ *[0-9]+/[0-9]+ .* Passed |^ +Start +[0-9]+: ' "$log" | tail -n 150 >&2; }
  printf '%s: %s\n' "$preset" "$line"
  [ "$unrun" -eq 0 ] || sed -n '/did not run:/,/^$/p' "$log" | grep Skipped
}

# ahead_of_tests COMMAND...: builds for a later stage beside the tests of this one, with what tests that wait leave of the
# processors. A stage that runs alone has no later one.
ahead=''
ahead_of_tests() {
  [ -z "$stage" ] || return 0
  (renice -n 19 $BASHPID >/dev/null && "$@") </dev/null 2>build/ahead.log &
  ahead=$!
}
# Whatever went wrong there is said when the stage itself builds.
join_ahead() { [ -z "$ahead" ] || wait "$ahead" || true; }

# count COMMAND...: as one test, whose output is shown where it fails. Exit status 77: it could not run.
count() {
  local log status=0
  log=$(basename "$1")
  log=build/${log%.*}.log
  "$@" >"$log" 2>&1 || status=$?
  case $status in
    0) passed=$((passed + 1)) ;;
    77) skipped=$((skipped + 1)) && tail -n 1 "$log" ;;
    *) failed=$((failed + 1)) && tail -n 100 "$log" >&2 ;;
  esac
}

trap 'kill $(jobs -p) 2>/dev/null || true' EXIT

# Kernels for AMD's GPUs and what tests them: compiled everywhere, and run where the driver is.
amd_targets="tprimat_amd $([ -e /dev/kfd ] && echo "gpu_tests gpu_engine_tests" || echo gpu_test_objects)"

# What takes minutes and shows little more than its neighbours: the optimised build of --all runs it.
only_in_all='^docs\.commands$|^bench\.device$|^schema\.probes$|^frameworks\.(docs|notebooks|probe)$|^cli\.(output_streams|hostile_scripts)$|^why\.'
emulated_gpus='^layouts\.(tcp\.)?gpu_host|^gpu_(host|module)|^comm\.gpu\.'

# What takes minutes under the sanitizers and only the optimised program shows: what starts many processes, whose
# modules have sanitized tests of their own, more ranks of what few ranks show, and second precisions.
only_optimised=(
  '_NOT_BUILT$' "$only_in_all" '^parity\.' '^launch\.(slurm|kubernetes)$' '^layouts\.(tcp\.)?[48]$' '^layouts\.resume$' '^borders\.'
  '^frameworks\.calls$' '^cli\.(archive|claim|compare|compare_gates|docker|doctor|from_plan|mounted_program|output_stdout)$'
  '^cli\.(plan|planned_launches|published|results_folder|run|run_stops|usage)$' '^gpu_host64\.(EngineOnGpu|GpuEngine)\.'
  '^gpu_host64\.Tiny.*/compact_states' '^gpu_host64\.Tiny.*/fp8_units' '^gpu_host64\.Tiny.*/llama_.*16$'
  '^gpu_host64\.Tiny.*/selective_recompute'
  '^train\.Precisions/FirstGradient\..*/bf16' '^comm\.(mpi|tcp)\.[458]$' '^comm\.gpu\.tcp\.3$'
  '^planner\.PlanValidation\.KeepsItsWord' '^schema\.outputs$'
  '^train\.TrainingTest\.(Bf16Tracks|SameSeed|LossFalls|CompactStates|EmulatedFp8)'
  '^gpu_host64\..*<tprimat::engine::f16>' '^gpu_host64\.GpuAttention\.MatchesReference<tprimat' '^gpu_host\.benchmark$' '^comm\.gpu\.[34]$'
)
threaded_tests="process_tests telemetry_tests data_tests model_files_tests comm_tests"
# What comes after the sanitized tests.
build_long_stages() {
  # shellcheck disable=SC2086
  build tsan $threaded_tests && build amd $amd_targets
}

# Each stage builds what it tests, and is told apart by what it is called in --stage.
stage_release() {
  install_python_packages &  # waits for the network while the compilers work
  local packages=$!
  install_nvcc
  # Kernels for NVIDIA's GPUs are part of this build, which has everything else that they need; their module does not
  # stand beside the program, whose tests are about a machine without it.
  # Of its three architectures only the one that bench/device/check.sh reads; the package is compiled for all.
  configure release -DTPRIMAT_GPU=nvd -DTPRIMAT_GPU_FOLDER=gpu -DTPRIMAT_GPU_ARCHITECTURES_nvd=90a
  build release
  # The sanitizers' builds are clang's, so GCC's warnings of our files count here. (Those that it gives inside its own
  # headers are false alarms of the optimiser, which differ from one processor to the next.)
  ! grep -E "^$PWD/[^ ]*:[0-9]+:[0-9]+: warning: " build/build-release.log >&2 ||
    { echo "error: g++ warns of the lines above; mend them" >&2; failed=$((failed + 1)); }
  wait "$packages" || fail "installing Python packages failed; see build/pip.log"
  ahead_of_tests build asan all sanitized_tests
  TPRIMAT_PYTHON=$PWD/build/python/bin/python test_preset release -E '_NOT_BUILT$'
  progress "Checking what a machine with a GPU would lack"
  count bench/device/check.sh --preset release --build
}

stage_asan() {
  build asan all sanitized_tests
  [ -d "${ROCM_PATH:-/opt/rocm}" ] || install_dependencies amd-check
  ahead_of_tests build_long_stages
  test_preset asan -E "$(IFS='|' && echo "${only_optimised[*]}")"
}

# With the commands of the sanitizers' build, which is clang's.
stage_tidy() {
  build asan tprimat_precompiled tprimat_precompiled_hot tprimat_precompiled_upper
  progress "Looking at sizes, complexity and names (clang-tidy)"
  # Alone: all sources. In --all: what is new, since the others passed before.
  if [ -n "$stage" ]; then count scripts/tidy.py; else count scripts/tidy.py --commits 25; fi
}

stage_tsan() {
  # shellcheck disable=SC2086
  build tsan $threaded_tests
  test_preset tsan -L unit -R '^(process|telemetry)\.|^data\..*(Prefetch|Encode)|^model_files\.Checkpoint|^comm\.(Tcp|FailureDetector|Rendezvous)'
}

stage_amd() {
  [ -d "${ROCM_PATH:-/opt/rocm}" ] || install_dependencies amd-check
  # shellcheck disable=SC2086
  build amd $amd_targets
  [ ! -e /dev/kfd ] || test_preset amd -R '^gpu\.'
}

stage_fuzz() {
  progress "Fuzzing every reader of foreign files"
  count scripts/fuzz.sh 2
}

stage_dev() {
  build dev all sanitized_tests all_verify_interface_header_sets
  test_preset dev -L 'unit|layer'
}

# Alone it takes longer than ./test.sh: no part of --all.
stage_aarch64() {
  install_dependencies aarch64
  scripts/aarch64_root.sh
  build aarch64 tprimat tprimat-train tprimat_mpi emulated_tests
  test_preset aarch64 -L emulated
  local log=build/aarch64/Testing/Temporary/LastTest.log
  grep '^skipped under QEMU: ' "$log" || true
  awk '/^[a-z_]+: [0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/ { passed += $2; failed += $4; skipped += $6 }
    END { printf "in QEMU: %d passed, %d failed, %d skipped\n", passed, failed, skipped }' "$log"
}

stage_packages() {
  local each
  scripts/package.sh wheel deb tar
  progress "Packing twice"
  count python3 tests/release/packages_test.py "$PWD" "$PWD/build/package" --all
  for each in tests/packages/*.sh; do
    [ -x "$each" ] || continue  # what the others source
    progress "Testing packages: $(basename "$each" .sh)"
    count "$each"
  done
}

stage_reproducible() {
  progress "Building packages twice"
  count tests/reproducible/two_builds.sh
}

# The long stages one after the other, each built beside the tests of the one before.
all_stages() {
  local each
  for each in release asan tidy tsan amd; do
    stage_"$each"
    join_ahead
  done
}

short_stages() {
  build release engine_tests
  ahead_of_tests build asan sanitized_tests
  test_preset release -LE 'parity|fuzz|slurm' -E "_NOT_BUILT\$|$only_in_all|$emulated_gpus"
  join_ahead
  build asan sanitized_tests
  test_preset asan -L 'unit|fuzz' -E '_NOT_BUILT$|^(train|nn|ops|probe|comm)\.'
}

if [ -n "$stage" ]; then
  stage_"$stage"
elif [ "$all" = yes ]; then
  all_stages
else
  short_stages
fi

summary="$passed passed, $failed failed, $skipped skipped"
progress "Done"
echo "$summary"
[ "$failed" -eq 0 ] || exit 1
[ -z "$stage" ] || exit 0
{ echo "$hash"; date -u +%Y-%m-%dT%H:%M:%SZ; echo "$summary"; } >"$stamp"
