// The same targets without libFuzzer, for the tests of every day: each file of the corpus, and random changes of it.
//   fuzz_mutate TARGET SECONDS
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "base/files.h"
#include "fuzz/targets.h"

namespace {

namespace fs = std::filesystem;

std::vector<std::string> load_corpus(const std::string& folder) {
  std::vector<std::string> files = {std::string()};
  const fs::path path = fs::path(TPRIMAT_SOURCE_DIR) / folder;
  if (folder.empty() || !fs::exists(path)) return files;
  for (const auto& entry : fs::recursive_directory_iterator(path))
    if (entry.is_regular_file() && entry.path().extension() != ".expected") files.push_back(tprimat::read_file(entry));
  return files;
}

const std::vector<std::string> k_words = {"\n",
                                          "\r",
                                          "|",
                                          ":",
                                          "nan",
                                          "inf",
                                          "-1",
                                          "0",
                                          "1e308",
                                          "9223372036854775807",
                                          "18446744073709551616",
                                          "\x1b[",
                                          "{",
                                          "}",
                                          "[",
                                          "]",
                                          "\"",
                                          ",",
                                          std::string(1, '\0'),
                                          "\xff",
                                          "1,234",
                                          "e",
                                          ".",
                                          "/"};

class Mutator {
 public:
  explicit Mutator(uint32_t seed) : random_(seed) {}

  std::string change(const std::vector<std::string>& corpus) {
    std::string text = corpus[random_() % corpus.size()];
    for (uint32_t rounds = 1 + random_() % 8; rounds > 0; --rounds)
      change_once(text, corpus[random_() % corpus.size()]);
    return text;
  }

 private:
  void change_once(std::string& text, const std::string& other) {
    const size_t at = text.empty() ? 0 : random_() % text.size();
    switch (random_() % 6) {
      case 0: text.insert(at, k_words[random_() % k_words.size()]); break;
      case 1: text.erase(at, 1 + random_() % 40); break;
      case 2: text.insert(at, text.substr(text.empty() ? 0 : random_() % text.size(), random_() % 200)); break;
      case 3: text.insert(at, other.substr(other.empty() ? 0 : random_() % other.size(), random_() % 300)); break;
      case 4: text.resize(at); break;
      default:
        if (!text.empty()) text[at] = static_cast<char>(random_());
    }
  }

  std::mt19937 random_;
};

}  // namespace

int main(int argc, char** argv) {
  const tprimat::FuzzTarget* target = argc == 3 ? tprimat::find_fuzz_target(argv[1]) : nullptr;
  if (target == nullptr) {
    std::fprintf(stderr, "usage: fuzz_mutate TARGET SECONDS, with one of these targets:\n");
    for (const auto& each : tprimat::fuzz_targets()) std::fprintf(stderr, "  %s\n", each.name.c_str());
    return 2;
  }
  const std::vector<std::string> corpus = load_corpus(target->corpus);
  for (const std::string& file : corpus) tprimat::run_fuzz_target(*target, file);
  Mutator mutator(20261121);
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(std::atof(argv[2]));
  int64_t runs = 0;
  for (; std::chrono::steady_clock::now() < end; ++runs) tprimat::run_fuzz_target(*target, mutator.change(corpus));
  std::printf("%s: %zu files, %lld changed inputs, no finding\n", argv[1], corpus.size(), static_cast<long long>(runs));
  return 0;
}
