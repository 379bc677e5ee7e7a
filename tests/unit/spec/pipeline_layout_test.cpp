#include "spec/pipeline_layout.h"

#include <gtest/gtest.h>

#include <numeric>

#include "spec/model_catalogue.h"

namespace tprimat {
namespace {

std::vector<int64_t> layers_of(const std::string& text) {
  const auto layers = list_place_layers(text);
  EXPECT_TRUE(layers) << text;
  return layers.value_or(std::vector<int64_t>());
}

TEST(PipelineLayout, ReadsMegatronsNotation) {
  const auto places = parse_pipeline_layout("Et*3|(tt|)*29,m|L");
  ASSERT_TRUE(places);
  ASSERT_EQ(places->size(), 32u);
  EXPECT_TRUE(places->front().embedding);
  EXPECT_EQ(places->front().layers, 3);
  for (size_t place = 1; place <= 29; ++place) EXPECT_EQ((*places)[place].layers, 2) << place;
  EXPECT_EQ((*places)[30].prediction, 1);
  EXPECT_EQ((*places)[30].layers, 0);
  EXPECT_TRUE(places->back().loss);
}

TEST(PipelineLayout, GroupsHoldRepeatedLetters) {
  EXPECT_EQ(layers_of("Et*4|(t*4|)*14tmL"), (std::vector<int64_t>{4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 1}));
  EXPECT_EQ(layers_of("Et|tt||L"), (std::vector<int64_t>{1, 2, 0, 0}));
  EXPECT_EQ(layers_of("EtL"), (std::vector<int64_t>{1}));
}

TEST(PipelineLayout, RefusesWhatIsNone) {
  for (const char* text : {"",
                           "E",
                           "L",
                           "EtLt",
                           "tE|L",
                           "EE|L",
                           "EtL|L",
                           "Emt|L",
                           "Et|(tt|)29L",
                           "Et|(tt|L",
                           "Et|()*2L",
                           "Et|x|L",
                           "E t|L",
                           "Et*|L",
                           "Et*-1|L",
                           "Et*0|L",
                           "Et*99999999999999999999|L",
                           "E(t*60000|)*60000L",
                           "*3EtL",
                           "Et|tt)*2|L",
                           "Et|t*2*2|L",
                           "Ett|\xff|L"})
    EXPECT_FALSE(parse_pipeline_layout(text)) << text;
  EXPECT_FALSE(parse_pipeline_layout(std::string(1 << 20, 't')));
}

TEST(PipelineLayout, WhatIsWrittenIsReadBack) {
  for (const std::vector<int64_t>& layers :
       {std::vector<int64_t>{5, 4, 4, 4}, {1}, {2, 2}, {2, 1, 1, 1, 0}, {0, 3, 0, 0, 1}, {16, 15, 15, 15}})
    for (const int64_t prediction : {0, 1, 3})
      EXPECT_EQ(layers_of(write_pipeline_layout(layers, prediction)), layers)
          << write_pipeline_layout(layers, prediction);
  EXPECT_EQ(write_pipeline_layout({4, 4, 4, 1}, 1), "Et*4|(t*4|)*2tmL");
  EXPECT_EQ(write_pipeline_layout({2, 1, 1}, 0), "Ett|t|tL");
  EXPECT_EQ(write_pipeline_layout({2, 1, 1, 0}, 1), "Ett|(t|)*2mL");
  EXPECT_EQ(write_pipeline_layout({2, 2, 0, 0}, 1), "Ett|tt|m|L");
}

TEST(PipelineLayout, SaysWhyItDoesNotSuitAModel) {
  const ModelSpec deepseek = *find_model("deepseek_v3");
  ASSERT_EQ(deepseek.prediction_layers, 1);
  const auto fault = [&](const char* text, int64_t pipeline, int64_t chunks) {
    return find_layout_fault(text, deepseek, pipeline, chunks);
  };
  EXPECT_EQ(fault("Et*3|(tt|)*29m|L", 8, 4), "");
  EXPECT_EQ(fault("Et*4|(t*4|)*14tmL", 16, 1), "");
  EXPECT_NE(fault("Et*4|(t*4|)*14tmL", 8, 1).find("16 chunks, but PP 8 x VP 1 is 8"), std::string::npos);
  EXPECT_NE(fault("Et*4|(t*4|)*14mL", 16, 1).find("60 layers (t), but the model has 61"), std::string::npos);
  EXPECT_NE(fault("Et*4|(t*4|)*14tL", 16, 1).find("0 layers that predict"), std::string::npos);
  EXPECT_NE(fault("Et*61m|L", 2, 1).find("not in the first"), std::string::npos);
  EXPECT_NE(fault("tt", 2, 1).find("no list of chunks"), std::string::npos);
}

TEST(PipelineLayout, DescribesEqualNeighboursTogether) {
  EXPECT_EQ(describe_place_layers({5, 4, 4, 4, 1}), "5+3x4+1");
  EXPECT_EQ(describe_place_layers({2}), "2");
  EXPECT_EQ(describe_place_layers({}), "");
  EXPECT_EQ(describe_place_layers({1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 3, 0}), "of 0 to 3");
}

}  // namespace
}  // namespace tprimat
