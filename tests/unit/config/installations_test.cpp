#include <gtest/gtest.h>

#include "config/values.h"
#include "config_case.h"

namespace tprimat::suite {
namespace {

std::string installations(const std::string& of_mega, const std::string& chosen = "[mega]") {
  return "experiment: {frameworks: " + chosen + "}\nframeworks: {mega: {installations: " + of_mega + "}}\n";
}

std::vector<InstallationEntry> load(const ConfigCase& config) {
  return config.load().experiment.setup_of(Framework::mega).installations;
}

TEST(Installations, AreAFolderOrAnImage) {
  const auto loaded =
      load({installations("{a: /opt/a, 0.16: {folder: /opt/b}, "
                          "c: {image: 'rocm/megatron-lm:v25.9', folder: /workspace/M, python: /py}}")});
  ASSERT_EQ(loaded.size(), 3u);
  EXPECT_EQ(loaded[0].label, "a");
  EXPECT_EQ(loaded[0].folder, "/opt/a");
  EXPECT_EQ(loaded[1].label, "0.16");
  EXPECT_EQ(loaded[1].folder, "/opt/b");
  EXPECT_EQ(loaded[2].image, "rocm/megatron-lm:v25.9");
  EXPECT_EQ(loaded[2].folder, "/workspace/M");
  EXPECT_EQ(loaded[2].python, "/py");
}

TEST(Installations, AreChosenInTheConfiguration) {
  const auto chosen =
      ConfigCase{installations("{a: /opt/a, v25.9: /opt/b}", "[megatron@a, mega@v25.9, native]")}.load().experiment;
  ASSERT_EQ(chosen.frameworks.size(), 3u);
  EXPECT_EQ(chosen.frameworks[0].name(), "mega@a");
  EXPECT_EQ(chosen.frameworks[1].name(), "mega@v25.9");
  EXPECT_EQ(chosen.frameworks[2].name(), "native");
  const ConfigCase named{installations("{a: /opt/a}"), {{"FRAMEWORKS", "mega@a,native"}}};
  EXPECT_EQ(named.load().experiment.frameworks[0].name(), "mega@a");
}

TEST(Installations, AnUnknownLabelIsNamedWithTheKnownOnes) {
  const auto errors = ConfigCase{installations("{old: /opt/a, new: /opt/b}", "[mega@olt]")}.errors();
  EXPECT_TRUE(mention(errors, "mega has no installation 'olt'; it has old, new")) << print(errors);
  EXPECT_TRUE(mention(errors, "did you mean 'old'?")) << print(errors);
  const auto none = ConfigCase{"experiment: {frameworks: [mega@a]}"}.errors();
  EXPECT_TRUE(mention(none, "the configuration has no installations of mega, so there is no mega@a")) << print(none);
  EXPECT_TRUE(mention(none, "add frameworks.mega.installations: {a: FOLDER}")) << print(none);
  const auto empty = ConfigCase{installations("{a: /opt/a}", "['mega@']")}.errors();
  EXPECT_TRUE(mention(empty, "mega has no installation ''; it has a")) << print(empty);
  EXPECT_TRUE(mention(ConfigCase{"experiment: {frameworks: [mego@a]}"}.errors(), "did you mean 'mega'?"));
}

TEST(Installations, MistakesAreNamed) {
  const auto errors = [](const std::string& text) { return ConfigCase{installations(text)}.errors(); };
  EXPECT_TRUE(mention(errors("{a: {}}"), "frameworks.mega.installations.a states neither a folder nor an image"));
  EXPECT_TRUE(mention(errors("{a: [x]}"), "must be a folder, or a section with the keys folder, image, python"));
  EXPECT_TRUE(mention(errors("{a: {foldr: /opt}}"), "did you mean 'folder'?"));
  EXPECT_TRUE(mention(errors("{'a b': /opt}"), "may contain only letters, digits, _, - and ."));
  EXPECT_TRUE(mention(errors("{a: {image: --rm}}"), "frameworks.mega.installations.a.image cannot be '--rm'"));
  EXPECT_TRUE(mention(errors("{a: {image: x, folder: here}}"), "is in the image, so it must begin with /"));
  EXPECT_TRUE(mention(errors("{a: {folder: /x, python: /py}}"), "is a path in an image, but there is no image"));
  const auto native = ConfigCase{"frameworks: {native: {installations: {a: /opt}}}"}.errors();
  EXPECT_TRUE(mention(native, "the native trainer is part of this program")) << print(native);
}

TEST(Installations, AreSetByOptionsAndVariables) {
  const std::string file = installations("{a: /opt/a, 0.16: {folder: /opt/b}}");
  const std::string key = "frameworks.mega.installations";
  EXPECT_EQ(load({file, {}, {key + ".a=/elsewhere"}})[0].folder, "/elsewhere");
  EXPECT_EQ(load({file, {}, {key + ".0.16=/elsewhere"}})[1].folder, "/elsewhere");
  EXPECT_EQ(load({file, {}, {key + ".0.16.folder=/elsewhere"}})[1].folder, "/elsewhere");
  EXPECT_EQ(load({file, {}, {key + ".c.image=x:1"}})[2].image, "x:1");
  EXPECT_EQ(load({file, {}, {key + "={c: /opt/c}"}})[2].folder, "/opt/c");
  EXPECT_EQ(load({file, {{"CONFIG_FRAMEWORKS_MEGA_INSTALLATIONS_0_16_FOLDER", "/elsewhere"}}, {}})[1].folder,
            "/elsewhere");
  const auto misspelt = ConfigCase{file, {}, {key + ".a.imagee=x"}}.errors();
  EXPECT_TRUE(mention(misspelt, "unknown key 'imagee' in the installation 'a'")) << print(misspelt);
}

TEST(Installations, HaveTheirOrigin) {
  const LoadedExperiment loaded = ConfigCase{installations("{0.16: /opt/b}")}.load();
  const YamlNode* folder = find_path(loaded.settings, canonical_key_path("frameworks.mega.installations.0.16.folder"));
  ASSERT_NE(folder, nullptr);
  EXPECT_EQ(folder->scalar, "/opt/b");
  EXPECT_TRUE(folder->origin.text().starts_with("config.yaml:2:")) << folder->origin.text();
}

}  // namespace
}  // namespace tprimat::suite
