"""The project's own sources."""

import subprocess


def list_sources(root, *endings):
    command = ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.decode().split("\0")
    return [name for name in names if name.endswith(endings) and "/fixtures/" not in name]
