#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace tprimat::logs {

// An SQLite database that others wrote, in memory: nothing is written, its views, triggers and functions never run,
// and the work is bounded by its size. Throws Error for bytes that are no database or a damaged one.
class SqliteBytes {
 public:
  SqliteBytes(std::string_view bytes, std::string_view where);
  SqliteBytes(const SqliteBytes&) = delete;
  SqliteBytes& operator=(const SqliteBytes&) = delete;

  bool has_table(std::string_view name);
  bool has_table_like(std::string_view begin);  // one whose name begins like this

 private:
  friend class SqliteTable;
  struct Close {
    void operator()(sqlite3* handle) const;
  };
  [[noreturn]] void refuse();
  void require(int code);

  std::string where_;
  std::unique_ptr<sqlite3, Close> handle_;
  int64_t ticks_left_ = 0;
};

bool is_sqlite(std::string_view bytes);

// The rows of a table, with the columns that are asked for; a missing table has no rows and a missing column no values.
class SqliteTable {
 public:
  SqliteTable(SqliteBytes& database, std::string_view table, std::initializer_list<std::string_view> columns);
  ~SqliteTable();
  SqliteTable(const SqliteTable&) = delete;
  SqliteTable& operator=(const SqliteTable&) = delete;

  bool next();
  // Of the column with this place in the list.
  bool has(int column) const;  // it is there and not null
  int64_t number(int column, int64_t otherwise = 0) const;
  std::string_view text(int column) const;  // until the next row

 private:
  sqlite3_stmt* prepare(const std::string& sql);

  SqliteBytes& database_;
  sqlite3_stmt* statement_ = nullptr;
};

}  // namespace tprimat::logs
