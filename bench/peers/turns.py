"""Contenders that live side by side and take turns: one trains while the kernel keeps the others stopped. A turn is a step
or two, so that a machine whose speed changes within seconds treats all alike; all must fit into memory at once."""

import ctypes
import os
import signal
import subprocess
import time

import contenders

POLL_SECONDS = 0.005
SILENT_SECONDS = 900  # compilation included
DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of <linux/prctl.h>
LIBC = ctypes.CDLL(None, use_errno=True)


class Player:
    """A contender whose process trains on when it is its turn. Its own session keeps a terminal's signals away."""

    def __init__(self, contender, spec, folder, name):
        self.name, self.peak = name, 0
        self.steps, self.errors = (folder / f"{name.replace('/', '_')}.{kind}" for kind in ("jsonl", "stderr"))
        self.steps.unlink(missing_ok=True)
        self.done, self.stopped_at = 0, None
        with open(self.errors, "w", encoding="utf-8") as errors:
            self.process = subprocess.Popen(
                list(map(str, [*contender.command, spec])), stdout=subprocess.DEVNULL, stderr=errors,
                start_new_session=True, preexec_fn=lambda: LIBC.prctl(DIE_WITH_PARENT, signal.SIGKILL),
                env={**os.environ, **contender.settings, "TPRIMAT_STEPS": str(self.steps)})

    def count_lines(self):
        return self.steps.read_bytes().count(b"\n") if self.steps.exists() else 0

    def wait_for_step(self, number):
        deadline = time.monotonic() + SILENT_SECONDS
        while self.count_lines() < number:
            found, status, usage = os.wait4(self.process.pid, os.WNOHANG)
            if found:
                self.note_end(status, usage)
                if self.process.returncode == -signal.SIGKILL:
                    raise contenders.Failed("killed, probably for want of memory: in turns, all contenders live at once")
                raise contenders.Failed(f"exit status {self.process.returncode}: {self.errors.read_text()[-400:].strip()}")
            if time.monotonic() > deadline:
                raise contenders.Failed(f"no step within {SILENT_SECONDS} s")
            time.sleep(POLL_SECONDS)

    def play(self, count):
        """Trains `count` steps or more and stops; their seconds, without the time for which the process was stopped."""
        stopped = 0.0
        if self.stopped_at is not None:
            stopped = time.monotonic() - self.stopped_at
            os.kill(self.process.pid, signal.SIGCONT)
        self.wait_for_step(self.done + count)
        # So that the stop falls within the next step's clock.
        time.sleep(min(0.1, contenders.seconds_in(self.steps)[-1] / 4))
        os.kill(self.process.pid, signal.SIGSTOP)
        self.stopped_at = time.monotonic()
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)  # from here on nothing is written
        played = contenders.seconds_in(self.steps)[self.done:]
        self.done += len(played)
        if played[0] - stopped <= 0.25 * min(played[1:], default=0):
            raise contenders.Failed(f"stopped for {stopped:.2f} s, apparently outside of the step's clock, which shows "
                                    f"{played[0]:.2f} s")
        played[0] -= stopped
        return played

    def note_end(self, status, usage):
        self.process.returncode = os.waitstatus_to_exitcode(status)
        self.peak = usage.ru_maxrss * 1024

    def end(self):
        """Ends the process if it still runs."""
        if self.process.returncode is not None:
            return
        os.kill(self.process.pid, signal.SIGKILL)
        _, status, usage = os.wait4(self.process.pid, 0)
        self.note_end(status, usage)


def take_turns(runners, spec, folder, turns, steps, report):
    """Each of `runners` (name to contender) warms up alone for `steps` steps, then all take turns in rotating order.
    report(name, seconds of a turn's steps) after each turn; returns name to peak of memory, and name to why it failed:
    then it is out."""
    players, failed = [], {}

    def play(player):
        try:
            return player.play(steps)
        except contenders.Failed as failure:
            failed[player.name] = str(failure)
            player.end()
            return None

    try:
        for name, contender in runners.items():
            players.append(Player(contender, spec, folder, name))
            play(players[-1])
        for turn in range(turns):
            playing = [player for player in players if player.name not in failed]
            shift = turn % max(1, len(playing))
            for player in playing[shift:] + playing[:shift]:
                if (played := play(player)) is not None:
                    report(player.name, played)
    finally:
        for player in players:
            player.end()
    return {player.name: player.peak for player in players}, failed
