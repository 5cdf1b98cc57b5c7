#include "store/sql/sqlite_connection.hpp"

#include "store/sql/constraint.hpp"

#include <sqlite3.h>

#include <cerrno>

namespace berth::store {
namespace {

// All texts are in the source, so only a bug reaches this limit; it then bounds memory.
constexpr std::size_t sqlite_statements_max = 512;

constexpr auto full_remedy = "free space on the file system, then repeat the request";
constexpr auto read_only_remedy =
    "give the user of berth write access to the file and its folder, or mount them read-write";
constexpr auto corrupt_remedy = "restore the file from a backup, or name another one";
constexpr auto locked_remedy = "end the other program that uses the file ('fuser' shows it)";

// "UNIQUE constraint failed: environments.company_id, environments.name" names the columns, after
// which the index is named.
std::string index_of(std::string_view message) {
  const std::size_t colon = message.find(": ");
  if (colon == std::string_view::npos) return "";
  std::string index;
  for (std::string_view rest = message.substr(colon + 2); !rest.empty();) {
    const std::string_view column = rest.substr(0, rest.find(", "));
    const std::size_t dot = column.find('.');
    if (index.empty()) index = column.substr(0, dot);
    index += "_" + std::string{column.substr(dot + 1)};
    rest.remove_prefix(std::min(column.size() + 2, rest.size()));
  }
  return index;
}

std::unexpected<Error> constraint_failure(sqlite3* database, const std::string& path) {
  const std::string message = sqlite3_errmsg(database);
  switch (sqlite3_extended_errcode(database)) {
    case SQLITE_CONSTRAINT_UNIQUE:
    case SQLITE_CONSTRAINT_PRIMARYKEY: return std::unexpected(unique_violation(index_of(message)));
    case SQLITE_CONSTRAINT_FOREIGNKEY: return std::unexpected(reference_violation());
    default: return fail(Errc::store_constraint, path + ": " + message);
  }
}

bool is_full(int error_number) {
  return error_number == ENOSPC || error_number == EDQUOT;
}

bool is_read_only(int error_number) {
  return error_number == EROFS || error_number == EACCES || error_number == EPERM;
}

std::vector<Value> row_of(sqlite3_stmt* statement) {
  std::vector<Value> row;
  const int count = sqlite3_column_count(statement);
  row.reserve(static_cast<std::size_t>(count));
  for (int at = 0; at < count; ++at) {
    switch (sqlite3_column_type(statement, at)) {
      case SQLITE_NULL: row.emplace_back(); break;
      case SQLITE_INTEGER: row.emplace_back(sqlite3_column_int64(statement, at)); break;
      default: {
        const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, at));
        const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement, at));
        row.emplace_back(std::string{text == nullptr ? "" : text, text == nullptr ? 0 : size});
      }
    }
  }
  return row;
}

}  // namespace

void SqliteKind::dispose(Raw database) noexcept {
  sqlite3_close_v2(database);
}

void StatementKind::dispose(Raw statement) noexcept {
  sqlite3_finalize(statement);
}

std::unexpected<Error> sqlite_failure(sqlite3* database, const std::string& path) {
  const int error_number = sqlite3_system_errno(database);
  const std::string message = path + ": " + sqlite3_errmsg(database);
  switch (sqlite3_errcode(database) & 0xff) {
    case SQLITE_CONSTRAINT: return constraint_failure(database, path);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return fail(Errc::store_locked, path + ": is locked by another program", locked_remedy);
    case SQLITE_READONLY:
      return fail(Errc::store_read_only, path + ": cannot be written to", read_only_remedy);
    case SQLITE_FULL: return fail(Errc::store_full, path + ": the disk is full", full_remedy);
    case SQLITE_NOTADB:
      return fail(Errc::store_corrupt, path + ": is not a SQLite database", corrupt_remedy);
    case SQLITE_CORRUPT:
      return fail(Errc::store_corrupt, path + ": is damaged (" + sqlite3_errmsg(database) + ")",
                  corrupt_remedy);
    case SQLITE_CANTOPEN:
    case SQLITE_IOERR:
      if (is_full(error_number)) return fail(Errc::store_full, message, full_remedy);
      if (is_read_only(error_number)) return fail(Errc::store_read_only, message, read_only_remedy);
      return fail(Errc::store_failed, message, "look for disk errors in the kernel's log");
    default: return fail(Errc::store_failed, message);
  }
}

