#include "cli/hand_over.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/log.h"
#include "launch/trainer_program.h"

namespace tprimat::cli {
namespace {

struct TrainerVerb {
  const char *name, *summary;
};
constexpr std::array k_trainer_verbs = {
    TrainerVerb{"train", "Train one model with the native trainer, from a JSON specification"},
    TrainerVerb{"data", "Token data sets (Megatron .bin/.idx)"},
};

// Of the first word that is no request for help; argc where there is none.
int verb_place(int argc, char** argv) {
  int at = 1;
  while (at < argc && (std::strcmp(argv[at], "--help") == 0 || std::strcmp(argv[at], "-h") == 0)) ++at;
  return at;
}

}  // namespace

void add_trainer_verb(CommandLine& program, const std::string& name) {
  for (const TrainerVerb& verb : k_trainer_verbs)
    if (name == verb.name) program.add_subcommand(verb.name, verb.summary);
}

bool is_trainer_verb(const std::string& name) {
  return std::any_of(k_trainer_verbs.begin(), k_trainer_verbs.end(),
                     [&](const TrainerVerb& verb) { return name == verb.name; });
}

bool is_trainer_verb(int argc, char** argv) {
  const int at = verb_place(argc, argv);
  return at < argc && is_trainer_verb(argv[at]);
}

int run_trainer_verb(int argc, char** argv) {
  try {
    // `--help train` is `train --help`.
    std::vector<std::string> words(argv + 1, argv + argc);
    std::rotate(words.begin(), words.begin() + verb_place(argc, argv) - 1, words.end());
    become_trainer(std::move(words));
  } catch (const Error& error) {
    for (const Problem& problem : error.problems()) log_error(to_string(problem));
    return static_cast<int>(error.status());
  }
}

void become_trainer(std::vector<std::string> words) {
  const std::string path = suite::require_trainer_program().string();
  words.insert(words.begin(), "tprimat");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execv(path.c_str(), argv.data());
  throw Error(Problem{std::string("cannot start the native trainer: ") + std::strerror(errno), path, ""},
              ExitStatus::missing_component);
}

}  // namespace tprimat::cli
