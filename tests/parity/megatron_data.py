#!/usr/bin/env python3
"""The data module against Megatron-LM's own: files byte for byte, and the order of samples number for number.

  megatron_data.py PROGRAM                  every check; PROGRAM is the test program dump_data
  megatron_data.py --write-goldens FILE     what tests/unit/data/sample_order_test.cpp compares with

TPRIMAT_PYTHON names the Python to use: one that has megatron-core, torch and numpy.
Exit status: 0 all the same, 1 not, 77 this Python has no megatron-core.
"""

import argparse
import importlib.util
import json
import pathlib
import random
import subprocess
import sys
import tempfile

from chosen_python import use_chosen_python

SKIPPED = 77
TYPES = ("uint8", "int8", "int16", "int32", "int64", "float64", "float32", "uint16")
SPLITS = ("train", "valid", "test")


def find_megatron():
    if all(importlib.util.find_spec(name) for name in ("megatron", "torch", "numpy")):
        return True
    print(f"skipped: {sys.executable} has no megatron-core\n"
          "  python3 -m venv /tmp/megatron && /tmp/megatron/bin/pip install megatron-core torch numpy\n"
          "  TPRIMAT_PYTHON=/tmp/megatron/bin/python ctest -L parity")
    return False


class Tokenizer:
    """What GPTDataset asks of a tokenizer."""
    vocab_size = 1 << 20
    eod = 0
    pad = -1
    unique_identifiers = {"class": "none"}


def write_pair(prefix, dtype, documents):
    """documents: lists of sequences, lists of tokens."""
    import numpy
    import torch
    from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder
    builder = IndexedDatasetBuilder(f"{prefix}.bin", dtype=getattr(numpy, dtype))
    for document in documents:
        for sequence in document:
            builder.add_item(torch.tensor(sequence, dtype=torch.int64))
        builder.end_document()
    builder.finalize(f"{prefix}.idx")


def megatron_order(prefix, case):
    """The training, validation or test GPTDataset of a pair, built as Megatron builds it."""
    from megatron.core.datasets.blended_megatron_dataset_builder import BlendedMegatronDatasetBuilder
    from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig
    config = GPTDatasetConfig(random_seed=case["seed"], sequence_length=case["sequence_length"], blend=([str(prefix)], None),
                              split=case["weights"], tokenizer=Tokenizer(), reset_position_ids=False, reset_attention_mask=False,
                              eod_mask_loss=False, create_attention_mask=False, path_to_cache=None)
    wanted = SPLITS.index(case["split"])
    sizes = [1, 1, 1]
    sizes[wanted] = case["samples"] or None
    config.split_matrix = [part if i == wanted else None for i, part in enumerate(config.split_matrix)]
    data = BlendedMegatronDatasetBuilder(GPTDataset, sizes, lambda: True, config).build()[wanted]
    samples = [data._query_document_sample_shuffle_indices(i)[0].tolist() for i in range(len(data))]
    return {"document_index": data.document_index.tolist(), "sample_index": data.sample_index.tolist(),
            "shuffle_index": data.shuffle_index.tolist(), "samples": samples}


