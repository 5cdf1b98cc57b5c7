#include "store/sql/postgres.hpp"

#include "base/clock.hpp"
#include "base/log.hpp"
#include "store/sql/attempt.hpp"
#include "store/sql/migrations.hpp"
#include "store/sql/postgres_connection.hpp"
#include "store/sql/queue.hpp"
#include "store/sql/shown_error.hpp"

#include <random>
#include <thread>

namespace berth::store {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t postgres_queue_limit = 4096;
// How long a job may wait for a connection and retry conflicting transactions.
constexpr auto job_deadline = 10s;
constexpr std::chrono::milliseconds pause_least = 5ms;
constexpr std::chrono::milliseconds pause_most = 1s;
// Any number works, as long as all our servers use the same one.
constexpr auto lock_migrations = "select pg_advisory_lock(4774451407313060418)";
constexpr auto unlock_migrations = "select pg_advisory_unlock(4774451407313060418)";

class PgAttempt final : public Attempt {
 public:
  explicit PgAttempt(PgConnection& connection) : connection_(connection) {}
  std::string_view skip_locked() const override { return " for update skip locked"; }

 private:
  Result<Rows> execute(std::string_view sql, std::span<const Value> parameters) override {
    return connection_.run(sql, parameters);
  }

  PgConnection& connection_;
};

const char* begin_of(JobKind kind) {
  return kind == JobKind::read ? "begin isolation level repeatable read read only"
                               : "begin isolation level serializable";
}

// The outcome of one try. `again` is safe to repeat: nothing of it can have been committed.
enum class Fate { done, again, reconnect };

struct Outcome {
  Fate fate = Fate::done;
  Result<> result;
};

Outcome ended_early(PgConnection& connection, Result<> result) {
  if (connection.lost()) return {Fate::reconnect, std::move(result)};
  [[maybe_unused]] const Result<> undone = connection.command("rollback");
  return {connection.take_repeat() ? Fate::again : Fate::done, std::move(result)};
}

Outcome try_once(PgConnection& connection, JobKind kind, Database::Work& work) {
  connection.take_repeat();
  if (Result<> begun = connection.command(begin_of(kind)); !begun) {
    return ended_early(connection, std::move(begun));
  }
  Result<> result = PgAttempt{connection}.perform(work);
  if (!result) return ended_early(connection, std::move(result));
  // Up to here the server rolls back anything it cannot finish. Once `commit` is sent, only its
  // response shows the outcome; without a response, the work must not run again.
  if (connection.lost()) {
    return {Fate::reconnect, fail(Errc::store_unreachable, "the connection was lost")};
  }
  Result<> committed = connection.command("commit");
  if (committed) return {};
  if (!connection.lost() || kind == JobKind::read) {
    return ended_early(connection, std::move(committed));
  }
  log::warn("store.commit_unanswered", {{"error", committed.error().message}});
  return {Fate::done,
          fail(Errc::store_unreachable,
               "the connection was lost while a change was being committed, so it is unknown "
               "whether the change was made",
               "look whether the change is there before you repeat it")};
}

// Doubles with each try and is randomized, so that conflicting threads do not retry together.
class Backoff {
 public:
  explicit Backoff(std::minstd_rand& random) : random_(random) {}

  std::chrono::milliseconds next() {
    std::uniform_int_distribution<std::int64_t> spread{ceiling_.count() / 2, ceiling_.count()};
    ceiling_ = std::min(ceiling_ * 2, pause_most);
    return std::chrono::milliseconds{spread(random_)};
  }

 private:
  std::minstd_rand& random_;
  std::chrono::milliseconds ceiling_ = pause_least;
};

class PgDatabase final : public Database {
 public:
  PgDatabase(PgTarget target, PgConnection first, unsigned connections)
      : target_(std::move(target)) {
    workers_.emplace_back([this, first = std::move(first)]() mutable {
      work_until_closed(std::optional<PgConnection>{std::move(first)});
    });
    for (unsigned i = 1; i < connections; ++i) {
      workers_.emplace_back([this] { work_until_closed(std::nullopt); });
    }
  }

  PgDatabase(const PgDatabase&) = delete;
  PgDatabase& operator=(const PgDatabase&) = delete;

  ~PgDatabase() override {
    queue_.close();
    for (std::thread& worker : workers_) worker.join();
  }

  EngineKind engine() const override { return EngineKind::postgres; }
  void read(Work work, Done done) override {
    queue_.push({JobKind::read, std::move(work), std::move(done)});
  }
  void write(Work work, Done done) override {
    queue_.push({JobKind::write, std::move(work), std::move(done)});
  }

 private:
  void work_until_closed(std::optional<PgConnection> connection) {
    std::minstd_rand random{std::random_device{}()};
    while (std::optional<Job> job = queue_.pop()) {
      Result<> result = run(*job, connection, Backoff{random});
      job->done(shown_result(std::move(result), target_.name));
    }
  }

  Result<> run(Job& job, std::optional<PgConnection>& connection, Backoff backoff) {
    const auto deadline = std::chrono::steady_clock::now() + job_deadline;
    while (true) {
      Outcome outcome = run_connected(job, connection);
      if (outcome.fate == Fate::done) return outcome.result;
      if (outcome.fate == Fate::reconnect) connection.reset();
      const std::chrono::milliseconds pause = backoff.next();
      const bool late = std::chrono::steady_clock::now() + pause > deadline;
      // Does not wait for a server that goes down while the database is being closed.
      if (late || (outcome.fate == Fate::reconnect && queue_.closed())) return outcome.result;
      queue_.pause(pause);
    }
  }

  Outcome run_connected(Job& job, std::optional<PgConnection>& connection) {
    if (!connection) {
      Result<PgConnection> opened = PgConnection::open(target_);
      if (!opened) return {Fate::reconnect, std::unexpected(std::move(opened).error())};
      connection.emplace(*std::move(opened));
    }
    connection->tidy();
    return try_once(*connection, job.kind, job.work);
  }

  const PgTarget target_;
  JobQueue queue_{postgres_queue_limit};
  std::vector<std::thread> workers_;
};

// The lock is the session's, not the transaction's: a serializable transaction would see the schema
// as it was before it had to wait.
Result<> migrate_postgres(PgConnection& connection, const std::string& name) {
  // A migration may take its time, but two servers do not wait for each other forever.
  BERTH_DO(connection.command("set statement_timeout = 0; set lock_timeout = 60000"));
  BERTH_DO(connection.command(lock_migrations));
  bool more = true;
  Database::Work step = [&](Session& session) -> Result<> {
    BERTH_TRY(more,
              migrate_one(session, EngineKind::postgres, migrations(), SystemClock{}.now(), name));
    return {};
  };
  Result<> done;
  while (more && done) done = try_once(connection, JobKind::write, step).result;
  BERTH_DO(std::move(done));
  BERTH_DO(connection.command(unlock_migrations));
  return connection.command(PgConnection::session_settings);
}

}  // namespace

Result<std::unique_ptr<Database>> open_postgres(const std::string& url, unsigned connections) {
  BERTH_TRY(PgTarget target, parse_postgres_url(url));
  BERTH_TRY(PgConnection first, PgConnection::open(target));
  BERTH_DO(migrate_postgres(first, target.name));
  return std::make_unique<PgDatabase>(std::move(target), std::move(first),
                                      std::max(connections, 1U));
}

}  // namespace berth::store
