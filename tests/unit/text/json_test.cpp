#include "text/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <span>

#include "base/error.h"
#include "text/json_fields.h"
#include "text/json_object_printer.h"
#include "unit/json_place.h"

namespace tprimat {
namespace {

enum class Colour { red, green };

constexpr auto enum_table(Colour) {
  return std::to_array<std::pair<Colour, std::string_view>>(
      {{Colour::red, "red"}, {Colour::green, "green"}, {Colour::red, "crimson"}});
}

struct Inner {
  double rate = 0.5;
  std::vector<double> series;
  static constexpr auto fields() {
    return field_list(field("rate", &Inner::rate, "a rate"), field("series", &Inner::series, "a series"));
  }
};
struct Outer {
  std::string name = "none";
  int64_t count = 7;
  std::optional<double> maybe;
  Colour colour = Colour::green;
  Inner inner;
  static constexpr auto fields() {
    using O = Outer;
    return field_list(field("name", &O::name, "a name"), field("count", &O::count, "a count"),
                      field("maybe", &O::maybe, "perhaps"), field("colour", &O::colour, "a colour"),
                      field("inner", &O::inner, "inside"));
  }
};

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Json, SyntaxErrorsHaveAPlace) {
  EXPECT_EQ(message_of([] { parse_json("{\"a\": 1,\n  oops}", "x.json"); }).rfind("x.json:2:3: is not valid JSON", 0),
            0u)
      << message_of([] { parse_json("{\"a\": 1,\n  oops}", "x.json"); });
  EXPECT_NE(message_of([] { parse_json("", "x.json"); }), "no error");
  EXPECT_NE(message_of([] { parse_json("{} {}", "x.json"); }), "no error");
}

TEST(Json, PrintsArraysOfNumbersOnOneLine) {
  EXPECT_EQ(print_json(parse_json(R"({"b":[1,2,3],"a":{"c":[]}})", "x")),
            "{\n  \"b\": [1,2,3],\n  \"a\": {\n    \"c\": []\n  }\n}\n");
}

TEST(Json, InvalidUtf8IsReplacedAndNotFatal) {
  EXPECT_NE(print_json_line(Json(std::string("\xff"))).find("\xEF\xBF\xBD"), std::string::npos);
}

TEST(JsonFields, AbsentOptionalsAreNotWritten) {
  EXPECT_EQ(print_json_line(to_json(Outer{})),
            R"({"name":"none","count":7,"colour":"green","inner":{"rate":0.5,"series":[]}})");
}

TEST(JsonFields, NotANumberBecomesNull) {
  Outer value;
  value.inner.rate = std::numeric_limits<double>::infinity();
  EXPECT_NE(print_json_line(to_json(value)).find("\"rate\":null"), std::string::npos);
}

TEST(JsonFields, ReadsBackWhatWasWritten) {
  Outer value;
  value.maybe = 2.5;
  value.colour = Colour::red;
  value.inner.series = {1, 2};
  const Outer again = from_json<Outer>(to_json(value), "x");
  EXPECT_EQ(again.maybe, 2.5);
  EXPECT_EQ(again.colour, Colour::red);
  EXPECT_EQ(again.inner.series, (std::vector<double>{1, 2}));
}

TEST(JsonFields, AliasesAreReadAndMissingKeysKeepTheirDefault) {
  const Outer value = from_json<Outer>(parse_json(R"({"colour":"crimson","other":1})", "x"), "x");
  EXPECT_EQ(value.colour, Colour::red);
  EXPECT_EQ(value.count, 7);
}

TEST(JsonFields, WholeNumbersMayLookLikeFractions) {
  EXPECT_EQ(from_json<int64_t>(Json(8.0), "x"), 8);
  EXPECT_THROW(from_json<int64_t>(Json(8.5), "x"), Error);
}

TEST(JsonFields, WrongTypesNameTheKey) {
  EXPECT_EQ(message_of([] { from_json<Outer>(parse_json(R"({"inner":{"series":[1,"x"]}})", "x"), "r.json"); }),
            "r.json.inner.series[1]: must be a number, got \"x\"");
  EXPECT_EQ(message_of([] { from_json<Outer>(parse_json(R"({"colour":"blue"})", "x"), "r"); }),
            "r.colour: must be one of red, green, got \"blue\"");
}

TEST(JsonFields, SchemaRequiresWhatIsNotOptional) {
  const Json schema = json_schema<Outer>();
  EXPECT_EQ(print_json_line(schema["required"]), R"(["name","count","colour","inner"])");
  EXPECT_EQ(print_json_line(schema["properties"]["colour"]["enum"]), R"(["red","green"])");
  EXPECT_EQ(schema["properties"]["maybe"]["description"], "perhaps");
}

TEST(EnumNames, FirstNameIsPrinted) {
  EXPECT_EQ(enum_name(Colour::red), "red");
  EXPECT_EQ(enum_choices<Colour>(), "red, green");
  EXPECT_EQ(parse_enum<Colour>("blue"), std::nullopt);
}

// A document of the library behind parse_json, of what a generator says.
nlohmann::ordered_json random_document(std::mt19937& random, int depth) {
  const auto pick = [&](int count) { return static_cast<int>(random() % static_cast<unsigned>(count)); };
  switch (pick(depth > 0 ? 9 : 7)) {
    case 0: return nullptr;
    case 1: return pick(2) == 1;
    case 2: return static_cast<int64_t>(random()) - (int64_t{1} << 31);
    case 3: return ~uint64_t{random()};
    case 4: return std::ldexp(static_cast<double>(random()) - 2e9, pick(120) - 60);
    case 5: return std::string("a \"quoted\\ text\n\t\x01 of ") + std::to_string(random());
    case 6: return "plain";
    default: break;
  }
  const bool list = pick(2) == 0;
  nlohmann::ordered_json structure = list ? nlohmann::ordered_json::array() : nlohmann::ordered_json::object();
  for (int i = pick(5); i > 0; --i)
    if (list)
      structure.push_back(random_document(random, depth - 1));
    else
      structure[std::to_string(pick(100)) + "/\t"] = random_document(random, depth - 1);
  return structure;
}

TEST(Json, ReadsAndPrintsAsTheLibraryDoes) {
  std::mt19937 random(11);
  for (int i = 0; i < 2000; ++i) {
    const std::string text = random_document(random, 5).dump();
    const Json read = parse_json(text, "x");
    ASSERT_EQ(print_json_line(read), text);
    ASSERT_EQ(parse_json(print_json(read), "x"), read);
    ASSERT_EQ(Json(read), read);
  }
}

TEST(Json, BracesOfPairsAreAnObjectAndOthersAList) {
  const Json inner{{"a", 1}, {"b", {1, 2.5, "x"}}};
  EXPECT_EQ(print_json_line(inner), R"({"a":1,"b":[1,2.5,"x"]})");
  EXPECT_EQ(print_json_line(Json{{"whole", inner}, {"texts", std::vector<std::string>{"p", "q"}}, {"none", nullptr}}),
            R"({"whole":{"a":1,"b":[1,2.5,"x"]},"texts":["p","q"],"none":null})");
  EXPECT_EQ(print_json_line(Json{"a", "b"}), R"(["a","b"])");
  EXPECT_EQ(print_json_line(Json{{"a", 1}, {"a", 2}}), R"({"a":2})");
  EXPECT_EQ(print_json_line(Json{true, 'c' == 'c', uint8_t{7}, -1L}), "[true,true,7,-1]");
}

TEST(Json, MembersKeepTheirOrder) {
  Json json;
  json["z"] = 1;
  json["a"] = json["z"];
  json["z"] = 3;
  json.update(Json{{"m", 4}, {"a", 5}});
  EXPECT_EQ(print_json_line(json), R"({"z":3,"a":5,"m":4})");
  json.erase("a");
  EXPECT_EQ(json.find("a"), nullptr);
  EXPECT_EQ(json.value("a", "none"), "none");
  int64_t sum = 0;
  for (const Json& each : json) sum += each.get<int64_t>();
  EXPECT_EQ(sum, 7);
}

TEST(Json, NumbersEqualByTheirValue) {
  EXPECT_EQ(Json(1), Json(1U));
  EXPECT_EQ(Json(1), Json(1.0));
  EXPECT_NE(Json(1), Json("1"));
  EXPECT_NE(Json(nullptr), Json(0));
  EXPECT_NE(parse_json("-1", "x"), parse_json("18446744073709551615", "x"));
}

TEST(Json, WhatAValueDoesNotHoldIsASentence) {
  EXPECT_EQ(message_of([] { (void)Json(1).text(); }), "expected a string, got 1");
  EXPECT_EQ(message_of([] { (void)Json("x").get<double>(); }), "expected a number, got \"x\"");
  EXPECT_EQ(message_of([] { (void)Json(1e300).get<int64_t>(); }), "expected a whole number, got 1e+300");
  EXPECT_EQ(message_of([] { (void)Json{{"a", 1}}.at("b"); }), "expected an object with 'b', got {\"a\":1}");
  EXPECT_EQ(message_of([] { (void)Json{1, 2}[size_t{2}]; }), "expected a list with an item 2, got [1,2]");
}

TEST(Json, OfAKeyNamedTwiceTheLastCountsOrBothAreRefused) {
  const std::string text = R"({"a":1,"b":{"c":1,"d":2,"c":3},"a":2})";
  EXPECT_EQ(print_json_line(parse_json(text, "x")), R"({"a":2,"b":{"c":3,"d":2}})");
  EXPECT_EQ(message_of([&] { parse_json(text, "x.json", SameKeys::refused); }), "x.json: names 'c' twice");
}

TEST(Json, WhatCannotBeHeldIsRefused) {
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  for (const std::string& text : {deep, "{\"a\": " + deep + "}", std::string("[1e400]")}) {
    try {
      parse_json(text, "odd.json");
      ADD_FAILURE() << text.substr(0, 20);
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("odd.json"), std::string::npos) << error.what();
    }
  }
}

