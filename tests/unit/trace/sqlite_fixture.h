#pragma once

#include <sqlite3.h>

#include <stdexcept>
#include <string>

namespace tprimat::logs {

// The bytes of a database that these statements make.
inline std::string sqlite_of(const std::string& statements) {
  sqlite3* database = nullptr;
  if (sqlite3_open(":memory:", &database) != SQLITE_OK) throw std::runtime_error("SQLite does not start");
  char* problem = nullptr;
  if (sqlite3_exec(database, statements.c_str(), nullptr, nullptr, &problem) != SQLITE_OK)
    throw std::runtime_error(problem);
  sqlite3_int64 size = 0;
  unsigned char* const bytes = sqlite3_serialize(database, "main", &size, 0);
  std::string copy(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
  sqlite3_free(bytes);
  sqlite3_close(database);
  return copy;
}

}  // namespace tprimat::logs
