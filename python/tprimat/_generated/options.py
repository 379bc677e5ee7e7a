"""The options of the commands, by their names in Python."""

# Written by scripts/generate_options.py; do not edit.

from __future__ import annotations

from tprimat.words import Amount, CallOptions, Place, Values, Whole


class RunOptions(CallOptions, total=False):
    """Options of `tprimat run`."""

    # Override one key, e.g. --set training.data.seq_length=4096; may be repeated
    set: Values
    # auto (this machine's platform), nvd, amd or cpu (default: auto)
    platform: Values
    # Frameworks to run, separated by commas, or all (default: as configured); mega@LABEL names an installation
    framework: Values
    # Configured models, separated by commas (default: all)
    model: Values
    # Configured layouts, separated by commas (default: experiment.methodology)
    strategy: Values
    # What to do with settings that a framework does not support: strict (refuse) or nearest (the closest that it
    # supports)
    adapt: Values
    # Launcher that starts the ranks: local, mpi, slurm, docker or kubernetes
    launcher: Values
    # Nodes per training (default: as configured, else 1)
    nodes: Amount
    # Prefix of a Megatron .bin/.idx pair, or synthetic
    dataset: Place
    # Directory for results and logs (default: as configured, else ./output)
    output: Place
    # Optimizer steps of every run (default: as configured)
    steps: Whole
    # Stop a run after this time: 90, 90s, 30m, 2h
    timeout: Values
    # Stop a run when no step arrives for this many median step times, at least a minute; 0: never (default: 20)
    hang_factor: Amount
    # Time limit for the first steps, and for shutdown after the last one (default: 15m on GPUs, 1h on cpu); 0: none
    startup_timeout: Values
    # Pause between runs (default: as configured, else none)
    cool_down: Values
    # Retry a failed run up to this many times (default: never)
    retries: Whole
    # Also start runs that the planner expects to run out of memory
    force: bool
    # Repeat every run this many times (default: as configured)
    runs: Whole
    # Train the planner's N best layouts instead of a strategy, and compare the predicted with the measured ranking
    from_plan: Values
    # After the measured steps of each run, train this many more under the framework's profiler (default: as configured,
    # else none)
    profile_steps: Whole
    # Continue from this checkpoint, or from the newest of this directory: native, mega, mgds
    load: Place
    # Skip runs that already have a complete result for the same configuration
    resume: bool


class ExtractOptions(CallOptions, total=False):
    """Options of `tprimat extract`."""

    # Override one key, e.g. --set training.data.seq_length=4096; may be repeated
    set: Values
    # Read the log as this format instead of detecting it
    format: Values
    # Directory for result files, or a .json file for one log (default: the results folder); -: one log's result on
    # stdout
    output: Values
    # Extract only this attempt of a restarted run; all: one result per attempt (default: the last run, with its
    # restarts)
    attempt: Values
    # Telemetry recorded by nvidia-smi, rocm-smi or amd-smi, joined to the steps by time
    telemetry: Place
    # Platform, if the log lacks it: nvd, amd, cpu
    platform: Values
    # Model, e.g. "Llama 3.1 8B"
    model: Values
    # Device, e.g. "H100"
    device: Values
    # Number of devices
    devices: Amount
    # Sequences per step
    global_batch_size: Amount
    # Tokens per sequence
    sequence_length: Amount
    # Framework, if the log lacks it or shows only the trainer inside: prim around Megatron-LM
    framework: Values
    # Precision of the matrix products: bf16, fp16, fp8, fp32, tf32
    precision: Values
    # Skip this many records instead of detecting the warm-up
    warmup: Amount


