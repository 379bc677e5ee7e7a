#pragma once

#include <cstddef>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>

namespace tprimat::logs {

// The text of a trace, character by character, from plain or gzip bytes; never more than a small part of it in memory.
// Profilers write what JSON does not allow, so on the way: inf, -nan, NaN and N/A become null, and inside strings
// control characters become blanks and bytes beyond ASCII question marks.
class TraceCharacters {
 public:
  TraceCharacters(std::string_view bytes, std::string_view where);
  ~TraceCharacters();
  TraceCharacters(const TraceCharacters&) = delete;
  TraceCharacters& operator=(const TraceCharacters&) = delete;

  // The next character, or k_end. Throws Error for gzip data that is damaged or truncated, and for a string, or a
  // stretch without one, longer than any that a profiler writes.
  int next();
  static constexpr int k_end = -1;

  size_t position() const;                   // characters taken from the uncompressed text so far
  bool is_at_end() const { return ended_; }  // a read beyond the last character was tried

 private:
  struct Inflater;

  int take();  // as it stands in the text
  int peek();
  bool refill();
  int next_in_string(int c);
  int next_outside(int c);
  int replace_word(int first);
  void check_length(int c);

  std::string where_;
  std::unique_ptr<Inflater> inflater_;  // null for plain text
  std::string_view chunk_;
  size_t at_ = 0, before_chunk_ = 0;
  std::string pending_;  // characters to be handed out before the rest
  size_t pending_at_ = 0, run_ = 0;
  bool in_string_ = false, escaped_ = false, in_number_ = false, ended_ = false;
};

// The same as an input iterator, for a parser that takes a pair of them.
class TraceIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;

  TraceIterator() = default;  // the end
  explicit TraceIterator(TraceCharacters& characters) : characters_(&characters) {}
  char operator*() const { return static_cast<char>(current()); }
  TraceIterator& operator++() {
    fetched_ = false;
    return *this;
  }
  bool operator==(const TraceIterator&) const { return current() == TraceCharacters::k_end; }  // with the end only

 private:
  // Lazily, so that no more characters are read than the parser has seen.
  int current() const {
    if (!fetched_ && characters_ != nullptr) current_ = characters_->next();
    fetched_ = true;
    return current_;
  }

  TraceCharacters* characters_ = nullptr;
  mutable int current_ = TraceCharacters::k_end;
  mutable bool fetched_ = false;
};

}  // namespace tprimat::logs
