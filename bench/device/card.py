"""The card's name, what nvidia-smi samples beside the measurements, and the middle of that: clock, power, temperature."""

import csv
import datetime
import statistics
import subprocess

import programs

FIGURES = {"clocks.sm": "sm_mhz", "clocks.mem": "memory_mhz", "power.draw": "watts", "temperature.gpu": "celsius"}
QUERY = ("timestamp", *FIGURES, "utilization.gpu", "memory.used", "clocks_event_reasons.active")
OLDER = "clocks_throttle_reasons.active"  # the last one's name in older drivers
BUSY = 50  # percent
NO_GPU = "no GPU"


def ask(query):
    """What nvidia-smi answers; nothing where there is none."""
    try:
        done = subprocess.run(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"], capture_output=True,
                              text=True, timeout=10, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def name_device():
    """Name, driver and memory."""
    return next(iter((ask("name,driver_version,memory.total") or "").splitlines()), NO_GPU)


def folder_name(device):
    return device.split(",")[0].strip().replace(" ", "_").replace("/", "_")


def sampling(query):
    return ["nvidia-smi", f"--query-gpu={','.join(query)}", "--format=csv,noheader", "-lms", "250"]


class Sampler:
    """nvidia-smi beside the measurements, four times a second, behind what the file holds already."""

    def __init__(self, path, device):
        self.path, self.process, self.works = path, None, device not in (NO_GPU, "cpu")

    def __enter__(self):
        for reasons in (QUERY[-1], OLDER) if self.works else ():
            query = (*QUERY[:-1], reasons)
            if ask(",".join(query)):
                with open(self.path, "a") as out:
                    self.process = subprocess.Popen(sampling(query), stdout=out, stderr=subprocess.DEVNULL,
                                                    preexec_fn=programs.die_with_parent)
                break
        return self

    def __exit__(self, *_):
        if self.process:
            self.process.kill()
            self.process.wait()


def seconds_of(stamp):
    return datetime.datetime.strptime(stamp.strip(), "%Y/%m/%d %H:%M:%S.%f").timestamp()


def figure(text):
    try:
        return float(text.split()[0])
    except (ValueError, IndexError):
        return None


def read_samples(path):
    """One dictionary per line of nvidia-smi --query-gpu=... --format=csv,noheader; nothing where it did not run."""
    if not path.is_file():
        return []
    samples = []
    for row in csv.reader(path.read_text(errors="replace").splitlines()):
        if len(row) != len(QUERY):
            continue
        try:
            sample = {"time": seconds_of(row[0])}
        except ValueError:
            continue
        sample |= {name: figure(value) for name, value in zip(QUERY[1:-1], row[1:-1])}
        samples.append({**sample, "reasons": row[-1].strip()})
    return samples


def summarise(samples, begin, seconds):
    """Medians while the card was busy between these times; {} where there is no such sample."""
    some = [each for each in samples if begin <= each["time"] <= begin + seconds
            and (each["utilization.gpu"] or 0) >= BUSY]
    found = {}
    for name, key in FIGURES.items():
        values = [each[name] for each in some if each[name] is not None]
        if values:
            found[key] = statistics.median(values)
    if some:
        found["throttle_reasons"] = sorted({each["reasons"] for each in some})
    return found
