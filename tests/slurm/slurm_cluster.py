"""A Slurm cluster of two nodes on this machine: munged, slurmctld and two slurmd with files, sockets and ports of their own.

Nothing outside its folder is touched, and nothing of an installed cluster is used. stop() ends every daemon.
"""

import ctypes
import os
import pathlib
import pwd
import shutil
import signal
import socket
import subprocess
import time

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "scancel", "squeue", "sinfo", "scontrol")
PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
PATIENCE = 180  # seconds until the nodes are idle; a loaded machine takes its time

CONFIGURATION = """ClusterName=tprimat
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool_%n
TmpFS={folder}/tmp_%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd_%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd_%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SwitchType=switch/none
ReturnToService=2
KillWait=5
MessageTimeout=30
SlurmdTimeout=300
InactiveLimit=0
MailProg=/bin/true
NodeName=one NodeHostname={host} NodeAddr=127.0.0.1 Port={port_of_one} CPUs=2 RealMemory=300 State=UNKNOWN
NodeName=two NodeHostname={host} NodeAddr=127.0.0.1 Port={port_of_two} CPUs=2 RealMemory=300 State=UNKNOWN
PartitionName=all Nodes=one,two Default=YES MaxTime=60 OverSubscribe=NO State=UP
"""


def end_with_parent():
    """A daemon ends when the test does, however that ends: prctl(PR_SET_PDEATHSIG, SIGTERM)."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)


def processes_of(folder):
    """Those whose command line names something in the folder."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes()
        except OSError:
            continue
        if os.fsencode(folder) + b"/" in words:
            found.append(int(entry.parent.name))
    return [pid for pid in found if pid != os.getpid()]


def tidy_after_death(folder):
    """A process that outlives the test, even when that is killed, and then ends what is left of its jobs."""
    read_end, write_end = os.pipe()
    if os.fork() != 0:
        os.close(read_end)
        return write_end  # open for as long as the test lives
    os.setsid()
    os.close(write_end)
    for descriptor in (0, 1, 2):  # whoever waits for the end of the test's output must not wait for this
        os.close(descriptor)
    os.read(read_end, 1)
    for _ in range(20):
        for pid in processes_of(folder):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.1)
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


def missing_programs():
    return [program for program in PROGRAMS if shutil.which(program, path=PATH) is None]


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class Cluster:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.daemons = []
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "SBATCH_", "OMPI_"))}
        self.environment = {**kept, "PATH": PATH, "SLURM_CONF": str(self.folder / "slurm.conf")}

    def start(self):
        ports = dict(zip(("controller_port", "port_of_one", "port_of_two"), free_ports(3)))
        for name in ("state", "spool_one", "spool_two", "tmp_one", "tmp_two"):
            (self.folder / name).mkdir()
        self.folder.chmod(0o755)  # munge wants a socket that everyone can reach
        (self.folder / "slurm.conf").write_text(CONFIGURATION.format(
            host=socket.gethostname().split(".")[0], folder=self.folder, **ports, user=pwd.getpwuid(os.getuid()).pw_name))
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n")
        self.start_munge()
        self.spawn("slurmctld", "-D", "-i")
        for node in ("one", "two"):
            self.spawn("slurmd", "-D", "-N", node, output=f"slurmd_{node}")
        self.wait_until(self.is_idle, "the nodes did not become idle")

    def start_munge(self):
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        place = {option: self.folder / f"munge.{option}" for option in ("socket", "pid", "log", "seed")}
        self.spawn("munged", "--foreground", "--force", f"--key-file={key}", f"--socket={place['socket']}",
                   f"--pid-file={place['pid']}", f"--log-file={place['log']}", f"--seed-file={place['seed']}")
        self.wait_until(place["socket"].exists, "munged made no socket")

    def spawn(self, program, *words, output=None):
        output = open(self.folder / f"{output or program}.output", "wb")
        self.daemons.append((program, subprocess.Popen([shutil.which(program, path=PATH), *words], stdout=output,
                                                       stderr=output, stdin=subprocess.DEVNULL,
                                                       env=self.environment, start_new_session=True,
                                                       preexec_fn=end_with_parent)))

    def is_idle(self):
        return self.ask("sinfo", "--noheader", "--format=%D %T") == "2 idle"

    def wait_until(self, is_so, complaint):
        deadline = time.monotonic() + PATIENCE
        while not is_so():
            dead = [program for program, daemon in self.daemons if daemon.poll() is not None]
            if dead or time.monotonic() > deadline:
                raise RuntimeError(f"{complaint}; ended: {', '.join(dead) or 'none'}\n{self.logs()}")
            time.sleep(0.1)

    def ask(self, *words):
        done = subprocess.run(words, env=self.environment, capture_output=True, text=True, timeout=120)
        return done.stdout.strip()

    def logs(self):
        texts = []
        for path in sorted(self.folder.glob("*.log")) + sorted(self.folder.glob("*.output")):
            texts.append(f"--- {path.name}\n" + path.read_text(errors="replace")[-3000:])
        return "\n".join(texts)

    def end_jobs(self):
        """A job's processes would outlive slurmd."""
        try:
            deadline = time.monotonic() + 60
            while (jobs := self.ask("squeue", "--noheader", "--format=%i").split()) and time.monotonic() < deadline:
                self.ask("scancel", *jobs)
                time.sleep(0.5)
        except subprocess.SubprocessError:
            pass

    def stop(self):
        if len(self.daemons) == 4:
            self.end_jobs()
        for _, daemon in reversed(self.daemons):
            if daemon.poll() is None:
                daemon.send_signal(signal.SIGTERM)
            try:
                daemon.wait(30)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        self.daemons = []
