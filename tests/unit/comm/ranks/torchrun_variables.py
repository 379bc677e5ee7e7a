#!/usr/bin/env python3
"""Starts ranks of a program with the variables that torchrun sets, and nothing of MPI's.

  torchrun_variables.py -n RANKS [--kill RANK] PROGRAM [ARGUMENT...]

Ends with the first status that is not 0; ranks that go on a while after another one failed are ended, and that is a failure
of its own. --kill RANK ends that rank with SIGKILL as soon as it printed a line, and asks the others to end by themselves.
"""

import os
import random
import signal
import socket
import subprocess
import sys
import time

PATIENCE = 60  # seconds, for the other ranks once one has ended with an error
MPI = ("OMPI_", "PMIX_", "PMI_", "SLURM_", "TORCHELASTIC_")


def is_free(port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_port():
    """Below those that the system gives to whoever connects to something."""
    while True:
        port = random.randrange(10000, 32000)
        if is_free(port):
            return port


def environment_of(rank, ranks, port):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(MPI)}
    return {**kept, "RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(ranks),
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "TPRIMAT_RENDEZVOUS_TIMEOUT": "100"}


def start(command, ranks, **settings):
    port = free_port()
    return [subprocess.Popen(command, env=environment_of(rank, ranks, port), **settings) for rank in range(ranks)]


def wait_for_all(processes):
    """Statuses of all, those that had to be ended as None."""
    deadline = None
    while any(process.poll() is None for process in processes):
        if deadline is None and any(process.poll() for process in processes):
            deadline = time.monotonic() + PATIENCE
        if deadline is not None and time.monotonic() > deadline:
            break
        time.sleep(0.01)
    statuses = [process.poll() for process in processes]
    for process in processes:
        process.kill()
        process.wait()
    return statuses


def main():
    arguments = sys.argv[1:]
    ranks, victim = 1, None
    while arguments and arguments[0] in ("-n", "--kill"):
        if arguments[0] == "-n":
            ranks = int(arguments[1])
        else:
            victim = int(arguments[1])
        arguments = arguments[2:]
    if not arguments:
        raise SystemExit(__doc__)
    processes = start(arguments, ranks, stdout=subprocess.PIPE if victim is not None else None)
    if victim is not None:
        processes[victim].stdout.readline()
        processes[victim].send_signal(signal.SIGKILL)
    statuses = wait_for_all(processes)
    if None in statuses:
        print(f"ranks went on after another one had failed: {statuses}", file=sys.stderr)
        sys.exit(99)
    if victim is not None:
        others = [status for rank, status in enumerate(statuses) if rank != victim]
        print(f"rank {victim} was killed; the others ended with {others}", flush=True)
        sys.exit(0 if all(status in (1, 3) for status in others) else 98)
    sys.exit(next((status if status > 0 else 128 - status for status in statuses if status != 0), 0))


if __name__ == "__main__":
    main()
