#!/usr/bin/env python3
"""Checks without a GPU that the bundle and all calls of native.sh are complete; see check.sh."""

import argparse
import ast
import dataclasses
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile

import bundled
import parts
import programs
import provide
import revision

ROOT = revision.ROOT
PACK = "pack it: bench/device/bundle.sh, or check.sh --build"
CUDNN = b"CUDNN_FRONTEND_ATTN_DP_WORKSPACE_LIMIT"  # which only a build with cuDNN's headers names
HEADERS = {"TPRIMAT_NVRTC_HEADERS": "nvrtc.h", "TPRIMAT_CUDNN_HEADERS": "cudnn.h",
           "TPRIMAT_CUDNN_FRONTEND": "cudnn_frontend.h"}
BROUGHT = {"torch", "transformers"}  # packages that Python has there
THERE_ALONE = {"nvidia-smi", "compute-sanitizer"}  # programs that only a machine with a GPU has
ARCHITECTURE = "sm_90a"
COMMAND_LIMIT = 2000  # characters
# What doctor says of the trainer's module itself; the vendor's libraries come with PyTorch, the module does not.
OF_THE_MODULE = re.compile(r"libtprimat_\w+\.so|the trainer's module|another build|the program is version|undefined symbol")


@dataclasses.dataclass
class Verdict:
    word: str  # ok, missing, not checked
    subject: str
    what: str
    remedy: str = ""

    def __str__(self):
        return f"{self.word:12}{self.subject:12}{self.what}" + (f"; {self.remedy}" if self.remedy else "")


def judge(good, subject, what, remedy):
    return Verdict("ok", subject, what) if good else Verdict("missing", subject, what, remedy)


class Bundle:
    """The archive, what it holds, and where that is unpacked."""

    def __init__(self, archive, folder):
        self.archive, self.folder, self.trouble = archive, folder, None
        try:
            provide.extract(archive, folder)
        except FileNotFoundError:
            self.trouble = f"{archive} is missing"
        except provide.BROKEN as failure:
            self.trouble = f"{archive} cannot be unpacked: {provide.describe(failure)}"
        self.files = bundled.read_files(folder) if shutil.which("readelf") else None
        self.missing = [name for name in (*bundled.PROGRAMS, "libtprimat_nvd.so") if not (folder / name).is_file()]


def read_cache(build):
    path = build / "CMakeCache.txt"
    text = path.read_text() if path.is_file() else ""
    return dict(re.findall(r"^(\w+):\w+=(.*)$", text, re.MULTILINE))


def check_headers(bundle, build):
    cache = read_cache(build)
    if not cache:
        yield Verdict("not checked", "headers", f"{build} is not configured", "scripts/build_gpu.sh nvd")
        return
    absent = [header for variable, header in HEADERS.items()
              if not (pathlib.Path(cache.get(variable, "-")) / header).is_file()]
    on = cache.get("TPRIMAT_GPU_CUDNN", "ON").upper() in ("ON", "1", "TRUE", "YES")
    yield judge(on and not absent, "headers",
                f"{', '.join(absent)} not found by {build}" if absent else f"cuDNN is {'on' if on else 'off'} in {build}",
                "scripts/build_gpu.sh nvd brings them; configure with -DTPRIMAT_GPU_CUDNN=ON")


def check_cudnn(bundle, build):
    """In the module and in the tests, which hold the same kernels."""
    for name in ("libtprimat_nvd.so", *bundled.TESTS):
        path = bundle.folder / name
        if path.is_file():
            with_cudnn = CUDNN in path.read_bytes()
            yield judge(with_cudnn, "cuDNN", f"{name} is built {'with' if with_cudnn else 'without'} cuDNN attention",
                        "scripts/build_gpu.sh nvd, then bench/device/bundle.sh")


def check_bundle(bundle, build):
    what = bundle.trouble or (f"{', '.join(bundle.missing)} is not in {bundle.archive}" if bundle.missing else
                              f"{bundle.archive} holds {', '.join(bundled.PROGRAMS)} and their module")
    yield judge(not bundle.trouble and not bundle.missing, "bundle", what, PACK)


def check_revision(bundle, build):
    here, packed = revision.revision_of(), bundle.folder / "revision"
    there = packed.read_text().strip() if packed.is_file() else "an unknown one"
    same = here == there
    yield judge(same, "revision", f"the bundle is built from {there}" + ("" if same else f", the sources are at {here}"),
                "repack with bench/device/bundle.sh or check.sh --build")


