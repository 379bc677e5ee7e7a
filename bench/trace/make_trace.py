#!/usr/bin/env python3
"""Writes one large trace: the events of the given ones, again and again.

    bench/trace/make_trace.py --gigabytes 1 --output large.json TRACE.json.gz...

Each copy's text is that of its file, whitespace included; times repeat too.
"""
import argparse
import gzip
import pathlib
import re


def events_of(path):
    """The text between the brackets of traceEvents, which Kineto ends with a bracket at the begin of a line."""
    data = path.read_bytes()
    text = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    begin = re.search(rb'"traceEvents"\s*:\s*\[', text).end()
    end = re.compile(rb"\}\s*\]\s*[,}]").search(text, text.rfind(b'"ph"')).start() + 1
    return text[begin:end]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="+", type=pathlib.Path)
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--output", required=True)
    options = parser.parse_args()
    parts = [events_of(path) for path in options.traces]
    written, i = 0, 0
    with open(options.output, "wb") as out:
        out.write(b'{"schemaVersion": 1, "traceEvents": [\n')
        while written < options.gigabytes * 1e9:
            part = (b",\n" if i else b"") + parts[i % len(parts)]
            out.write(part)
            written += len(part)
            i += 1
        out.write(b"\n]}\n")


if __name__ == "__main__":
    main()
