#!/usr/bin/env python3
"""Says, without a GPU, what the bundle and the calls of native.sh would lack on a machine that has one; see check.sh."""

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
            with tarfile.open(archive) as packed:
                packed.extractall(folder)
        except FileNotFoundError:
            self.trouble = f"{archive} is not there"
        except (OSError, tarfile.TarError, EOFError) as failure:
            self.trouble = f"{archive} cannot be unpacked: {failure}"
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
    on = cache.get("TPRIMAT_CUDNN", "ON").upper() in ("ON", "1", "TRUE", "YES")
    yield judge(on and not absent, "headers",
                f"{', '.join(absent)} not found by {build}" if absent else f"cuDNN is {'on' if on else 'off'} in {build}",
                "scripts/build_gpu.sh nvd brings them; configure with -DTPRIMAT_CUDNN=ON")


def check_cudnn(bundle, build):
    """In the module and in the tests, which hold the same kernels."""
    for name in ("libtprimat_nvd.so", *bundled.PROGRAMS[1:]):
        path = bundle.folder / name
        if path.is_file():
            with_cudnn = CUDNN in path.read_bytes()
            yield judge(with_cudnn, "cuDNN", f"{name} is built {'with' if with_cudnn else 'without'} attention of cuDNN",
                        "scripts/build_gpu.sh nvd, then bench/device/bundle.sh")


def check_bundle(bundle, build):
    what = bundle.trouble or (f"{', '.join(bundle.missing)} is not in {bundle.archive}" if bundle.missing else
                              f"{bundle.archive} holds {', '.join(bundled.PROGRAMS)} and their module")
    yield judge(not bundle.trouble and not bundle.missing, "bundle", what, PACK)


def check_revision(bundle, build):
    here, packed = revision.revision_of(), bundle.folder / "revision"
    there = packed.read_text().strip() if packed.is_file() else "an unknown one"
    same = here == there
    yield judge(same, "revision", f"the bundle's is {there}" + ("" if same else f", that of the sources {here}"), PACK)


def check_libraries(bundle, build):
    if bundle.files is None:
        yield Verdict("not checked", "libraries", "there is no readelf", "sudo apt-get install binutils")
        return
    absent = bundled.missing_libraries(bundle.folder, bundle.files)
    told = ", ".join(f"{name} (for {user})" for name, user in absent.items())
    yield judge(not absent, "libraries", f"not in the bundle: {told}" if absent else
                f"{len(bundle.files)} files need each other and glibc alone", PACK)


def check_versions(bundle, build):
    if not bundle.files:
        return
    yield Verdict("ok", "glibc", f"{bundled.newest_needed(bundle.files, 'GLIBC')} or newer is needed there")
    wanted, offered = (get(bundle.files, "GLIBCXX") for get in (bundled.newest_needed, bundled.newest_offered))
    if wanted:
        good = offered and bundled.version_key(offered) >= bundled.version_key(wanted)
        yield judge(good, "libstdc++", f"{wanted} is needed, the bundle's offers {offered or 'none'}", PACK)


def find_cuobjdump(build):
    nvcc = pathlib.Path(read_cache(build).get("TPRIMAT_GPU_COMPILER", "nvcc"))
    places = os.pathsep.join([os.environ.get("PATH", ""), str(nvcc.parent), "/usr/local/cuda/bin",
                              *map(str, sorted((ROOT / "build/cuda").glob("lib/python3*/site-packages/nvidia/*/bin")))])
    return shutil.which("cuobjdump", path=places)


def check_kernels(bundle, build):
    tool, module = find_cuobjdump(build), bundled.module_of(bundle.folder)
    if not tool or not module.is_file():
        yield Verdict("not checked", "kernels", f"whether {module.name} has code for {ARCHITECTURE}: "
                      + ("it is not in the bundle" if tool else "there is no cuobjdump"),
                      PACK if tool else "install CUDA's package cuda-cuobjdump to check it")
        return
    listed = subprocess.run([tool, "--list-elf", module], capture_output=True, text=True).stdout
    found = sorted(set(re.findall(r"\bsm_\w+", listed)))
    yield judge(ARCHITECTURE in found, "kernels", f"{module.name} has code for {', '.join(found) or 'no GPU'}",
                f"add {ARCHITECTURE.removeprefix('sm_')} to the architectures in cmake/Gpu.cmake")


def check_doctor(bundle, build):
    """The program starts from the bundle alone, and says which libraries of the GPU it finds."""
    command = [bundle.folder / "tprimat", "doctor", "--platform", "nvd", "--json"]
    libraries = ":".join(str(bundle.folder / name) for name in ("lib", "base"))
    done = programs.run(command, bundle.folder / "doctor", 60, {"LD_LIBRARY_PATH": libraries})
    try:
        findings = json.loads(done.output)["findings"]
    except (ValueError, KeyError):
        yield Verdict("missing", "doctor", f"tprimat does not start from the bundle: {done.failure()}", PACK)
        return
    yield Verdict("ok", "doctor", "tprimat starts from the bundle")
    libraries = [each for each in findings if "librar" in each["area"]]
    if not libraries:
        yield Verdict("not checked", "doctor", "tprimat names no libraries of the GPU")
    for each in libraries:  # PyTorch brings them there
        yield Verdict("ok" if each["severity"] == "ok" else "not checked", "doctor", each["what"])


def tracked_files():
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard", "-z"], capture_output=True)
    return [ROOT / os.fsdecode(name) for name in listed.stdout.split(b"\0") if name]


def check_sizes(bundle, build):
    limit = float(os.environ.get("CARRY_LIMIT_MIB", 64))
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
    for path in scripts:
        try:
            foreign = sorted(set(imports_of(path)) - known)
        except SyntaxError as failure:
            yield Verdict("missing", "scripts", f"{path.name} does not compile: {failure}", "mend it")
            continue
        if foreign:
            yield Verdict("missing", "scripts", f"{path.name} imports {', '.join(foreign)}",
                          f"use the standard library, {' and '.join(sorted(BROUGHT))} alone")
    yield Verdict("ok", "scripts", f"{len(scripts)} scripts were read")


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
        what = (f"native.sh {call} would start {len(lines)} programs, and has {len(shlex.join(command))} of "
                f"{COMMAND_LIMIT} characters")
        if done.returncode or not lines:
            what = f"native.sh {call} --dry-run failed: {done.stderr.strip()[-300:]}"
        elif absent:
            what = f"native.sh {call} would start what is not there: {', '.join(absent)}"
        yield judge(not done.returncode and lines and not absent, "calls", what, PACK if absent else "mend it")


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
    except (OSError, tarfile.TarError, EOFError, KeyError):
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
    parser.add_argument("--preset", default="nvd", help="whose build is packed (nvd)")
    options = parser.parse_args()
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
