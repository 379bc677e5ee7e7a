#include "run/environment.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace tprimat::suite {
namespace {

TEST(Environment, HoldsFactsAndNoSecrets) {
  ::setenv("HF_TOKEN", "hf_secret_value", 1);
  ::setenv("OMP_NUM_THREADS", "3", 1);
  const auto environment = describe_environment(MachineFacts{}, {{"onednn", "2.7.2"}});
  ::unsetenv("OMP_NUM_THREADS");
  EXPECT_EQ(environment.at("env.OMP_NUM_THREADS"), "3");
  EXPECT_EQ(environment.at("onednn"), "2.7.2");
  EXPECT_TRUE(environment.contains("compiler"));
  for (const auto& [key, value] : environment) {
    EXPECT_EQ(value.find("hf_secret_value"), std::string::npos) << key;
    EXPECT_EQ(key.find("TOKEN"), std::string::npos);
  }
  ::unsetenv("HF_TOKEN");
}

}  // namespace
}  // namespace tprimat::suite
