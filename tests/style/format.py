"""Every C++ source is as clang-format writes it.

    format.py SOURCES CLANG_FORMAT      to mend: git ls-files '*.cpp' '*.h' '*.cu' | xargs clang-format-16 -i
"""

import pathlib
import subprocess
import sys

from sources import list_sources


def main():
    root, program = pathlib.Path(sys.argv[1]), sys.argv[2]
    if program.endswith("NOTFOUND"):
        return print("skipped: no clang-format-16; sudo apt-get install clang-format-16")
    if not (root / ".git").exists():
        return print("skipped: not a git checkout, so there is no list of the sources; clone the repository")
    names = [name for name in list_sources(root, ".cpp", ".h", ".cu") if (root / name).exists()]
    assert len(names) > 1000, f"only {len(names)} sources were found"
    half = (len(names) + 1) // 2
    checks = [subprocess.Popen([program, "--dry-run", "-Werror", "-ferror-limit=1", *part], cwd=root,
                               stderr=subprocess.PIPE, text=True) for part in (names[:half], names[half:])]
    said = "".join(check.communicate()[1] for check in checks)
    wrong = sorted({line.split(":")[0] for line in said.splitlines() if "error: code should be clang-formatted" in line})
    if wrong or any(check.returncode for check in checks):
        sys.exit("not as clang-format writes them: " + " ".join(wrong) + ("" if wrong else said[-2000:]))


main()
