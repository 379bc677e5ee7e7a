#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tprimat::logs {

inline constexpr int k_max_json_depth = 200;

struct JsonEnds {};  // thrown where the text ends within a value

// Thrown where the text is not JSON.
struct JsonFault {
  const char* at;
  const char* what;
};

enum class JsonKind : uint8_t { string, number, word, list, object };

// A value as the text spells it: a string without its quotes, with its escapes; a list with its brackets.
struct JsonValue {
  std::string_view raw;
  JsonKind kind = JsonKind::word;
  bool is_plain = true;  // of a string: without escapes and other bytes that text() replaces

  std::string text() const;  // control characters become blanks, bytes beyond ASCII question marks
};

// Reads JSON in memory from front to back. Profilers write what JSON does not allow: any bytes within strings, and inf,
// -nan, NaN or N/A for numbers; both are accepted. Throws JsonEnds or JsonFault.
class JsonCursor {
 public:
  // `whole`: nothing follows the end, so that a number may end there.
  JsonCursor(const char* begin, const char* end, bool whole) : at_(begin), end_(end), whole_(whole) {}

  const char* at() const { return at_; }

  // The next character other than a blank; it stays in the text.
  char peek() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
    if (at_ == end_) throw JsonEnds{};
    return *at_;
  }
  void expect(char wanted, const char* what) {
    if (peek() != wanted) fail(what);
    ++at_;
  }

  JsonValue value(int depth = 0);  // depth: of lists and objects around it
  JsonValue string();

  // visit(key) must take the value.
  template <class Visit>
  void members(Visit&& visit) {
    expect('{', "an object should begin here");
    if (ends('}')) return;
    do {
      const std::string_view key = string().raw;
      expect(':', "a colon should stand here");
      visit(key);
    } while (continues('}'));
  }
  // visit() must take the element.
  template <class Visit>
  void elements(Visit&& visit) {
    expect('[', "a list should begin here");
    if (ends(']')) return;
    do visit();
    while (continues(']'));
  }

  [[noreturn]] void fail(const char* what) const { throw JsonFault{at_, what}; }

 private:
  bool ends(char closing) {
    if (peek() != closing) return false;
    ++at_;
    return true;
  }
  bool continues(char closing) {
    if (ends(closing)) return false;
    expect(',', "a comma or a closing bracket should stand here");
    return true;
  }
  JsonValue number();
  JsonValue word();
  JsonValue nested(int depth);
  void digits();

  const char* at_;
  const char* end_;
  bool whole_;
};

}  // namespace tprimat::logs
