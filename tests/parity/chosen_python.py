"""Every comparison runs under the Python that TPRIMAT_PYTHON names, which has the packages of requirements.txt."""

import os
import sys


def use_chosen_python():
    chosen = os.environ.pop("TPRIMAT_PYTHON", None)
    if chosen:
        os.execv(chosen, [chosen, *sys.argv])
