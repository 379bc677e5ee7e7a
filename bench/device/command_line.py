"""The options of measure.py, checked before anything starts."""

import argparse
import json
import math
import os
import pathlib

import parts
import programs
import shapes
import trainings

SHAPE = {**dict.fromkeys(shapes.NUMBERS.values(), int), "norm": str, "mlp": str, "position": str, "norm_eps": parts.NUMBER,
         "tied_embeddings": bool, "qkv_bias": bool, "linear_bias": bool}
SETTINGS = {"attention": ("cudnn", "flash", "math", "efficient"), "compile": ("no", "blocks", "whole"),
            "loss": ("whole", "chunked"), "checkpoint": (0, 1, 2)}
PEERS = ("compile", "eager", "hf")


class Parser(argparse.ArgumentParser):
    def error(self, message):
        programs.refuse(2, message)


def read_call(text):
    by_letter = {letter: call for call, letter in parts.CALLS.items()}
    call = by_letter.get(text, text)
    if call not in parts.CALLS:
        known = [f"{name} ({letter})" for name, letter in parts.CALLS.items()]
        choose = f"choose {', '.join(known[:-1])} or {known[-1]}; see native.sh --help"
        programs.refuse(2, f"unknown call '{text}'; {choose}" if text else f"no call is named; {choose}")
    return call


def read_json(path):
    try:
        return json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as failure:
        programs.refuse(2, f"{path} cannot be read as JSON: {failure}")


def read_shapes(path):
    found = read_json(path) if path else {}
    if not parts.fits(found, {str: SHAPE}):
        programs.refuse(2, f"{path} must map each model's name to its shape: {', '.join(SHAPE)}")
    for name, shape in found.items():
        if min(shape[number] for number in shapes.NUMBERS.values()) <= 0:
            programs.refuse(2, f"{path}: the sizes of {name} must be positive")
    return found


def check_model(name, extra, call):
    if name not in extra and name not in shapes.read_rows(shapes.CATALOGUES / "models.tsv"):
        known = ", ".join([*shapes.read_rows(shapes.CATALOGUES / "models.tsv"), *extra])
        programs.refuse(2, f"unknown model '{name}'; the models are {known}; --shapes adds others")
    try:
        model = extra.get(name) or shapes.read_model(name)
    except ValueError as failure:
        programs.refuse(2, str(failure))
    if call == "peers" and model.get("qk_norm"):
        programs.refuse(2, f"{name} has qk_norm, which bench/peers/torch_step.py lacks; choose other models for peers")


def read_cell(text, extra, call):
    try:
        cell = trainings.parse_cell(text)
    except ValueError:
        programs.refuse(2, f"'{text}' is no MODEL:LENGTHxSEQUENCES[:FORMATS]")
    check_model(cell.model, extra, call)
    if cell.formats not in trainings.FORMATS:
        programs.refuse(2, f"unknown formats '{cell.formats}' in '{text}'; choose {' or '.join(trainings.FORMATS)}")
    if min(cell.length, cell.sequences) <= 0:
        programs.refuse(2, f"length and sequences must be positive in '{text}'")
    return cell


def read_choices(path):
    found = read_json(path)
    if not parts.fits(found, {"choices": {str: {str: dict}}}):
        programs.refuse(2, f"{path} must hold 'choices': settings by cell and peer")
    for cell, peers in found["choices"].items():
        for peer, setting in peers.items():
            wrong = [f"{key}={value}" for key, value in setting.items() if value not in SETTINGS.get(key, ())]
            if peer not in PEERS or wrong:
                programs.refuse(2, f"{path}: {cell}: " + (f"unknown setting {wrong[0]}" if peer in PEERS else
                                                          f"unknown peer '{peer}'; choose {', '.join(PEERS)}"))
    return found["choices"]


def make_parser(description):
    parser = Parser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter, prog="native.sh")
    parser.add_argument("call", nargs="?", help=", ".join(parts.CALLS) + ", or their letters a to f")
    parser.add_argument("--programs", type=pathlib.Path, metavar="FOLDER",
                        help="folder with the programs or programs.tar.xz (PROGRAMS)")
    parser.add_argument("--budget", type=float, default=450, metavar="SECONDS", help="time of the whole call (450)")
    parser.add_argument("--resume", type=pathlib.Path, metavar="FOLDER",
                        help="resume from the results in FOLDER (OUT, then bench/results, of the same card)")
    parser.add_argument("--again", action="store_true", help="ignore earlier results")
    parser.add_argument("--dry-run", action="store_true", help="print the command lines of one round, start none")
    parser.add_argument("--device", choices=("nvd", "cpu"), default="nvd",
                        help="where our trainer and its peers run (nvd)")
    parser.add_argument("--cells", nargs="+", default=[cell.name() for cell in trainings.CELLS],
                        metavar="MODEL:LENGTHxSEQUENCES[:bf16|:masters]",
                        help="models (src/core/spec/models.tsv, --shapes), tokens x sequences of a step, number formats")
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each contender (3)")
    parser.add_argument("--steps", type=int, default=8, help="timed steps of a process (8)")
    parser.add_argument("--choices", metavar="FILE", default=programs.HERE / "choices.json", help="initial peer settings")
    parser.add_argument("--shapes", metavar="FILE", help="JSON file of additional models: name to shape")
    return parser


def read_options(description):
    options = make_parser(description).parse_args()
    options.call = read_call(options.call)
    if not (math.isfinite(options.budget) and options.budget > 0):
        programs.refuse(2, f"--budget must be a finite positive number of seconds, not {options.budget:g}")
    for name in ("rounds", "steps"):
        if getattr(options, name) <= 0:
            programs.refuse(2, f"--{name} must be positive, not {getattr(options, name)}")
    if options.resume and not options.resume.is_dir():
        programs.refuse(2, f"--resume: there is no folder {options.resume}")
    options.shapes, options.choices = read_shapes(options.shapes), read_choices(options.choices)
    options.cells = [read_cell(text, options.shapes, options.call) for text in options.cells]
    options.programs = options.programs or os.environ.get("PROGRAMS")
    return options


def check_writable(out):
    there = next(each for each in (out, *out.parents) if each.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        programs.refuse(2, f"results cannot be written to {out}; name another folder in OUT")