std::unexpected<Error> SqliteConnection::failure() const {
  return sqlite_failure(handle_.get(), path_);
}

Result<SqliteConnection> SqliteConnection::open(const std::string& path, const char* vfs) {
  sqlite3* raw = nullptr;
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  const int code = sqlite3_open_v2(path.c_str(), &raw, flags, vfs);
  Owned<SqliteKind> handle{raw};
  if (code != SQLITE_OK) return sqlite_failure(raw, path);
  return SqliteConnection{std::move(handle), path};
}

void SqliteConnection::wait_for_locks(std::chrono::milliseconds length) {
  sqlite3_busy_timeout(handle_.get(), static_cast<int>(length.count()));
}

void SqliteConnection::keep_log() {
  const auto note = [](void* pages, sqlite3* /*database*/, const char* /*schema*/, int count) {
    *static_cast<int*>(pages) = count;
    return SQLITE_OK;
  };
  sqlite3_wal_hook(handle_.get(), note, log_pages_.get());
}

void SqliteConnection::tidy_log() {
  // Pages that remain in the log, because of a reader or a full disk, are safe there.
  sqlite3_wal_checkpoint_v2(handle_.get(), nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
}

bool SqliteConnection::in_transaction() const {
  return sqlite3_get_autocommit(handle_.get()) == 0;
}

Result<SqliteConnection::Statement*> SqliteConnection::prepare(std::string_view sql) {
  if (const auto found = statements_.find(sql); found != statements_.end()) return &found->second;
  if (statements_.size() >= sqlite_statements_max) statements_.clear();
  std::string text{sql};

  sqlite3_stmt* raw = nullptr;
  const int code = sqlite3_prepare_v3(handle_.get(), text.c_str(), static_cast<int>(text.size()),
                                      SQLITE_PREPARE_PERSISTENT, &raw, nullptr);
  Statement statement{Owned<StatementKind>{raw}, {}};
  if (code != SQLITE_OK) return failure();
  const int count = sqlite3_bind_parameter_count(raw);
  for (int at = 1; at <= count; ++at) {
    const std::string name = "$" + std::to_string(at);
    statement.places.push_back(sqlite3_bind_parameter_index(raw, name.c_str()));
  }
  return &statements_.emplace(std::move(text), std::move(statement)).first->second;
}

Result<> SqliteConnection::bind(const Statement& statement, std::span<const Value> parameters) {
  if (parameters.size() != statement.places.size()) {
    return fail(Errc::store_failed,
                path_ + ": a statement takes " + std::to_string(statement.places.size()) +
                    " parameters and was given " + std::to_string(parameters.size()));
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const int place = statement.places[i];
    int code = SQLITE_OK;
    if (const auto* number = std::get_if<std::int64_t>(&parameters[i])) {
      code = sqlite3_bind_int64(statement.handle.get(), place, *number);
    } else if (const auto* text = std::get_if<std::string>(&parameters[i])) {
      // The text outlives the statement's execution, so SQLite needs no copy of it.
      code = sqlite3_bind_text64(statement.handle.get(), place, text->data(), text->size(),
                                 SQLITE_STATIC, SQLITE_UTF8);
    } else {
      code = sqlite3_bind_null(statement.handle.get(), place);
    }
    if (code != SQLITE_OK) return failure();
  }
  return {};
}

Result<Rows> SqliteConnection::run(std::string_view sql, std::span<const Value> parameters) {
  BERTH_TRY(Statement * statement, prepare(sql));
  BERTH_DO(bind(*statement, parameters));
  sqlite3_stmt* raw = statement->handle.get();
  const std::int64_t before = sqlite3_total_changes64(handle_.get());
  Rows rows;
  int code = SQLITE_ROW;
  while ((code = sqlite3_step(raw)) == SQLITE_ROW) rows.rows.push_back(row_of(raw));
  // Taken before the reset, which repeats the code but may lose the system's errno.
  Result<Rows> result = std::move(rows);
  if (code != SQLITE_DONE) result = failure();
  // Cascades count in total_changes but not in changes, which a plain select leaves unchanged.
  const bool wrote = sqlite3_total_changes64(handle_.get()) != before;
  if (result && wrote) result->changed = sqlite3_changes64(handle_.get());
  sqlite3_reset(raw);
  sqlite3_clear_bindings(raw);
  return result;
}

Result<> SqliteConnection::run(std::string_view sql) {
  BERTH_DO(run(sql, {}));
  return {};
}

}  // namespace berth::store
