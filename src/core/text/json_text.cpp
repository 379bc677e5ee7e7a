#include "text/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/error.h"
#include "base/printable.h"
#include "text/few_digits.h"
#include "text/format.h"
#include "text/json_object_printer.h"

namespace tprimat {
namespace {

// No file of ours nests this deeply. Copying and printing recurse, so a deeper value would overflow the stack.
constexpr size_t k_deepest_nesting = 200;

// Outside strings JSON is printable ASCII, so every other character may be escaped by its number.
std::string escape_unprintable(std::string json) {
  const auto may_begin = [](char c) { return static_cast<unsigned char>(c) >= 0x7f; };
  if (std::none_of(json.begin(), json.end(), may_begin)) return json;
  std::string out;
  for (std::string_view rest = json; !rest.empty();) {
    const auto [code, bytes] = may_begin(rest.front()) ? decode_utf8(rest) : Utf8Character{U' ', 1};
    if (!is_unprintable(code))
      out += rest.substr(0, bytes);
    else if (code < 0x10000)
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(code));
    else  // UTF-16
      out += fmt::format("\\u{:04x}\\u{:04x}", 0xd7c0 + (code >> 10U), 0xdc00 + (code & 0x3ffU));
    rest.remove_prefix(std::max<size_t>(1, bytes));
  }
  return out;
}

bool needs_no_escape(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c < 0x7f && c != '"' && c != '\\'; });
}

void print_text(std::string_view text, bool ascii, std::string& out) {
  if (needs_no_escape(text)) {
    out += '"';
    out += text;
    out += '"';
    return;
  }
  std::string json = nlohmann::json(text).dump(-1, ' ', ascii, nlohmann::json::error_handler_t::replace);
  out += ascii ? json : escape_unprintable(std::move(json));
}

// As the library prints it, but without its serializer, whose construction costs more than printing a number.
void print_fraction(double value, std::string& out) {
  std::array<char, 64> digits;
  if (std::isfinite(value))
    out.append(digits.data(), nlohmann::detail::to_chars(digits.data(), digits.data() + digits.size(), value));
  else
    out += "null";
}

// The same, of a number whose digits are found.
void print_few_digits(const FewDigits& number, std::string& out) {
  std::array<char, 64> buffer;
  const fmt::format_int digits(number.digits);
  std::copy_n(digits.data(), digits.size(), buffer.data());
  constexpr int k_smallest_exponent = -4, k_largest_exponent = std::numeric_limits<double>::digits10;  // the library's
  out.append(buffer.data(),
             nlohmann::detail::dtoa_impl::format_buffer(buffer.data(), static_cast<int>(digits.size()), -number.places,
                                                        k_smallest_exponent, k_largest_exponent));
}

void print_leaf(const Json& value, bool ascii, std::string& out) {
  if (value.is_number_float())
    print_fraction(value.get<double>(), out);
  else if (value.is_number_unsigned())
    fmt::format_to(std::back_inserter(out), "{}", value.get<uint64_t>());
  else if (value.is_number_integer())
    fmt::format_to(std::back_inserter(out), "{}", value.get<int64_t>());
  else if (value.is_string())
    print_text(value.text(), ascii, out);
  else
    out += value.is_null() ? "null" : value.get<bool>() ? "true" : "false";
}

// Prints the elements of a series. One that repeats the fraction before it, as a constant learning rate does, copies
// its digits.
class SeriesPrinter {
 public:
  explicit SeriesPrinter(std::string& out) : out_(out) {}

  // False: it is no fraction.
  bool print(const Json& value) {
    if (!value.is_number_float()) return false;
    print(value.get<double>());
    return true;
  }

  void print(double value) {
    const auto bits = std::bit_cast<uint64_t>(value);
    const size_t start = out_.size();
    if (bits == bits_ && length_ > 0)
      out_.append(out_, start_, length_);
    else
      print_other(value);
    bits_ = bits, start_ = start, length_ = out_.size() - start;
  }

