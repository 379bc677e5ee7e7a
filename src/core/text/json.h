#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace tprimat {

// One JSON value: null, a boolean, a number, a text, a list or an object, whose members keep the order in which they
// were added. A plain class: a library (nlohmann's) reads and prints, and is compiled in json_text.cpp alone, not in
// every source that builds a document.
//
// `Json{{"step", 1}, {"loss", 2.5}}` is an object, as any list of pairs of which the first is a text; other braces are
// a list. Accessing what a value does not hold (the text of a number, a missing member) throws Error.
class Json {
 public:
  struct Member;
  class Item;
  using List = std::vector<Json>;
  using Object = std::vector<Member>;

  Json() noexcept;  // null
  Json(const Json& other);
  Json(Json&& other) noexcept;
  Json& operator=(Json other) noexcept;  // by value: `json["new"] = json["old"]` moves the members that it reads
  ~Json();

  Json(std::nullptr_t) noexcept : Json() {}
  template <std::same_as<bool> Bool>
  Json(Bool value) noexcept : Json(of(value)) {}
  template <std::signed_integral Integer>
  Json(Integer value) noexcept : Json(of(static_cast<int64_t>(value))) {}
  template <std::unsigned_integral Integer>
    requires(!std::same_as<Integer, bool>)
  Json(Integer value) noexcept : Json(of(static_cast<uint64_t>(value))) {}
  Json(double value) noexcept;
  Json(const char* text);
  Json(std::string_view text);
  Json(std::string text) noexcept;
  Json(std::initializer_list<Item> items);
  template <class T>
  Json(const std::vector<T>& list) : Json(array(List(list.begin(), list.end()))) {}
  static Json array(List items = {});
  static Json object(Object members);
  static Json object();

  bool is_null() const noexcept { return std::holds_alternative<std::nullptr_t>(value_); }
  bool is_boolean() const noexcept { return std::holds_alternative<bool>(value_); }
  bool is_number() const noexcept { return is_number_integer() || is_number_float(); }
  bool is_number_integer() const noexcept { return std::holds_alternative<int64_t>(value_) || is_number_unsigned(); }
  bool is_number_unsigned() const noexcept { return std::holds_alternative<uint64_t>(value_); }  // as it was written
  bool is_number_float() const noexcept { return std::holds_alternative<double>(value_); }
  bool is_string() const noexcept { return std::holds_alternative<std::string>(value_); }
  bool is_array() const noexcept { return std::holds_alternative<List>(value_); }
  bool is_object() const noexcept { return std::holds_alternative<Object>(value_); }
  bool is_structured() const noexcept { return is_array() || is_object(); }
  // Numbers by their value, whatever their kind; objects with their order.
  friend bool operator==(const Json& a, const Json& b) { return a.equals(b); }

  const std::string& text() const;
  template <class T>
  T get() const {
    if constexpr (std::is_same_v<T, bool>)
      return boolean();
    else if constexpr (std::is_same_v<T, std::string>)
      return text();
    else if constexpr (std::unsigned_integral<T>)
      return static_cast<T>(unsigned_integer());
    else if constexpr (std::integral<T>)
      return static_cast<T>(integer());
    else if constexpr (std::floating_point<T>)
      return static_cast<T>(number());
    else
      return list<typename T::value_type>();
  }

  // Items of a list, members of an object; 0 of null and 1 of any other value.
  size_t size() const noexcept;
  bool empty() const noexcept { return size() == 0; }
  // The items of a list, or the values of an object; none of any other value.
  template <class J>
  class Iterator;
  Iterator<const Json> begin() const noexcept;
  Iterator<const Json> end() const noexcept;
  Iterator<Json> begin() noexcept;
  Iterator<Json> end() noexcept;

  // Of a list. Null becomes an empty one to which an item is added.
  const Json& operator[](size_t index) const;
  Json& operator[](size_t index);
  const Json& front() const { return (*this)[0]; }
  const Json& back() const { return (*this)[size() - 1]; }
  void push_back(Json item);

  // Of an object. Null becomes an empty one where a member is added.
  const Object& items() const noexcept;  // none of any other value
  const Json* find(std::string_view key) const noexcept;
  bool contains(std::string_view key) const noexcept { return find(key) != nullptr; }
  const Json& at(std::string_view key) const;
  const Json& operator[](std::string_view key) const { return at(key); }
  Json& operator[](std::string_view key);  // a new member is null
  Json value(std::string_view key, Json otherwise) const;
  std::string text_at(std::string_view key) const;  // "" where no text is
  void erase(std::string_view key);
  void update(const Json& members);  // adds or replaces each

 private:
  // Out of line, like all construction and destruction: sources that build documents do not compile the variant.
  template <class T>
  static Json of(T value) noexcept;
  bool equals(const Json& other) const;
  bool boolean() const;
  int64_t integer() const;  // a fraction is truncated
  uint64_t unsigned_integer() const;
  double number() const;
  template <class T>
  std::vector<T> list() const {
    std::vector<T> items;
    for (size_t i = 0; i < size(); ++i) items.push_back((*this)[i].template get<T>());
    return items;
  }
  const Json& nth(size_t index) const noexcept;  // of what is iterated

  std::variant<std::nullptr_t, bool, int64_t, uint64_t, double, std::string, List, Object> value_;
};

struct Json::Member {
  std::string key;
  Json value;
  bool operator==(const Member&) const = default;
};

// An element of a braced list, which Json takes over without a copy.
class Json::Item {
 public:
  template <std::convertible_to<Json> T>
  Item(T&& value) : value_(std::forward<T>(value)) {}
  Item(std::initializer_list<Item> items) : value_(items) {}
  Json take() const { return std::move(value_); }
  const Json& value() const { return value_; }

 private:
  mutable Json value_;
};

template <class J>
class Json::Iterator {
 public:
  using iterator_category = std::forward_iterator_tag;
  using value_type = Json;
  using difference_type = std::ptrdiff_t;
  using pointer = J*;
  using reference = J&;

  Iterator() = default;
  Iterator(J* of, size_t index) : of_(of), index_(index) {}
  J& operator*() const { return const_cast<J&>(of_->nth(index_)); }
  J* operator->() const { return &**this; }
  Iterator& operator++() {
    ++index_;
    return *this;
  }
  Iterator operator++(int) { return {of_, index_++}; }
  bool operator==(const Iterator&) const = default;

 private:
  J* of_ = nullptr;
  size_t index_ = 0;
};

inline Json::Iterator<const Json> Json::begin() const noexcept { return {this, 0}; }
inline Json::Iterator<const Json> Json::end() const noexcept { return {this, is_structured() ? size() : 0}; }
inline Json::Iterator<Json> Json::begin() noexcept { return {this, 0}; }
inline Json::Iterator<Json> Json::end() noexcept { return {this, is_structured() ? size() : 0}; }

// How to treat an object that names a key twice: readers disagree about which one counts.
enum class SameKeys { last_counts, refused };

// Throws Error with "where:line:column" for text that is not one JSON value, and with `where` for numbers beyond
// double, for nesting deeper than any file of ours, and for keys named twice where they are refused.
Json parse_json(std::string_view text, std::string_view where, SameKeys same_keys = SameKeys::last_counts);

// Two-space indent, arrays of numbers on one line, trailing newline: what we write to files.
std::string print_json(const Json& value);

// One line, no trailing newline.
std::string print_json_line(const Json& value);
std::string print_json_ascii(const Json& value);  // all other characters by their numbers
std::string print_json_bare(const Json& value);   // a text without its quotes

}  // namespace tprimat
