#include "hugging_face/model_config.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "hugging_face/config_keys.h"
#include "hugging_face/sparse_config.h"
#include "text/format.h"
#include "text/json.h"

namespace tprimat {
namespace {

namespace fs = std::filesystem;

// Defaults of transformers for keys that the file omits (its configuration_<family>.py).
struct FamilyDefaults {
  int64_t key_value_heads = 0;  // 0: as many as query heads
  int64_t head_dim = 0;         // 0: hidden_size / num_attention_heads
  int64_t max_positions = 2048;
  double norm_eps = 1e-6;
  double theta = 10000.0;
};

FamilyDefaults defaults_of(HuggingFaceFamily family) {
  switch (family) {
    case HuggingFaceFamily::qwen2: return {32, 0, 32768};
    case HuggingFaceFamily::qwen3: return {32, 128, 32768};
    case HuggingFaceFamily::mistral: return {8, 0, 131072};
    case HuggingFaceFamily::mixtral: return {8, 0, 131072, 1e-5, 1e6};
    case HuggingFaceFamily::qwen2_moe: return {16, 0, 32768};
    case HuggingFaceFamily::qwen3_moe: return {4, 0, 32768};
    case HuggingFaceFamily::deepseek_v3: return {128, 0, 4096};
    case HuggingFaceFamily::gpt_oss: return {8, 64, 131072, 1e-5, 150000.0};
    default: return {};
  }
}

class ConfigReader {
 public:
  ConfigReader(const Json& config, const std::string& where)
      : config_(config), where_(where), findings_(where), keys_(config, findings_) {}

  HuggingFaceModel read() {
    const std::string type = keys_.text("model_type", "");
    const auto family = parse_enum<HuggingFaceFamily>(type);
    if (!family)
      throw Error(Problem{fmt::format("model_type '{}' is not supported", printable(type)), where_,
                          "choose " + enum_choices<HuggingFaceFamily>()});
    model_.spec.name = model_.spec.full_name = type;
    check_common(is_sparse_family(*family));
    *family == HuggingFaceFamily::gpt2 ? read_gpt2() : read_llama(*family);
    if (*family == HuggingFaceFamily::gpt_oss) note_gpt_oss();
    if (is_sparse_family(*family)) read_sparse_config(*family, keys_, model_.spec, findings_);
    if (findings_.empty()) findings_.add(check_model(model_.spec, where_));
    if (!findings_.empty()) throw Error(findings_.take());
    return std::move(model_);
  }

 private:
  // The public files of DeepSeek-V3 and gpt-oss have quantised weights; only the shape is read of such models.
  void check_common(bool sparse) {
    if (keys_.find("quantization_config") != nullptr && sparse)
      model_.notes.push_back("quantization_config is ignored: a model's shape has no number format");
    else if (keys_.find("quantization_config") != nullptr)
      keys_.refuse("quantization_config", "take the model in its original number format");
    keys_.require("add_cross_attention", false);
    for (const char* key : {"attention_dropout", "resid_pdrop", "embd_pdrop", "attn_pdrop"})
      if (const double rate = keys_.number(key, 0.0); rate != 0.0)
        model_.notes.push_back(fmt::format("{} is {}; training is without dropout", key, rate));
  }

  void note_gpt_oss() {
    model_.notes.push_back(
        "gpt_oss clamps its SwiGLU and adds 1 to one factor, its routers have a bias, and yarn rounds no frequency; a "
        "model's shape does not state that");
  }

  void read_gpt2() {
    ModelSpec& spec = model_.spec;
    spec.norm = NormKind::layer;
    spec.mlp = MlpKind::gelu;
    spec.position = PositionKind::learned;
    spec.linear_bias = true;
    spec.vocab_size = keys_.size("vocab_size", 50257);
    spec.hidden_size = keys_.size("n_embd", 768);
    spec.num_layers = keys_.size("n_layer", 12);
    spec.num_attention_heads = spec.num_key_value_heads = keys_.size("n_head", 12);
    spec.max_position_embeddings = keys_.size("n_positions", 1024);
    spec.ffn_hidden_size = keys_.size("n_inner", 4 * spec.hidden_size);
    spec.norm_eps = keys_.number("layer_norm_epsilon", 1e-5);
    spec.tied_embeddings = keys_.flag("tie_word_embeddings", true);
    set_head_dim(0);
    // Both names stand for the approximation by tanh.
    const std::string activation = keys_.text("activation_function", "gelu_new");
    if (activation != "gelu_new" && activation != "gelu_pytorch_tanh") keys_.refuse("activation_function");
    keys_.require("scale_attn_weights", true);
    keys_.require("scale_attn_by_inverse_layer_idx", false);
  }

