#include "result/printed_settings.h"

#include <gtest/gtest.h>

namespace tprimat {
namespace {

TEST(Adapters, VariantThatIsOffSaysNothing) {
  using Settings = std::map<std::string, std::string>;
  EXPECT_EQ(find_adapters(Settings{{"lora_rank", "16"}, {"use_dora", "False"}}), "lora_rank 16");
  EXPECT_EQ(find_adapters(Settings{{"lora_rank", "16"}, {"qlora", "false"}}), "lora_rank 16");
  EXPECT_EQ(find_adapters(Settings{{"lora_rank", "0"}, {"use_dora", "True"}}), "use_dora True");
  EXPECT_FALSE(find_adapters(Settings{{"lora_rank", "16"}, {"use_lora", "False"}, {"use_dora", "False"}}));
  EXPECT_FALSE(find_adapters(Settings{{"lora_rank", "16"}, {"finetuning_type", "full"}}));
}

TEST(SettingWords, Off) {
  for (const char* off : {"", "None", "null", "False", "no", "OFF", "[]", "{}", "0", "0.0"})
    EXPECT_TRUE(is_off(off)) << off;
  for (const char* on : {"full", "True", "1", "0.1", "00x", "selective"}) EXPECT_FALSE(is_off(on)) << on;
}

}  // namespace
}  // namespace tprimat
