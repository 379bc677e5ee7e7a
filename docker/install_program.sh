#!/bin/sh
# Builds tprimat where its sources lie and puts it into PATH.
set -eu
cd "$(dirname "$0")/.."
cmake --preset release
cmake --build --preset release --target tprimat
ln -sf "$PWD/build/release/tprimat" /usr/local/bin/tprimat
tprimat --version
