"""Every comparison runs under the Python that TPRIMAT_PYTHON names, which has the packages of requirements.txt."""

import importlib.util
import os
import sys

SKIPPED = 77  # exit status


def use_chosen_python():
    chosen = os.environ.pop("TPRIMAT_PYTHON", None)
    if chosen:
        os.execv(chosen, [chosen, *sys.argv])


def missing_packages(*packages):
    return [name for name in packages if importlib.util.find_spec(name) is None]


def lacks(*packages):
    """Whether this Python lacks any of them, and then says which and how to get them."""
    missing = missing_packages(*packages)
    if missing:
        print(f"skipped: {sys.executable} has no {', '.join(missing)}: "
              "pip install -r tests/parity/requirements.txt, or name another in TPRIMAT_PYTHON")
    return bool(missing)
