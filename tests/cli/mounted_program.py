#!/usr/bin/env python3
"""`tprimat run --launcher docker` in an image that has neither tprimat nor its libraries: nothing but a shell.

usage: mounted_program.py PROGRAM

A stand-in for docker makes the image's root folder, mounts what the command says there, and starts the command in it (chroot).
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TAKES_VALUE = {"--name", "--volume", "--workdir", "--env", "--ulimit", "--shm-size"}
UNSHARE = ["unshare", "-m"] if os.getuid() == 0 else ["unshare", "-rm"]
SKIPPED = 77


def read_command(words):
    """docker run OPTIONS IMAGE COMMAND"""
    options, at = {}, 0
    while words[at].startswith("-"):
        if words[at] in TAKES_VALUE:
            options.setdefault(words[at], []).append(words[at + 1])
            at += 1
        at += 1
    return options, words[at], words[at + 1:]


def make_image(root):
    """A shell with the libraries that it needs itself."""
    shell = pathlib.Path("/bin/sh").resolve()
    listed = subprocess.run(["ldd", shell], capture_output=True, text=True, check=True).stdout
    for file in [str(shell), *re.findall(r"(/\S+) \(0x", listed)]:
        to = root / file.lstrip("/")
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, to)
    (root / "bin").mkdir(exist_ok=True)
    if not (root / "bin/sh").exists():
        (root / "bin/sh").symlink_to(shell)


def mount(root, source, place, readonly=False):
    target = root / place.lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    if pathlib.Path(source).is_dir():
        target.mkdir(exist_ok=True)
    else:
        target.touch()
    subprocess.run(["mount", "--rbind", source, target], check=True)
    if readonly:
        subprocess.run(["mount", "-o", "remount,bind,ro", target], check=True, stderr=subprocess.DEVNULL)


def start_container(words):
    """As `docker run`, in a mount namespace of its own."""
    options, image, command = read_command(words)
    assert image == "stock", image
    root = pathlib.Path(tempfile.mkdtemp(prefix="image_", dir=os.environ["IMAGES"]))
    make_image(root)
    for folder in ("/proc", "/dev", "/sys"):
        mount(root, folder, folder)
    for volume in options["--volume"]:
        source, place, *flags = volume.split(":")
        mount(root, source, place, "ro" in flags)
    kept = {name: os.environ[name] for name in options.get("--env", []) if name in os.environ}
    os.chroot(root)
    os.chdir(options["--workdir"][0])
    os.execvpe(command[0], command, {"PATH": "/usr/bin:/bin", **kept})


def call(words, folder, environment):
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout + done.stderr


def find_faults(program, folder):
    tools, images = folder / "tools", folder / "images"
    tools.mkdir()
    images.mkdir()
    docker = tools / "docker"
    docker.write_text(f"#!/bin/sh\n[ \"$1\" = run ] || exit 0\nshift\nexec {' '.join(UNSHARE)} {sys.executable} "
                      f"{pathlib.Path(__file__).resolve()} container \"$@\"\n")
    docker.chmod(0o755)
    environment = {"PATH": f"{tools}:{os.environ['PATH']}", "HOME": str(folder), "LC_ALL": "C.UTF-8", "IMAGES": str(images)}
    run = [program, "run", "--config", str(HERE / "tiny.yaml"), "--launcher", "docker", "--set", "launch.docker.image=stock", "--no-color"]
    code, output = call(run, folder, environment)
    if code != 0 or "complete" not in output:
        log = folder / "output/training_native_tiny.log"
        return [f"run: exit status {code}\n{output}", log.read_text() if log.exists() else "no log"]
    script = folder / "output/runs/train_cpu_native_tiny/program/tprimat"  # what adapters call
    samples = ["data", "samples", "--spec", str(script.parent.parent / "train_spec.json"), "--output", str(script.parent.parent / "samples.npy")]
    plan = subprocess.run([*run, "--dry-run", "--json"], cwd=folder, env=environment, capture_output=True, text=True, check=True).stdout
    volumes = read_command(json.loads(plan)[0]["command"][2:])[0]["--volume"]
    options = [word for each in volumes for word in ("--volume", each)]
    faults = []
    for words in (samples, ["config", "get", "training.data.seq_length"]):
        code, output = call([str(docker), "run", *options, "--workdir", str(folder), "stock", str(script), *words], folder, environment)
        faults += [f"{words[0]}: exit status {code}\n{output}"] if code != 0 else []
    code, output = call([*run, "--set", "launch.program_inside=tprimat"], folder, environment)  # which this image has not
    faults += [] if code == 1 and "failed" in output else [f"program_inside: exit status {code}\n{output}"]
    return faults if (script.parent.parent / "samples.npy").exists() else [*faults, "no samples"]


def main():
    if sys.argv[1] == "container":
        return start_container(sys.argv[2:])
    if subprocess.run([*UNSHARE, "mount", "--rbind", "/proc", "/proc"], capture_output=True, check=False).returncode != 0:
        print("skipped: this user may not mount in a namespace of its own; run it as root, outside a container without CAP_SYS_ADMIN")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="tprimat_mounted_") as folder:
        faults = find_faults(str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(folder).resolve())
    print(*faults, sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
