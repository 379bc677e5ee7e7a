#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace tprimat {

using LineSink = std::function<void(std::string_view line)>;

// Cuts a stream of bytes into lines, whatever the pieces. A line ends at "\n", "\r\n" or a lone "\r" (progress bars
// redraw with it); the ending is not part of it. A line longer than the limit is handed on in pieces of that length, so
// that a stream without any newline takes no more memory. All other bytes pass as they are.
class LineSplitter {
 public:
  explicit LineSplitter(size_t longest = size_t{1} << 20) : longest_(longest) {}
  void add(std::string_view bytes, const LineSink& sink);
  void finish(const LineSink& sink);  // hands on what is left without a newline at the end

 private:
  void take(std::string_view bytes, const LineSink& sink);
  void end_line(const LineSink& sink);

  size_t longest_;
  std::string pending_;
  bool after_return_ = false;  // the last byte seen was "\r": a "\n" that follows belongs to it
};

}  // namespace tprimat
