#!/usr/bin/env python3
"""Computes until the test that started it is gone. burner.py NICENESS: 19 takes next to nothing from others."""

import os
import sys
import time

IDLE = 19
TRIES = 20  # the kernel accepts a session's niceness only every 100 ms


def set_niceness(niceness):
    """The kernel shares a processor out among sessions, of which this process is one."""
    if niceness == IDLE:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    for _ in range(TRIES):
        try:
            file = os.open("/proc/self/autogroup", os.O_WRONLY)
            try:
                os.write(file, str(niceness).encode())
            finally:
                os.close(file)
        except BlockingIOError:
            time.sleep(0.1)
        except OSError:  # no such file, or not allowed
            return
        else:
            return


def main():
    parent = os.getppid()
    set_niceness(int(sys.argv[1]))
    while os.getppid() == parent:
        for _ in range(100000):
            pass


main()