 private:
  // Logs print few digits, clocks and calculations all.
  void print_other(double value) {
    constexpr int k_max_misses = 16, k_cost_of_miss = 2;
    const auto few = misses_ < k_max_misses ? find_few_digits(value, places_) : std::nullopt;
    misses_ = few ? std::max(0, misses_ - 1) : misses_ + k_cost_of_miss;
    if (few)
      print_few_digits(*few, out_);
    else
      print_fraction(value, out_);
  }

  std::string& out_;
  int places_ = 0, misses_ = 0;
  uint64_t bits_ = 0;
  size_t start_ = 0, length_ = 0;  // of the fraction before
};

void print_compact(const Json& value, bool ascii, std::string& out) {
  if (!value.is_structured()) return print_leaf(value, ascii, out);
  const bool list = value.is_array();
  out += list ? '[' : '{';
  SeriesPrinter series(out);
  for (size_t i = 0; i < value.size(); ++i) {
    if (i > 0) out += ',';
    if (list && series.print(value[i])) continue;
    if (!list) {
      print_text(value.items()[i].key, ascii, out);
      out += ':';
    }
    print_compact(list ? value[i] : value.items()[i].value, ascii, out);
  }
  out += list ? ']' : '}';
}

bool is_flat_array(const Json& value) {
  return value.is_array() &&
         std::none_of(value.begin(), value.end(), [](const Json& item) { return item.is_structured(); });
}

void print_indented(const Json& value, int depth, std::string& out) {
  if (value.empty() || !value.is_structured() || is_flat_array(value)) {
    print_compact(value, false, out);
    return;
  }
  const bool list = value.is_array();
  const std::string indent(static_cast<size_t>(depth + 1) * 2, ' ');
  out += list ? '[' : '{';
  for (size_t i = 0; i < value.size(); ++i) {
    out += (i > 0 ? ",\n" : "\n") + indent;
    if (!list) {
      print_text(value.items()[i].key, false, out);
      out += ": ";
    }
    print_indented(list ? value[i] : value.items()[i].value, depth + 1, out);
  }
  out += '\n' + std::string(static_cast<size_t>(depth) * 2, ' ');
  out += list ? ']' : '}';
}

// The members in order, a key that is named again in the place where it was first.
Json::Object keep_last(Json::Object members) {
  Json::Object kept;
  std::unordered_map<std::string, size_t> places;
  for (Json::Member& member : members) {
    const auto [place, is_new] = places.emplace(member.key, kept.size());
    if (is_new)
      kept.push_back(std::move(member));
    else
      kept[place->second].value = std::move(member.value);
  }
  return kept;
}

const std::string* find_repeated(const Json::Object& members) {
  std::vector<const std::string*> keys;
  for (const Json::Member& member : members) keys.push_back(&member.key);
  const auto by_text = [](const auto* a, const auto* b) { return *a < *b; };
  std::sort(keys.begin(), keys.end(), by_text);
  const auto found =
      std::adjacent_find(keys.begin(), keys.end(), [](const auto* a, const auto* b) { return *a == *b; });
  return found == keys.end() ? nullptr : *found;
}

// Builds a value from the events of the library's parser.
class JsonBuilder {
 public:
  JsonBuilder(std::string_view text, std::string_view where, SameKeys same_keys)
      : text_(text), where_(where), same_keys_(same_keys) {}

