"""Builds what pip and `python -m build` ask for (pyproject.toml): the wheel and the source distribution of scripts/package.sh."""

import pathlib
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent


def make(kind, pattern, folder):
    with tempfile.TemporaryDirectory(dir=folder) as place:
        done = subprocess.run([SOURCE / "scripts/package.sh", "--into", place, kind], stdout=sys.stderr, check=False)
        if done.returncode != 0:
            raise SystemExit(f"error: scripts/package.sh {kind} ended with {done.returncode}; its last lines say why")
        made = next(pathlib.Path(place).glob(pattern))
        return made.rename(pathlib.Path(folder) / made.name).name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):  # noqa: ARG001  (names are PEP 517's)
    return make("wheel", "tprimat-*.whl", wheel_directory)


def build_sdist(sdist_directory, config_settings=None):  # noqa: ARG001
    return make("sdist", "tprimat-*.tar.gz", sdist_directory)
