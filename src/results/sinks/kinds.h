#pragma once

#include "sinks/sinks.h"

namespace tprimat::results {

// One per file, named after it.
SinkKind csv_sink();
SinkKind prometheus_sink();
SinkKind mllog_sink();
SinkKind tensorboard_sink();
SinkKind mlflow_sink();
SinkKind wandb_sink();
SinkKind parquet_sink();

}  // namespace tprimat::results
