"""For a training script of your own: its steps become a benchmark of TensorPrimat (docs/python.md).

    StepRecorder                              a plain loop
    tprimat.hugging_face.BenchmarkCallback    the Trainer of Hugging Face Transformers; it writes a result file too
    tprimat.lightning.BenchmarkCallback       the Trainer of Lightning, also below NeMo; likewise
    load_config                               the settings that hold, with dots, and what follows from them

PyTorch, Transformers and Lightning are used where a script has them; nothing here needs one of them to be there.
"""

from tprimat.config import Config, ConfigError, DotDict, LayoutCheck, Settings, load_config
from tprimat.steps import StepRecorder

__all__ = ["Config", "ConfigError", "DotDict", "LayoutCheck", "Settings", "StepRecorder", "load_config"]
