"""The configuration as the program itself resolves it: files, environment variables and defaults together."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any


class Settings(dict):
    """A section of the configuration: settings.training.data.seq_length, or settings["training"]["data"]."""

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        raise AttributeError(f"there is no setting '{name}'; there are: {', '.join(map(str, self)) or 'none'}")


def load_config(path: str | os.PathLike[str] | None = None) -> Settings:
    """All settings of the file, else of the ./config.yaml or default that `tprimat` would take. The program is the one
    that TPRIMAT_PROGRAM names, else `tprimat` on the PATH. Throws ValueError with the program's own words."""
    command = [os.environ.get("TPRIMAT_PROGRAM", "tprimat"), "config", "show", "--json"]
    command += ["--config", os.fspath(path)] if path is not None else []
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise ValueError(f"there is no program {command[0]}: name it with TPRIMAT_PROGRAM") from error
    if done.returncode != 0:
        raise ValueError(done.stderr.strip())
    return json.loads(done.stdout, object_hook=Settings).settings
