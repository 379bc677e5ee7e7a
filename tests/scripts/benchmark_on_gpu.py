#!/usr/bin/env python3
"""Runs ./benchmark.sh from end to end as on a machine with one GPU, without a configuration.

The GPU is emulated on the processor (tests/emulator), its driver's library is a stand-in (tests/fakes), and so are the programs that
describe it, the compiler of the build (which "builds" by putting the programs of this build in place), and PyTorch. The project's scripts
and both programs are the real ones. Everything lies in a folder that is removed again: what is measured here says nothing of a GPU.

usage: benchmark_on_gpu.py BUILD_DIR SOURCE_DIR
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD, SOURCE = (pathlib.Path(sys.argv[i]).resolve() for i in (1, 2))
GB = 1000**3
SMALL = 5 * GB  # the default then takes its smallest shapes: PyTorch alone takes 2.5 GB, by the planner
# The emulator computes a GPU's threads one after the other: the work is cut down by options that every user has.
STEPS = 6
SHORT = ["--steps", str(STEPS), "--set", "training.data.seq_length=32", "--set", "training.data.global_batch_size=1",
         "--set", "training.data.micro_batch_size=1", "--set", "models.llama.num_layers=1", "--set", "models.qwen.num_layers=1",
         "--set", "models.llama.vocab_size=512", "--set", "models.qwen.vocab_size=512"]

CMAKE = """#!/bin/sh
# --preset P [OPTION...] configures; --build --preset P --target T builds.
echo "$*" >>cmake.log
while [ "$1" != --preset ]; do shift; done
mkdir -p "build/$2" && touch "build/$2/build.ninja"
case "$*" in *--target*) ;; *) exit 0 ;; esac
cp {build}/tprimat {build}/tprimat-train {build}/libtprimat_mpi.so "build/$2" || exit 1
[ "$2" = release ] || cp {build}/libtprimat_gpu_host.so "build/$2/libtprimat_$2.so"
"""
NVIDIA_SMI = """#!/bin/sh
case "$*" in
  -L) echo "GPU 0: NVIDIA Emulated (UUID: GPU-0)" ;;
  *compute_cap*) echo "${FAKE_CAPABILITY:-9.0}" ;;
  *driver_version*) echo 580.65.06 ;;
  *) echo "| NVIDIA-SMI 580.65.06   Driver Version: 580.65.06   CUDA Version: ${FAKE_CUDA:-13.0} |" ;;
