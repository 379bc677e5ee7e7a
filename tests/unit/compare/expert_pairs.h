#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "unit/compare/expert_trainings.h"

// Pairs of trainings with the verdict that an engineer of the field would give, and why. The tables are the expert's
// word: a row that fails shows a fault of the rules, or a change of policy that someone must argue for.
namespace tprimat::results::expert {

enum class Answer { faster, slower, same, inconclusive, withheld };  // of the subject

struct Codes : std::vector<std::string> {
  Codes() = default;
  Codes(const char* only) : vector{only} {}
  Codes(std::initializer_list<std::string> all) : vector(all) {}
};

struct ExpertPair {
  const char* name;
  Training reference, subject;
  Answer answer;
  const char* reason;
  // Withheld: codes of errors, at least one of which must be among those found. Else codes of the findings that belong
  // beside the verdict; every warning must be one of them, and notes may stand there besides.
  Codes codes = {};
};
std::vector<ExpertPair> comparable_pairs();         // expert_comparable.cpp
std::vector<ExpertPair> disturbed_pairs();          // expert_disturbed.cpp: comparable, though something is odd
std::vector<ExpertPair> other_work_pairs();         // expert_other_work.cpp: withheld
std::vector<ExpertPair> comparable_sparse_pairs();  // expert_sparse.cpp
std::vector<ExpertPair> other_sparse_pairs();       // withheld
std::vector<ExpertPair> broken_file_pairs();        // expert_broken_files.cpp: withheld
// expert_contradictions.cpp: withheld, and honest pairs that resemble them.
std::vector<ExpertPair> contradicting_pairs();
std::vector<ExpertPair> apparent_contradictions();

enum class GateAnswer { passes, fails, refuses, has_no_answer };  // refused: not comparable, or an invalid run

struct ExpertGate {
  const char* name;
  Training reference, subject;
  const char* gate;
  GateAnswer answer;
  const char* reason;
};
std::vector<ExpertGate> gate_rows();  // expert_gates.cpp

template <class Row>
std::vector<Row> joined(const std::vector<std::vector<Row>>& parts) {
  std::vector<Row> all;
  for (const std::vector<Row>& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace tprimat::results::expert
