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

}  // namespace
}  // namespace tprimat
