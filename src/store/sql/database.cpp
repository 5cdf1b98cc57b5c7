#include "store/sql/database.hpp"

#include "store/sql/postgres.hpp"
#include "store/sql/sqlite.hpp"

#include <future>

namespace berth::store {
namespace {

constexpr std::string_view sqlite_scheme = "sqlite:";

using Verb = void (Database::*)(Database::Work, Database::Done);

Result<> run_now(Database& database, Verb verb, Database::Work work) {
  // The other thread owns the promise: this one may return before set_value does.
  std::promise<Result<>> ended;
  std::future<Result<>> end = ended.get_future();
  (database.*verb)(std::move(work), [ended = std::move(ended)](Result<> result) mutable {
    ended.set_value(std::move(result));
  });
  return end.get();
}

}  // namespace

Result<std::unique_ptr<Database>> open_database(const DatabaseOptions& options) {
  const std::string_view url = options.url;
  if (url.starts_with("postgresql://") || url.starts_with("postgres://")) {
    return open_postgres(options.url, options.readers);
  }
  const std::string path{url.substr(url.starts_with(sqlite_scheme) ? sqlite_scheme.size() : 0)};
  if (url.starts_with(sqlite_scheme) && !path.empty() && path != ":memory:") {
    return open_sqlite(path, options.readers);
  }
  // The text is not repeated, because it may contain a password.
  return fail(Errc::config_invalid, "the database URL names no database that Berth can use",
              "write sqlite:/path/to/berth.db or postgresql://user@host/name");
}

Result<> read_now(Database& database, Database::Work work) {
  return run_now(database, &Database::read, std::move(work));
}

Result<> write_now(Database& database, Database::Work work) {
  return run_now(database, &Database::write, std::move(work));
}

}  // namespace berth::store