class CompareOptions(CallOptions, total=False):
    """Options of `tprimat compare`."""

    # Override one key, e.g. --set training.data.seq_length=4096; may be repeated
    set: Values
    # Only these platforms: nvd, amd, cpu
    platform: Values
    # Only these frameworks
    framework: Values
    # Only these models
    model: Values
    # Only these parallel strategies
    strategy: Values
    # Compare all runs against this one: a file, a folder of results, platform, framework or label
    baseline: Values
    # Sort the runs by this metric, best first, e.g. tokens_per_second_per_gpu
    sort: Values
    # Write one page with charts, filters and the audit; -: stdout (default: DIR/compare.html)
    html: bool | Place
    # Fail if compare.png cannot be drawn; without it, compare.svg is enough
    plot: bool
    # Print verdicts and ratios even for runs that are not comparable, with the reasons
    force: bool
    # Exit with 5 if a metric's change from the baseline matches, e.g. 'tokens_per_second < -3%', or with 6 if the noise
    # is too large to tell; may be repeated
    fail_if: Values
    # Write results, pairs and gates as JUnit XML to this file; -: stdout
    junit: Place
    # Print failures and doubtful findings as GitHub Actions annotations on stderr
    annotations: bool
    # Smallest difference of interest, in percent (default: 1)
    smallest_effect: Amount
    # Largest allowed distance between two loss curves, in percent (default: 5, or 1 if repeated runs show their spread)
    loss_tolerance: Amount
    # Assumed spread between runs, in percent, for a side with a single run (default: 2)
    run_spread: Amount
    # Directory for compare.md, compare.svg and compare.png (default: the results folder); with --history for history.md
    # (default: not written); -: write no files, only the report on stdout
    output: Place


class WhyOptions(CallOptions, total=False):
    """Options of `tprimat why`."""

    # Override one key, e.g. --set training.data.seq_length=4096; may be repeated
    set: Values
    # Take as A what the planner expects of B, or the roofline of its hardware
    against: Values
    # How long B's step would take with changed durations, e.g. overlap=full, slowest-rank=median, products=probe,
    # products=1.2x, communication=0
    what_if: Values
    # Report of tprimat probe --json on B's machine, for --what-if products=probe and the products' sentence
    probe: Place
    # Use only these recorded steps, e.g. 11:13
    steps: Values
    # Write an HTML page with the waterfall, the parts of each term and a timeline; -: stdout
    html: Place
    # Draw the waterfall as .svg or .png; -: SVG on stdout
    plot: Place


class PlanOptions(CallOptions, total=False):
    """Options of `tprimat plan`."""

    # Override one key, e.g. --set training.data.seq_length=4096; may be repeated
    set: Values
    # GPUs to plan for, side by side
    gpu: Values
    # Number of GPUs: 64, 8,16,64 or 8..16384
    gpus: Values
    # Plan for a cluster of nodes like the one that these outputs of tprimat probe --json measured
    machine: Values
    # With --machine: network between nodes, per GPU and direction; for CPUs, per node (default: the catalogue's)
    network_gbps: Amount
    # With --machine: links inside a node, per GPU and direction (default: measured, or the catalogue's)
    link_bandwidth: Amount
    # With --machine: memory of a GPU; for CPUs, of a node (default: measured, or the catalogue's)
    memory_gb: Amount
    # With --machine: GPUs joined by fast links; for CPUs, ranks per node (default: the catalogue's, or all ranks)
    gpus_per_node: Amount
    # Framework to predict: megatron_core, fsdp2, nanotron, prim (AMD), ... (default: megatron_core)
    framework: Values
    # bf16, fp16, fp8 or fp4; with --gpu cpu also fp32 (default: bf16)
    precision: Values
    # Tokens per sequence (default: the configuration's; for catalogue models at most 8192)
    seq: Whole
    # Sequences per step (default: the configuration's; for catalogue models 512 or more)
    gbs: Whole
    # Scaling of FP8: tensorwise (default), rowwise, or mxfp8 (blocks of 32)
    recipe: Values
    # Mixture of experts: learned, or balanced as in benchmarks (default: the configuration's, else learned)
    routing: Values
    # Mixture of experts: how tokens are exchanged (default: the configuration's, else alltoall)
    dispatcher: Values
    # Mixture of experts: tokens on the fullest rank over the mean (default: as calibrated for --routing)
    expert_load: Amount
    # Mixture of experts: plan with what Megatron-Bridge's performance recipes set: graphs, overlap, 2-byte moments and
    # gradients, hybridep
    tuned: bool
    # Mixture of experts: CUDA graphs of parts of layers or of whole steps (default: none)
    graphs: Values
    # Mixture of experts: hide exchanges of tokens behind another micro-batch, where a layout can
    expert_overlap: bool
    # Bytes of each of Adam's moments: 4 (default) or 2
    moment_bytes: Amount
    # Bytes in which gradients are summed: 2 or 4 (default: as the framework does)
    gradient_bytes: Amount
    # Fill pipeline bubbles with weight gradients (ZB-H1)
    zero_bubble: bool
    # Plan fine-tuning that trains low-rank adapters alone
    lora: bool
    # Layouts to show (default: 10)
    top: Whole
    # Show scaling efficiency: weak (--gbs grows with the GPUs) or strong
    scaling: Values
    # Plot the --scaling curves or --validate predictions to a .png or .svg file; -: SVG on stdout
    plot: Place
    # Tokens to train: 15T, 300B (default: 1T)
    tokens: Amount
    # USD per GPU and hour: 2.5, or H100=2.5,B200=4
    price: Values
    # Find the fewest GPUs that train the tokens in this many days
    target_days: Amount
    # Find the fastest plan that costs at most this many USD
    budget: Amount
    # Hours between failures of one GPU (default: 50677, from Llama 3)
    mtbf: Amount
    # Minutes from failure to resumed training, excluding the checkpoint read (default: 10)
    restart_minutes: Amount
    # Storage bandwidth for all GPUs together (default: 0.122 per GPU, from Llama 3)
    checkpoint_bandwidth: Amount
    # Standard deviation of a node's step time, in percent (default: as calibrated)
    node_noise: Amount
    # Fitted parameters, as written by --calibrate (default: the configuration's, else the built-in ones)
    parameters: Place


