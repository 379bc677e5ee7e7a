#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "launch/frameworks.h"
#include "launch/launch_plan.h"
#include "text/json.h"

// What the frameworks that Primus starts share: its checkout, its experiment file and its environment.
namespace tprimat::suite {

// The checkout; by default that of AMD's containers.
std::string place_of_primus(const Checkout& checkout);

// The experiment file of Primus that models.<model>.primus_config names: a path inside the checkout, or a name inside
// its config_dir.
std::string primus_config_path(const Checkout& checkout, const std::string& stated);

// The module pre_trainer of an experiment: the back end, two of its presets, and the settings over them.
struct PrimusModule {
  std::string_view framework, config, model;
  Json overrides;
};

// The experiment file. `base` is the path of a file that it extends; empty: none.
std::string write_primus_file(const LaunchRequest& request, const PrimusModule& module, const std::string& base = "");

// One process per node starts that node's ranks in the checkout; its arguments and files are not set yet.
TrainProgram start_primus(const LaunchRequest& request, const Checkout& checkout);

// Refuses devices other than the first ones, which its start scripts always take.
void add_device_limit(Refusals& refusals, const LaunchRequest& request);

// Transformer Engine takes its attention from the environment; Megatron wants it to agree with attention_backend.
void add_attention_variables(std::map<std::string, std::string>& variables, const std::optional<bool>& flash);

}  // namespace tprimat::suite
