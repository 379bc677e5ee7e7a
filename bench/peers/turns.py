"""Contenders that live side by side and take turns: one trains while the kernel keeps the others stopped. A turn is a step
or two, so that a machine whose speed changes within seconds treats all alike; all must fit into memory at once."""

import os
import signal
import subprocess
import time

import contenders

POLL_SECONDS = 0.002
SILENT_SECONDS = 900  # compilation included


class Player:
    def __init__(self, contender, spec, folder, name):
        self.name = name
        self.steps = folder / f"{name.replace('/', '_')}.jsonl"
        self.errors = folder / "turns_stderr"
        with open(self.errors, "w", encoding="utf-8") as errors:
            self.process = subprocess.Popen(
                list(map(str, contender.command_for(spec))), stdout=subprocess.DEVNULL, stderr=errors,
                env={**os.environ, **contender.settings, "TPRIMAT_STEPS": str(self.steps)})
        self.done, self.stopped_at = 0, None

    def play(self, count):
        """Trains `count` steps and stops; their seconds, without the time for which the process was stopped."""
        stopped = 0.0
        if self.stopped_at is not None:
            stopped = time.monotonic() - self.stopped_at
            self.process.send_signal(signal.SIGCONT)
        deadline = time.monotonic() + SILENT_SECONDS
        while len(seconds := contenders.seconds_in(self.steps)) < self.done + count:
            if self.process.poll() is not None:
                raise contenders.Failed(f"exit status {self.process.returncode}: {self.errors.read_text()[-400:].strip()}")
            if time.monotonic() > deadline:
                raise contenders.Failed(f"no step within {SILENT_SECONDS} s")
            time.sleep(POLL_SECONDS)
        self.process.send_signal(signal.SIGSTOP)
        self.stopped_at = time.monotonic()
        played = seconds[self.done:]
        played[0] -= stopped
        self.done = len(seconds)
        return played

    def end(self):
        """Ends the process; returns its peak of resident memory."""
        self.process.kill()
        _, status, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        return usage.ru_maxrss * 1024


def take_turns(runners, spec, folder, turns, steps, report):
    """Each of `runners` (name to contender) warms up alone for `steps` steps, then all take turns in rotating order.
    report(name, seconds of a turn's steps) after each turn; returns name to peak of memory, and name to why it failed."""
    players, failed, peaks = {}, {}, {}
    try:
        for name, contender in runners.items():
            player = Player(contender, spec, folder, name)
            players[name] = player
            try:
                player.play(steps)
            except contenders.Failed as failure:
                failed[name] = str(failure)
        playing = [player for name, player in players.items() if name not in failed]
        for turn in range(turns):
            shift = turn % max(1, len(playing))
            for player in playing[shift:] + playing[:shift]:
                report(player.name, player.play(steps))
    finally:
        for name, player in players.items():
            if player.process.returncode is None:
                peaks[name] = player.end()
    return peaks, failed
