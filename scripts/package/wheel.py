#!/usr/bin/env python3
"""Packs a wheel out of files that `cmake --install` laid, in a Python environment with the packages of group [wheel].

usage: wheel.py tprimat INSTALLED FOLDER       the Python package of python/ with the programs
       wheel.py tprimat-nvd INSTALLED FOLDER   the module for NVIDIA GPUs alone, and the libraries that it loads

pip lays the files as `cmake --install` does, below the environment's folder. The tag is that of the newest glibc that a file
asks for; more than 2.35 is an error.
"""

import email.message
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
NEWEST_GLIBC = (2, 35)  # Ubuntu 22.04's
# What libtprimat_nvd.so loads (src/engine/device/gpu/libraries.cpp); dependencies.txt has the lowest versions.
LIBRARIES = ["nvidia-cublas", "nvidia-cudnn-cu13", "nvidia-cuda-nvrtc", "nvidia-cuda-runtime", "nvidia-nccl-cu13"]


def call(*words, folder=None):
    done = subprocess.run(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"error: {' '.join(map(str, words[:5]))} failed: {done.stdout.strip()[-2000:]}")
    return done.stdout


def project_version():
    found = re.search(r"^project\(tprimat VERSION ([0-9.]+)", (SOURCE / "CMakeLists.txt").read_text(), re.M)
    return found.group(1)


def needed_glibc(files):
    """(2, 34), the highest version among the symbols that these programs and libraries ask for."""
    versions = {tuple(map(int, version.split(".")))
                for file in files for version in re.findall(r"\bGLIBC_([0-9.]+)", call("objdump", "-T", file))}
    newest = max(versions)
    if newest > NEWEST_GLIBC:
        named = [f"{file.name}: {line.split()[-1]}" for file in files for line in call("objdump", "-T", file).splitlines()
                 if "GLIBC_{}.{}".format(*newest) in line]
        sys.exit("error: symbols of glibc {}.{}, but packages run with {}.{}: ".format(*newest, *NEWEST_GLIBC) + ", ".join(named))
    return newest


def lay(source, place):
    """A file or the files of a folder, with the permissions that pip gives them."""
    for path in [source] if source.is_file() else sorted(each for each in source.rglob("*") if each.is_file()):
        target = place if source.is_file() else place / path.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
        target.chmod(0o755 if os.access(path, os.X_OK) else 0o644)


def lay_programs(installed, tree, name):
    data = tree / f"{name}.data"
    lay(installed / "bin/tprimat", data / "scripts/tprimat")
    lay(installed / "lib/tprimat", data / "data/lib/tprimat")
    for folder in ("man", "bash-completion", "zsh", "fish"):
        lay(installed / "share" / folder, data / "data/share" / folder)
    lay_licences(installed, tree, name)


def lay_licences(installed, tree, name):
    licences = tree / f"{name}.dist-info/licenses"
    lay(SOURCE / "LICENSE", licences / "LICENSE")
    documentation = installed / "share/doc/tprimat"
    for each in ("copyright", "licences"):
        if (documentation / each).exists():
            lay(documentation / each, licences / each)


def metadata_of_module(version):
    lowest = dict(re.findall(r"^(nvidia-[a-z0-9-]+)==([0-9.]+)", (SOURCE / "dependencies.txt").read_text(), re.M))
    fields = email.message.Message()
    for key, value in (("Metadata-Version", "2.1"), ("Name", "tprimat-nvd"), ("Version", version),
                       ("Summary", "The module with which TensorPrimat trains on NVIDIA GPUs"),
                       ("License", "Apache-2.0"), ("Requires-Python", ">=3.10"), ("Requires-Dist", f"tprimat=={version}")):
        fields[key] = value
    for name in LIBRARIES:
        fields["Requires-Dist"] = f"{name}>={lowest[name]},<{int(lowest[name].split('.')[0]) + 1}"
    fields.set_payload("`pip install tprimat[nvd]` installs this package. It needs NVIDIA's driver 580 or later.\n")
    return fields.as_string()


def make_package(installed, tree, version, work):
    """The package of python/ as setuptools builds it, and the programs."""
    shutil.copytree(SOURCE / "python", work / "python", ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"))
    shutil.copy2(SOURCE / "CMakeLists.txt", work)  # which has the version
    call(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-index", "--no-deps", "--no-build-isolation",
         "--wheel-dir", work, work / "python")
    pure = next(work.glob("*.whl"))
    if f"tprimat-{version}-" not in pure.name:
        sys.exit(f"error: python/pyproject.toml made {pure.name}, but CMakeLists.txt has version {version}")
    call(sys.executable, "-m", "wheel", "unpack", "--dest", work / "unpacked", pure)
    shutil.copytree(work / "unpacked" / f"tprimat-{version}", tree, dirs_exist_ok=True)
    metadata = tree / f"tprimat-{version}.dist-info/METADATA"
    header, blank, body = metadata.read_text().partition("\n\n")
    extra = f"\nProvides-Extra: nvd\nRequires-Dist: tprimat-nvd=={version}; extra == \"nvd\""
    metadata.write_text(header.rstrip("\n") + extra + (blank + body if body else "\n"))
    lay_programs(installed, tree, f"tprimat-{version}")


def make_module(installed, tree, version, _):
    name = f"tprimat_nvd-{version}"
    lay(installed / "lib/tprimat/libtprimat_nvd.so", tree / f"{name}.data/data/lib/tprimat/libtprimat_nvd.so")
    lay_licences(installed, tree, name)
    (tree / f"{name}.dist-info/METADATA").write_text(metadata_of_module(version))


def set_tag(tree):
    programs = [path for path in tree.rglob("*") if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]
    machine = os.uname().machine
    tag = "py3-none-manylinux_{}_{}_{}".format(*needed_glibc(programs), machine)
    next(tree.glob("*.dist-info")).joinpath("WHEEL").write_text(
        f"Wheel-Version: 1.0\nGenerator: tprimat\nRoot-Is-Purelib: false\nTag: {tag}\n")


def main():
    if len(sys.argv) != 4 or sys.argv[1] not in ("tprimat", "tprimat-nvd"):
        sys.exit(__doc__)
    installed, folder = pathlib.Path(sys.argv[2]).resolve(), pathlib.Path(sys.argv[3]).resolve()
    version = project_version()
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        tree = work / "tree"
        tree.mkdir()
        make = make_package if sys.argv[1] == "tprimat" else make_module
        make(installed, tree, version, work)
        set_tag(tree)
        for path in tree.rglob("*"):
            path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)
        call(sys.executable, "-m", "wheel", "pack", "--dest-dir", folder, tree)


if __name__ == "__main__":
    main()
