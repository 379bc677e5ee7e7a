"""The border test fails where it should: a source of each group that looks where its group must not, in a copy of the tree.

    try_borders.py SOURCES CMAKE COMPILER BUILD
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

# (source, what is added to it, what the check or the compiler says)
CROSSINGS = [
    ("suite/run/run.cpp", '#include "nn/block.h"', "not nn:"),
    ("suite/run/run.cpp", '#include "report/report.h"', "not report:"),
    ("results/compare/verdict.cpp", '#include "train/engine.h"', "not train:"),
    ("results/compare/verdict.cpp", '#include "config/load.h"', "not config:"),
    ("core/stats/descriptive.cpp", '# include "planner/machine.h"', "not planner:"),
    ("core/spec/model_spec.cpp", '  #include "result/run_result.h"', "not result:"),
    ("core/text/yaml.cpp", "#include <spec/model_spec.h>", "stands between quotes"),
    ("engine/nn/block.cpp", '#include "launch/frameworks.h"', "module nn may include"),
    ("logs/extract/read_log.cpp", '#include "planner/machine.h"', "module extract may include"),
    ("planner/planner/search.cpp", '#include "extract/read_log.h"', "module planner may include"),
    ("cli/run_verb.cpp", '#include "train/engine.h"', "module cli may include"),
    ("suite/run/run.cpp", "namespace tprimat::engine {}", "are in namespace tprimat::suite"),
    ("core/stats/descriptive.cpp", "namespace tprimat::logs {}", "are in namespace tprimat:"),
]

# A module of a group that depends on one it must not see does not configure.
LINKS = [
    ("suite/run", "nn", "group suite does not use engine"),
    ("results/compare", "config", "group results does not use suite"),
    ("logs/extract", "published", "which is not declared before it"),
    ("core/text", "device", "which is not declared before it"),
    ("cli", "train", "group cli does not use engine"),
]


def deps_of(folder):
    text = (folder / "CMakeLists.txt").read_text(encoding="utf-8")
    name = re.search(r"tprimat_module\((\w+)", text)[1]
    return name, re.search(r"\s+DEPS ([\w\s]+?)(?:\n  [A-Z]|\))", text)[1].split() if "DEPS" in text else []


def check_layer(cmake, sources, folder):
    name, deps = deps_of(folder)
    group = folder.relative_to(sources / "src").parts[0]
    return subprocess.run(
        [cmake, f"-DDIR={folder}", f"-DNAME={name}", f"-DGROUP={group}", f"-DALLOWED={';'.join([name, *deps])}", "-P",
         sources / "cmake/CheckLayer.cmake"], capture_output=True, text=True)


def try_includes(cmake, tree):
    for path, line, expected in CROSSINGS:
        source = tree / "src" / path
        folder = source.parent
        before = check_layer(cmake, tree, folder)
        assert before.returncode == 0, f"{path} as it is: {before.stderr}"
        text = source.read_text(encoding="utf-8")
        source.write_text(line + "\n" + text, encoding="utf-8")
        after = check_layer(cmake, tree, folder)
        source.write_text(text, encoding="utf-8")
        said = " ".join(after.stderr.split())
        assert after.returncode != 0 and expected in said, f"{path} with {line}: {said or 'passes'}"


def try_compiler(compiler, build):
    """The include roots with which the build compiles the suite do not lead to a header of the engine."""
    commands = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    command = next(entry["command"] for entry in commands if "/suite/run/" in entry["file"])
    roots = re.findall(r"-I\S+", command)
    assert len(roots) >= 4, command
    for header, found in (("launch/frameworks.h", True), ("nn/block.h", False), ("report/report.h", False)):
        done = subprocess.run([compiler, "-std=c++20", "-fsyntax-only", "-x", "c++", *roots, "-"],
                              input=f'#include "{header}"\n', capture_output=True, text=True)
        assert (done.returncode == 0) == found, f"{header} in the suite: {done.stderr[:300]}"


def try_links(cmake, tree, folder):
    for path, dep, expected in LINKS:
        listing = tree / "src" / path / "CMakeLists.txt"
        text = listing.read_text(encoding="utf-8")
        listing.write_text(text.replace("\n  DEPS ", f"\n  DEPS {dep} ", 1), encoding="utf-8")
        done = subprocess.run([cmake, "-S", tree, "-B", folder, "-G", "Ninja"], capture_output=True, text=True)
        listing.write_text(text, encoding="utf-8")
        said = " ".join(done.stderr.split())
        assert done.returncode != 0 and expected in said, f"{path} with {dep}: {'exit status ' + str(done.returncode)}, {said[-300:]}"


def main():
    sources, cmake, compiler, build = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3], pathlib.Path(sys.argv[4])
    with tempfile.TemporaryDirectory() as scratch:
        tree = pathlib.Path(scratch) / "tree"
        tree.mkdir()
        for name in ("src", "cmake", "configs", "data", "frameworks", "python", "CMakeLists.txt"):
            copy = shutil.copytree if (sources / name).is_dir() else shutil.copy
            copy(sources / name, tree / name)
        for name in ("tests", "bench"):  # not what is tried
            (tree / name).mkdir()
            (tree / name / "CMakeLists.txt").touch()
        try_includes(cmake, tree)
        try_compiler(compiler, build)
        try_links(cmake, tree, pathlib.Path(scratch) / "build")


main()