def check_libraries(bundle, build):
    if bundle.files is None:
        yield Verdict("not checked", "libraries", "readelf is missing", "sudo apt-get install binutils")
        return
    absent = bundled.missing_libraries(bundle.folder, bundle.files)
    told = ", ".join(f"{name} (for {user})" for name, user in absent.items())
    yield judge(not absent, "libraries", f"not in the bundle: {told}" if absent else
                f"all libraries of {len(bundle.files)} files are in the bundle (glibc excepted)", PACK)


def check_versions(bundle, build):
    if not bundle.files:
        return
    yield Verdict("ok", "glibc", "requires glibc "
                  + f"{bundled.newest_needed(bundle.files, 'GLIBC')} or newer on the GPU machine".removeprefix("GLIBC_"))
    wanted, offered = (get(bundle.files, "GLIBCXX") for get in (bundled.newest_needed, bundled.newest_offered))
    if wanted:
        good = offered and bundled.version_key(offered) >= bundled.version_key(wanted)
        yield judge(good, "libstdc++", f"requires {wanted}; the bundle provides {offered or 'none'}", PACK)


def find_cuobjdump(build):
    nvcc = pathlib.Path(read_cache(build).get("TPRIMAT_GPU_COMPILER", "nvcc"))
    places = os.pathsep.join([os.environ.get("PATH", ""), str(nvcc.parent), "/usr/local/cuda/bin",
                              *map(str, sorted((ROOT / "build/cuda").glob("lib/python3*/site-packages/nvidia/*/bin")))])
    return shutil.which("cuobjdump", path=places)


def check_kernels(bundle, build):
    tool, module = find_cuobjdump(build), bundled.module_of(bundle.folder)
    if not tool or not module.is_file():
        yield Verdict("not checked", "kernels", f"cannot check {module.name} for {ARCHITECTURE} code: "
                      + (f"{module.name} is missing" if tool else "cuobjdump is missing"),
                      PACK if tool else "install CUDA's package cuda-cuobjdump to check it")
        return
    listed = subprocess.run([tool, "--list-elf", module], capture_output=True, text=True).stdout
    found = sorted(set(re.findall(r"\bsm_\w+", listed)))
    yield judge(ARCHITECTURE in found, "kernels", f"{module.name} has code for {', '.join(found) or 'no GPU'}",
                f"add {ARCHITECTURE.removeprefix('sm_')} to the architectures in cmake/Gpu.cmake")


def judge_finding(finding):
    """PyTorch brings the vendor's libraries on the GPU machine; nothing there mends the module."""
    good, what = finding["severity"] == "ok", finding["what"]
    if good or not OF_THE_MODULE.search(what):
        return Verdict("ok" if good else "not checked", "doctor", what)
    return Verdict("missing", "doctor", what, "repack with bench/device/bundle.sh or check.sh --build")


def check_doctor(bundle, build):
    """The program starts from the bundle alone, and says which libraries of the GPU it finds."""
    command = [bundle.folder / "tprimat", "doctor", "--platform", "nvd", "--json"]
    libraries = ":".join(str(bundle.folder / name) for name in ("lib", "base"))
    done = programs.run(command, bundle.folder / "doctor", 20, {"LD_LIBRARY_PATH": libraries})
    try:
        found = json.loads(done.output)
    except ValueError:
        yield Verdict("missing", "doctor", f"tprimat does not start from the bundle: {done.failure()}", PACK)
        return
    if not parts.fits(found, parts.DOCTOR):
        yield Verdict("missing", "doctor", "tprimat doctor printed no findings", PACK)
        return
    yield Verdict("ok", "doctor", "tprimat starts from the bundle")
    some = [each for each in found["findings"] if "librar" in each["area"]
            or each["severity"] != "ok" and OF_THE_MODULE.search(each["what"])]
    yield from map(judge_finding, some)
    if not some:
        yield Verdict("not checked", "doctor", "tprimat doctor lists no GPU libraries")


def carry_limit():
    text = os.environ.get("CARRY_LIMIT_MIB", "64")
    try:
        limit = float(text)
    except ValueError:
        limit = -1
    return limit if 0 < limit < float("inf") else programs.refuse(
        2, f"CARRY_LIMIT_MIB must be a positive number of MiB, not '{text}'")


def tracked_files():
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard", "-z"], capture_output=True)
    return [ROOT / os.fsdecode(name) for name in listed.stdout.split(b"\0") if name]


def check_sizes(bundle, build):
    limit = carry_limit()
    packed = bundle.archive.stat().st_size / 2**20 if bundle.archive.is_file() else 0
    tree = sum(path.stat().st_size for path in tracked_files() if path.is_file()) / 2**20
    yield judge(packed + tree <= limit, "sizes", f"bundle {packed:.1f} MiB, checkout {tree:.1f} MiB, limit {limit:g} MiB",
                "remove untracked files, or pack with a higher preset of xz in bench/device/bundle.sh")


