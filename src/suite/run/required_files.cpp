#include "run/required_files.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/error.h"

namespace tprimat::suite {

void require_dataset(const DataSpec& data, const std::string& where) {
  if (data.is_synthetic()) return;
  for (const char* ending : {".bin", ".idx"}) {
    std::error_code unreadable;
    if (std::filesystem::exists(data.dataset + ending, unreadable)) continue;
    throw Error(
        Problem{fmt::format("there is no {}{}", data.dataset, ending), where,
                "give the prefix of a .bin/.idx pair, or make one: tprimat data make --prefix P --tokens N --vocab V"});
  }
}

void require_initial_weights(const std::string& folder, const std::string& model) {
  std::error_code unreadable;
  if (folder.empty() || std::filesystem::exists(folder + "/config.json", unreadable)) return;
  throw Error(Problem{fmt::format("there is no {}/config.json", folder),
                      fmt::format("models.{}.initial_weights", model),
                      "give the folder of a Hugging Face model, or leave the key out for random weights"});
}

}  // namespace tprimat::suite
