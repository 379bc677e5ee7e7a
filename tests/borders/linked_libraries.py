"""tprimat is linked with nothing that only the trainer needs: no oneDNN, no OpenMP, no MPI, no GPU library.

    linked_libraries.py PROGRAM
"""

import pathlib
import re
import subprocess
import sys

FOREIGN = re.compile(r"dnnl|gomp|libomp|mpi|libcuda|cublas|cudnn|nccl|amdhip|hipblas|rccl|sentencepiece")


def loaded(program):
    """Every library that the dynamic linker loads for the program, its libraries' own among them."""
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    return re.findall(r"^\s*(\S+\.so\S*)", listed, re.MULTILINE)


def count_lines(program, text):
    return int(subprocess.run(["grep", "-ac", text, program], capture_output=True, text=True).stdout)


def main():
    program = sys.argv[1]
    if not pathlib.Path(program).is_file():
        sys.exit(f"{program} is not built: cmake --build {pathlib.Path(program).parent} --target tprimat")
    libraries = loaded(program)
    assert any(library.startswith("libc.") for library in libraries), f"ldd lists nothing for {program}: {libraries}"
    foreign = [library for library in libraries if FOREIGN.search(library)]
    assert not foreign, f"{program} loads {', '.join(foreign)}, which only the trainer needs"
    assert count_lines(program, "N7tprimat5suite") > 0, "the program has no names of the suite: nothing was checked"
    assert count_lines(program, "N7tprimat6engine") == 0, f"{program} holds code of the engine"


main()
