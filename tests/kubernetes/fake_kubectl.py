#!/usr/bin/env python3
"""Stands in for kubectl and the cluster behind it: each pod is a process of this machine, with a folder of the run of its own.

$FAKE_CLUSTER is the folder of its state; the file `behaviour` in it says, one word each, what goes wrong.
"""

import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import time

CLUSTER = pathlib.Path(os.environ["FAKE_CLUSTER"])
BEHAVIOUR = (CLUSTER / "behaviour").read_text().split() if (CLUSTER / "behaviour").exists() else []
UNSHARE = ["unshare", "-m"] if os.getuid() == 0 else ["unshare", "-rm"]
TAKES_VALUE = {"--selector", "--output", "--filename", "--container", "--field-selector"}


def scalar(text):
    if text.startswith('"'):
        return json.loads(text)
    if text in ("{}", "[]", "true", "false") or re.fullmatch(r"-?\d+", text):
        return json.loads(text)
    return text


class Reader:
    """The YAML that tprimat writes: maps, lists, plain and quoted words, blocks."""

    def __init__(self, text):
        self.lines = text.splitlines()
        self.at = 0

    def depth(self):
        line = self.lines[self.at]
        return len(line) - len(line.lstrip(" "))

    def more(self, depth):
        return self.at < len(self.lines) and self.depth() >= depth

    def value(self, depth):
        items = self.lines[self.at][depth:].startswith("- ")
        return self.items(depth) if items else self.members(depth)

    def items(self, depth):
        found = []
        while self.more(depth) and self.depth() == depth and self.lines[self.at][depth:].startswith("- "):
            rest = self.lines[self.at][depth + 2:]
            if re.match(r'("[^"]*"|[^" ]+):( |$)', rest):
                self.lines[self.at] = " " * (depth + 2) + rest
                found.append(self.members(depth + 2))
            else:
                found.append(scalar(rest))
                self.at += 1
        return found

    def members(self, depth):
        found = {}
        while self.more(depth) and self.depth() == depth and not self.lines[self.at][depth:].startswith("- "):
            key, rest = re.fullmatch(r'("[^"]*"|[^" ]+):(?: (.*))?', self.lines[self.at][depth:]).groups()
            self.at += 1
            found[scalar(key)] = self.block(depth + 2) if rest == "|" else self.value(depth + 2) if rest is None else scalar(rest)
        return found

    def block(self, depth):
        text = ""
        while self.at < len(self.lines) and (not self.lines[self.at] or self.depth() >= depth):
            text += self.lines[self.at][depth:] + "\n"
            self.at += 1
        return text


def read_manifest(path):
    return [Reader(text).value(0) for text in pathlib.Path(path).read_text().split("\n---\n")]


def start_pod(jobset, index, files):
    job = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]
    pod = job["template"]["spec"]
    container = pod["containers"][0]
    folder = CLUSTER / "pods" / f"{jobset['metadata']['name']}-node-0-{index}-x{index}"
    folder.mkdir(parents=True)
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    for each in container.get("env", []):
        environment[each["name"]] = each["value"].replace("$$", "$") if "value" in each else "the secret itself"
    environment["JOB_COMPLETION_INDEX"] = str(index)
    alone = [mount["mountPath"] for mount in container["volumeMounts"] if mount["name"] == "run"]
    if "elsewhere" in BEHAVIOUR:  # the volume is not the one that this machine has
        alone.append(os.path.dirname(environment["TPRIMAT_STEPS"]))
    mounts = "".join(f"mount -t tmpfs none {shlex.quote(path)} && " for path in alone)
    words = ["sh", str(files / "start.sh"), *[word.replace("$$", "$") for word in container["args"]]]
    if "oom" in BEHAVIOUR and index == 1:
        words = ["sh", "-c", "sleep 1; kill -9 $$"]
    with open(folder / "log", "wb") as log:
        subprocess.Popen(["sh", "-c", 'out=$1; shift; "$@"; echo $? > "$out/exit.new"; mv "$out/exit.new" "$out/exit"', "pod", str(folder),
                          *UNSHARE, "sh", "-c", mounts + 'exec "$@"', "pod", *words],
                         env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)


def create(options):
    (CLUSTER / "manifest.yaml").write_text(pathlib.Path(options["--filename"]).read_text())
    config, jobset = read_manifest(options["--filename"])
    if "no_jobset" in BEHAVIOUR:
        sys.exit('configmap/x created\nerror: resource mapping not found for name: "x": no matches for kind "JobSet" in version '
                 '"jobset.x-k8s.io/v1alpha2"\nensure CRDs are installed first')
    if "exists" in BEHAVIOUR:
        sys.exit('Error from server (AlreadyExists): jobsets.jobset.x-k8s.io "x" already exists')
    files = CLUSTER / "files"
    files.mkdir(parents=True)
    for key, content in config["data"].items():
        (files / key).write_text(content)
    (CLUSTER / "started").write_text(str(time.time()))
    if not {"unschedulable", "image"} & set(BEHAVIOUR):
        for index in range(jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["completions"]):
            start_pod(jobset, index, files)


def end_pod(folder, number):
    pids = subprocess.run(["pgrep", "-f", f"pod {folder} "], capture_output=True, text=True).stdout.split()
    for pid in pids:
        try:
            os.killpg(int(pid), number)
        except (ProcessLookupError, PermissionError):
            pass


