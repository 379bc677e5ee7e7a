#include "base/environment.h"

#include <gtest/gtest.h>

namespace tprimat {
namespace {

TEST(Environment, KnowsWhichVariablesHoldSecrets) {
  for (const char* name : {"PASSWORD", "DB_PASSWORD", "password", "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "TOKEN",
                           "HF_TOKEN", "HFTOKEN", "GITHUB_TOKEN_2", "SECRET", "CLIENT_SECRET_ID", "WANDB_API_KEY",
                           "OPENAI_APIKEY", "SSH_PRIVATE_KEY", "MYSQL_PASSWD", "GPG_PASSPHRASE", "AZURE_CREDENTIALS"})
    EXPECT_TRUE(names_a_secret(name)) << name;
}

TEST(Environment, KnowsWhichDoNot) {
  for (const char* name : {"TOKENIZER", "TOKENIZER_MODEL", "TOKENIZERS_PARALLELISM", "NUM_TOKENS", "PATH", "HOME",
                           "HF_TOKEN_PATH", "PASSWORD_FILE", "MONKEY", "KEYBOARD", "DATA_DIR", ""})
    EXPECT_FALSE(names_a_secret(name)) << name;
}

TEST(Environment, AVariableHoldsASecretUnderMoreNames) {
  for (const char* name : {"hf_token", "NGC_APIKEY", "WANDB_KEY", "DB_PASSWD", "MY_CREDENTIALS", "HF_TOKENS", "GH_PAT"})
    EXPECT_TRUE(holds_a_secret(name, "hf_abc")) << name;
  for (const char* name : {"MONKEY", "PYTHONPATH", "WANDB_KEY_FILE", "HF_TOKEN_PATH", "TOKENIZER", "XPAT"})
    EXPECT_FALSE(holds_a_secret(name, "hf_abc")) << name;
  for (const char* count : {"", "4096", "1.5e9", "300B"}) EXPECT_FALSE(holds_a_secret("MAX_TOKENS", count)) << count;
}

}  // namespace
}  // namespace tprimat