def imports_of(path):
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.split(".")[0]


def check_scripts(bundle, build):
    scripts = [*sorted((ROOT / "bench/device").glob("*.py")), ROOT / "bench/peers/torch_step.py"]
    known = {*sys.stdlib_module_names, *BROUGHT, *(path.stem for path in scripts)}
    good = True
    for path in scripts:
        try:
            foreign = sorted(set(imports_of(path)) - known)
        except SyntaxError as failure:
            verdict = Verdict("missing", "scripts", f"{path.name} does not compile: {failure}", "fix the syntax error")
        else:
            verdict = judge(not foreign, "scripts", f"{path.name} imports {', '.join(foreign)}",
                            "import only the standard library, torch and transformers")
        if verdict.word != "ok":
            good = False
            yield verdict
    if good:
        yield Verdict("ok", "scripts", f"{len(scripts)} scripts import only available packages")


def absent_programs(lines):
    """Those of printed command lines that are not here, nor on machines with a GPU alone."""
    words = [[word for word in shlex.split(line[2:]) if not re.match(r"[A-Z_]+=", word)] for line in lines]
    started = {line[0] for line in words} | {word for line in words for word in line[1:]
                                             if re.search(r"/gpu_\w+$|\.py$", word)}
    return sorted(name for name in started if name not in THERE_ALONE and not shutil.which(name)
                  and not pathlib.Path(name).is_file())


def check_calls(bundle, build):
    for call in parts.CALLS:
        command = ["bench/device/native.sh", call]
        done = subprocess.run([*command, "--dry-run", "--again"], cwd=ROOT, capture_output=True, text=True, timeout=60,
                              env={**os.environ, "PROGRAMS": str(bundle.folder), "PYTHON": sys.executable})
        lines = [line for line in done.stdout.splitlines() if line.startswith("$ ")]
        absent = absent_programs(lines)
        what = (f"native.sh {call} starts {len(lines)} programs; its command is {len(shlex.join(command))} characters "
                f"long (limit {COMMAND_LIMIT})")
        if done.returncode or not lines:
            what = f"native.sh {call} --dry-run failed: {done.stderr.strip()[-300:]}"
        elif absent:
            what = f"native.sh {call} needs programs that are missing: {', '.join(absent)}"
        yield judge(not done.returncode and lines and not absent, "calls", what,
                    PACK if absent else "fix the error above")


CHECKS = (check_headers, check_bundle, check_sizes, check_scripts)
CHECKS_OF_A_BUNDLE = (check_revision, check_cudnn, check_libraries, check_versions, check_kernels, check_doctor,
                      check_calls)


def examine(archive, build):
    """Each verdict as soon as it is known."""
    with tempfile.TemporaryDirectory() as folder:
        bundle = Bundle(archive, pathlib.Path(folder))
        usable = not bundle.trouble and (bundle.folder / "tprimat").is_file()
        for check in (*CHECKS, *(CHECKS_OF_A_BUNDLE if usable else ())):
            try:
                yield from check(bundle, build)
            except (OSError, ValueError, subprocess.SubprocessError) as failure:
                yield Verdict("not checked", check.__name__.removeprefix("check_"), f"{failure}")


def is_current(archive):
    try:
        with tarfile.open(archive) as packed:
            there = packed.extractfile("./revision").read().decode().strip()
    except (*provide.BROKEN, KeyError):
        return False
    return there == revision.revision_of()


def build_bundle(folder, preset):
    if preset == "nvd":
        subprocess.run([ROOT / "scripts/build_gpu.sh", "nvd", *bundled.PROGRAMS], check=True)
    subprocess.run([ROOT / "bench/device/bundle.sh", folder], check=True, env={**os.environ, "PRESET": preset})


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=pathlib.Path, default=pathlib.Path("build/carried"))
    parser.add_argument("--build", action="store_true", help="build and pack first where that is needed")
    parser.add_argument("--preset", default="nvd", help="preset of the build to check and pack (nvd)")
    options = parser.parse_args()
    carry_limit()
    archive, build = options.folder.absolute() / "programs.tar.xz", ROOT / "build" / options.preset
    if options.build and not is_current(archive):
        build_bundle(options.folder, options.preset)
    words = []
    for verdict in examine(archive, build):
        print(verdict, flush=True)
        words.append(verdict.word)
    print(f"{words.count('ok')} ok, {words.count('missing')} missing, {words.count('not checked')} not checked")
    raise SystemExit(1 if "missing" in words else 0)


if __name__ == "__main__":
    main()
