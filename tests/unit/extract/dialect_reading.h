#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "base/files.h"
#include "extract/dialects.h"
#include "extract/line_cleaner.h"
#include "extract/scan_text.h"

// One dialect alone on a text, without the detection around it.
namespace tprimat::logs {

inline std::string fixture(const std::string& name) {
  return read_file(std::string(TPRIMAT_SOURCE_DIR) + "/tests/unit/extract/fixtures/" + name);
}

inline bool wants(const Dialect& dialect, std::string_view line) {
  for (const std::string_view anchor : dialect.anchors)
    if (contains(line, anchor)) return true;
  return false;
}

struct Reading {
  ExtractedLog log;
  double confidence = 0;
};

inline Reading read_text(const Dialect& dialect, std::string_view text) {
  LogBuilder builder;
  if (dialect.read_document != nullptr) {
    dialect.read_document(text, builder);
    return {builder.take(), 1};
  }
  const auto reader = dialect.make_reader();
  LineCleaner cleaner;
  bool more = false;
  for (int64_t number = 1; !text.empty(); ++number) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (more || wants(dialect, line)) more = reader->read_line(cleaner.clean(line, number), builder);
  }
  const double confidence = reader->confidence(builder.log());
  reader->finish(builder);
  return {builder.take(), confidence};
}

inline Reading read_fixture(std::string_view id, const std::string& name) {
  return read_text(find_dialect(id), fixture(name));
}

inline const ExtractedStep& step(const Reading& reading, int64_t number) {
  for (const ExtractedStep& each : reading.log.steps)
    if (each.step == number) return each;
  ADD_FAILURE() << "no step " << number;
  static const ExtractedStep k_none;
  return k_none;
}

inline bool has_note(const Reading& reading, std::string_view words) {
  for (const std::string& note : reading.log.notes)
    if (contains(note, words)) return true;
  return false;
}

inline int64_t count(const Reading& reading, EventKind kind) {
  const auto found = reading.log.event_counts.find(kind);
  return found == reading.log.event_counts.end() ? 0 : found->second;
}

inline bool is_nan(Figure figure) { return figure.known() && std::isnan(*figure); }

inline double memory(const Reading& reading, int32_t rank, MemoryKind kind) {
  const auto found = reading.log.memory_gb.find({rank, kind});
  return found == reading.log.memory_gb.end() ? -1 : found->second;
}

}  // namespace tprimat::logs
