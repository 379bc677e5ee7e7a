"""What nvidia-smi wrote beside the measurements, as the middle of each: clock, power, temperature."""

import csv
import datetime
import statistics

QUERY = ("timestamp", "clocks.sm", "clocks.mem", "power.draw", "temperature.gpu", "utilization.gpu", "memory.used",
         "clocks_throttle_reasons.active")
FIGURES = {"clocks.sm": "sm_mhz", "clocks.mem": "memory_mhz", "power.draw": "watts", "temperature.gpu": "celsius"}
BUSY = 50  # percent


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
