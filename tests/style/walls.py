"""Libraries that cost a compiler seconds are included in the sources named here, and nowhere else."""

import os
import re
import sys

from sources import list_sources

WALLS = {
    r"nlohmann/": ["src/core/text/json_text.cpp"],
    r"CLI/": ["src/core/command_line/cli11.cpp"],
    r"regex>": ["src/planner/published/cells.cpp"],
}


def main(root):
    wrong = []
    for name in list_sources(root, ".cpp", ".h"):
        if not name.startswith("src/"):
            continue
        with open(os.path.join(root, name), encoding="utf-8") as file:
            included = re.findall(r'^#include [<"](\S+)', file.read(), re.M)
        for library, allowed in WALLS.items():
            if name not in allowed and any(re.match(library, header) for header in included):
                wrong.append(f"{name} includes {library.rstrip('/>')}: only {', '.join(allowed)} may")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
