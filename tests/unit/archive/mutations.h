#pragma once

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "unit/archive/sealed_run.h"
#include "unit/json_place.h"

// Facts are changed one at a time in real small archives, which are sealed again and verified: what list_facts() says
// of each fact is held against what verify_files() does.
namespace tprimat::results {

struct Mutation {
  std::string fact, exact, description;  // exact: with the keys of maps
  std::string place;                     // as a JSON Pointer
  Json value;
};

// Of each fact of the schema that the document states, a value or several that it does not state.
std::vector<Mutation> mutations_of(const Json& document, const Json& schema);

template <class Document>
std::vector<Mutation> mutations_of(const std::string& json) {
  return mutations_of(parse_json(json, ""), json_schema<Document>());
}

bool is_caught(const Files& sealed);

// What the program says of a document's facts, against what was found of them.
class Census {
 public:
  // `shows_all`: a fact that is listed with witnesses and never changed is a claim that no case shows.
  explicit Census(const std::string& document, bool shows_all = true);
  void count(const Mutation& mutation, bool caught);
  ~Census();
  Census(const Census&) = delete;
  Census& operator=(const Census&) = delete;

 private:
  std::string document_;
  bool shows_all_;
  std::map<std::string, std::string> witnesses_;
  std::set<std::string> changed_;
  int cases_ = 0;
};

}  // namespace tprimat::results
