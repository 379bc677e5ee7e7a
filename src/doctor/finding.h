#pragma once

#include <string>
#include <utility>
#include <vector>

#include "text/enum_names.h"
#include "text/fields.h"

namespace tprimat {

// How much a finding matters, the least first.
enum class Severity {
  ok,
  note,     // good to know; figures hold
  warning,  // figures hold, but are not the best or not the steadiest that this machine gives
  missing,  // something that was asked for is not here
  broken,   // what is measured here is not to be trusted
};
template <>
struct EnumNames<Severity> {
  static constexpr std::pair<Severity, std::string_view> values[] = {{Severity::ok, "ok"},
                                                                     {Severity::note, "note"},
                                                                     {Severity::warning, "warning"},
                                                                     {Severity::missing, "missing"},
                                                                     {Severity::broken, "broken"}};
};

struct Finding {
  Severity severity = Severity::ok;
  std::string area;    // "GPU 0", "processor", "frameworks"
  std::string what;    // a sentence with the figures
  std::string remedy;  // what to do; empty where nothing is to be done
  static constexpr auto fields() {
    using F = Finding;
    return std::tuple{field("severity", &F::severity, "ok, note, warning, missing or broken"),
                      field("area", &F::area, "what it is about"), field("what", &F::what, "what was found"),
                      field("remedy", &F::remedy, "what to do about it")};
  }
};

// Collects what is said of one area.
class AreaFindings {
 public:
  explicit AreaFindings(std::string area) : area_(std::move(area)) {}
  void add(Severity severity, std::string what, std::string remedy = "") {
    findings_.push_back({severity, area_, std::move(what), std::move(remedy)});
  }
  void ok(std::string what) { add(Severity::ok, std::move(what)); }
  void note(std::string what, std::string remedy = "") { add(Severity::note, std::move(what), std::move(remedy)); }
  void warn(std::string what, std::string remedy) { add(Severity::warning, std::move(what), std::move(remedy)); }
  std::vector<Finding> take() { return std::move(findings_); }

 private:
  std::string area_;
  std::vector<Finding> findings_;
};

}  // namespace tprimat
