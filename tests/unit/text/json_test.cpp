#include "text/json.h"

#include <gtest/gtest.h>

#include <functional>
#include <optional>

#include "base/error.h"
#include "text/json_fields.h"

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

}  // namespace
}  // namespace tprimat