  void read_llama(HuggingFaceFamily family) {
    const FamilyDefaults defaults = defaults_of(family);
    ModelSpec& spec = model_.spec;
    spec.vocab_size = keys_.size("vocab_size");
    spec.hidden_size = keys_.size("hidden_size");
    spec.ffn_hidden_size = keys_.size("intermediate_size");
    spec.num_layers = keys_.size("num_hidden_layers");
    spec.num_attention_heads = keys_.size("num_attention_heads");
    const bool as_queries = defaults.key_value_heads == 0 || keys_.names("num_key_value_heads");
    spec.num_key_value_heads =
        keys_.size("num_key_value_heads", as_queries ? spec.num_attention_heads : defaults.key_value_heads);
    spec.max_position_embeddings = keys_.size("max_position_embeddings", defaults.max_positions);
    spec.norm_eps = keys_.number("rms_norm_eps", defaults.norm_eps);
    spec.tied_embeddings = keys_.flag("tie_word_embeddings", false);
    if (!is_latent(family)) set_head_dim(keys_.names("head_dim") ? 0 : defaults.head_dim);
    const std::string activation = keys_.text("hidden_act", "silu");
    if (activation != "silu" && activation != "swish") keys_.refuse("hidden_act");
    const RopeFamily own = {.max_positions = spec.max_position_embeddings,
                            .theta = defaults.theta,
                            .latent = is_latent(family),
                            .truncate = family != HuggingFaceFamily::gpt_oss};
    const RopeSettings rope = read_rope_settings(config_, own, findings_);
    spec.rope_theta = rope.theta;
    spec.rope_scaling = rope.scaling;
    read_biases(family);
    is_sparse_family(family) ? read_sparse_window(family) : read_window(family);
  }

  static bool is_latent(HuggingFaceFamily family) {
    return family == HuggingFaceFamily::deepseek_v2 || family == HuggingFaceFamily::deepseek_v3;
  }

  void set_head_dim(int64_t otherwise) {
    ModelSpec& spec = model_.spec;
    if (keys_.find("head_dim") != nullptr || otherwise != 0) {
      spec.head_dim = keys_.size("head_dim", otherwise);
      return;
    }
    spec.head_dim = std::max<int64_t>(1, spec.hidden_size / spec.num_attention_heads);
    findings_.require(
        spec.head_dim * spec.num_attention_heads == spec.hidden_size,
        fmt::format("a width of {} is not a multiple of {} heads", spec.hidden_size, spec.num_attention_heads));
  }

  void read_biases(HuggingFaceFamily family) {
    model_.spec.qk_norm = family == HuggingFaceFamily::qwen3 || family == HuggingFaceFamily::qwen3_moe;
    model_.spec.qkv_bias = family == HuggingFaceFamily::qwen2 || family == HuggingFaceFamily::qwen2_moe;
    if (model_.spec.qk_norm || is_latent(family)) keys_.require("attention_bias", false);
    if (family == HuggingFaceFamily::gpt_oss) keys_.require("attention_bias", true);
    model_.spec.linear_bias = family == HuggingFaceFamily::gpt_oss;
    if (family != HuggingFaceFamily::llama) return;
    const bool attention = keys_.flag("attention_bias", false), mlp = keys_.flag("mlp_bias", false);
    findings_.require(
        attention == mlp,
        fmt::format("attention_bias is {} and mlp_bias is {}, but the native trainer has biases on every linear "
                    "layer or on none",
                    attention, mlp));
    model_.spec.linear_bias = attention && mlp;
  }