  Json take() { return std::move(root_); }

  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(int64_t value) { return add(value); }
  bool number_unsigned(uint64_t value) { return add(value); }
  bool number_float(double value, const std::string&) { return add(value); }
  bool string(std::string& value) { return add(std::move(value)); }
  bool binary(nlohmann::json::binary_t&) { return true; }  // of other formats than JSON
  bool start_array(size_t) { return open(); }
  bool start_object(size_t) { return open(); }
  bool key(std::string& key) {
    open_.back().members.push_back({std::move(key), nullptr});
    return true;
  }
  bool end_array() { return add(Json::array(close().items)); }
  bool end_object() {
    Json::Object members = close().members;
    if (const std::string* repeated = find_repeated(members)) {
      if (same_keys_ == SameKeys::refused)
        fail(fmt::format("names '{}' twice", printable(std::string_view(*repeated).substr(0, 200))));
      members = keep_last(std::move(members));
    }
    return add(Json::object(std::move(members)));
  }
  bool parse_error(size_t byte, const std::string&, const nlohmann::json::exception& error) {
    constexpr int k_number_overflow = 406;
    if (error.id == k_number_overflow) fail("holds a number that is too large");
    const std::string_view full = error.what();
    const size_t colon = full.rfind(": ");
    throw Error(Problem{fmt::format("is not valid JSON: {}",
                                    printable(colon == std::string_view::npos ? full : full.substr(colon + 2))),
                        fmt::format("{}:{}", where_, line_and_column(text_.substr(0, byte > 0 ? byte - 1 : 0))), ""});
  }

 private:
  struct Open {  // a list or an object that is not closed yet
    Json::List items;
    Json::Object members;
  };

  [[noreturn]] void fail(const std::string& what) const { throw Error(Problem{what, std::string(where_), ""}); }

  void check_depth() const {
    if (open_.size() > k_deepest_nesting) fail(fmt::format("is nested more than {} deep", k_deepest_nesting));
  }
  bool open() {
    check_depth();
    open_.emplace_back();
    return true;
  }
  Open close() {
    Open closed = std::move(open_.back());
    open_.pop_back();
    return closed;
  }
  bool add(Json value) {
    check_depth();
    if (open_.empty())
      root_ = std::move(value);
    else if (open_.back().members.empty())
      open_.back().items.push_back(std::move(value));
    else
      open_.back().members.back().value = std::move(value);
    return true;
  }

  std::string_view text_, where_;
  SameKeys same_keys_;
  std::vector<Open> open_;
  Json root_;
};

}  // namespace

Json parse_json(std::string_view text, std::string_view where, SameKeys same_keys) {
  JsonBuilder builder(text, where, same_keys);
  nlohmann::json::sax_parse(text, &builder);
  return builder.take();
}

std::string print_json(const Json& value) {
  std::string out;
  print_indented(value, 0, out);
  return out + '\n';
}

void JsonObjectPrinter::add_key(std::string_view key) {
  text_ += text_.back() == '{' ? "\n" : ",\n";
  text_.append(static_cast<size_t>(depth_) * 2, ' ');
  print_text(key, false, text_);
  text_ += ": ";
}

void JsonObjectPrinter::add(std::string_view key, const Json& value) {
  add_key(key);
  print_indented(value, depth_, text_);
}

void JsonObjectPrinter::add(std::string_view key, std::span<const double> series) {
  add_key(key);
  text_ += '[';
  SeriesPrinter printer(text_);
  for (size_t i = 0; i < series.size(); ++i) {
    if (i > 0) text_ += ',';
    printer.print(series[i]);
  }
  text_ += ']';
}

void JsonObjectPrinter::open(std::string_view key) {
  add_key(key);
  text_ += '{';
  ++depth_;
}

void JsonObjectPrinter::close() {
  --depth_;
  if (text_.back() != '{') {
    text_ += '\n';
    text_.append(static_cast<size_t>(depth_) * 2, ' ');
  }
  text_ += '}';
}

std::string JsonObjectPrinter::finish() && {
  close();
  text_ += '\n';
  return std::move(text_);
}

std::string print_json_line(const Json& value) {
  std::string out;
  print_compact(value, false, out);
  return out;
}

std::string print_json_bare(const Json& value) { return value.is_string() ? value.text() : print_json_line(value); }

std::string print_json_ascii(const Json& value) {
  std::string out;
  print_compact(value, true, out);
  return out;
}

}  // namespace tprimat
