#include "store/sql/postgres_connection.hpp"

#include "store/sql/constraint.hpp"

#include <libpq-fe.h>

#include <array>
#include <charconv>
#include <memory>

namespace berth::store {
namespace {

// All texts are in the source, so only a bug reaches this limit; it then bounds memory.
constexpr std::size_t postgres_statements_max = 512;

// Object ids of the integer types in pg_type; they are part of the protocol and never change.
constexpr unsigned int2_type = 21;
constexpr unsigned int4_type = 23;
constexpr unsigned int8_type = 20;

using PgResult = Owned<PgResultKind>;

constexpr std::array<const char*, 9> default_keys = {
    "connect_timeout",  "keepalives_idle",  "keepalives_interval",
    "keepalives_count", "tcp_user_timeout", "fallback_application_name",
    "client_encoding",  "dbname",           nullptr};

// libpq messages end in a newline and may have several lines; the first one names the problem.
std::string first_line(const char* text) {
  std::string line{text == nullptr ? "" : text};
  while (line.ends_with('\n')) line.pop_back();
  return line.substr(0, line.find('\n'));
}

std::string field(const pg_result* result, int code) {
  const char* text = result == nullptr ? nullptr : PQresultErrorField(result, code);
  return text == nullptr ? "" : text;
}

bool succeeded(const PgResult& result) {
  const ExecStatusType status = PQresultStatus(result.get());
  return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

std::unexpected<Error> unreachable(const std::string& name, const std::string& reason) {
  return fail(Errc::store_unreachable, name + ": " + reason,
              "check that the server runs, that host, port and database are right, and that the "
              "user and password are accepted");
}

// What a SQLSTATE means to an operator.
std::unexpected<Error> translate(const std::string& state, const std::string& name,
                                 const std::string& reason) {
  const std::string message = name + ": " + reason;
  if (state == "53100") return fail(Errc::store_full, message, "free space on its server");
  if (state == "25006") {
    return fail(
        Errc::store_read_only, message,
        "name the primary server, not a standby, and look at default_transaction_read_only");
  }
  if (state == "55P03") {
    return fail(Errc::store_locked, message, "wait until the other server is done, then repeat");
  }
  if (state == "57014") return fail(Errc::timed_out, message, "repeat the request later");
  if (state == "22021") {
    return fail(Errc::validation_failed, "a text is not valid UTF-8", "send UTF-8");
  }
  if (state == "XX001" || state == "XX002") {
    return fail(Errc::store_corrupt, message, "restore the database from a backup");
  }
  if (state == "42501") {
    return fail(Errc::store_failed, message, "grant the user of berth all rights on its schema");
  }
  if (state.starts_with("08") || state.starts_with("57P") || state == "53300") {
    return unreachable(name, reason);
  }
  return fail(state.starts_with("23") ? Errc::store_constraint : Errc::store_failed, message);
}

Value value_at(const pg_result* result, int row, int column) {
  if (PQgetisnull(result, row, column) != 0) return {};
  const char* text = PQgetvalue(result, row, column);
  const int size = PQgetlength(result, row, column);
  switch (PQftype(result, column)) {
    case int2_type:
    case int4_type:
    case int8_type: {
      std::int64_t number = 0;
      std::from_chars(text, text + size, number);
      return number;
    }
    default: return std::string{text, static_cast<std::size_t>(size)};
  }
}

Rows rows_of(const PgResult& result) {
  Rows rows;
  const int count = PQntuples(result.get());
  const int width = PQnfields(result.get());
  rows.rows.reserve(static_cast<std::size_t>(count));
  for (int row = 0; row < count; ++row) {
    std::vector<Value>& values = rows.rows.emplace_back();
    values.reserve(static_cast<std::size_t>(width));
    for (int column = 0; column < width; ++column) {
      values.push_back(value_at(result.get(), row, column));
    }
  }
  const std::string_view tag = PQcmdStatus(result.get());
  const std::string_view changed = PQcmdTuples(result.get());
  if (!tag.starts_with("SELECT")) {
    std::from_chars(changed.data(), changed.data() + changed.size(), rows.changed);
  }
  return rows;
}

// Parameters are sent as text; this converts numbers.
class TextParameters {
 public:
  explicit TextParameters(std::span<const Value> values) {
    numbers_.reserve(values.size());
    texts_.reserve(values.size());
    for (const Value& value : values) {
      if (const auto* text = std::get_if<std::string>(&value)) {
        texts_.push_back(text->c_str());
      } else if (const auto* number = std::get_if<std::int64_t>(&value)) {
        texts_.push_back(numbers_.emplace_back(std::to_string(*number)).c_str());
      } else {
        texts_.push_back(nullptr);
      }
    }
  }
  int count() const { return static_cast<int>(texts_.size()); }
  const char* const* texts() const { return texts_.data(); }

 private:
  std::vector<std::string> numbers_;  // reserved, so that pointers into it remain valid
  std::vector<const char*> texts_;
};

struct PgOptionsDeleter {
  void operator()(PQconninfoOption* options) const { PQconninfoFree(options); }
};

}  // namespace

void PgConnectionKind::dispose(Raw connection) noexcept {
  PQfinish(connection);
}

void PgResultKind::dispose(Raw result) noexcept {
  PQclear(result);
}

Result<PgTarget> parse_postgres_url(const std::string& url) {
  char* complaint = nullptr;
  const std::unique_ptr<PQconninfoOption, PgOptionsDeleter> options{
      PQconninfoParse(url.c_str(), &complaint)};
  // The message quotes the URL with its password, so it is discarded.
  PQfreemem(complaint);
  if (!options) {
    return fail(Errc::config_invalid, "the PostgreSQL URL cannot be read",
                "write postgresql://user:password@host:port/name, with special characters "
                "percent-encoded");
  }
  const auto value = [&](std::string_view key) -> std::string {
    for (const PQconninfoOption* option = options.get(); option->keyword != nullptr; ++option) {
      if (option->keyword == key && option->val != nullptr) return option->val;
    }
    return "";
  };
  std::string name = "postgresql://";
  if (const std::string user = value("user"); !user.empty()) name += user + "@";
  name += value("host").empty() ? value("hostaddr") : value("host");
  if (const std::string port = value("port"); !port.empty()) name += ":" + port;
  if (const std::string database = value("dbname"); !database.empty()) name += "/" + database;
  return PgTarget{url, name};
}

Result<PgConnection> PgConnection::open(const PgTarget& target) {
  // Settings from the URL come last and win.
  const std::array<const char*, 9> values = {
      "5", "10", "5", "3", "15000", "berth", "UTF8", target.url.c_str(), nullptr};
  constexpr int expand_url = 1;
  Owned<PgConnectionKind> handle{PQconnectdbParams(default_keys.data(), values.data(), expand_url)};
  if (PQstatus(handle.get()) != CONNECTION_OK) {
    return unreachable(target.name, first_line(PQerrorMessage(handle.get())));
  }
  PQsetNoticeReceiver(handle.get(), [](void*, const pg_result*) {}, nullptr);
  PgConnection connection{std::move(handle), target.name};
  BERTH_DO(connection.command(session_settings));
  return connection;
}

std::unexpected<Error> PgConnection::failure(const pg_result* result) {
  const std::string state = field(result, PG_DIAG_SQLSTATE);
  if (PQstatus(handle_.get()) != CONNECTION_OK) {
    return unreachable(name_, first_line(PQerrorMessage(handle_.get())));
  }
  // serialization_failure and deadlock_detected
  if (state == "40001" || state == "40P01") {
    repeat_ = true;
    return fail(Errc::overloaded, name_ + ": too many transactions change the same rows",
                "repeat the request later");
  }
  if (state == "23505") {
    return std::unexpected(unique_violation(field(result, PG_DIAG_CONSTRAINT_NAME)));
  }
  if (state == "23503") return std::unexpected(reference_violation());
  const std::string reason = field(result, PG_DIAG_MESSAGE_PRIMARY);
  return translate(state, name_,
                   reason.empty() ? first_line(PQerrorMessage(handle_.get())) : reason);
}

bool PgConnection::lost() {
  // A server that ends the connection sends its reason first: one pass reads that, the next one
  // sees the end.
  for (int look = 0; look < 2; ++look) {
    if (PQconsumeInput(handle_.get()) == 0) return true;
    static_cast<void>(PQisBusy(handle_.get()));
  }
  return PQstatus(handle_.get()) != CONNECTION_OK;
}

Result<> PgConnection::command(const char* sql) {
  const PgResult result{PQexec(handle_.get(), sql)};
  if (!succeeded(result)) return failure(result.get());
  return {};
}

void PgConnection::tidy() {
  if (statements_.size() < postgres_statements_max) return;
  if (command("deallocate all")) statements_.clear();
}

Result<const std::string*> PgConnection::prepare(std::string_view sql) {
  std::string text{sql};
  if (const auto found = statements_.find(text); found != statements_.end()) return &found->second;
  std::string name = "s" + std::to_string(statements_.size());
  const PgResult result{PQprepare(handle_.get(), name.c_str(), text.c_str(), 0, nullptr)};
  if (!succeeded(result)) return failure(result.get());
  return &statements_.emplace(std::move(text), std::move(name)).first->second;
}

Result<Rows> PgConnection::run(std::string_view sql, std::span<const Value> parameters) {
  BERTH_TRY(const std::string* name, prepare(sql));
  const TextParameters texts{parameters};
  constexpr int text_format = 0;
  const PgResult result{PQexecPrepared(handle_.get(), name->c_str(), texts.count(), texts.texts(),
                                       nullptr, nullptr, text_format)};
  if (!succeeded(result)) return failure(result.get());
  return rows_of(result);
}

}  // namespace berth::store
