#!/bin/sh
# Installs what building and running tprimat needs, out of dependencies.txt: not what only tests need, and no second MPI
# where the image has one.   install_packages.sh DEPENDENCIES [--print]
set -eu
not_here=none
! command -v mpicxx >/dev/null || not_here='libopenmpi-dev|openmpi-bin'
packages=$(sed -e 's/#.*//' -e '/^\[/,$d' "$1" | awk 'NF { print $1 }' | grep -vxE "$not_here")
[ "${2:-}" != --print ] || { echo "$packages"; exit 0; }
apt-get update -qq
# shellcheck disable=SC2086
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages
rm -rf /var/lib/apt/lists/*
