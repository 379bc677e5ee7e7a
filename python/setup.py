"""The package's version, from the one place where it stands: project(tprimat VERSION ...) of CMakeLists.txt."""

import pathlib
import re

from setuptools import setup

DECLARATION = (pathlib.Path(__file__).resolve().parent.parent / "CMakeLists.txt").read_text(encoding="utf-8")

setup(version=re.search(r"^project\(tprimat VERSION ([0-9.]+)", DECLARATION, re.M).group(1))