class EstimateOptions(CallOptions, total=False):
    """Options of `tprimat estimate`."""

    # Override one key, e.g. --set training.data.seq_length=4096; may be repeated
    set: Values
    # Tokens per sequence (default: the configuration's)
    seq: Whole
    # bf16, fp16, fp8, tf32 or fp32 (default: bf16)
    precision: Values
    # Activation recomputation: none, selective or full (default: none)
    recompute: Values
    # Pad the vocabulary to a multiple of 128 x this, as Megatron-LM does for tensor parallelism
    tp: Whole
    # With --memory: auto (this machine's platform), nvd, amd or cpu (default: auto)
    platform: Values
    # With --memory: framework (default: as configured)
    framework: Values
    # With --memory: configured layout (default: experiment.methodology)
    strategy: Values
    # With --memory, for a mixture of experts: tokens on the fullest rank over the mean (default: 1)
    expert_load: Amount


class ProbeOptions(CallOptions, total=False):
    """Options of `tprimat probe`."""

    # Override one key, e.g. --set training.data.seq_length=4096; may be repeated
    set: Values
    # CPU threads (default: all that this process may use)
    threads: Whole
    # Device to measure: cpu, or nvd or amd for the first GPU, or one GPU per rank (default: cpu)
    device: Values
    # Measure the matrix products of this model, configured or of the catalogue, over MBS x SL tokens
    model: Values


class ClaimOptions(CallOptions, total=False):
    """Options of `tprimat claim`."""

    # Override one key, e.g. --set training.data.seq_length=4096; may be repeated
    set: Values
    # GPU: H100, B200, MI300X, ...
    gpu: Values
    # Number format of the matrix products: bf16, fp16, fp8, mxfp8, fp4 or nvfp4 (default: bf16)
    precision: Values
    # Program that trained: Megatron-Core, torchtitan, NeMo, ...
    framework: Values
    # Routing to experts: learned, or balanced by force
    routing: Values
    # Activation recomputation: none, selective or full
    recompute: Values
    # The run trained low-rank adapters (LoRA), not all weights
    adapters: bool
    # Number of GPUs
    gpus: Amount
    # Tokens per sequence (default: 4096, or the model's own if that is less)
    seq: Amount
    # Sequences per step
    gbs: Amount
    # Sequences per micro-batch
    mbs: Amount
    # Tensor-parallel ranks
    tp: Amount
    # Pipeline stages
    pp: Amount
    # Virtual stages per rank
    vp: Amount
    # Context-parallel ranks
    cp: Amount
    # Expert-parallel ranks
    ep: Amount
    # The claim: tokens/s per GPU
    tokens_per_second_per_gpu: Amount
    # The claim: tokens/s of the whole job; needs --gpus
    tokens_per_second: Amount
    # The claim: seconds per step; needs --gbs and --gpus
    step_time: Amount
    # The claim: model FLOPs utilization, in percent
    mfu: Amount
    # The claim: TFLOP/s per GPU
    tflops_per_gpu: Amount
    # How --mfu and --tflops-per-gpu count FLOPs (default: full, as PaLM defined MFU)
    convention: Values
    # Compare with these tables instead of the built-in ones
    published: Values


