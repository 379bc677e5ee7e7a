#!/bin/sh
# Installs tprimat on Debian or Ubuntu: the Debian package of build/packages where there is one, else built from the sources.
set -eu
cd "$(dirname "$0")/.."
package=$(find build/packages -name "tprimat_*_$(dpkg --print-architecture).deb" 2>/dev/null | sort -V | tail -n 1)
if [ -n "$package" ]; then
  apt-get update -qq
  # Also what it offers more with: ranks, signatures, pictures as PNG.
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "./$package" \
    openmpi-bin openssh-client gnuplot-nox fonts-dejavu-core
  rm -rf /var/lib/apt/lists/* build
  tprimat --version
  exit
fi
. /etc/os-release
if [ "$ID" = ubuntu ] && dpkg --compare-versions "$VERSION_ID" lt 24.04; then
  echo "error: tprimat cannot be built on $PRETTY_NAME, which has no CMake 3.24: run scripts/package.sh deb on Debian 12" \
    "first, then this again: it takes the package of build/packages" >&2
  exit 1
fi
sh docker/install_packages.sh dependencies.txt
sh docker/install_program.sh