esac
"""
ROCM_AGENTS = "#!/bin/sh\nprintf 'gfx000\\n%s\\n' \"${FAKE_GFX:-gfx942}\"\n"
# A virtual environment is a folder with a pip that notes what it should install.
PYTHON = """#!/bin/sh
case "$*" in "-m venv "*) ;; *) exec {python} "$@" ;; esac
nvcc=$3/lib/python3.11/site-packages/nvidia/cu13/bin
mkdir -p "$3/bin" "$nvcc" && touch "$nvcc/nvcc" && printf '#!/bin/sh\\necho "$*" >>pip.log\\n' >"$3/bin/pip" && chmod +x "$3/bin/pip"
"""
INSTALLED = "#!/bin/sh\necho 'install ok installed'\n"
NVCC = "#!/bin/sh\necho 'Cuda compilation tools, release {release}, V{release}.88'\n"


def put(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


class BenchmarkOnGpu(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tprimat_benchmark_"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.root, self.tools, self.home = (self.folder / name for name in ("tprimat", "tools", "home"))
        for name in ("benchmark.sh", "scripts", "dependencies.txt", "cmake/Gpu.cmake"):
            place = self.root / name
            place.parent.mkdir(parents=True, exist_ok=True)
            copy = shutil.copytree if (SOURCE / name).is_dir() else shutil.copy2
            copy(SOURCE / name, place)
        for name, text in (("cmake", CMAKE.format(build=BUILD)), ("dpkg-query", INSTALLED), ("apt-get", "#!/bin/sh\nexit 1\n"),
                           ("python3", PYTHON.format(python=sys.executable))):
            put(self.tools / name, text)
        self.environment = {"PATH": f"{self.tools}:/usr/bin:/bin", "HOME": str(self.home), "LC_ALL": "C.UTF-8", "FAKE_GPU_COUNT": "1",
                            "LD_LIBRARY_PATH": str(self.folder / "lib"), "FAKE_GPU_MEMORY": str(SMALL),
                            "CUDA_HOME": str(self.folder / "cuda"), "ROCM_PATH": str(self.folder / "rocm")}

    def put_nvidia(self, nvcc="13.0"):
        put(self.tools / "nvidia-smi", NVIDIA_SMI)
        if nvcc:
            put(self.folder / "cuda/bin/nvcc", NVCC.format(release=nvcc))
        self.put_driver("libnvidia-ml.so.1", "libfake_nvml.so", "NVIDIA Emulated")

    def put_amd(self):
        put(self.folder / "rocm/bin/rocm_agent_enumerator", ROCM_AGENTS)
        put(self.folder / "rocm/bin/amdclang++", "#!/bin/sh\n")
        self.put_driver("libamd_smi.so", "libfake_amd_smi.so", "AMD Emulated")

    def put_driver(self, name, fake, device):
        (self.folder / "lib").mkdir()
        (self.folder / "lib" / name).symlink_to(BUILD / "tests/fakes" / fake)
        self.environment["FAKE_GPU_NAME"] = device

    # Where frameworks/setup.sh puts PyTorch. The native trainer stands in for its adapter, on the processor: the same losses.
    def put_torch(self, cuda):
        place = self.home / ".local/share/tprimat/frameworks/fsdp"
        packages = place / "lib/python3.11/site-packages"
        (packages / "torch-2.13.0.dist-info").mkdir(parents=True)
        put(packages / "torch/version.py", f"cuda: Optional[str] = {cuda!r}\nhip: Optional[str] = None\n")
        put(place / "bin/python", f'#!/bin/sh\nwhile [ "$1" != --spec ]; do shift; done\nexec {BUILD}/tprimat-train train --spec "$2"\n')

    def benchmark(self, *options, **variables):
        done = subprocess.run(["./benchmark.sh", *options], cwd=self.root, env={**self.environment, **variables}, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=280)
        self.said = f"{done.stdout}\n--- stderr\n{done.stderr}"
        return done

    def result(self, name):
        return json.loads((self.root / "output" / name).read_text())

    def test_an_nvidia_gpu_is_found_built_for_trained_on_beside_pytorch_and_compared(self):
        self.put_nvidia()
        self.put_torch("13.0")
        done = self.benchmark(*SHORT)
        self.assertEqual(done.returncode, 0, self.said)
        self.assertIn("--build --preset nvd --target tprimat", (self.root / "cmake.log").read_text())
        self.assertIn(f"--preset nvd -DTPRIMAT_GPU_COMPILER={self.folder}/cuda/bin/nvcc", (self.root / "cmake.log").read_text())
        self.assertNotIn("release", (self.root / "cmake.log").read_text())
        self.assertIn("the default for 1 x NVIDIA Emulated trains Llama-shaped 10M and Qwen-shaped 10M", done.stderr)
        self.assertIn("and PyTorch FSDP2 (PyTorch 2.13.0, CUDA 13.0) on the same work", done.stderr)
        self.assertIn(f"4 trainings of {STEPS} steps, 1 x 32 tokens each", done.stderr)
        self.assertIn("time unknown: the hardware catalogue has no bf16 peak for NVIDIA Emulated", done.stderr)
        for model in ("llama", "qwen"):
            native = self.result(f"train_nvd_native_{model}.json")
            self.assertEqual((native["status"], native["platform"], len(native["step_times"])), ("complete", "nvd", STEPS), native)
            self.assertIn("Llama-shaped 10M", native["default_choice"][0])
            self.assertEqual(native["training_config"], self.result(f"train_nvd_fsdp_{model}.json")["training_config"])
            # What an emulated device gives can never pass for a GPU's figures.
            self.assertEqual(native["gpu_info"]["device_name"], "kernels on the processor")
            self.assertTrue(any("computed on 'kernels on the processor'" in each for each in native["warnings"]), native["warnings"])
            self.assertNotIn("mfu", native["derived"])
        self.assertRegex(done.stdout, r"nvd +native +llama")
        self.assertRegex(done.stdout, r"nvd +fsdp +qwen")
        self.assertIn("kernels on the processor", done.stdout)
        self.assertRegex(done.stdout, r"\nB / A +[0-9.]+ +")
        self.assertNotIn("not comparable", done.stdout)
        linked = self.root / "build/release/tprimat"
        self.assertEqual(linked.resolve(), self.root / "build/nvd/tprimat")

    def test_an_amd_gpu_trains_alone_where_pytorch_is_for_another_vendor(self):
        self.put_amd()
        self.put_torch("13.0")
        done = self.benchmark(*SHORT, "--model", "llama")
        self.assertEqual(done.returncode, 0, self.said)
        self.assertIn("--build --preset amd --target tprimat", (self.root / "cmake.log").read_text())
        self.assertIn("the default for 1 x AMD Emulated", done.stderr)
        self.assertIn("is not built for ROCm", done.stderr)
        self.assertEqual(self.result("train_amd_native_llama.json")["status"], "complete")
        self.assertFalse((self.root / "output/train_amd_fsdp_llama.json").exists())

    def test_pinned_wheels_build_where_the_machine_has_no_nvcc_or_an_old_one(self):
        for nvcc in (None, "12.4"):
            with self.subTest(nvcc=nvcc):
                if nvcc is None:
                    self.put_nvidia(nvcc)
                else:
                    put(self.folder / "cuda/bin/nvcc", NVCC.format(release=nvcc))
                    shutil.rmtree(self.root / "build")
                    (self.root / "pip.log").unlink()
                done = self.benchmark("--dry-run", "-q")
                self.assertIn("--device nvd", done.stdout, self.said)
                installed = (self.root / "pip.log").read_text()
                for package in ("nvidia-cuda-nvcc==13.0.88", "nvidia-cudnn-cu13==9.13.0.50", "nvidia-cublas==13.0.0.19"):
                    self.assertIn(package, installed)
                self.assertIn("Installing into build/cuda: nvidia-cuda-nvcc", done.stderr)
                self.assertRegex((self.root / "cmake.log").read_text(), r"-DTPRIMAT_GPU_COMPILER=\S+/build/cuda/lib/python3.11/\S+/nvcc")

    def test_a_gpu_that_no_module_serves_is_refused_before_anything_is_built(self):
        self.put_nvidia()
        for variables, part in (({"FAKE_CUDA": "12.4"}, "supports CUDA 12, but trainings need CUDA 13"),
                                ({"FAKE_CAPABILITY": "7.5"}, "compute capability 7.5")):
            done = self.benchmark(**variables)
            self.assertEqual(done.returncode, 1, self.said)
            self.assertIn(part, done.stderr)
            self.assertIn("./benchmark.sh --platform cpu", done.stderr)
        (self.tools / "nvidia-smi").unlink()
        shutil.rmtree(self.folder / "lib")
        self.put_amd()
        done = self.benchmark(FAKE_GFX="gfx1036")
        self.assertEqual(done.returncode, 1, self.said)
        self.assertIn("the AMD GPU gfx1036 is none of gfx90a gfx942", done.stderr)
        (self.folder / "rocm/bin/amdclang++").unlink()
        done = self.benchmark()
        self.assertEqual(done.returncode, 1, self.said)
        self.assertIn("ROCm's compiler amdclang++ is missing", done.stderr)
        self.assertFalse((self.root / "cmake.log").exists())

    def test_the_processor_is_measured_where_it_is_asked_for(self):
        self.put_nvidia()
        done = self.benchmark("--platform", "cpu", "--dry-run")
        self.assertIn("--preset release --target tprimat", (self.root / "cmake.log").read_text())
        self.assertNotIn("nvd", (self.root / "cmake.log").read_text())
        self.assertIn("Llama-shaped 10M", done.stdout, self.said)
        self.assertNotIn("--device nvd", done.stdout)

    def test_a_broken_driver_is_not_passed_over_in_silence(self):
        put(self.tools / "nvidia-smi", "#!/bin/sh\necho \"NVIDIA-SMI has failed because it couldn't communicate with the driver.\"\nexit 9\n")
        done = self.benchmark("--dry-run")
        self.assertIn("NVIDIA's driver is installed, but nvidia-smi lists no GPU, so the processor is measured", done.stderr)
        self.assertIn("on cpu", done.stdout)

    def test_without_a_gpu_nothing_changes(self):
        done = self.benchmark("--dry-run")
        self.assertEqual((self.root / "cmake.log").read_text().splitlines()[-1].split(" --")[1:], ["preset release", "target tprimat"])
        self.assertNotIn("default for", self.said)
        self.assertNotIn("--device nvd", done.stdout)

    def test_a_configuration_is_trained_as_it_stands_by_the_native_trainer(self):
        self.put_nvidia()
        self.put_torch("13.0")
        (self.root / "config.yaml").write_text(
            "hardware: {platforms: {nvidia: {gpu_model: H100, num_gpus: 1, framework: fsdp}}}\n"
            "models: {llama: {name: llama3.2_1b}}\ntraining: {data: {seq_length: 128}}\n")
        done = self.benchmark("--dry-run")
        self.assertIn("native llama on nvd", done.stdout, self.said)
        self.assertNotIn("fsdp llama", done.stdout)
        self.assertNotIn("default for", self.said)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
