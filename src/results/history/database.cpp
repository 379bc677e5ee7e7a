#include "history/database.h"

#include <sqlite3.h>

namespace tprimat::results {
namespace {

[[noreturn]] void complain(sqlite3* handle, int code) {
  throw DatabaseError(handle != nullptr ? sqlite3_errmsg(handle) : sqlite3_errstr(code), code & 0xff);
}

void expect_ok(sqlite3* handle, int code) {
  if (code != SQLITE_OK) complain(handle, code);
}

}  // namespace

Database::Database(const std::string& path) {
  const int code = sqlite3_open_v2(path.c_str(), &handle_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  if (code != SQLITE_OK) {
    const std::string what = handle_ != nullptr ? sqlite3_errmsg(handle_) : sqlite3_errstr(code);
    sqlite3_close(handle_);
    throw DatabaseError(what, code & 0xff);
  }
  constexpr int k_patience_milliseconds = 30000;
  sqlite3_busy_timeout(handle_, k_patience_milliseconds);
  // Other users may write to the file's folder.
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
}

Database::~Database() { sqlite3_close(handle_); }

void Database::run(const char* sql) { expect_ok(handle_, sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr)); }

int64_t Database::read_number(const char* sql) {
  Statement statement(*this, sql);
  return statement.step() ? statement.number(0) : 0;
}

Statement::Statement(Database& database, const char* sql) : database_(database) {
  expect_ok(database.handle(), sqlite3_prepare_v2(database.handle(), sql, -1, &statement_, nullptr));
}

Statement::~Statement() { sqlite3_finalize(statement_); }

Statement& Statement::bind(int at, int64_t value) {
  expect_ok(database_.handle(), sqlite3_bind_int64(statement_, at + 1, value));
  return *this;
}

Statement& Statement::bind(int at, const std::string& text) {
  expect_ok(database_.handle(),
            sqlite3_bind_text(statement_, at + 1, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT));
  return *this;
}

bool Statement::step() {
  const int code = sqlite3_step(statement_);
  if (code != SQLITE_ROW && code != SQLITE_DONE) complain(database_.handle(), code);
  return code == SQLITE_ROW;
}

void Statement::reset() { expect_ok(database_.handle(), sqlite3_reset(statement_)); }

int64_t Statement::number(int column) { return sqlite3_column_int64(statement_, column); }

std::string Statement::text(int column) {
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement_, column));
  return bytes != nullptr ? std::string(bytes, static_cast<size_t>(sqlite3_column_bytes(statement_, column))) : "";
}

}  // namespace tprimat::results