TEST(Json, PrintsWhatSteersATerminalByItsNumber) {
  const std::string text = "\033 \x7f \xc2\x9b \xe2\x80\xae \xf3\xa0\x81\x81 é 🚀";
  const Json value{{text, text}};
  for (const std::string& printed : {print_json(value), print_json_line(value)}) {
    EXPECT_NE(printed.find("\\u001b \\u007f \\u009b \\u202e \\udb40\\udc41 é 🚀"), std::string::npos) << printed;
    EXPECT_EQ(parse_json(printed, "printed"), value);
  }
}

TEST(Json, PrintsAnObjectMemberByMember) {
  const Json whole{
      {"a", Json{{"b", Json(Json::List{Json(1), Json(Json::object())})}}}, {"quote\"", "x"}, {"c", Json(nullptr)}};
  JsonObjectPrinter printer;
  for (const auto& [key, value] : whole.items()) printer.add(key, value);
  EXPECT_EQ(std::move(printer).finish(), print_json(whole));
  EXPECT_EQ(JsonObjectPrinter().finish(), print_json(Json::object()));
}

TEST(Json, PrintsSeriesWithoutItsValues) {
  const std::vector<double> series{0.5, std::nan(""), 3, 1e300, 1.5e-7, 0.1 + 0.2, -2.25, 0}, none;
  JsonObjectPrinter printer(1000);
  printer.add("series", std::span(series));
  printer.open("nested");
  printer.open("empty");
  printer.close();
  printer.add("none", std::span(none));
  printer.close();
  EXPECT_EQ(std::move(printer).finish(),
            R"({
  "series": [0.5,null,3.0,1e+300,1.5e-07,0.30000000000000004,-2.25,0.0],
  "nested": {
    "empty": {},
    "none": []
  }
}
)");
}

// Repeated fractions are copied, so that a neighbour's digits must not be.
TEST(Json, PrintsSeriesOfRepeatedFractions) {
  EXPECT_EQ(
      print_json_line(Json{{"a", Json(Json::List{Json(0.1), Json(0.1), Json(1), Json(0.1), Json(-0.0), Json(0.0)})}}),
      R"({"a":[0.1,0.1,1,0.1,-0.0,0.0]})");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(print_json_line(Json(Json::List{Json(nan), Json(nan), Json(2.5), Json(2.5), Json("x"), Json(2.5)})),
            R"([null,null,2.5,2.5,"x",2.5])");
}

}  // namespace
}  // namespace tprimat
