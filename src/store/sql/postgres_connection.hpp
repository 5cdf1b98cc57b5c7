#pragma once

#include "base/owned.hpp"
#include "store/sql/database.hpp"

#include <string>
#include <unordered_map>

struct pg_conn;
struct pg_result;

namespace berth::store {

struct PgConnectionKind {
  using Raw = pg_conn*;
  static Raw none() { return nullptr; }
  static void dispose(Raw connection) noexcept;
};

struct PgResultKind {
  using Raw = pg_result*;
  static Raw none() { return nullptr; }
  static void dispose(Raw result) noexcept;
};

// Where a PostgreSQL database is. `name` is for sentences: the URL without its password.
struct PgTarget {
  std::string url;
  std::string name;
};

// config_invalid for a URL that libpq cannot read; the text itself is never repeated.
Result<PgTarget> parse_postgres_url(const std::string& url);

// One connection, for one thread at a time.
class PgConnection {
 public:
  // Nothing waits forever: neither for a lock, nor for a statement, nor, if this process stalls,
  // does the server for us. A server that vanished from the network is noticed by the keepalives.
  static constexpr auto session_settings =
      "set statement_timeout = 30000; set lock_timeout = 10000;"
      "set idle_in_transaction_session_timeout = 60000; set client_min_messages = warning";

  static Result<PgConnection> open(const PgTarget& target);

  // Prepares the text on its first use here.
  Result<Rows> run(std::string_view sql, std::span<const Value> parameters);
  // begin, commit and the like: no parameters, not prepared.
  Result<> command(const char* sql);
  // Forgets prepared statements when there are too many. Only between transactions.
  void tidy();

  // Looks at what the server has sent meanwhile, too: a server that is going down says so.
  bool lost();
  // Whether the server asked, since the last call, to run the transaction again.
  bool take_repeat() { return std::exchange(repeat_, false); }

 private:
  PgConnection(Owned<PgConnectionKind> handle, std::string name)
      : handle_(std::move(handle)), name_(std::move(name)) {}
  Result<const std::string*> prepare(std::string_view sql);
  std::unexpected<Error> failure(const pg_result* result);

  Owned<PgConnectionKind> handle_;
  std::string name_;
  std::unordered_map<std::string, std::string> statements_;  // text -> name
  bool repeat_ = false;
};

}  // namespace berth::store
