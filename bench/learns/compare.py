#!/usr/bin/env python3
"""Does the native trainer learn what PyTorch learns? One Llama shape on real text, twice, and both validation losses.

  compare.py PROGRAM                              about 10 minutes on two quiet cores
  compare.py PROGRAM --precision fp32             about twice as long; the curves then agree to many digits
  compare.py PROGRAM --steps 2000 --layers 10     longer, and a model of 20.9 M parameters instead of 13.8 M
  compare.py PROGRAM --text FILE                  other text than Jane Austen's novels and the World English Bible,
                                                  which apt-get download fetches (packages r-cran-janeaustenr and
                                                  sword-text-web; nothing is installed)

PROGRAM is tprimat, release build. The Python package `tokenizers` trains a byte-level BPE of 8192 tokens on the text,
`tprimat data encode` turns the text into a .bin/.idx pair, transformers makes the random model that both start from.
PyTorch reads the pair in Megatron's order by code of its own, with the same AdamW, schedule and clipping. The natively
trained model is also exported, and PyTorch evaluates it.

TPRIMAT_PYTHON names a Python with torch, transformers, tokenizers and numpy. Exit status: 0 when the last validation
losses agree within 1 %, 1 when not.
"""

import argparse
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "peers"))
import contenders  # PyTorch gets the allocator that it gets there

VOCABULARY, LENGTH, SPLIT, TOLERANCE = 8192, 256, "95,5,0", 0.01


def use_chosen_python():
    chosen = os.environ.pop("TPRIMAT_PYTHON", None)
    if chosen:
        os.execv(chosen, [chosen, *sys.argv])


def train_tokenizer(documents, path):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY, special_tokens=["<|endoftext|>"], show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(documents, trainer)
    tokenizer.save(str(path))


def encode(options, folder):
    import corpus
    documents = corpus.documents_of(options.text) if options.text else corpus.read_documents(folder)
    training = int(len(documents) * 0.95)
    train_tokenizer(documents[:training], folder / "tokenizer.json")
    with open(folder / "text.jsonl", "w", encoding="utf-8") as out:
        out.writelines(json.dumps({"text": document}, ensure_ascii=False) + "\n" for document in documents)
    subprocess.run([options.program, "data", "encode", folder / "text.jsonl", "--tokenizer", folder / "tokenizer.json",
                    "--output", folder / "text", "--append-eod", "--quiet"], check=True, stdout=subprocess.DEVNULL)
    print(f"{sum(len(document.encode()) for document in documents) / 1e6:.1f} MB of text, {len(documents)} documents")


def make_model(options, folder):
    """A random model in Hugging Face's files, and its shape as the native trainer writes it."""
    import torch
    import transformers
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    heads, hidden = options.hidden // 64, options.hidden
    ffn = -(-hidden * 8 // 3 // 64) * 64
    torch.manual_seed(options.seed)
    config = transformers.LlamaConfig(
        num_hidden_layers=options.layers, hidden_size=hidden, intermediate_size=ffn, num_attention_heads=heads,
        num_key_value_heads=heads, head_dim=64, vocab_size=VOCABULARY, max_position_embeddings=LENGTH,
        rms_norm_eps=1e-5, tie_word_embeddings=True, bos_token_id=None, eos_token_id=0,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0})
    model = transformers.AutoModelForCausalLM.from_config(config)
    model.save_pretrained(folder / "model")
    print(f"{model.num_parameters() / 1e6:.1f} M parameters")
    return {"name": "learner", "num_layers": options.layers, "hidden_size": hidden, "ffn_hidden_size": ffn,
            "num_attention_heads": heads, "num_key_value_heads": heads, "head_dim": 64, "vocab_size": VOCABULARY,
            "max_position_embeddings": LENGTH, "tied_embeddings": True, "rope_theta": 10000.0, "norm_eps": 1e-5}


