#!/usr/bin/env bash
# Makes the virtual environment of a framework that one of our Python adapters drives.
#   frameworks/setup.sh ID...       ids: the files of frameworks/requirements
# Environments lie in $TPRIMAT_FRAMEWORKS, else $XDG_DATA_HOME/tprimat/frameworks, else ~/.local/share/tprimat/frameworks,
# where `tprimat run` looks for them. PyTorch comes as the package index has it; for ROCm, or another CUDA, set
# TORCH_INDEX_URL to PyTorch's index for it: the other packages still come from the usual one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

fail() {
  printf 'error: %s\n' "$*" >&2
  exit 2
}

[ $# -gt 0 ] || fail "name a framework: $(cd requirements && ls | sed 's/\.txt$//' | paste -sd' ')"
folder=${TPRIMAT_FRAMEWORKS:-${XDG_DATA_HOME:-$HOME/.local/share}/tprimat/frameworks}
for id in "$@"; do
  wanted=requirements/$id.txt
  [ -f "$wanted" ] || fail "there is no frameworks/$wanted; there are: $(cd requirements && ls | sed 's/\.txt$//' | paste -sd' ')"
  if cmp -s "$wanted" "$folder/$id/installed.txt"; then
    echo "$id: already in $folder/$id"
    continue
  fi
  echo "$id: installing into $folder/$id"
  rm -rf "${folder:?}/$id"
  python3 -m venv "$folder/$id" || fail "python3 -m venv failed; Debian has it in the package python3-venv"
  if [ -n "${TORCH_INDEX_URL:-}" ]; then
    "$folder/$id/bin/pip" install -q --disable-pip-version-check --index-url "$TORCH_INDEX_URL" \
      "$(grep -oE '^torch==[^ ]+' "$wanted")" || fail "pip could not install PyTorch from TORCH_INDEX_URL"
  fi
  # PyTorch for ROCm brings a Triton of another name, which stays.
  if "$folder/$id/bin/python" -c 'import triton' 2>/dev/null; then skipped='^triton=='; else skipped='^$'; fi
  grep -v "$skipped" "$wanted" >"$folder/$id/wanted.txt"
  "$folder/$id/bin/pip" install -q --disable-pip-version-check -r "$folder/$id/wanted.txt" ||
    fail "pip could not install $wanted"
  cp "$wanted" "$folder/$id/installed.txt"
done
