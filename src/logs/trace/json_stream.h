#pragma once

#include <string>
#include <string_view>

#include "trace/json_cursor.h"
#include "trace/text_stream.h"

namespace tprimat::logs {

// JSON of any size, read from front to back with little of it in memory: lists and objects are walked through, and
// values small enough for memory are read by a cursor. Throws Error with the byte for text that is not JSON or that
// ends early.
class JsonStream {
 public:
  // `file`: as of TextStream.
  JsonStream(std::string_view bytes, std::string_view where, const MappedFile* file = nullptr)
      : text_(bytes, where, file) {}

  // The next character other than a blank; it stays in the text. 0 at its end.
  char peek();

  // read(cursor) must take one value. It is called again, for the same value, where the window did not hold all of it;
  // views are valid until it returns.
  template <class Read>
  void item(Read&& read) {
    for (;;) {
      const std::string_view window = text_.window();
      JsonCursor cursor(window.data(), window.data() + window.size(), text_.is_whole());
      try {
        read(cursor);
        text_.drop(static_cast<size_t>(cursor.at() - window.data()));
        return;
      } catch (const JsonEnds&) {
        grow();
      } catch (const JsonFault& fault) {
        refuse(fault);
      }
    }
  }

  // visit(key) must take the value. An empty object is taken too.
  template <class Visit>
  void members(Visit&& visit) {
    expect('{');
    if (ends('}')) return;
    do {
      std::string key;
      item([&](JsonCursor& cursor) {
        key = cursor.string().text();
        cursor.expect(':', "a colon should stand here");
      });
      visit(key);
    } while (continues('}'));
  }
  // visit() must take the element.
  template <class Visit>
  void elements(Visit&& visit) {
    expect('[');
    if (ends(']')) return;
    do visit();
    while (continues(']'));
  }

  void skip(int depth = 0);  // a value of any size

 private:
  void expect(char wanted);
  bool ends(char closing);
  bool continues(char closing);
  void grow();
  [[noreturn]] void refuse(const JsonFault& fault) const;

  TextStream text_;
};

}  // namespace tprimat::logs
