#include "trace/sqlite_bytes.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include "base/error.h"
#include "text/format.h"

namespace tprimat::logs {
namespace {

constexpr int k_longest_value = 16 * 1024 * 1024;
constexpr int k_operations_per_tick = 10'000;
constexpr int64_t k_operations_per_byte = 100;  // reading a row of 40 bytes takes about 20

// Reading columns of ordinary tables is all that is allowed.
int authorise(void*, int action, const char*, const char*, const char*, const char*) {
  return action == SQLITE_SELECT || action == SQLITE_READ ? SQLITE_OK : SQLITE_DENY;
}

int count_down(void* left) {
  return --*static_cast<int64_t*>(left) < 0 ? 1 : 0;  // 1: interrupt
}

std::string quoted(std::string_view name) { return fmt::format("\"{}\"", name); }

}  // namespace

bool is_sqlite(std::string_view bytes) { return bytes.starts_with(std::string_view("SQLite format 3\0", 16)); }

SqliteBytes::SqliteBytes(std::string_view bytes, std::string_view where)
    : where_(where),
      ticks_left_(100 + static_cast<int64_t>(bytes.size()) * k_operations_per_byte / k_operations_per_tick) {
  sqlite3* opened = nullptr;
  const int code = sqlite3_open_v2(":memory:", &opened, SQLITE_OPEN_READWRITE, nullptr);
  handle_.reset(opened);
  require(code);
  sqlite3_db_config(handle_.get(), SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(handle_.get(), SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_limit(handle_.get(), SQLITE_LIMIT_LENGTH, k_longest_value);
  auto* const data = reinterpret_cast<unsigned char*>(const_cast<char*>(bytes.data()));  // read-only: never written
  const auto size = static_cast<sqlite3_int64>(bytes.size());
  require(sqlite3_deserialize(handle_.get(), "main", data, size, size, SQLITE_DESERIALIZE_READONLY));
  sqlite3_set_authorizer(handle_.get(), authorise, nullptr);
  sqlite3_progress_handler(handle_.get(), k_operations_per_tick, count_down, &ticks_left_);
}

void SqliteBytes::Close::operator()(sqlite3* handle) const { sqlite3_close(handle); }

void SqliteBytes::refuse() {
  const std::string reason = ticks_left_ < 0 ? "it has more rows than bytes" : sqlite3_errmsg(handle_.get());
  const std::string what = fmt::format("cannot be read as an SQLite database: {}", printable(reason).substr(0, 160));
  throw Error(Problem{what, where_, "export the report again"});
}

void SqliteBytes::require(int code) {
  if (code != SQLITE_OK) refuse();
}

// A virtual table would run code; "CREATE VIRTUAL TABLE" is of type "table" too.
bool SqliteBytes::has_table(std::string_view name) {
  SqliteTable master(*this, "sqlite_master", {"type", "name", "sql"});
  while (master.next())
    if (master.text(0) == "table" && master.text(1) == name) return master.text(2).starts_with("CREATE TABLE");
  return false;
}

bool SqliteBytes::has_table_like(std::string_view begin) {
  SqliteTable master(*this, "sqlite_master", {"name"});
  while (master.next())
    if (master.text(0).starts_with(begin)) return true;
  return false;
}

SqliteTable::SqliteTable(SqliteBytes& database, std::string_view table, std::initializer_list<std::string_view> columns)
    : database_(database) {
  if (table != "sqlite_master" && !database.has_table(table)) return;
  sqlite3_stmt* const all = prepare("SELECT * FROM " + quoted(table));
  std::string wanted;
  for (const std::string_view column : columns) {
    bool found = false;
    for (int i = 0; i < sqlite3_column_count(all) && !found; ++i) found = sqlite3_column_name(all, i) == column;
    wanted += (wanted.empty() ? "" : ", ") + (found ? quoted(column) : "NULL");
  }
  sqlite3_finalize(all);
  statement_ = prepare("SELECT " + wanted + " FROM " + quoted(table));
}

SqliteTable::~SqliteTable() { sqlite3_finalize(statement_); }

sqlite3_stmt* SqliteTable::prepare(const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  database_.require(sqlite3_prepare_v2(database_.handle_.get(), sql.c_str(), -1, &statement, nullptr));
  return statement;
}

bool SqliteTable::next() {
  if (statement_ == nullptr) return false;
  const int code = sqlite3_step(statement_);
  if (code != SQLITE_ROW && code != SQLITE_DONE) database_.refuse();
  return code == SQLITE_ROW;
}

bool SqliteTable::has(int column) const { return sqlite3_column_type(statement_, column) != SQLITE_NULL; }

int64_t SqliteTable::number(int column, int64_t otherwise) const {
  return has(column) ? sqlite3_column_int64(statement_, column) : otherwise;
}

std::string_view SqliteTable::text(int column) const {
  const auto* const bytes = static_cast<const char*>(sqlite3_column_blob(statement_, column));
  if (bytes == nullptr) return {};
  return {bytes, static_cast<size_t>(sqlite3_column_bytes(statement_, column))};
}

}  // namespace tprimat::logs
