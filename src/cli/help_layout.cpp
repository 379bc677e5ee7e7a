#include "cli/help_layout.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

namespace tprimat {
namespace {

class HelpLayout : public CLI::Formatter {
 public:
  // CLI11 appends what each check wants behind a colon.
  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string kind = option->get_type_name();
    return option->get_type_size() == 0 || kind.empty() ? "" : " " + kind.substr(0, kind.find(':'));
  }

  std::string make_option_desc(const CLI::Option* option) const override {
    std::string text = option->get_description();
    if (option->get_required()) text += " (required)";
    if (!option->get_default_str().empty()) text += " (default: " + option->get_default_str() + ")";
    return text;
  }
};

}  // namespace

void lay_out_help(CLI::App& program) { program.formatter(std::make_shared<HelpLayout>()); }

}  // namespace tprimat
