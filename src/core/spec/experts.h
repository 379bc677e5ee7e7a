#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "text/enum_names.h"
#include "text/fields.h"

namespace tprimat {

// What a router makes of its logits before it chooses. Where the chosen weights are normalised, a softmax over all
// experts and one over the chosen are the same.
enum class RouterScore { softmax, sigmoid };
constexpr auto enum_table(RouterScore) {
  return std::to_array<std::pair<RouterScore, std::string_view>>(
      {{RouterScore::softmax, "softmax"}, {RouterScore::sigmoid, "sigmoid"}});
}

// What keeps the load of learned routing even: nothing, a loss over the micro-batch (Switch, arXiv 2101.03961, eq. 4),
// the same over each sequence (arXiv 2405.04434, eq. 23), or a bias of each expert's score (arXiv 2408.15664).
enum class LoadBalancing { none, aux_loss, sequence_aux_loss, bias };
constexpr auto enum_table(LoadBalancing) {
  return std::to_array<std::pair<LoadBalancing, std::string_view>>(
      {{LoadBalancing::none, "none"},
       {LoadBalancing::aux_loss, "aux_loss"},
       {LoadBalancing::sequence_aux_loss, "sequence_aux_loss"},
       {LoadBalancing::bias, "bias"}});
}

// Who chooses the experts of a token: the router, or a benchmark that gives each expert the same number of tokens.
enum class Routing { learned, balanced };
constexpr auto enum_table(Routing) {
  return std::to_array<std::pair<Routing, std::string_view>>(
      {{Routing::learned, "learned"}, {Routing::balanced, "balanced"}});
}

// How tokens reach the ranks of their experts: each rank gathers all tokens, ranks exchange them, or one of the fused
// exchanges.
enum class Dispatcher { allgather, alltoall, deepep, hybridep };
constexpr auto enum_table(Dispatcher) {
  return std::to_array<std::pair<Dispatcher, std::string_view>>({{Dispatcher::allgather, "allgather"},
                                                                 {Dispatcher::alltoall, "alltoall"},
                                                                 {Dispatcher::deepep, "deepep"},
                                                                 {Dispatcher::hybridep, "hybridep"}});
}

// The experts of a sparse model. A layer with experts has a router, `count` routed experts, of which each token passes
// `per_token`, and maybe shared ones, which every token passes. Widths are those of the MLP that ModelSpec::mlp names.
struct Experts {
  int64_t count = 0;
  int64_t per_token = 0;
  int64_t ffn_hidden_size = 0;
  int64_t shared_ffn_hidden_size = 0;  // of the shared experts together
  bool shared_gate = false;            // the shared experts' output is scaled by a sigmoid of one product (Qwen)
  int64_t first_dense_layers = 0;      // have an MLP of ModelSpec::ffn_hidden_size instead
  int64_t layer_interval = 1;          // of the layers after them each n-th has experts, the others that MLP (Llama 4)
  std::optional<int64_t> latent_size = {};  // routed experts work at this width, between two products
  RouterScore router_score = RouterScore::softmax;
  bool normalize_weights = true;  // the weights of the chosen experts add up to 1
  double weight_scale = 1.0;      // they are multiplied by this
  int64_t groups = 1;             // experts form groups, of which a token's experts come from `groups_per_token`
  int64_t groups_per_token = 1;
  LoadBalancing balancing = LoadBalancing::none;
  double aux_loss_coefficient = 0.0;
  double z_loss_coefficient = 0.0;  // arXiv 2202.08906, eq. 5
  std::optional<double> capacity_factor =
      {};  // tokens beyond capacity_factor x the mean load are dropped; absent: none

  // 0 for a shape that check_model refuses.
  int64_t layers(int64_t num_layers) const {
    if (layer_interval < 1 || first_dense_layers < 0 || first_dense_layers >= num_layers) return 0;
    return (num_layers - first_dense_layers) / layer_interval;
  }

  static constexpr auto fields() {
    using E = Experts;
    return field_list(
        field("count", &E::count, "routed experts of a layer"),
        field("per_token", &E::per_token, "experts that each token is routed to"),
        field("ffn_hidden_size", &E::ffn_hidden_size, "inner width of a routed expert"),
        field("shared_ffn_hidden_size", &E::shared_ffn_hidden_size,
              "total inner width of the shared experts, which every token passes; 0: none"),
        field("shared_gate", &E::shared_gate, "the shared experts' output is scaled by a learned gate"),
        field("first_dense_layers", &E::first_dense_layers, "first layers with a dense MLP instead of experts"),
        field("layer_interval", &E::layer_interval, "of the layers after the first dense ones, every n-th has experts"),
        field("latent_size", &E::latent_size, "width of the routed experts' input and output; absent: hidden_size"),
        field("router_score", &E::router_score, "function that turns the router's logits into scores"),
        field("normalize_weights", &E::normalize_weights, "the weights of the chosen experts add up to 1"),
        field("weight_scale", &E::weight_scale, "factor that scales the chosen experts' weights"),
        field("groups", &E::groups, "groups of experts"),
        field("groups_per_token", &E::groups_per_token, "groups from which a token's experts are chosen"),
        field("balancing", &E::balancing, "method that balances the experts' load"),
        field("aux_loss_coefficient", &E::aux_loss_coefficient, "coefficient of the balancing loss"),
        field("z_loss_coefficient", &E::z_loss_coefficient, "coefficient of the router z-loss"),
        field("capacity_factor", &E::capacity_factor,
              "an expert takes at most this multiple of the mean number of tokens and drops the rest; absent: it drops "
              "none"));
  }
  bool operator==(const Experts&) const = default;
};

}  // namespace tprimat
