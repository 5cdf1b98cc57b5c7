#pragma once

#include "base/owned.hpp"
#include "store/sql/database.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

struct sqlite3;
struct sqlite3_stmt;

namespace berth::store {

struct SqliteKind {
  using Raw = sqlite3*;
  static Raw none() { return nullptr; }
  static void dispose(Raw database) noexcept;
};

struct StatementKind {
  using Raw = sqlite3_stmt*;
  static Raw none() { return nullptr; }
  static void dispose(Raw statement) noexcept;
};

// One connection to a SQLite file, for one thread at a time. Errors name the file.
class SqliteConnection {
 public:
  // The file must exist; see sqlite_file.hpp. `vfs` names the VFS to use; null: SQLite's default.
  static Result<SqliteConnection> open(const std::string& path, const char* vfs = nullptr);

  // Parameters are $1, $2, ...: SQLite treats these as names and numbers them by first appearance.
  Result<Rows> run(std::string_view sql, std::span<const Value> parameters);
  // For a statement without parameters whose rows are not needed.
  Result<> run(std::string_view sql);
  void wait_for_locks(std::chrono::milliseconds length);
  // From now on pages remain in the write-ahead log until tidy_log() is called. SQLite itself would
  // move them to the file within a commit, which would delay that commit's caller.
  void keep_log();
  int log_pages() const { return *log_pages_; }  // after the last commit
  void tidy_log();
  // Also false when SQLite rolled back by itself, as it does when the disk is full.
  bool in_transaction() const;

 private:
  struct Statement {
    Owned<StatementKind> handle;
    std::vector<int> places;  // of $1, $2, ...
  };
  // Looks up a text without creating a string.
  struct TextHash : std::hash<std::string_view> {
    using is_transparent = void;
  };

  SqliteConnection(Owned<SqliteKind> handle, std::string path)
      : handle_(std::move(handle)), path_(std::move(path)) {}
  Result<Statement*> prepare(std::string_view sql);
  Result<> bind(const Statement& statement, std::span<const Value> parameters);
  std::unexpected<Error> failure() const;

  Owned<SqliteKind> handle_;  // first, so that the statements are destroyed before it
  std::string path_;
  std::unique_ptr<int> log_pages_ = std::make_unique<int>(0);  // SQLite holds its address
  std::unordered_map<std::string, Statement, TextHash, std::equal_to<>> statements_;
};

// What SQLite's last error on this connection means to an operator of the file at `path`.
std::unexpected<Error> sqlite_failure(sqlite3* database, const std::string& path);

}  // namespace berth::store
