#include "unit/archive/mutations.h"

#include <iostream>

#include "archive/verify.h"
#include "base/error.h"

namespace tprimat::results {
namespace {

// "telemetry[].samples" of /telemetry/0/samples, by the schema: keys of a map are all one fact.
void collect(const Json& value, const Json& schema, const std::string& fact, const std::string& place,
             std::vector<Mutation>& mutations);

void collect_members(const Json& value, const Json& schema, const std::string& fact, const std::string& place,
                     std::vector<Mutation>& mutations) {
  for (const auto& [key, member] : value.items()) {
    const bool is_field = schema.contains("properties") && schema["properties"].contains(key);
    if (is_field)
      collect(member, schema["properties"][key], fact.empty() ? key : fact + "." + key, place_within(place, key),
              mutations);
    else if (schema.contains("additionalProperties"))
      collect(member, schema["additionalProperties"], fact + ".*", place_within(place, key), mutations);
  }
}

std::string other_choice(const Json& schema, const std::string& word) {
  for (const Json& choice : schema["enum"])
    if (choice != word) return choice.get<std::string>();
  return word;
}

struct OtherValue {
  const char* description;
  Json value;
};

std::vector<OtherValue> other_integers(int64_t value) {
  std::vector<OtherValue> all = {{"doubled", value == 0 ? 1 : 2 * value}};
  if (value > 1) all.insert(all.end(), {{"halved", value / 2}, {"one less", value - 1}, {"one more", value + 1}});
  return all;
}

std::vector<OtherValue> other_numbers(double value) {
  if (value == 0) return {{"doubled", 1.0}};
  return {{"doubled", 2 * value}, {"halved", value / 2}};
}

std::vector<OtherValue> other_texts(const std::string& value, const Json& schema, const std::string& fact) {
  if (schema.contains("enum")) return {{"another", other_choice(schema, value)}};
  if (fact == "gpu_info.device_name" && value == k_sealed_device) return {{"another", "NVIDIA A100-SXM4-80GB"}};
  if (value.empty()) return {};  // a user may add what a log lacks
  return {{"renamed", parse_timestamp(value) && fact == "timestamp" ? "2026-01-03T00:00:00Z" : value + "x"}};
}

std::vector<OtherValue> other_values(const Json& value, const Json& schema, const std::string& fact) {
  if (value.is_boolean()) return {{"flipped", !value.get<bool>()}};
  if (value.is_number_integer()) return other_integers(value.get<int64_t>());
  if (value.is_number()) return other_numbers(value.get<double>());
  if (value.is_string()) return other_texts(value.get<std::string>(), schema, fact);
  return {};
}

void collect(const Json& value, const Json& schema, const std::string& fact, const std::string& place,
             std::vector<Mutation>& mutations) {
  if (value.is_object()) return collect_members(value, schema, fact, place, mutations);
  if (value.is_array()) {
    if (!value.empty())
      collect(value[value.size() / 2], schema["items"], fact + "[]",
              place_within(place, std::to_string(value.size() / 2)), mutations);
    return;
  }
  const std::string exact = replace_all(place.substr(place.empty() ? 0 : 1), "/", ".");
  for (const OtherValue& other : other_values(value, schema, fact))
    mutations.push_back({fact, exact, other.description, place, other.value});
}

}  // namespace

std::vector<Mutation> mutations_of(const Json& document, const Json& schema) {
  std::vector<Mutation> mutations;
  collect(document, schema, "", "", mutations);
  return mutations;
}

bool is_caught(const Files& sealed) {
  try {
    return !verify_in_memory(sealed).broken.empty();
  } catch (const Error&) {  // refused altogether
    return true;
  }
}

Census::Census(const std::string& document, bool shows_all) : document_(document), shows_all_(shows_all) {
  for (const Fact& fact : list_facts())
    if (fact.document == document) witnesses_[fact.name] = fact.witnesses;
}

void Census::count(const Mutation& mutation, bool caught) {
  ++cases_;
  const std::string fact = witnesses_.contains(mutation.exact) ? mutation.exact : mutation.fact;
  ASSERT_TRUE(witnesses_.contains(fact)) << document_ << ": " << fact << " is not listed";
  changed_.insert(fact);
  const std::string& witnesses = witnesses_[fact];
  EXPECT_EQ(caught, !witnesses.empty()) << document_ << ": " << fact << ", " << mutation.description << ", is "
                                        << (caught ? "caught, but listed as a fact of one witness"
                                                   : "not caught, but listed with " + witnesses);
}

Census::~Census() {
  for (const auto& [fact, witnesses] : witnesses_)
    EXPECT_TRUE(!shows_all_ || witnesses.empty() || changed_.contains(fact))
        << document_ << ": " << fact << " was never changed";
  std::cout << document_ << ": " << cases_ << " cases\n";
}

}  // namespace tprimat::results
