#include "process/line_splitter.h"

#include <algorithm>

namespace tprimat {
namespace {

// Finds a character again and again in a text that is cut at its front, and looks at no byte twice.
class NextOf {
 public:
  explicit NextOf(char wanted) : wanted_(wanted) {}
  size_t find(std::string_view bytes) {
    if (from_end_ > bytes.size()) from_end_ = search(bytes);
    return from_end_ == 0 ? std::string_view::npos : bytes.size() - from_end_;
  }

 private:
  size_t search(std::string_view bytes) const {
    const size_t at = bytes.find(wanted_);
    return at == std::string_view::npos ? 0 : bytes.size() - at;
  }

  char wanted_;
  size_t from_end_ = std::string_view::npos;  // where it stands, counted from the end; 0: nowhere any more
};

}  // namespace

void LineSplitter::add(std::string_view bytes, const LineSink& sink) {
  if (after_return_ && !bytes.empty()) {
    if (bytes.front() == '\n') bytes.remove_prefix(1);
    after_return_ = false;
  }
  NextOf newline('\n'), carriage_return('\r');
  for (size_t end = 0; (end = std::min(newline.find(bytes), carriage_return.find(bytes))) != std::string_view::npos;) {
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
