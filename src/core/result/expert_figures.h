#pragma once

#include <optional>
#include <vector>

#include "spec/experts.h"
#include "text/fields.h"

namespace tprimat {

// How a mixture of experts routed its tokens. Means are over the steady steps; a figure that no one told is absent.
struct ExpertFigures {
  std::optional<Routing> routing = {};
  std::optional<Dispatcher> dispatcher = {};
  std::optional<double> load = {};  // tokens of the fullest expert / mean, averaged over the layers; at least 1
  std::optional<double> dropped_share = {};  // of the tokens' expert places
  std::optional<double> aux_loss = {};       // as added to the loss
  std::optional<double> z_loss = {};
  std::optional<std::vector<double>> load_values = {}, dropped_values = {}, aux_loss_values = {},
                                     z_loss_values = {};  // one per step

  static constexpr auto fields() {
    using E = ExpertFigures;
    return field_list(
        field("routing", &E::routing,
              "choice of the experts: learned by the router, or balanced (forced balance); absent: unknown"),
        field("dispatcher", &E::dispatcher, "how tokens reached the ranks of their experts"),
        field("load", &E::load, "tokens of the fullest expert / mean of the experts, over the layers and steady steps"),
        field("dropped_share", &E::dropped_share, "share of the token-expert assignments dropped for lack of capacity"),
        field("aux_loss", &E::aux_loss, "router's balancing loss, coefficient included"),
        field("z_loss", &E::z_loss, "router z-loss, coefficient included"),
        field("load_values", &E::load_values, "load of each step"),
        field("dropped_values", &E::dropped_values, "dropped share of each step"),
        field("aux_loss_values", &E::aux_loss_values, "balancing loss of each step"),
        field("z_loss_values", &E::z_loss_values, "router z-loss of each step"));
  }
};

}  // namespace tprimat