def write_spec(options, folder):
    interval = max(1, options.steps // 4)
    spec = {
        "model": make_model(options, folder), "data": {"dataset": str(folder / "text"), "split": SPLIT},
        "optimizer": {"learning_rate": 1e-3, "min_learning_rate": 1e-4, "warmup_steps": max(1, options.steps // 10),
                      "schedule": "cosine", "beta1": 0.9, "beta2": 0.95, "epsilon": 1e-8, "weight_decay": 0.1,
                      "clip_grad_norm": 1.0},
        "precision": options.precision, "sequence_length": LENGTH, "micro_batch_size": 16, "global_batch_size": 16,
        "steps": options.steps, "seed": options.seed, "threads": options.threads,
        "evaluation": {"interval": interval, "batches": 10},
        "checkpoint": {"initial_weights": str(folder / "model")}}
    (folder / "spec.json").write_text(json.dumps(spec, indent=2))
    return spec


def train_natively(options, folder):
    steps = folder / "steps.jsonl"
    steps.unlink(missing_ok=True)
    shutil.rmtree(folder / "trained", ignore_errors=True)
    subprocess.run([options.program, "train", "--spec", folder / "spec.json", "--save", folder / "checkpoints",
                    "--no-resume", "--export", folder / "trained"], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "TPRIMAT_STEPS": str(steps)})
    records = [json.loads(line) for line in steps.read_text().splitlines()]
    record = {"losses": [each["loss"] for each in records], "seconds": [each["time_seconds"] for each in records],
              "validation": {str(each["step"]): each["validation_loss"] for each in records
                             if "validation_loss" in each}}
    for step, loss in record["validation"].items():
        print(f"native   step {step}  training {record['losses'][int(step) - 1]:.4f}  validation {loss:.4f}",
              flush=True)
    return record


def run_torch(options, folder, *flags):
    environment = {**os.environ, "OMP_NUM_THREADS": str(options.threads), "GLIBC_TUNABLES": contenders.ALLOCATOR,
                   "HF_HUB_OFFLINE": "1"}
    subprocess.run([sys.executable, HERE / "torch_train.py", folder / "spec.json", folder / "torch.json", *flags],
                   check=True, env=environment)
    return json.loads((folder / "torch.json").read_text())


def unigram_loss(spec):
    """Nats per token of the validation split for one who knows only how frequent each token is in training."""
    import numpy
    import samples
    pair = samples.Pair(spec["data"]["dataset"])
    parts = [range(*samples.split_of(SPLIT, which, len(pair.sizes))) for which in (0, 1)]
    counts = [numpy.bincount(numpy.concatenate([pair.sequence(number) for number in part]), minlength=VOCABULARY)
              for part in parts]
    known = (counts[0] + 1) / (counts[0].sum() + VOCABULARY)
    return float(-(counts[1] * numpy.log(known)).sum() / counts[1].sum())


def judge(spec, native, peer, again):
    """Prints the table; returns the last validation losses' relative difference."""
    print(f"\n{'step':>6}{'native':>10}{'PyTorch':>10}{'difference':>12}   validation loss, nats per token")
    for step, ours in native["validation"].items():
        theirs = peer["validation"][step]
        difference = ours / theirs - 1
        print(f"{step:>6}{ours:10.4f}{theirs:10.4f}{difference:+12.3%}")
    worst = max(abs(a / b - 1) for a, b in zip(native["losses"], peer["losses"], strict=True))
    print(f"a guess by frequency alone: {unigram_loss(spec):.4f}; without any knowledge: {math.log(VOCABULARY):.4f}")
    print(f"largest difference of a step's training loss: {worst:.2%}")
    print(f"the natively trained model, evaluated by PyTorch: {again:.4f} (by us {ours:.4f})")
    tokens = spec["global_batch_size"] * spec["sequence_length"] * spec["steps"]
    print(f"training time: native {sum(native['seconds']):.0f} s, PyTorch {sum(peer['seconds']):.0f} s"
          f" for {tokens} tokens")
    return difference


def compare(options, folder):
    encode(options, folder)
    spec = write_spec(options, folder)
    native = train_natively(options, folder)
    peer = run_torch(options, folder)
    again = run_torch(options, folder, "--evaluate", folder / "trained")["validation"]
    difference = judge(spec, native, peer, again)
    if options.json:
        options.json.write_text(json.dumps({
            "spec": spec, "native": native, "torch": peer, "native_evaluated_by_torch": again,
            "unigram": unigram_loss(spec), "difference": difference}, indent=1))
    good = abs(difference) <= TOLERANCE
    print(f"{'within' if good else 'NOT within'} {TOLERANCE:.0%}")
    return 0 if good else 1


def main():
    use_chosen_python()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--hidden", type=int, default=384, help="a multiple of 64")
    parser.add_argument("--precision", choices=("bf16", "fp32"), default="bf16")
    parser.add_argument("--seed", type=int, default=1234)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--text", help="a UTF-8 file of at least 5 MB")
    parser.add_argument("--folder", type=pathlib.Path, help="keep everything here (text, tokenizer, models)")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write both curves")
    options = parser.parse_args()
    options.program = shutil.which(options.program) or sys.exit(f"{options.program}: no such program")
    if options.folder:
        options.folder.mkdir(parents=True, exist_ok=True)
        return compare(options, options.folder.resolve())
    with tempfile.TemporaryDirectory() as folder:
        return compare(options, pathlib.Path(folder))


if __name__ == "__main__":
    sys.exit(main())
