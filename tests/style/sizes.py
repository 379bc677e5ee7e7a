"""Functions and files stay small: 95 % of functions have at most 20 lines, none more than 60; no file has more than 400.

    sizes.py SOURCES [--list]      --list prints the longest functions

Reads sources as clang-format writes them: a function begins at a line that ends in "{" after a parameter list, and ends
at the "}" below it with the same indentation.
"""

import pathlib
import re
import sys

from sources import list_sources

MOST_OF_FUNCTIONS, LONGEST_FUNCTION, LONGEST_FILE = 20, 60, 400
CONTROL = re.compile(r"\s*(\} )?(if|for|while|switch|else|do|try|catch|namespace|struct|class|enum|union|case|return)\b")


def begins_function(line):
    if not line.endswith("{") or CONTROL.match(line) or line.lstrip().startswith(("//", "#", "}")):
        return False
    return ")" in line and not re.search(r"= \{$|\](\([^)]*\))? (mutable )?(-> \S+ )?\{$|, \{$|\(\{$|\}, \{$", line)


def first_line(lines, index):
    """Of the signature that ends at lines[index]."""
    while index > 0:
        above = lines[index - 1].rstrip()
        if not above or above.endswith((";", "{", "}", ":")) or above.lstrip().startswith(("//", "#")):
            return index
        index -= 1
    return index


def functions_of(text):
    lines = text.split("\n")
    index = 0
    while index < len(lines):
        line = lines[index]
        if begins_function(line):
            indent = len(lines[first_line(lines, index)]) - len(lines[first_line(lines, index)].lstrip())
            closing = " " * indent + "}"
            for end in range(index + 1, len(lines)):
                if lines[end] == closing:
                    yield end - first_line(lines, index) + 1, first_line(lines, index) + 1
                    index = end
                    break
        index += 1


def measure(root):
    functions, files = [], []
    for name in list_sources(str(root), ".cpp", ".h", ".cu"):
        if not (root / name).exists():
            continue
        text = (root / name).read_text(encoding="utf-8")
        files.append((text.count("\n"), name))
        functions += [(length, f"{name}:{line}") for length, line in functions_of(text)]
    return sorted(functions), sorted(files)


def main():
    root = pathlib.Path(sys.argv[1])
    if not (root / ".git").exists():
        return print("skipped: not a git checkout, so there is no list of the sources; clone the repository")
    functions, files = measure(root)
    assert len(functions) > 5000 and len(files) > 1000, f"only {len(functions)} functions in {len(files)} files were found"
    usual = functions[int(len(functions) * 0.95)][0]
    print(f"{len(functions)} functions: median {functions[len(functions) // 2][0]}, 95 % up to {usual}, "
          f"longest {functions[-1][0]} lines; longest file {files[-1][0]}")
    if "--list" in sys.argv:
        print("\n".join(f"{length:4} {place}" for length, place in functions[-60:]))
    faults = [f"{place}: a function of {length} lines" for length, place in functions if length > LONGEST_FUNCTION]
    faults += [f"{name}: {lines} lines" for lines, name in files if lines > LONGEST_FILE]
    if usual > MOST_OF_FUNCTIONS:
        faults.append(f"95 % of functions have up to {usual} lines")
    if faults:
        sys.exit("too long: " + "; ".join(faults))


main()
