"""Models and machines of the catalogues (src/core/spec/*.tsv), with the names that specifications of trainings use."""

import pathlib
import re

CATALOGUES = pathlib.Path(__file__).resolve().parents[2] / "src" / "core" / "spec"
NUMBERS = {"layers": "num_layers", "hidden": "hidden_size", "ffn": "ffn_hidden_size", "heads": "num_attention_heads",
           "kv_heads": "num_key_value_heads", "head_dim": "head_dim", "vocab": "vocab_size",
           "max_position": "max_position_embeddings"}
TRAITS = {"tied": {"tied_embeddings": True}, "qkv_bias": {"qkv_bias": True}, "linear_bias": {"linear_bias": True},
          "qk_norm": {"qk_norm": True}, "layer_norm": {"norm": "layer"}, "gelu": {"mlp": "gelu"},
          "learned_positions": {"position": "learned"}}
VALUES = {"theta": "rope_theta", "eps": "norm_eps"}


def read_rows(file):
    """The rows of a table as dictionaries, by the first column."""
    lines = [line.split("\t") for line in file.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return {line[0]: dict(zip(lines[0], line)) for line in lines[1:]}


def read_model(key):
    """The shape of a model of the catalogue, as a specification holds it."""
    row = read_rows(CATALOGUES / "models.tsv")[key]
    model = {"name": key, "full_name": row["full_name"], "tied_embeddings": False, "qkv_bias": False,
             "linear_bias": False, "norm": "rms", "mlp": "swiglu", "position": "rope", "norm_eps": 1e-5}
    model |= {name: int(row[column]) for column, name in NUMBERS.items()}
    for trait in row["traits"].split():
        name, _, value = trait.partition("=")
        if trait not in TRAITS and name not in VALUES:
            raise ValueError(f"{key}: the trait {trait} is not one that is compared here")
        model |= TRAITS[trait] if trait in TRAITS else {VALUES[name]: float(value)}
    return model


def read_machine(key):
    """Peak rate of matrix products in bf16, the most that was measured of it (both FLOP/s), bytes/s and bytes."""
    row = read_rows(CATALOGUES / "hardware.tsv")[key]
    rates = {column: dict(pair.split("=") for pair in row[column].split()) for column in ("dense", "mamf")}
    return {"name": row["full_name"], "flops": float(rates["dense"]["bf16"]) * 1e12,
            "achieved_flops": float(rates["mamf"]["bf16"]) * 1e12, "bandwidth": float(row["bandwidth_gbps"]) * 1e9,
            "memory": float(row["memory_gb"]) * 1e9, "source": row["source"]}


def find_machine(name):
    """The catalogue's machine that a driver calls so; None where it knows none."""
    plain = re.sub(r"[^a-z0-9]", "", name.lower())
    for key, row in read_rows(CATALOGUES / "hardware.tsv").items():
        if plain in [re.sub(r"[^a-z0-9]", "", known.lower()) for known in row["names"].split("|")] and row["mamf"]:
            return read_machine(key)
    return None


def count_parameters(m):
    hidden, width = m["hidden_size"], m["head_dim"]
    query, row = m["num_attention_heads"] * width, (m["num_attention_heads"] + 2 * m["num_key_value_heads"]) * width
    up = m["ffn_hidden_size"] * (2 if m["mlp"] == "swiglu" else 1)
    norm = hidden * (1 if m["norm"] == "rms" else 2)
    biases = (row if m["qkv_bias"] or m["linear_bias"] else 0) + (2 * hidden + up if m["linear_bias"] else 0)
    layer = hidden * (row + query + up + m["ffn_hidden_size"]) + 2 * norm + biases
    tables = m["vocab_size"] * hidden * (1 if m["tied_embeddings"] else 2)
    positions = m["max_position_embeddings"] * hidden if m["position"] == "learned" else 0
    return m["num_layers"] * layer + norm + tables + positions
