#include "text/json.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace tprimat {
namespace {

Error not_a(std::string_view wanted, const Json& value) {
  return Error(Problem{fmt::format("expected {}, got {}", wanted, print_json_line(value).substr(0, 60)), "", ""});
}

}  // namespace

Json::Json() noexcept = default;
Json::Json(const Json&) = default;
Json::Json(Json&&) noexcept = default;
Json& Json::operator=(Json other) noexcept {
  value_ = std::move(other.value_);
  return *this;
}
Json::~Json() = default;

Json::Json(double value) noexcept : value_(value) {}
Json::Json(const char* text) : value_(std::string(text)) {}
Json::Json(std::string_view text) : value_(std::string(text)) {}
Json::Json(std::string text) noexcept : value_(std::move(text)) {}

template <class T>
Json Json::of(T value) noexcept {
  Json json;
  json.value_ = std::move(value);
  return json;
}
template Json Json::of(bool) noexcept;
template Json Json::of(int64_t) noexcept;
template Json Json::of(uint64_t) noexcept;

Json::Json(std::initializer_list<Item> items) {
  const auto is_member = [](const Item& item) {
    return item.value().is_array() && item.value().size() == 2 && item.value().front().is_string();
  };
  if (std::all_of(items.begin(), items.end(), is_member)) {
    *this = object();
    for (const Item& item : items) {
      Json pair = item.take();
      List& two = std::get<List>(pair.value_);
      (*this)[two[0].text()] = std::move(two[1]);
    }
  } else {
    *this = array();
    for (const Item& item : items) push_back(item.take());
  }
}

Json Json::array(List items) { return of(std::move(items)); }
Json Json::object() { return of(Object()); }
Json Json::object(Object members) { return of(std::move(members)); }

const std::string& Json::text() const {
  if (!is_string()) throw not_a("a string", *this);
  return std::get<std::string>(value_);
}

bool Json::boolean() const {
  if (!is_boolean()) throw not_a("true or false", *this);
  return std::get<bool>(value_);
}

double Json::number() const {
  if (is_number_unsigned()) return static_cast<double>(std::get<uint64_t>(value_));
  if (is_number_integer()) return static_cast<double>(std::get<int64_t>(value_));
  if (!is_number()) throw not_a("a number", *this);
  return std::get<double>(value_);
}

int64_t Json::integer() const {
  constexpr double k_limit = 0x1p63;
  if (is_number_unsigned()) return static_cast<int64_t>(std::get<uint64_t>(value_));
  if (is_number_integer()) return std::get<int64_t>(value_);
  if (const double value = number(); value >= -k_limit && value < k_limit) return static_cast<int64_t>(value);
  throw not_a("a whole number", *this);
}

uint64_t Json::unsigned_integer() const {
  return is_number_unsigned() ? std::get<uint64_t>(value_) : static_cast<uint64_t>(integer());
}

bool Json::equals(const Json& other) const {
  if (value_.index() == other.value_.index()) return value_ == other.value_;
  if (!is_number() || !other.is_number()) return false;
  if (is_number_float() || other.is_number_float()) return number() == other.number();
  return is_number_unsigned() ? std::cmp_equal(unsigned_integer(), other.integer())
                              : std::cmp_equal(integer(), other.unsigned_integer());
}

size_t Json::size() const noexcept {
  if (const auto* items = std::get_if<List>(&value_)) return items->size();
  if (const auto* members = std::get_if<Object>(&value_)) return members->size();
  return is_null() ? 0 : 1;
}

const Json& Json::nth(size_t index) const noexcept {
  const auto* items = std::get_if<List>(&value_);
  return items != nullptr ? (*items)[index] : std::get_if<Object>(&value_)->operator[](index).value;
}

const Json& Json::operator[](size_t index) const {
  if (!is_array() || index >= size()) throw not_a(fmt::format("a list with an item {}", index), *this);
  return std::get<List>(value_)[index];
}

Json& Json::operator[](size_t index) { return const_cast<Json&>(std::as_const(*this)[index]); }

void Json::push_back(Json item) {
  if (is_null()) value_ = List();
  if (!is_array()) throw not_a("a list", *this);
  std::get<List>(value_).push_back(std::move(item));
}

const Json::Object& Json::items() const noexcept {
  static const Object none;
  const auto* members = std::get_if<Object>(&value_);
  return members != nullptr ? *members : none;
}

const Json* Json::find(std::string_view key) const noexcept {
  for (const Member& member : items())
    if (member.key == key) return &member.value;
  return nullptr;
}

const Json& Json::at(std::string_view key) const {
  if (const Json* found = find(key)) return *found;
  throw not_a(fmt::format("an object with '{}'", key), *this);
}

Json& Json::operator[](std::string_view key) {
  if (is_null()) value_ = Object();
  if (const Json* found = find(key)) return const_cast<Json&>(*found);
  if (!is_object()) throw not_a("an object", *this);
  return std::get<Object>(value_).emplace_back(Member{std::string(key), nullptr}).value;
}

Json Json::value(std::string_view key, Json otherwise) const {
  const Json* found = find(key);
  return found != nullptr ? *found : std::move(otherwise);
}

std::string Json::text_at(std::string_view key) const {
  const Json* found = find(key);
  return found != nullptr && found->is_string() ? found->text() : "";
}

void Json::erase(std::string_view key) {
  if (is_object()) std::erase_if(std::get<Object>(value_), [&](const Member& member) { return member.key == key; });
}

void Json::update(const Json& members) {
  for (const auto& [key, value] : members.items()) (*this)[key] = value;
}

}  // namespace tprimat
