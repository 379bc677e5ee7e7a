"""What check.py asks of the files in a bundle: which libraries and versions of them they need."""

import re
import subprocess

GLIBC = re.compile(r"^(libc|libm|libpthread|libdl|librt|libresolv)\.so\.|^ld-linux")
TESTS = ("gpu_tests", "gpu_engine_tests")
PROGRAMS = ("tprimat", "tprimat-train", *TESTS)


def module_of(folder):
    return next(iter(sorted(folder.glob("libtprimat_*.so"))), folder / "libtprimat_nvd.so")


def version_key(text):
    return [int(part) for part in re.findall(r"\d+", text)]


def newest(versions):
    return max(versions, key=version_key, default=None)


class Elf:
    """One file: the libraries that it names, versions of symbols that it needs, those that it offers."""

    def __init__(self, path):
        self.path = path
        text = subprocess.run(["readelf", "-dV", path], capture_output=True, text=True, check=True).stdout
        offers, _, needs = text.partition("Version needs section")
        self.needed = re.findall(r"\(NEEDED\)\s+Shared library: \[(.+?)\]", text)
        self.wanted = set(re.findall(r"Name: (GLIBC(?:XX)?_[\d.]+)", needs))
        self.offered = set(re.findall(r"Name: (GLIBC(?:XX)?_[\d.]+)", offers.partition("Version definition")[2]))


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def read_files(folder):
    """Every ELF file of an unpacked bundle."""
    return [Elf(path) for path in sorted(folder.rglob("*")) if path.is_file() and is_elf(path)]


def missing_libraries(folder, files):
    """What is neither in the bundle nor glibc's, with a file that needs it."""
    here = {path.name for path in folder.rglob("*") if path.is_file()}
    return {name: elf.path.name for elf in files for name in elf.needed if name not in here and not GLIBC.match(name)}


def newest_needed(files, kind):
    return newest({name for elf in files for name in elf.wanted if name.startswith(f"{kind}_")})


def newest_offered(files, kind):
    return newest({name for elf in files for name in elf.offered if name.startswith(f"{kind}_")})