def delete(_):
    with open(CLUSTER / "deleted", "a") as log:
        log.write("deleted\n")
    for folder in CLUSTER.glob("pods/*"):
        end_pod(folder, signal.SIGTERM)
    for folder in CLUSTER.glob("pods/*"):
        end_pod(folder, signal.SIGKILL)


def status_of(folder):
    exit_file = folder / "exit"
    if not exit_file.exists():
        return {"phase": "Running", "containerStatuses": [{"name": "train", "state": {"running": {}}}]}
    code = int(exit_file.read_text())
    reason = "Completed" if code == 0 else "OOMKilled" if "oom" in BEHAVIOUR and code == 137 else "Error"
    return {"phase": "Failed" if code else "Succeeded",
            "containerStatuses": [{"name": "other"}, {"name": "train", "state": {"terminated": {"reason": reason, "exitCode": code}}}]}


def pending(index):
    if "image" in BEHAVIOUR:
        waiting = {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "x": not found'}
        return {"phase": "Pending", "containerStatuses": [{"name": "train", "state": {"waiting": waiting}}]}
    message = "0/3 nodes are available:\n3 Insufficient nvidia.com/gpu | untolerated taint"
    return {"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "Unschedulable", "message": message}]}


def pod_object(name, index, status):
    return {"metadata": {"name": name, "annotations": {"batch.kubernetes.io/job-completion-index": str(index)}}, "status": status}


def list_pods():
    if {"unschedulable", "image"} & set(BEHAVIOUR):
        return [pod_object(f"pod-{index}", index, pending(index)) for index in range(2)]
    pods = [pod_object(folder.name, folder.name[-1], status_of(folder)) for folder in sorted(CLUSTER.glob("pods/*"))]
    failed = any(pod["status"]["phase"] == "Failed" for pod in pods)
    for pod in pods:  # the others of a job that failed are deleted
        if failed and pod["status"]["phase"] == "Running":
            end_pod(CLUSTER / "pods" / pod["metadata"]["name"], signal.SIGKILL)
    if "vanish" in BEHAVIOUR and time.time() - float((CLUSTER / "started").read_text()) > 3:
        delete(None)
        return []
    return [pod for pod in pods if not (failed and pod["status"]["phase"] == "Running")]


def values_at(node, path):
    nodes = [node]
    for name, condition in re.findall(r"\.((?:\\.|[\w/-])+)|\[([^\]]*)\]", path):
        if name:
            nodes = [each[name.replace("\\", "")] for each in nodes if isinstance(each, dict) and name.replace("\\", "") in each]
        else:
            nodes = [item for each in nodes for item in each]
            if condition != "*":
                key, value = re.fullmatch(r'\?\(@\.(\w+)=="(\w+)"\)', condition).groups()
                nodes = [each for each in nodes if each.get(key) == value]
    return nodes


def fill(template, node):
    """kubectl's jsonpath, as much as the scripts use."""
    looped = re.fullmatch(r"\{range ([^}]*)\}(.*)\{end\}", template)
    if looped:
        return "".join(fill(looped[2], each) for each in values_at(node, looped[1]))

    def replace(match):
        expression = match[1]
        if expression.startswith("'"):
            return expression[1:-1].replace("\\n", "\n")
        return " ".join(str(value) for value in values_at(node, expression))
    return re.sub(r"\{([^{}]*)\}", replace, template)


def get(options, words):
    template = options["--output"].removeprefix("jsonpath=")
    if words[0] == "pods":
        answer = {"items": list_pods()}
    elif words[0] == "pod":
        answer = next(pod for pod in list_pods() if pod["metadata"]["name"] == words[1])
    else:
        answer = {"items": [{"reason": "FailedMount", "message": "no such claim"}]}
    sys.stdout.write(fill(template, answer))


def logs(options, words):
    folder = CLUSTER / "pods" / words[0]
    position = 0
    while True:
        ended = (folder / "exit").exists() or (CLUSTER / "deleted").exists()
        text = (folder / "log").read_bytes()
        text = text[:text.rfind(b"\n") + 1] if not ended else text
        sys.stdout.buffer.write(text[position:])
        sys.stdout.buffer.flush()
        position = len(text)
        if ended or "--follow" not in options:
            return
        if "drop" in BEHAVIOUR and text.count(b"iteration") >= 100 and not (CLUSTER / "dropped").exists():
            (CLUSTER / "dropped").write_text("while the pod ran")
            sys.exit("error: unexpected EOF")
        time.sleep(0.1)


def main():
    with open(CLUSTER / "calls", "a") as log:
        log.write(" ".join(sys.argv[1:]) + "\n")
    options, words, arguments = {}, [], iter(sys.argv[1:])
    for word in arguments:
        if word.startswith("--"):
            name, _, value = word.partition("=")
            options[name] = value or (next(arguments) if name in TAKES_VALUE else "")
        else:
            words.append(word)
    verb = words.pop(0)
    if verb == "get":
        return get(options, words)
    if verb == "logs":
        return logs(options, words)
    return {"create": create, "delete": delete, "describe": lambda _: print("Name: pod")}[verb](options)


if __name__ == "__main__":
    main()
