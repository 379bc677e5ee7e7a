#!/usr/bin/env python3
"""Runs ./benchmark.sh up to its build on systems that lack packages: whoever cannot install them learns so before anything
happens, and what to do.

Stand-ins: /etc/os-release, apt, dpkg-query, sudo, id and cmake, which builds nothing. The scripts are the real ones, on a PATH with
nothing else but the commands that they use.

usage: installs_packages.py SOURCE_DIR
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv[1]).resolve()
WHEEL = "python3 -m pip install ./tprimat-*.whl, or the Debian package with apt-get install ./tprimat_*.deb"
COMMANDS = "awk bash cat chmod cut dirname dpkg env grep head ln mkdir paste sed sh sleep sort tail timeout touch tr wc".split()
# What the package managers answer; one line a package: NAME VERSION.
APT_CACHE = """#!/bin/sh
[ "$1" = policy ] && echo "$2:" && echo "  Installed: (none)" && echo "  Candidate: $(sed -n "s/^$2 //p" "$STATE/available")"
"""
APT_GET = """#!/bin/sh
echo "$*" >>"$STATE/apt.log"
case "$1" in install) for each; do sed -n "/^$each /p" "$STATE/available" >>"$STATE/installed"; done ;; esac
"""
DPKG_QUERY = """#!/bin/sh
for package; do :; done
grep -q "^$package " "$STATE/installed" && echo "install ok installed $(sed -n "s/^$package //p" "$STATE/installed")"
"""
CMAKE = """#!/bin/sh
echo "$*" >>"$STATE/cmake.log"; mkdir -p build/release; touch build/release/build.ninja
printf '#!/bin/sh\\necho "tprimat $1"\\n' >build/release/tprimat; chmod +x build/release/tprimat
"""


def listed():
    lines = (SOURCE / "dependencies.txt").read_text().splitlines()
    names = []
    for line in lines:
        if line.startswith("["):
            return names
        names += line.split("#")[0].split()[:1]
    raise SystemExit("dependencies.txt has no [group]")


class InstallsPackages(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tprimat_packages_"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.root, self.tools = self.folder / "tprimat", self.folder / "tools"
        self.root.mkdir()
        self.tools.mkdir()
        for name in ("benchmark.sh", "dependencies.txt"):
            shutil.copy2(SOURCE / name, self.root)
        shutil.copytree(SOURCE / "scripts", self.root / "scripts")
        for name in COMMANDS:
            (self.tools / name).symlink_to(shutil.which(name))
        for name, text in (("apt-cache", APT_CACHE), ("apt-get", APT_GET), ("dpkg-query", DPKG_QUERY), ("cmake", CMAKE)):
            self.put(name, text)
        self.system("Debian GNU/Linux 12 (bookworm)", cmake="3.25.1-1")

    def put(self, name, text):
        (self.tools / name).write_text(text)
        (self.tools / name).chmod(0o755)

    def system(self, name, **versions):
        (self.folder / "os-release").write_text(f'PRETTY_NAME="{name}"\n')
        self.available = {**dict.fromkeys(listed(), "9:99"), **versions}
        (self.folder / "installed").write_text("")

    def user(self, number, sudo=None):
        self.put("id", f"#!/bin/sh\necho {number}\n")
        if sudo is not None:
            self.put("sudo", f'#!/bin/sh\n[ "$1" != -n ] || exit {sudo}\nexec "$@"\n')

    def benchmark(self):
        (self.folder / "available").write_text("".join(f"{name} {version}\n" for name, version in self.available.items()))
        done = subprocess.run([str(self.root / "benchmark.sh"), "--platform", "cpu"], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=120, env={"PATH": str(self.tools), "HOME": str(self.folder), "STATE": str(self.folder),
                                                           "TPRIMAT_OS_RELEASE": str(self.folder / "os-release")})
        self.said = done.stdout + done.stderr
        return done

    def log(self, name):
        path = self.folder / f"{name}.log"
        return path.read_text() if path.exists() else ""

    def refused(self, *parts):
        done = self.benchmark()
        self.assertEqual((done.returncode, done.stdout), (1, ""), self.said)
        for part in parts:
            self.assertIn(part, done.stderr)
        self.assertNotIn("install", self.log("apt"))
        self.assertEqual(self.log("cmake"), "")

    def test_root_installs_builds_and_runs(self):
        self.user(0)
        done = self.benchmark()
        self.assertEqual((done.returncode, done.stdout), (0, "tprimat run\ntprimat compare\n"), self.said)
        self.assertEqual(self.log("apt").splitlines()[0], "update -qq")
        self.assertIn("install -y -qq --no-install-recommends g++ cmake ", self.log("apt"))
        before = self.log("apt")
        self.assertEqual(self.benchmark().returncode, 0, self.said)  # and nothing twice
        self.assertEqual(self.log("apt"), before)

    def test_ubuntu_24_04_is_served(self):
        self.system("Ubuntu 24.04.1 LTS", cmake="3.28.3-1build7")
        self.user(1000, sudo=0)
        self.assertEqual(self.benchmark().returncode, 0, self.said)

    def test_ubuntu_22_04_has_no_cmake_that_is_new_enough(self):
        self.system("Ubuntu 22.04.5 LTS", cmake="3.22.1-1ubuntu1.22.04.2")
        for number in (0, 1000):
            self.user(number)
            self.refused("Ubuntu 22.04.5 LTS lacks packages that the build needs: cmake 3.24 (it has 3.22.1-1ubuntu1.22.04.2).",
                         "Ubuntu 24.04", WHEEL)

    def test_an_old_cmake_that_is_installed_counts_as_missing(self):
        self.system("Ubuntu 22.04.5 LTS", cmake="3.22.1-1ubuntu1.22.04.2")
        (self.folder / "installed").write_text("".join(f"{name} 9:99\n" for name in listed() if name != "cmake") + "cmake 3.22.1-1\n")
        self.user(0)
        self.refused("cmake 3.24 (it has 3.22.1", WHEEL)

    def test_packages_that_a_system_does_not_know_are_named(self):
        del self.available["libdnnl-dev"], self.available["libhwy-dev"]
        self.user(0)
        self.refused("lacks packages that the build needs: libdnnl-dev, libhwy-dev.", "universe", WHEEL)

    def test_without_root_the_administrators_command_is_said(self):
        (self.folder / "installed").write_text("".join(f"{name} 9:99\n" for name in listed()[3:]))
        self.user(1000)
        self.refused("3 packages are missing", f"    apt-get update && apt-get install --no-install-recommends {' '.join(listed()[:3])}\n", WHEEL)

    def test_sudo_that_would_ask_for_a_password_without_a_terminal_does_not_wait(self):
        self.user(1000, sudo=1)
        self.refused("Ask an administrator to run", WHEEL)

    def test_nobody_needs_root_where_nothing_is_missing(self):
        (self.folder / "installed").write_text("".join(f"{name} 9:99\n" for name in listed()))
        self.user(1000)
        self.assertEqual(self.benchmark().returncode, 0, self.said)
        self.assertEqual(self.log("apt"), "")

    def test_systems_without_apt_get_the_wheel(self):
        self.system("Fedora Linux 40")
        os.remove(self.tools / "apt-get")
        self.user(0)
        self.refused("Fedora Linux 40 has no apt-get", "dependencies.txt", WHEEL)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
