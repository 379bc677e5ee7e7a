#!/bin/sh
# Installs what the frameworks need above the image's own PyTorch, which stays, and makes the environments in which
# `tprimat run` looks for them.   install_frameworks.sh ID...
set -eu
cd "$(dirname "$0")/../frameworks/requirements"
python=${PYTHON:-python3}
folder=${TPRIMAT_FRAMEWORKS:-/opt/tprimat/frameworks}
wanted=$(for id in "$@"; do cat "$id.txt"; done | sed -e 's/#.*//' | awk 'NF { print $1 }' | grep -vE '^(torch|numpy)==' | sort -u)
# shellcheck disable=SC2086
PIP_CONSTRAINT='' PIP_BREAK_SYSTEM_PACKAGES=1 "$python" -m pip install -q --no-cache-dir $wanted
for id in "$@"; do
  "$python" -m venv --system-site-packages --without-pip "$folder/$id"
  own=$("$folder/$id/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  # The image's Python may be an environment itself; and tprimat reads the versions of packages in this one.
  "$python" - "$own" <<'END'
import importlib.metadata, importlib.util, pathlib, sys, sysconfig
own = pathlib.Path(sys.argv[1])
torch = pathlib.Path(importlib.util.find_spec("torch").origin).parent.parent
(own / "image.pth").write_text(f"{sysconfig.get_path('purelib')}\n{torch}\n")
for name in ("torch", "transformers", "accelerate", "deepspeed"):
    for package in importlib.metadata.distributions(name=name):
        facts = pathlib.Path(package._path)
        if not (own / facts.name).exists():
            (own / facts.name).symlink_to(facts)
END
  "$folder/$id/bin/python" -c 'import torch, transformers; print("torch", torch.__version__)'
done
