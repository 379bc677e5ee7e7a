#include "trace/json_stream.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"

namespace tprimat::logs {
namespace {

// The values of a list, as they stand in the text.
std::vector<std::string> elements_of(std::string_view text) {
  std::vector<std::string> values;
  JsonStream json(text, "t");
  json.elements([&] { json.item([&](JsonCursor& cursor) { values.push_back(std::string(cursor.value().raw)); }); });
  return values;
}

std::string problem_of(std::string_view text) {
  try {
    JsonStream json(text, "t");
    json.skip();
    if (json.peek() != 0) json.item([](JsonCursor& cursor) { cursor.fail("nothing should follow here"); });
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(JsonStream, HandsOutValuesAsTheyStand) {
  EXPECT_EQ(
      elements_of(R"( [ 1 , -2.5e-3, "a\"b", [1, {"k": []}], {"k": "]"}, null, -nan, N/A ] )"),
      (std::vector<std::string>{"1", "-2.5e-3", "a\\\"b", "[1, {\"k\": []}]", "{\"k\": \"]\"}", "null", "nan", "N/A"}));
  EXPECT_TRUE(elements_of("[ ]").empty());
}

TEST(JsonStream, NamesTheByteOfWhatIsNotJson) {
  const std::vector<std::pair<std::string, std::string>> cases = {{"[1 2]", "not valid JSON at byte 4"},
                                                                  {"[1,]", "not valid JSON at byte 4"},
                                                                  {"{\"a\" 1}", "not valid JSON at byte 6"},
                                                                  {"{1: 2}", "not valid JSON at byte 2"},
                                                                  {"[1.]", "not valid JSON at byte 4"},
                                                                  {"[1.2.3]", "not valid JSON at byte 5"},
                                                                  {"[-]", "not valid JSON at byte 3"},
                                                                  {"[1e]", "not valid JSON at byte 4"},
                                                                  {"[1] 2", "not valid JSON at byte 5"},
                                                                  {"{\"a\": 1]", "not valid JSON at byte 8"},
                                                                  {"[\"a\", ", "ends at byte 6"},
                                                                  {"[\"a", "ends at byte 3"},
                                                                  {"[\"a\\", "ends at byte 4"},
                                                                  {"[tru", "ends at byte 4"},
                                                                  {"[12", "ends at byte 3"},
                                                                  {"", "ends at byte 0"}};
  for (const auto& [text, wanted] : cases)
    EXPECT_NE(problem_of(text).find(wanted), std::string::npos) << text << " -> " << problem_of(text);
}

TEST(JsonValue, UnderstandsEscapesAndWhatJsonForbids) {
  const auto text_of = [](std::string_view text) {
    std::string found;
    JsonStream json(text, "t");
    json.item([&](JsonCursor& cursor) { found = cursor.value().text(); });
    return found;
  };
  EXPECT_EQ(text_of(R"("a\\b\"\u0041\u00e9\n\/")"), "a\\b\"A? /");
  EXPECT_EQ(text_of("\"a\x01\xc3\xa9z\""), "a ??z");
  EXPECT_EQ(text_of("\"0123456789abcdef0123456789\""), "0123456789abcdef0123456789");
}

// Random documents of the JSON library: whole ones are taken, and no shortened one is.
nlohmann::json random_json(std::mt19937& random, int depth) {
  const auto below = [&](uint32_t n) { return random() % n; };
  switch (below(depth > 3 ? 4 : 6)) {
    case 0: return static_cast<int64_t>(random()) - (int64_t{1} << 31);
    case 1: return static_cast<double>(random()) / 1e7;
    case 2: return below(2) == 0 ? nlohmann::json(nullptr) : nlohmann::json(below(2) == 0);
    case 3: {
      std::string text;
      for (uint32_t i = below(40); i > 0; --i) text += static_cast<char>(' ' + below(95));
      return text;
    }
    case 4: {
      auto list = nlohmann::json::array();
      for (uint32_t i = below(5); i > 0; --i) list.push_back(random_json(random, depth + 1));
      return list;
    }
    default: {
      auto object = nlohmann::json::object();
      for (uint32_t i = below(5); i > 0; --i)
        object["key \"" + std::to_string(below(99))] = random_json(random, depth + 1);
      return object;
    }
  }
}

TEST(JsonStream, TakesWhatTheJsonLibraryWrites) {
  std::mt19937 random(7);
  for (int i = 0; i < 300; ++i) {
    const auto value = nlohmann::json::array({random_json(random, 0), random_json(random, 0)});
    const std::string text = value.dump(i % 3 - 1);
    EXPECT_EQ(problem_of(text), "") << text;
    const auto values = elements_of(text);
    ASSERT_EQ(values.size(), 2u);
    if (value[0].is_structured()) {
      EXPECT_EQ(nlohmann::json::parse(values[0]), value[0]);
    }
    const std::string part = text.substr(0, random() % text.size());
    EXPECT_NE(problem_of(part), "") << part;
  }
}

// A value that the window does not hold yet is read again from its begin.
TEST(JsonStream, WidensItsWindowForLargeValues) {
  const std::string large = "[1, \"" + std::string(5 << 20, 'x') + "\", 2]";
  const auto values = elements_of(large);
  ASSERT_EQ(values.size(), 3u);
  EXPECT_EQ(values[1].size(), 5u << 20);
  EXPECT_EQ(values[2], "2");
}

}  // namespace
}  // namespace tprimat::logs
