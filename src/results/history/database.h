#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

struct sqlite3;
struct sqlite3_stmt;

namespace tprimat::results {

// An error of SQLite. The index can always be rebuilt, so the caller decides how to react.
class DatabaseError : public std::runtime_error {
 public:
  DatabaseError(const std::string& what, int code) : std::runtime_error(what), code_(code) {}
  int code() const { return code_; }  // SQLite's primary result code

 private:
  int code_;
};

// One SQLite file, or ":memory:". Everything here throws DatabaseError.
class Database {
 public:
  explicit Database(const std::string& path);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  void run(const char* sql);
  int64_t read_number(const char* sql);  // first column of the first row; 0 without any
  sqlite3* handle() { return handle_; }

 private:
  sqlite3* handle_ = nullptr;
};

// A prepared statement. Parameters and columns count from 0.
class Statement {
 public:
  Statement(Database& database, const char* sql);
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(int at, int64_t value);
  Statement& bind(int at, const std::string& text);
  bool step();   // true: there is a row
  void reset();  // to run again with other parameters
  int64_t number(int column);
  std::string text(int column);

 private:
  Database& database_;
  sqlite3_stmt* statement_ = nullptr;
};

}  // namespace tprimat::results
