#include "store/sql/sqlite.hpp"

#include "base/clock.hpp"
#include "store/sql/attempt.hpp"
#include "store/sql/gathered_wal.hpp"
#include "store/sql/migrations.hpp"
#include "store/sql/queue.hpp"
#include "store/sql/shown_error.hpp"
#include "store/sql/sqlite_connection.hpp"
#include "store/sql/sqlite_file.hpp"

#include <thread>

namespace berth::store {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t batch_max = 128;
constexpr std::size_t sqlite_queue_limit = 4096;
// When the write-ahead log is checkpointed: while no job waits, and at the latest at the maximum.
constexpr int log_pages_usual = 1000;
constexpr int log_pages_max = 8000;
// At start, a user waits; later, a backup tool may hold the file for a while.
constexpr auto lock_wait_at_start = 1s;
constexpr auto lock_wait = 5s;

class SqliteAttempt final : public Attempt {
 public:
  explicit SqliteAttempt(SqliteConnection& connection) : connection_(connection) {}
  // There is one writer.
  std::string_view skip_locked() const override { return ""; }

 private:
  Result<Rows> execute(std::string_view sql, std::span<const Value> parameters) override {
    return connection_.run(sql, parameters);
  }

  SqliteConnection& connection_;
};

// A failed undo does not matter: uncommitted changes are discarded at the latest when the
// connection closes.
void undo(SqliteConnection& connection, std::string_view sql) {
  if (!connection.in_transaction()) return;
  [[maybe_unused]] const Result<> undone = connection.run(sql);
}

Result<> run_alone(SqliteConnection& connection, std::string_view begin, Database::Work& work) {
  BERTH_DO(connection.run(begin));
  Result<> result = SqliteAttempt{connection}.perform(work);
  if (result) result = connection.run("commit");
  if (!result) undo(connection, "rollback");
  return result;
}

// For the first job of a transaction: undoing it means undoing the transaction. So it avoids a
// savepoint, which would copy every page it touches.
Result<> run_first(SqliteConnection& connection, Database::Work& work) {
  Result<> result = SqliteAttempt{connection}.perform(work);
  if (!result) undo(connection, "rollback");
  return result;
}

Result<> run_in_savepoint(SqliteConnection& connection, Database::Work& work) {
  BERTH_DO(connection.run("savepoint job"));
  Result<> result = SqliteAttempt{connection}.perform(work);
  if (!result) undo(connection, "rollback to job");
  if (connection.in_transaction()) {
    BERTH_DO(connection.run("release job"));
  }
  return result;
}

struct Answer {
  Database::Done done;
  Result<> result;
};

void fail_all(std::vector<Answer>& answers, const Error& error) {
  for (Answer& answer : answers) {
    if (answer.result) answer.result = std::unexpected(error);
  }
}

class SqliteDatabase final : public Database {
 public:
  SqliteDatabase(SqliteFile file, SqliteConnection writer, std::vector<SqliteConnection> readers)
      : file_(std::move(file)), writer_(std::move(writer)), readers_(std::move(readers)) {
    writing_ = std::thread{[this] { write_until_closed(); }};
    for (SqliteConnection& reader : readers_) {
      reading_.emplace_back([this, &reader] { read_until_closed(reader); });
    }
  }

  SqliteDatabase(const SqliteDatabase&) = delete;
  SqliteDatabase& operator=(const SqliteDatabase&) = delete;

  ~SqliteDatabase() override {
    writes_.close();
    reads_.close();
    writing_.join();
    for (std::thread& thread : reading_) thread.join();
  }

  EngineKind engine() const override { return EngineKind::sqlite; }
  void read(Work work, Done done) override {
    reads_.push({JobKind::read, std::move(work), std::move(done)});
  }
  void write(Work work, Done done) override {
    writes_.push({JobKind::write, std::move(work), std::move(done)});
  }

 private:
  void read_until_closed(SqliteConnection& connection) {
    while (std::optional<Job> job = reads_.pop()) {
      Result<> result = run_alone(connection, "begin", job->work);
      job->done(shown_result(std::move(result), file_.path()));
    }
  }

  void write_until_closed() {
    while (std::optional<Job> job = writes_.pop()) {
      for (Answer& answer : commit_together(*std::move(job))) {
        answer.done(shown_result(std::move(answer.result), file_.path()));
      }
      tidy_log_if_due();
    }
  }

