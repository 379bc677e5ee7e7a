"""For a training script of your own: its steps become a benchmark of TensorPrimat (docs/frameworks.md).

    StepRecorder                              a plain loop
    tprimat.hugging_face.BenchmarkCallback    the Trainer of Hugging Face Transformers
    tprimat.lightning.BenchmarkCallback       the Trainer of Lightning, also below NeMo
    load_config                               the settings that hold, with dots

PyTorch, Transformers and Lightning are used where a script has them; nothing here needs one of them to be there.
"""

from tprimat.config import load_config
from tprimat.steps import StepRecorder

__all__ = ["StepRecorder", "load_config"]
