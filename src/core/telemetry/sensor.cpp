#include "telemetry/sensor.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"

namespace tprimat {

Reading reading_of_now() {
  Reading reading;
  reading.unix_time = unix_time_seconds();
  return reading;
}

void FaultLog::record(std::string_view figure, std::string_view reason, std::string_view example) {
  const auto known = std::find_if(faults_.begin(), faults_.end(),
                                  [&](const Fault& fault) { return fault.figure == figure && fault.reason == reason; });
  if (known != faults_.end())
    ++known->count;
  else
    faults_.push_back({std::string(figure), std::string(reason), std::string(example), 1});
}

std::vector<std::string> FaultLog::notes() const {
  struct Note {
    std::string figures;
    const Fault* fault;
  };
  std::vector<Note> merged;  // figures that failed alike share a sentence
  for (const Fault& fault : faults_) {
    const auto same = std::find_if(merged.begin(), merged.end(), [&](const Note& note) {
      return note.fault->reason == fault.reason && note.fault->count == fault.count && fault.example.empty() &&
             note.fault->example.empty();
    });
    if (same != merged.end())
      same->figures += ", " + fault.figure;
    else
      merged.push_back({fault.figure, &fault});
  }
  std::vector<std::string> sentences;
  for (const Note& note : merged) {
    std::string sentence = note.figures + ": " + note.fault->reason;
    if (!note.fault->example.empty()) sentence += ", such as " + note.fault->example;
    if (note.fault->count < readings_) sentence += fmt::format(" ({} of {} readings)", note.fault->count, readings_);
    sentences.push_back(std::move(sentence));
  }
  return sentences;
}

}  // namespace tprimat
