#pragma once

#include "base/result.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

// What both engines offer: sessions that run one SQL text, and transactions passed in as functions.
namespace berth::store {

// The content of a column or parameter. Times, booleans and numbers are integers; ids, enums and
// JSON are text.
using Value = std::variant<std::monostate, std::int64_t, std::string>;

struct Rows {
  std::vector<std::vector<Value>> rows;
  std::int64_t changed = 0;  // rows that an insert, update or delete affected
};

// One transaction in progress. Parameters are $1, $2, ... in the text, bound in order. After a
// failed statement, the transaction can only be rolled back and every later statement fails too. So
// write "look, then insert" or `on conflict do nothing`, not "insert, and look if that fails".
class Session {
 public:
  virtual ~Session() = default;
  virtual Result<Rows> run(std::string_view sql, std::span<const Value> parameters) = 0;
  // Suffix for a select whose rows the transaction is about to claim. It skips rows that another
  // transaction is claiming, if the engine allows several. It is an error in a read.
  virtual std::string_view skip_locked() const = 0;
};

enum class EngineKind { sqlite, postgres };

// Runs transactions. All calls return at once; `done` is called once, on one of the database's
// threads (on the caller's when the database is `overloaded`).
class Database {
 public:
  // May run more than once (PostgreSQL asks for a retry after a deadlock), so it must not consume
  // its captures. An error rolls back everything it did. Writers do not see each other's partial
  // work: what a work reads remains unchanged until it has written.
  using Work = std::move_only_function<Result<>(Session&)>;
  using Done = std::move_only_function<void(Result<>)>;

  virtual ~Database() = default;
  virtual EngineKind engine() const = 0;
  // A consistent snapshot that never waits for writers; the work must not write.
  virtual void read(Work work, Done done) = 0;
  // Atomic and durable when `done` is called with success.
  virtual void write(Work work, Done done) = 0;
};

struct DatabaseOptions {
  std::string url;       // "sqlite:/path/to/file" or "postgresql://..."
  unsigned readers = 4;  // SQLite: read connections; PostgreSQL: pool size
};

// Opens the database and migrates its schema. Each problem (newer than the program, locked,
// read-only, full, unreachable, not a database) is an error with its own code and a remedy.
Result<std::unique_ptr<Database>> open_database(const DatabaseOptions& options);

// For programs without an event loop (tests, benchmarks): waits for completion.
Result<> read_now(Database& database, Database::Work work);
Result<> write_now(Database& database, Database::Work work);

}  // namespace berth::store
