#include <algorithm>

#include "text/words.h"
#include "trace/kineto_event.h"

namespace tprimat::logs {
namespace {

constexpr size_t k_longest_shapes = 240;  // an optimizer's lists of tensors would fill the memory

struct ElementType {
  std::string_view name;  // in a trace, in lower case and without "c10::"
  std::string_view shown;
  int64_t bytes;
};
constexpr ElementType k_types[] = {
    {"bfloat16", "bf16", 2},       {"float", "fp32", 4},       {"half", "fp16", 2},
    {"double", "fp64", 8},         {"long int", "int64", 8},   {"long", "int64", 8},
    {"int", "int32", 4},           {"float32", "fp32", 4},     {"float16", "fp16", 2},
    {"float8_e4m3fn", "fp8", 1},   {"float8_e5m2", "fp8", 1},  {"float8_e4m3fnuz", "fp8", 1},
    {"float8_e5m2fnuz", "fp8", 1}, {"byte", "uint8", 1},       {"unsigned char", "uint8", 1},
    {"char", "int8", 1},           {"signed char", "int8", 1}, {"bool", "bool", 1},
    {"short", "int16", 2},         {"float64", "fp64", 8},     {"int64", "int64", 8},
    {"int32", "int32", 4},         {"uint8", "uint8", 1},      {"int8", "int8", 1},
};

const ElementType* find_type(std::string_view name) {
  constexpr std::string_view k_space = "c10::";
  const std::string lower = lower_case(name.starts_with(k_space) ? name.substr(k_space.size()) : name);
  for (const ElementType& type : k_types)
    if (type.name == lower) return &type;
  return nullptr;
}

// Strings of a list of strings, those of lists within it included.
template <class Visit>
void each_string(std::string_view list, Visit&& visit) {
  while (true) {
    const size_t begin = list.find('"');
    if (begin == std::string_view::npos) return;
    const size_t end = list.find('"', begin + 1);
    if (end == std::string_view::npos) return;
    visit(list.substr(begin + 1, end - begin - 1));
    list.remove_prefix(end + 1);
  }
}

// The one type of all tensors, or each in turn where they differ.
std::string describe_types(std::string_view types) {
  std::string shown;
  std::string_view last;
  each_string(types, [&](std::string_view name) {
    const ElementType* const type = find_type(name);
    if (type == nullptr || type->shown == last || shown.size() > 40) return;
    last = type->shown;
    shown += (shown.empty() ? "" : ",") + std::string(last);
  });
  return shown;
}

// Spellings of collectives; a longer one stands before those that it contains.
struct OperationName {
  std::string_view text, operation;
};
constexpr OperationName k_operations[] = {
    {"reduce_scatter", "reduce_scatter"},
    {"reducescatter", "reduce_scatter"},
    {"all_reduce", "all_reduce"},
    {"allreduce", "all_reduce"},
    {"all_gather", "all_gather"},
    {"allgather", "all_gather"},
    {"all_to_all", "all_to_all"},
    {"alltoall", "all_to_all"},
    {"broadcast", "broadcast"},
    {"sendrecv", "send_recv"},
    {"send", "send"},
    {"recv", "recv"},
    {"barrier", "barrier"},
    {"gather", "gather"},
    {"scatter", "scatter"},
    {"reduce", "reduce"},
    {"internode::dispatch", "dispatch"},
    {"intranode::dispatch", "dispatch"},
    {"internode::combine", "combine"},
    {"intranode::combine", "combine"},
};

}  // namespace

std::string describe_shapes(std::string_view dimensions, std::string_view types) {
  std::string shown;
  for (size_t at = 0; at < dimensions.size(); ++at) {
    const size_t open = dimensions.find('[', at);
    if (open == std::string_view::npos) break;
    const size_t close = dimensions.find_first_of("[]", open + 1);
    if (close == std::string_view::npos) break;
    at = dimensions[close] == '[' ? close - 1 : close;
    const std::string_view inner = dimensions.substr(open + 1, close - open - 1);
    if (dimensions[close] == '[' || inner.find_first_of("0123456789") == std::string_view::npos) continue;
    if (shown.size() > k_longest_shapes) return shown + " ...";
    shown += shown.empty() ? "[" : " [";
    for (const char c : inner)
      if (c > ' ') shown += c;
    shown += ']';
  }
  const std::string type = shown.empty() ? "" : describe_types(types);
  return type.empty() ? shown : shown + " " + type;
}

std::string collective_operation(std::string_view text) {
  const std::string lower = lower_case(text);
  for (const OperationName& each : k_operations)
    if (lower.find(each.text) != std::string::npos) return std::string(each.operation);
  return "";
}

namespace {

// "gloo:all_reduce" with the dimensions of what it moves: Gloo states nothing else.
std::optional<CollectiveCall> collective_of_gloo(const KinetoEvent& event) {
  if (!event.raw(EventField::name).starts_with("gloo:")) return std::nullopt;
  CollectiveCall call;
  call.operation = collective_operation(event.raw(EventField::name));
  if (call.operation.empty()) return std::nullopt;
  call.group = "gloo";
  const ElementType* type = nullptr;
  each_string(event.raw(EventField::types), [&](std::string_view name) {
    if (type == nullptr) type = find_type(name);
  });
  constexpr int64_t k_max_bytes = int64_t{1} << 31;  // products of two stay within the type
  const std::string_view shapes = event.raw(EventField::shapes);
  int64_t elements = type == nullptr ? 0 : type->bytes, number = -1;
  for (const char c : shapes) {
    if (is_digit(c)) {
      number = std::max<int64_t>(number, 0) * 10 + (c - '0');
    } else if (number >= 0) {
      elements *= number, number = -1;
    }
    if (elements > k_max_bytes || number > k_max_bytes) return std::nullopt;
    if (c == ']') break;
  }
  call.bytes = shapes.empty() ? 0 : elements;
  return call;
}

}  // namespace

std::optional<CollectiveCall> collective_of(const KinetoEvent& event) {
  if (!event.has(EventField::collective)) return collective_of_gloo(event);
  CollectiveCall call;
  const std::string name = event.text(EventField::collective);
  call.operation = collective_operation(name);
  if (call.operation.empty()) call.operation = name;
  const std::string description = event.text(EventField::group_description);
  call.group = description.empty() || description == "undefined" ? event.text(EventField::group_name) : description;
  const ElementType* const type = find_type(event.raw(EventField::element_type));
  const auto elements = event.whole(EventField::elements_in);
  constexpr int64_t k_max_elements = int64_t{1} << 58;
  if (type != nullptr && elements && *elements > 0 && *elements < k_max_elements) call.bytes = *elements * type->bytes;
  if (call.bytes == 0) call.bytes = std::max<int64_t>(event.whole(EventField::bytes).value_or(0), 0);
  call.group_size = std::max<int64_t>(event.whole(EventField::group_size).value_or(0), 0);
  return call;
}

}  // namespace tprimat::logs
