"""Where our programs come from: a folder, the bundle that bundle.sh packed, or a build on this machine."""

import hashlib
import lzma
import os
import pathlib
import shutil
import subprocess
import tarfile
import tempfile
import zlib

import programs

ROOT = programs.HERE.parents[1]
CARRIED = ROOT / "build" / "carried"
BROKEN = (OSError, EOFError, tarfile.TarError, lzma.LZMAError, zlib.error)
BUILD = """{ [ -f build/nvd/build.ninja ] || cmake --preset nvd; } >build/configure-nvd.log 2>&1 &&
cmake --build --preset nvd --target tprimat tprimat-train gpu_tests gpu_engine_tests >build/build-nvd.log 2>&1"""


def describe(failure):
    """In one line: tarfile's sentences list what every method of compression says."""
    return f"{type(failure).__name__}: {str(failure).partition(chr(10))[0].rstrip(':')}"


def extract(archive, folder):
    with tarfile.open(archive) as packed:
        packed.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))


def known_libraries():
    tool = shutil.which("ldconfig", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    return subprocess.run([tool, "-p"], capture_output=True, text=True).stdout if tool else ""


def add_base(folder):
    """The compiler's libraries, where the machine has none: its own are newer, and its other libraries want those."""
    known = known_libraries()
    (folder / "lib").mkdir(exist_ok=True)
    for file in sorted(folder.glob("base/*")):
        if f"{file.name} " not in known:
            shutil.copy2(file, folder / "lib")


def unpack(archive):
    """A folder named by the archive's hash, which is there whole or not at all."""
    try:
        into = archive.parent / f"unpacked_{hashlib.sha256(archive.read_bytes()).hexdigest()[:12]}"
        if into.is_dir():
            return into
        with tempfile.TemporaryDirectory(dir=archive.parent, prefix="unpacking_") as staged:
            made = pathlib.Path(staged) / "made"
            made.mkdir()
            extract(archive, made)
            add_base(made)
            if not into.is_dir():
                made.rename(into)
        return into
    except BROKEN as failure:
        programs.refuse(4, f"{archive} cannot be unpacked: {describe(failure)}; "
                           "pack it again with bench/device/bundle.sh")


def build_here():
    (ROOT / "build").mkdir(exist_ok=True)
    if subprocess.run(["bash", "-c", BUILD], cwd=ROOT).returncode != 0:
        programs.refuse(4, "the build failed; pack the programs on another machine with bench/device/bundle.sh "
                           "(docs/gpu.md); the compiler's messages are in build/configure-nvd.log and build-nvd.log")


def find(asked, dry_run):
    """`asked`: a folder with the programs or their archive; None: the carried bundle, else a build here."""
    if asked is None and not (CARRIED / "programs.tar.xz").is_file():
        if not dry_run:
            build_here()
        return programs.Programs(ROOT / "build" / "nvd")
    folder = pathlib.Path(asked or CARRIED).absolute()
    if (folder / "programs.tar.xz").is_file():
        folder = unpack(folder / "programs.tar.xz")
    if not (folder / "tprimat").is_file():
        programs.refuse(4, f"{folder} holds neither tprimat nor programs.tar.xz; pack it with bench/device/bundle.sh")
    return programs.Programs(folder)