def draw_case(rng):
    """Lengths from 0 to 40, one to many epochs, so that every rule is met: also the separated last epoch, and documents that end
    where samples do."""
    lengths = [rng.choice((0, 1, 2, rng.randint(1, 40))) for _ in range(rng.randint(12, 60))]
    per_epoch = max(1, sum(lengths) // 5)
    return {"lengths": lengths, "sequence_length": rng.choice((2, 3, 5, 8)), "seed": rng.randint(0, 2**32 - 1),
            "weights": rng.choice(("100,0,0", "949,50,1", "8,1,1", "70,30", "0.5, 0.25, 0.25", "1")),
            "split": "train", "samples": rng.choice((0, 1, rng.randint(1, per_epoch), rng.randint(1, 4 * per_epoch)))}


def tokens_of(lengths):
    """0, 1, 2, ... over all sequences, so that a token says where it stands."""
    start = 0
    for length in lengths:
        yield list(range(start, start + length))
        start += length


def draw_cases(count, seed):
    rng = random.Random(seed)
    for _ in range(count):
        case = draw_case(rng)
        if case["weights"] in ("8,1,1", "0.5, 0.25, 0.25"):
            case["split"] = rng.choice(SPLITS)
        yield case


def count_tokens(case):
    from megatron.core.datasets.blended_megatron_dataset_config import convert_split_vector_to_split_matrix, parse_and_normalize_split
    part = convert_split_vector_to_split_matrix(parse_and_normalize_split(case["weights"]))[SPLITS.index(case["split"])]
    begin, end = (int(round(border * float(len(case["lengths"])))) for border in part)
    return sum(case["lengths"][begin:end])


def check_orders(program, folder, count):
    bad = 0
    for number, case in enumerate(draw_cases(count, 7)):
        if count_tokens(case) <= case["sequence_length"]:
            continue
        prefix = folder / f"order{number}"
        write_pair(prefix, "int32", [[sequence] for sequence in tokens_of(case["lengths"])])
        words = [program, "order", prefix, case["sequence_length"], case["seed"], case["weights"], case["split"], case["samples"]]
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
        ours = json.loads(done.stdout) if done.returncode == 0 else done.stderr
        if ours != megatron_order(prefix, case):
            bad += 1
            print(f"differs: {case}\n  {done.stderr}")
    print(f"order of samples: {bad} of {count} drawn data sets differ from GPTDataset")
    return bad


def read_pair(prefix):
    from megatron.core.datasets.indexed_dataset import IndexedDataset
    data = IndexedDataset(str(prefix))
    return [data[i].tolist() for i in range(len(data))], data.document_indices.tolist()


def check_files(program, folder):
    bad = 0
    rng = random.Random(3)
    for dtype in TYPES:
        documents = [[[rng.randint(0, 127) for _ in range(rng.randint(1, 30))] for _ in range(rng.randint(1, 3))] for _ in range(9)]
        theirs, ours = folder / f"theirs_{dtype}", folder / f"ours_{dtype}"
        write_pair(theirs, dtype, documents)
        subprocess.run([program, "copy", str(theirs), str(ours)], check=True)
        same = all((folder / f"theirs_{dtype}.{end}").read_bytes() == (folder / f"ours_{dtype}.{end}").read_bytes()
                   for end in ("bin", "idx"))
        sequences, borders = read_pair(ours)
        readable = [sequence for document in documents for sequence in document] == sequences and len(borders) == len(documents) + 1
        bad += not (same and readable)
        print(f"{dtype:8} {'same bytes' if same else 'OTHER BYTES'}, {'read by' if readable else 'NOT READ BY'} IndexedDataset")
    return bad


def write_goldens(path):
    """Drawn cases with what GPTDataset makes of them; samples left out, they follow from the indices."""
    goldens = []
    with tempfile.TemporaryDirectory() as folder:
        for number, case in enumerate(draw_cases(40, 11)):
            if count_tokens(case) <= case["sequence_length"] or len(case["lengths"]) > 36:
                continue
            prefix = pathlib.Path(folder) / f"golden{number}"
            write_pair(prefix, "int32", [[sequence] for sequence in tokens_of(case["lengths"])])
            result = megatron_order(prefix, case)
            del result["samples"]
            if len(result["shuffle_index"]) < 400:
                goldens.append({**case, **result})
    path.write_text("[\n" + ",\n".join(json.dumps(golden) for golden in goldens) + "\n]\n")
    print(f"{len(goldens)} cases")


def main():
    use_chosen_python()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?")
    parser.add_argument("--write-goldens", type=pathlib.Path)
    parser.add_argument("--cases", type=int, default=60)
    arguments = parser.parse_args()
    if not find_megatron():
        return SKIPPED
    if arguments.write_goldens:
        return write_goldens(arguments.write_goldens)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        return int(check_files(arguments.program, folder) + check_orders(arguments.program, folder, arguments.cases) > 0)


if __name__ == "__main__":
    sys.exit(main())
