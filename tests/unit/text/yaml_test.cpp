#include "text/yaml.h"

#include <gtest/gtest.h>

#include "base/printable.h"

namespace tprimat {
namespace {

YamlNode read(std::string_view text) { return parse_yaml(text, "f.yaml").root; }

// "where: what" of the one problem that the text has.
std::string problem_of(std::string_view text) {
  try {
    parse_yaml(text, "f.yaml");
  } catch (const Error& error) {
    EXPECT_EQ(error.problems().size(), 1u);
    return error.problems()[0].where + ": " + error.problems()[0].what;
  }
  return "no error";
}

TEST(Yaml, KeepsOrderTextAndPlace) {
  const YamlNode root = read("b: 1\na: {c: \"8\", d: [x, 'y']}\n");
  ASSERT_EQ(root.entries.size(), 2u);
  EXPECT_EQ(root.entries[0].key, "b");
  EXPECT_EQ(root.entries[1].origin.text(), "f.yaml:2:1");
  const YamlNode* c = root.find("a")->find("c");
  EXPECT_EQ(c->scalar, "8");
  EXPECT_TRUE(c->quoted);
  EXPECT_EQ(c->origin.text(), "f.yaml:2:8");
  const YamlNode* d = root.find("a")->find("d");
  ASSERT_EQ(d->items.size(), 2u);
  EXPECT_FALSE(d->items[0].quoted);
  EXPECT_TRUE(d->items[1].quoted);
}

TEST(Yaml, EmptyIsNull) {
  EXPECT_EQ(read("").kind, YamlNode::Kind::null);
  EXPECT_EQ(read("# only a comment\n").kind, YamlNode::Kind::null);
  EXPECT_EQ(read("a:\n").find("a")->kind, YamlNode::Kind::null);
}

TEST(Yaml, ByteOrderMarkAndWindowsLines) {
  const YamlNode root = read(
      "\xEF\xBB\xBF"
      "a: 1\r\nb: \"two\"\r\n");
  EXPECT_EQ(root.find("a")->scalar, "1");
  EXPECT_EQ(root.find("b")->scalar, "two");
}

TEST(Yaml, AliasesAndMergeKeysAreExpanded) {
  const YamlNode root = read("base: &b {x: 1, y: 2}\nother: {<<: *b, y: 3}\nsame: *b\n");
  EXPECT_EQ(root.find("other")->find("x")->scalar, "1");
  EXPECT_EQ(root.find("other")->find("y")->scalar, "3");
  EXPECT_EQ(root.find("same")->find("y")->scalar, "2");
}

TEST(Yaml, DuplicatesAreListedAndTheFirstStands) {
  const YamlDocument document = parse_yaml("a: 1\nb: {c: 1, c: 2}\na: 3\n", "f.yaml");
  ASSERT_EQ(document.duplicates.size(), 2u);
  EXPECT_EQ(document.duplicates[0].where, "f.yaml:2:11");
  EXPECT_EQ(document.duplicates[1].where, "f.yaml:3:1");
  EXPECT_EQ(document.root.find("a")->scalar, "1");
}

TEST(Yaml, DuplicateSectionsKeepTheFirst) {
  const YamlDocument document = parse_yaml("a: {x: 1}\na: {y: [1, {z: 2}]}\nb: 5\n", "f.yaml");
  EXPECT_EQ(document.duplicates.size(), 1u);
  EXPECT_NE(document.root.find("a")->find("x"), nullptr);
  EXPECT_EQ(document.root.find("b")->scalar, "5");
}

TEST(Yaml, UnclosedQuotesAreFound) {
  EXPECT_EQ(problem_of("a: \"open\nb: 1\n"), "f.yaml:1:4: is not valid YAML: a quotation mark is never closed");
  EXPECT_EQ(problem_of("a: 'it''s\n"), "f.yaml:1:4: is not valid YAML: a quotation mark is never closed");
  EXPECT_EQ(problem_of("a: \"it\\\"\n"), "f.yaml:1:4: is not valid YAML: a quotation mark is never closed");
}

TEST(Yaml, ClosedQuotesAreFine) {
  EXPECT_EQ(read("a: 'it''s'").find("a")->scalar, "it's");
  EXPECT_EQ(read("a: \"say \\\"x\\\"\"").find("a")->scalar, "say \"x\"");
  EXPECT_EQ(read("a: &n 'x'\nb: 1\n").find("a")->scalar, "x");
  EXPECT_EQ(read("a: ''").find("a")->scalar, "");
}

TEST(Yaml, RefusesWhatIsNoPlainConfiguration) {
  EXPECT_EQ(problem_of("a: 1\n---\nb: 2\n").rfind("f.yaml:", 0), 0u);
  EXPECT_NE(problem_of("a: !!binary x\n").find("tag"), std::string::npos);
  EXPECT_NE(problem_of("? [a]\n: b\n").find("plain text"), std::string::npos);
  EXPECT_NE(problem_of("a: &x [*x]\n").find("alias"), std::string::npos);
  EXPECT_EQ(problem_of(std::string_view("a: \0b", 5)), "f.yaml:1:4: is not UTF-8 text: byte 0x00");
}

TEST(Yaml, DepthAndSizeAreBounded) {
  const std::string deep(k_max_yaml_depth + 1, '[');
  EXPECT_NE(problem_of(deep + std::string(deep.size(), ']')).find("levels deep"), std::string::npos);
  EXPECT_NE(problem_of(std::string(k_max_yaml_bytes + 1, ' ')).find("bytes"), std::string::npos);
  std::string many = "a: [";
  for (size_t i = 0; i <= k_max_yaml_nodes; ++i) many += "1,";
  EXPECT_NE(problem_of(many + "1]").find("values"), std::string::npos);
}

TEST(Yaml, PrintedTreesReadBack) {
  const char* text = "a: \"x \\\"y\\\" \\\\ \\n \\t\"\nb:\n  c: 1.5\n  d: [\"p\", \"q\"]\n  e: {}\n";
  const YamlNode root = read(text);
  EXPECT_EQ(print_yaml(root, false), text);
}

TEST(Yaml, PrintsOriginsAsComments) {
  EXPECT_EQ(print_yaml(read("a: 1\nbb:\n  c: x\n"), true), "a: 1    # f.yaml:1:4\nbb:\n  c: x  # f.yaml:3:6\n");
}

TEST(Yaml, AssignmentTurnsAnythingIntoAMap) {
  YamlNode root = read("a: 5\n");
  root["a"]["b"] = yaml_scalar("x", {Provenance::file, "here"});
  EXPECT_EQ(root.find("a")->find("b")->scalar, "x");
}

const std::vector<std::string> k_strange_texts = {"\033[2J",
                                                  "a\nb: c",
                                                  "x\xe2\x80\xae",
                                                  "\xc2\x85",
                                                  "# no comment",
                                                  "a: b",
                                                  "a #b",
                                                  "[1",
                                                  "- x",
                                                  "*a",
                                                  "ends:",
                                                  " ",
                                                  "",
                                                  "é 🚀",
                                                  "\xf3\xa0\x81\x81",
                                                  "quote \" and \\",
                                                  "\x01\x0b",
                                                  "--- x",
                                                  "%x",
                                                  "`x"};

TEST(Yaml, PrintsWhatOthersWroteSoThatItReadsTheSame) {
  for (const std::string& text : k_strange_texts) {
    YamlNode map;
    map[text.empty() ? "k" : text] = yaml_scalar(text, {Provenance::file, "a\033.yaml:1:1"});
    map["list"].kind = YamlNode::Kind::list;
    map["list"].items = {yaml_scalar(text, {}), yaml_scalar("1", {})};
    const std::string printed = print_yaml(map, true);
    EXPECT_EQ(printable(printed, "\n"), printed);
    const YamlNode read = parse_yaml(printed, "printed").root;
    ASSERT_EQ(read.entries.size(), 2u) << printed;
    EXPECT_EQ(read.entries[0].key, map.entries[0].key) << printed;
    EXPECT_EQ(read.entries[0].value.scalar, text) << printed;
    EXPECT_EQ(read.entries[1].value.items[0].scalar, text) << printed;
  }
}

}  // namespace
}  // namespace tprimat
