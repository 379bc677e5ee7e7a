#include "cli/claim_layout.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/printable.h"

namespace tprimat::cli {
namespace {

[[noreturn]] void refuse(const std::string& what, const char* option, const std::string& hint) {
  throw Error(Problem{what, option, hint});
}

// Options that only a mixture of experts has.
void require_experts(const ClaimOptions& o, const ModelSpec& model) {
  if (model.is_sparse()) return;
  const auto refuse_dense = [&](const char* option) {
    refuse(fmt::format("applies to mixtures of experts, and '{}' has no experts", printable(o.model.substr(0, 64))),
           option, "omit it");
  };
  if (o.expert.value_or(1) > 1) refuse_dense("--ep");
  if (!o.routing.empty()) refuse_dense("--routing");
  if (o.convention == "experts_dense" || o.convention == "6n_total") refuse_dense("--convention");
}

void require_divided_model(const ClaimOptions& o, const ModelSpec& model) {
  const int64_t tensor = o.tensor.value_or(1), pipeline = o.pipeline.value_or(1), expert = o.expert.value_or(1);
  if (model.num_attention_heads > 0 && model.num_attention_heads % tensor != 0)
    refuse(fmt::format("{} tensor-parallel ranks do not divide the model's {} attention heads", tensor,
                       model.num_attention_heads),
           "--tp", "state a divisor of the heads");
  if (pipeline * o.chunks.value_or(1) > model.num_layers)
    refuse(fmt::format("PP {} x VP {} is more than the model's {} layers", pipeline, o.chunks.value_or(1),
                       model.num_layers),
           "--pp", "each stage needs a layer");
  if (model.experts && model.experts->count % expert != 0)
    refuse(fmt::format("{} expert-parallel ranks do not divide the model's {} experts", expert, model.experts->count),
           "--ep", "state a divisor of the experts");
}

void require_divided_gpus(const ClaimOptions& o) {
  const int64_t tensor = o.tensor.value_or(1), pipeline = o.pipeline.value_or(1), context = o.context.value_or(1);
  const int64_t ranks = tensor * pipeline * context, expert = o.expert.value_or(1);
  if (*o.gpus % ranks != 0)
    refuse(fmt::format("TP {} x PP {} x CP {} = {} does not divide the {} GPUs", tensor, pipeline, context, ranks,
                       *o.gpus),
           "--gpus", "state the layout of the training, or omit what is not known");
  if (*o.gpus % (pipeline * expert) != 0)
    refuse(fmt::format("PP {} x EP {} = {} does not divide the {} GPUs", pipeline, expert, pipeline * expert, *o.gpus),
           "--ep", "state the layout of the training, or omit what is not known");
}

void require_divided_batch(const ClaimOptions& o) {
  if (!o.global_batch || !o.micro_batch) return;
  const int64_t ranks = o.tensor.value_or(1) * o.pipeline.value_or(1) * o.context.value_or(1);
  const int64_t copies = o.gpus ? *o.gpus / ranks : 1;
  if (*o.global_batch % (*o.micro_batch * copies) == 0) return;
  const std::string of_copies =
      o.gpus ? fmt::format(" x {} data-parallel rank{}", copies, copies == 1 ? "" : "s") : std::string();
  refuse(fmt::format("a batch of {} sequences is no multiple of micro-batches of {}{}", *o.global_batch, *o.micro_batch,
                     of_copies),
         "--gbs", "state the batch of the training, or omit --mbs");
}

}  // namespace

void require_layout(const ClaimOptions& options, const ModelSpec& model) {
  require_experts(options, model);
  require_divided_model(options, model);
  if (options.gpus) require_divided_gpus(options);
  require_divided_batch(options);
}

}  // namespace tprimat::cli
