"""The causes of slowness that the tests put into trainings: what each does, and which term of the ledger it belongs to."""

import dataclasses

# A small model: a step takes 10 ms in the native trainer, and a cause of 20 ms is large.
CONFIG = """
experiment: {{name: why, methodology: one}}
hardware: {{platforms: {{cpu: {{num_gpus: {ranks}}}}}}}
models:
  llama: {{num_layers: {layers}, hidden_size: {hidden}, ffn_hidden_size: {ffn}, num_attention_heads: 4, num_key_value_heads: 4,
           head_dim: {head}, vocab_size: 512, max_position_embeddings: 256}}
training:
  data: {{seq_length: {length}, micro_batch_size: {micro}, global_batch_size: {batch}}}
  duration: {{max_steps: {steps}}}
  optimizer: {{warmup_steps: 4}}
parallelism: {{one: {{llama: {{cpu: {{DP: {ranks}}}}}}}}}
platform_optimizations: {{cpu: {{precision: fp32, recompute: {recompute}}}}}
benchmarking:
  warmup: 4
  enhanced_metrics: {{hardware_specs: {{cpu_auto: {{peak_tflops_fp32: 1.0e+15, peak_tflops_bf16: 1.0e+15}}}}}}
"""
SIZES = {"ranks": 1, "layers": 2, "hidden": 128, "ffn": 352, "length": 64, "micro": 8, "batch": 8, "steps": 34,
         "recompute": "none"}


@dataclasses.dataclass
class Cause:
    """A is the plain training with `sizes`; B has `changed` sizes or the injection besides."""

    name: str
    terms: tuple[str, ...]  # of the ledger: the injected time is theirs
    sizes: dict = dataclasses.field(default_factory=dict)  # of both sides
    changed: dict = dataclasses.field(default_factory=dict)  # of B
    injection: str = ""  # into B, as the injectors read it
    both: str = ""  # an injection into A and B
    slow_sockets: float = 0  # seconds per byte, in B
    busy_core: int | None = None  # a process that does nothing else runs there during B
    profiled_steps: int = 20
    takes_turns: bool = True  # A and B, with their steps; else B follows A
    sleeps: bool = False  # the processor would sleep, and compute slower afterwards: another process keeps it awake
    reported: bool = False  # the injector measures what it injects; else it is the gap of the unprofiled steps

    def config(self, side):
        sizes = {**SIZES, **self.sizes, **(self.changed if side == "B" else {})}
        return CONFIG.format(**sizes, head=sizes["hidden"] // 4)

    @property
    def ranks(self):
        return {**SIZES, **self.sizes}["ranks"]


NATIVE = [
    # What recomputation leaves in the caches saves little of a larger step.
    Cause("recompute", ("work",), sizes={"hidden": 512, "ffn": 1408}, changed={"recompute": "full"}),
    Cause("data loader", ("data",), injection="data:0.02", sleeps=True, reported=True),
    # The kernel gives a busy core away in pieces of some ms: many steps, so that their means tell something.
    Cause("busy core", ("waiting",), sizes={"ranks": 2, "batch": 16, "steps": 90}, both="pin:1:1", busy_core=1,
          profiled_steps=80, takes_turns=False),
    Cause("micro-batches", ("micro_batches",), sizes={"length": 16, "micro": 32, "batch": 32}, changed={"micro": 1}),
    Cause("copies", ("one_sided",), injection="copies:1500", reported=True),
    Cause("collectives", ("communication",), sizes={"ranks": 2, "batch": 16}, injection="collectives:4e-8", reported=True),
    Cause("slow steps", ("outliers",), injection="slow_step:0.2:5", sleeps=True, reported=True),
]
FEW = {"steps": 8}  # only the recorded steps are compared
# A step so short that its variation is small beside the injected time.
SHORT = {**FEW, "layers": 1, "micro": 2, "batch": 2}
# A step of 100 ms, of which the profiler takes little.
LARGER = {**FEW, "hidden": 256, "ffn": 704, "length": 128}
TORCH = [
    Cause("recompute", ("work",), sizes={**LARGER, "length": 256}, changed={"recompute": "full"}),
    Cause("data loader", ("data",), sizes=SHORT, injection="data:0.02", sleeps=True, reported=True),
    Cause("busy core", ("waiting",), sizes={**LARGER, "ranks": 2, "batch": 16}, both="pin:1:1", busy_core=1,
          takes_turns=False),
    Cause("micro-batches", ("micro_batches",), sizes=LARGER, changed={"micro": 1}),
    Cause("copies", ("one_sided",), sizes=FEW, injection="copies:128", reported=True),
    Cause("collectives", ("communication",), sizes={**LARGER, "ranks": 2, "batch": 16}, slow_sockets=1e-8),
    Cause("slow steps", ("outliers",), sizes=SHORT, injection="slow_step:0.5:5", sleeps=True, reported=True),
]
# Pairs of equal trainings, by framework.
EQUAL = {"native": Cause("equal", ()), "tran": Cause("equal", (), sizes=LARGER)}