class PublishedListOptions(CallOptions, total=False):
    """Options of `tprimat published list`."""

    # Model of the catalogue, or a part of the printed name
    model: Values
    # GPU: H100, MI300X, A100-SXM-40GB
    gpu: Values
    # bf16, fp16, fp8 (with MXFP8), mxfp8, nvfp4
    precision: Values
    # Program that trains, as for tprimat plan, or a part of the printed name
    framework: Values
    # dense, sparse (mixture of experts) or hybrid (with state-space layers)
    kind: Values
    # table, tokens, mfu, tflops, gpus (from the largest), model or id (from A) (default: table)
    sort: Values


# By command: what separates the words of a list. Empty: each repeats the option; None: it takes
# no value; ?: its value may be left out.
SEPARATORS: dict[str, dict[str, str | None]] = {
    "run": {
        "set": "",
        "platform": "",
        "framework": ",",
        "model": ",",
        "strategy": ",",
        "adapt": "",
        "launcher": "",
        "nodes": "",
        "dataset": "",
        "output": "",
        "steps": "",
        "timeout": "",
        "hang_factor": "",
        "startup_timeout": "",
        "cool_down": "",
        "retries": "",
        "force": None,
        "runs": "",
        "from_plan": "",
        "profile_steps": "",
        "load": "",
        "resume": None,
    },
    "extract": {
        "set": "",
        "format": "",
        "output": "",
        "attempt": "",
        "telemetry": "",
        "platform": "",
        "model": "",
        "device": "",
        "devices": "",
        "global_batch_size": "",
        "sequence_length": "",
        "framework": "",
        "precision": "",
        "warmup": "",
    },
    "compare": {
        "set": "",
        "platform": ",",
        "framework": ",",
        "model": ",",
        "strategy": ",",
        "baseline": "",
        "sort": "",
        "html": "?",
        "plot": None,
        "force": None,
        "fail_if": "",
        "junit": "",
        "annotations": None,
        "smallest_effect": "",
        "loss_tolerance": "",
        "run_spread": "",
        "output": "",
    },
    "why": {
        "set": "",
        "against": "",
        "what_if": ",",
        "probe": "",
        "steps": "",
        "html": "",
        "plot": "",
    },
    "plan": {
        "set": "",
        "gpu": ",",
        "gpus": ",",
        "machine": ",",
        "network_gbps": "",
        "link_bandwidth": "",
        "memory_gb": "",
        "gpus_per_node": "",
        "framework": "",
        "precision": "",
        "seq": "",
        "gbs": "",
        "recipe": "",
        "routing": "",
        "dispatcher": "",
        "expert_load": "",
        "tuned": None,
        "graphs": "",
        "expert_overlap": None,
        "moment_bytes": "",
        "gradient_bytes": "",
        "zero_bubble": None,
        "lora": None,
        "top": "",
        "scaling": "",
        "plot": "",
        "tokens": "",
        "price": ",",
        "target_days": "",
        "budget": "",
        "mtbf": "",
        "restart_minutes": "",
        "checkpoint_bandwidth": "",
        "node_noise": "",
        "parameters": "",
    },
    "estimate": {
        "set": "",
        "seq": "",
        "precision": "",
        "recompute": "",
        "tp": "",
        "platform": "",
        "framework": "",
        "strategy": "",
        "expert_load": "",
    },
    "probe": {
        "set": "",
        "threads": "",
        "device": "",
        "model": "",
    },
    "claim": {
        "set": "",
        "gpu": "",
        "precision": "",
        "framework": "",
        "routing": "",
        "recompute": "",
        "adapters": None,
        "gpus": "",
        "seq": "",
        "gbs": "",
        "mbs": "",
        "tp": "",
        "pp": "",
        "vp": "",
        "cp": "",
        "ep": "",
        "tokens_per_second_per_gpu": "",
        "tokens_per_second": "",
        "step_time": "",
        "mfu": "",
        "tflops_per_gpu": "",
        "convention": "",
        "published": "",
    },
    "published list": {
        "model": "",
        "gpu": "",
        "precision": "",
        "framework": "",
        "kind": "",
        "sort": "",
    },
}