  void read_window(HuggingFaceFamily family) {
    std::optional<int64_t> window;
    int64_t first_windowed = 0;  // layers from this one on have the window
    if (family == HuggingFaceFamily::mistral && !(keys_.names("sliding_window") && !keys_.find("sliding_window")))
      window = keys_.size("sliding_window", 4096);
    if (family == HuggingFaceFamily::qwen2 || family == HuggingFaceFamily::qwen3) {
      const bool null_window = keys_.names("sliding_window") && keys_.find("sliding_window") == nullptr;
      if (keys_.flag("use_sliding_window", false) && !null_window) window = keys_.size("sliding_window", 4096);
      first_windowed = read_max_window_layers();
    }
    const int64_t layers = model_.spec.num_layers;
    const bool typed = keys_.find("layer_types") != nullptr;
    if (window && !typed && first_windowed > 0 && first_windowed < layers)
      keys_.refuse("max_window_layers", "use the sliding window in all layers or in none");
    const bool windowed = typed ? are_layers_sliding(window.has_value()) : first_windowed < layers;
    if (window && windowed) model_.spec.sliding_window = window;
  }

  void read_sparse_window(HuggingFaceFamily family) {
    const bool oss = family == HuggingFaceFamily::gpt_oss;
    const bool qwen = family == HuggingFaceFamily::qwen2_moe || family == HuggingFaceFamily::qwen3_moe;
    if (is_latent(family) || (qwen && !keys_.flag("use_sliding_window", false))) return;
    std::optional<int64_t> window;
    if (keys_.find("sliding_window") != nullptr || (!keys_.names("sliding_window") && (qwen || oss)))
      window = keys_.size("sliding_window", qwen ? 4096 : 128);
    if (oss) return read_alternating(window);
    const bool typed = keys_.find("layer_types") != nullptr;
    if (family == HuggingFaceFamily::qwen2_moe && !typed)
      keys_.refuse("use_sliding_window", "state layer_types, the same for all layers");
    const bool windowed = typed ? are_layers_sliding(window.has_value()) : true;
    if (windowed) model_.spec.sliding_window = window;
  }

  // Every second layer ignores the window, unless layer_types says which do.
  void read_alternating(std::optional<int64_t> window) {
    const Json* types = keys_.find("layer_types");
    const int64_t layers = model_.spec.num_layers;
    int64_t full = layers / 2;
    if (types != nullptr) {
      if (!types->is_array() || static_cast<int64_t>(types->size()) != layers)
        return keys_.wrong("layer_types", "one type for each layer");
      full = std::count(types->begin(), types->end(), Json("full_attention"));
      if (std::count(types->begin(), types->end(), Json("sliding_attention")) != layers - full)
        keys_.refuse("layer_types", "full_attention and sliding_attention are supported");
    }
    if (!window || full == layers) return;
    model_.spec.sliding_window = window;
    if (full > 0) model_.spec.full_attention_layers = full;
  }

  int64_t read_max_window_layers() {
    const Json* found = keys_.find("max_window_layers");
    if (found == nullptr) return 28;
    if (found->is_number_integer()) return found->get<int64_t>();
    keys_.wrong("max_window_layers", "a whole number");
    return 0;
  }

  // All layers must have the same type, and sliding_attention needs a window.
  bool are_layers_sliding(bool has_window) {
    const Json& types = *keys_.find("layer_types");
    const bool fits = types.is_array() && static_cast<int64_t>(types.size()) == model_.spec.num_layers &&
                      std::all_of(types.begin(), types.end(), [&](const Json& type) { return type == types.front(); });
    const bool sliding = fits && types.front() == "sliding_attention";
    if (!fits || (!sliding && types.front() != "full_attention") || (sliding && !has_window))
      keys_.refuse("layer_types", "use full_attention in all layers, or sliding_attention with a sliding_window");
    return sliding;
  }

  const Json& config_;
  const std::string& where_;
  Findings findings_;
  ConfigKeys keys_;
  HuggingFaceModel model_;
};

}  // namespace

HuggingFaceModel parse_hugging_face_config(const Json& config, const std::string& where) {
  if (!config.is_object()) throw Error(Problem{"is not a JSON object", where, ""});
  return ConfigReader(config, where).read();
}

HuggingFaceModel read_hugging_face_config(const fs::path& folder) {
  const fs::path path = folder / "config.json";
  const std::string where = path.string();
  HuggingFaceModel model = parse_hugging_face_config(parse_json(read_file(path), where, SameKeys::refused), where);
  const std::string name = fs::absolute(folder / "config.json").parent_path().filename().string();
  if (!name.empty()) model.spec.full_name = printable(name);
  return model;
}

}  // namespace tprimat
