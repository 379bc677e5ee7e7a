#!/usr/bin/env python3
"""Text and a vocabulary for bench/encode/compare.py, from what Debian installs.

    make_corpus.py FOLDER [--megabytes 100]

Writes FOLDER/text.jsonl (documents of up to 20 000 characters from documentation and manual pages, markup removed) and
FOLDER/tokenizer.json (GPT-2's pre-tokenizer, 50257 tokens, trained by the Python package `tokenizers` on 60 MB of it). Much text
comes with the packages linux-doc-6.1, python3-doc, debian-handbook, wordnet-base, manpages-de, manpages-fr, manpages-ja, manpages-ru.
"""
import argparse
import gzip
import html
import json
import pathlib
import random
import re

ROOTS = ("/usr/share/doc", "/usr/share/man", "/usr/share/wordnet")
NOT_TEXT = {".png", ".js", ".css", ".map", ".json", ".svg", ".jpg", ".gif", ".woff", ".woff2", ".inv"}
MARKUP = re.compile(r"<(script|style).*?</\1>|<[^>]+>", re.S)


def read_text(path):
    try:
        content = path.read_bytes()
        text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8")
    except (OSError, EOFError, UnicodeDecodeError):
        return ""
    return html.unescape(MARKUP.sub("", text)) if ".html" in path.name else text


def collect(most):
    paths = [path for root in ROOTS for path in sorted(pathlib.Path(root).rglob("*"))
             if path.is_file() and not path.is_symlink() and path.suffix not in NOT_TEXT]
    random.Random(1).shuffle(paths)
    size = 0
    for path in paths:
        text = read_text(path).replace("\0", "")
        for start in range(0, len(text), 20000):
            document = text[start:start + 20000]
            if len(document) > 200:
                yield document
                size += len(document.encode())
        if size > most:
            return


def train(documents, path):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=50257, special_tokens=["<|endoftext|>"], show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(documents, trainer)
    tokenizer.save(str(path))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--megabytes", type=float, default=100)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    documents = list(collect(options.megabytes * 1e6))
    random.Random(2).shuffle(documents)
    with open(options.folder / "text.jsonl", "w") as out:
        out.writelines(json.dumps({"text": document}, ensure_ascii=False) + "\n" for document in documents)
    print(f"{len(documents)} documents, {sum(len(document.encode()) for document in documents) / 1e6:.0f} MB")
    train(documents[:int(len(documents) * 0.6)], options.folder / "tokenizer.json")


if __name__ == "__main__":
    main()
