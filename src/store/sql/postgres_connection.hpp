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

// Where a PostgreSQL database is. `name` is for messages: the URL without its password.
struct PgTarget {
  std::string url;
  std::string name;
};

// config_invalid for a URL that libpq cannot read; the text itself is never repeated.
Result<PgTarget> parse_postgres_url(const std::string& url);

// One connection, for one thread at a time.
class PgConnection {
 public:
  // Nothing waits forever: not for a lock, not for a statement, and the server does not wait for us
  // if this process stalls. Keepalives detect a server that vanished from the network.
  static constexpr auto session_settings =
      "set statement_timeout = 30000; set lock_timeout = 10000;"
      "set idle_in_transaction_session_timeout = 60000; set client_min_messages = warning";

  static Result<PgConnection> open(const PgTarget& target);

  // Prepares the text on first use by this connection.
  Result<Rows> run(std::string_view sql, std::span<const Value> parameters);
  // For begin, commit and the like: no parameters, not prepared.
  Result<> command(const char* sql);
  // Drops prepared statements when there are too many. Only between transactions.
  void tidy();

  // Also reads what the server has sent meanwhile: a server that is going down announces it.
  bool lost();
  // Whether the server has asked for a transaction retry since the last call.
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