  void tidy_log_if_due() {
    const int pages = writer_.log_pages();
    if (pages < tidied_pages_) tidied_pages_ = 0;  // the log was restarted
    const int untidy = pages - tidied_pages_;
    if (untidy < log_pages_usual || (untidy < log_pages_max && !writes_.empty())) return;
    writer_.tidy_log();
    tidied_pages_ = pages;
  }

  // Takes all waiting jobs, including those that arrive meanwhile; it never waits for more.
  std::vector<Answer> commit_together(Job first) {
    std::vector<Answer> answers;
    std::optional<Job> job{std::move(first)};
    Result<> begun;
    while (job) {
      const bool joins = writer_.in_transaction();
      // If the file is locked, one job has already waited for it; the others need not wait as well.
      if (!joins && begun) begun = writer_.run("begin immediate");
      Result<> result = !begun  ? begun
                        : joins ? run_in_savepoint(writer_, job->work)
                                : run_first(writer_, job->work);
      const bool done = result.has_value();
      answers.push_back({std::move(job->done), std::move(result)});
      // A full disk ends the whole transaction, including the work of earlier jobs.
      if ((joins || done) && !writer_.in_transaction()) {
        const Result<> last = answers.back().result;
        fail_all(answers, last ? Error{Errc::store_failed, file_.path() + ": was rolled back"}
                               : last.error());
        return answers;
      }
      job = answers.size() < batch_max ? writes_.try_pop() : std::nullopt;
    }
    if (!writer_.in_transaction()) return answers;
    if (const Result<> committed = writer_.run("commit"); !committed) {
      undo(writer_, "rollback");
      fail_all(answers, committed.error());
    }
    return answers;
  }

  SqliteFile file_;  // first: the lock is released last
  SqliteConnection writer_;
  int tidied_pages_ = 0;  // current log size
  std::vector<SqliteConnection> readers_;
  JobQueue writes_{sqlite_queue_limit};
  JobQueue reads_{sqlite_queue_limit};
  std::thread writing_;
  std::vector<std::thread> reading_;
};

Result<SqliteConnection> open_writer(const std::string& path) {
  BERTH_TRY(const char* const vfs, gathered_wal());
  BERTH_TRY(SqliteConnection connection, SqliteConnection::open(path, vfs));
  connection.wait_for_locks(lock_wait_at_start);
  // Keeps savepoint pages in memory: a file would be created and written in every transaction.
  for (const std::string_view setting :
       {"pragma synchronous = full", "pragma journal_mode = wal", "pragma foreign_keys = on",
        "pragma journal_size_limit = 67108864", "pragma temp_store = memory"}) {
    BERTH_DO(connection.run(setting));
  }
  connection.keep_log();
  return connection;
}

Result<SqliteConnection> open_reader(const std::string& path) {
  BERTH_TRY(SqliteConnection connection, SqliteConnection::open(path));
  connection.wait_for_locks(lock_wait);
  BERTH_DO(connection.run("pragma query_only = on"));
  return connection;
}

Result<> migrate_sqlite(SqliteConnection& writer, const std::string& path) {
  bool more = true;
  Database::Work step = [&](Session& session) -> Result<> {
    BERTH_TRY(more,
              migrate_one(session, EngineKind::sqlite, migrations(), SystemClock{}.now(), path));
    return {};
  };
  while (more) BERTH_DO(run_alone(writer, "begin immediate", step));
  return {};
}

}  // namespace

Result<std::unique_ptr<Database>> open_sqlite(const std::string& path, unsigned readers) {
  BERTH_TRY(SqliteFile file, SqliteFile::take(path));
  BERTH_TRY(SqliteConnection writer, open_writer(path));
  BERTH_DO(migrate_sqlite(writer, path));
  writer.wait_for_locks(lock_wait);
  std::vector<SqliteConnection> connections;
  for (unsigned i = 0; i < std::max(readers, 1U); ++i) {
    BERTH_TRY(SqliteConnection reader, open_reader(path));
    connections.push_back(std::move(reader));
  }
  return std::make_unique<SqliteDatabase>(std::move(file), std::move(writer),
                                          std::move(connections));
}

}  // namespace berth::store
