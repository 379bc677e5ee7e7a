#include "process/line_splitter.h"

#include <algorithm>

namespace tprimat {

void LineSplitter::add(std::string_view bytes, const LineSink& sink) {
  if (after_return_ && !bytes.empty()) {
    if (bytes.front() == '\n') bytes.remove_prefix(1);
    after_return_ = false;
  }
  for (size_t end = bytes.find_first_of("\r\n"); end != std::string_view::npos; end = bytes.find_first_of("\r\n")) {
    take(bytes.substr(0, end), sink);
    end_line(sink);
    const bool was_return = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    after_return_ = was_return && bytes.empty();
    if (was_return && !bytes.empty() && bytes.front() == '\n') bytes.remove_prefix(1);
  }
  take(bytes, sink);
}

void LineSplitter::finish(const LineSink& sink) {
  if (!pending_.empty()) end_line(sink);
}

void LineSplitter::take(std::string_view bytes, const LineSink& sink) {
  while (!bytes.empty()) {
    if (pending_.size() == longest_) end_line(sink);
    const size_t count = std::min(bytes.size(), longest_ - pending_.size());
    pending_.append(bytes.substr(0, count));
    bytes.remove_prefix(count);
  }
}

void LineSplitter::end_line(const LineSink& sink) {
  if (sink) sink(pending_);
  pending_.clear();
}

}  // namespace tprimat
