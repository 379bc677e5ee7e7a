#!/usr/bin/env python3
"""Completes lines with the Tab key in the interactive shells of a bare system in which the Debian package is installed. A function
stands in for tprimat and prints the words of the completed line.

usage: press_tab.py CHROOT USER bash|zsh|fish...
"""

import os
import pty
import select
import signal
import sys
import time

STANDS_IN = {
    "bash": "tprimat() { printf '<%s>' \"$@\"; echo; }",
    "zsh": "tprimat() { printf '<%s>' \"$@\"; echo; }",
    "fish": "function tprimat; printf '<%s>' $argv; echo; end",
}
# What is typed before the Tab key, and the words of the line then.
CASES = [
    ("tprimat comple", "<completion>"),
    ("tprimat run --platf", "<run><--platform>"),
    ("tprimat docker build n", "<docker><build><nvd>"),
    ("tprimat run --platform cpu --ada", "<run><--platform><cpu><--adapt>"),
]


class Shell:
    def __init__(self, root, user, name):
        words = ["unshare", "--mount", "--pid", "--fork", "--kill-child", f"--mount-proc={root}/proc", "chroot", root, "setsid", "--ctty",
                 "--wait", "setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", name, "-i"]
        self.said, self.read_to = "", 0
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            os.environ.clear()
            os.environ.update(PATH="/usr/sbin:/usr/bin:/sbin:/bin", HOME=f"/home/{user}", USER=user, LANG="C.UTF-8", TERM="xterm")
            os.chdir(f"{root}/home/{user}")
            os.execvp(words[0], words)

    def type(self, keys):
        self.read_to = len(self.said)
        os.write(self.terminal, keys.encode())

    def listen(self, seconds):
        if select.select([self.terminal], [], [], seconds)[0]:
            try:
                self.said += os.read(self.terminal, 65536).decode(errors="replace")
            except OSError:
                raise SystemExit(f"error: the shell ended; it said: {self.said[-2000:]}") from None

    def wait_for(self, text, seconds=60):
        end = time.monotonic() + seconds
        while text not in self.said[self.read_to:] and time.monotonic() < end:
            self.listen(0.2)
        return text in self.said[self.read_to:]

    def wait_until_quiet(self, seconds=0.7):
        before = -1
        while before != len(self.said):
            before = len(self.said)
            self.listen(seconds)

    def end(self):
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)
        os.close(self.terminal)


def try_shell(root, user, name):
    shell = Shell(root, user, name)
    try:
        shell.wait_until_quiet()
        shell.type(f"{STANDS_IN[name]}\r")
        shell.wait_until_quiet()
        shell.type("tprimat 'is' ready\r")
        if not shell.wait_for("<is><ready>"):
            return [f"{name}: does not start: {shell.said[-2000:]!r}"]
        failures = []
        for keys, words in CASES:
            shell.wait_until_quiet()
            shell.type(f"{keys}\t")
            shell.wait_until_quiet()
            shell.type("\r")
            if not shell.wait_for(f"{words}"):
                failures.append(f"{name}: {keys} and Tab do not give {words}: {shell.said[shell.read_to - 300:]!r}")
        return failures
    finally:
        shell.end()


def main():
    if len(sys.argv) < 4 or not set(sys.argv[3:]) <= set(STANDS_IN):
        sys.exit(__doc__)
    failures = []
    for name in sys.argv[3:]:
        failures += try_shell(os.path.realpath(sys.argv[1]), sys.argv[2], name)
    print("\n".join(failures) or f"{', '.join(sys.argv[3:])}: each completes {len(CASES)} lines")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
