#include "contract/store_fixture.hpp"
#include "store/companies.hpp"
#include "store/settings.hpp"
#include "store/sql/migrations.hpp"

#include <future>
#include <thread>

// Failures that only a server over a network can cause.
namespace berth::store {
namespace {

class PostgresTest : public testing::Test {
 protected:
  void SetUp() override {
    if (postgres_url().empty()) GTEST_SKIP() << postgres_advice;
    schema_ = std::make_unique<TemporarySchema>();
  }

  // Ends this test's connections from outside, as an operator would.
  void end_connections() const {
    run_on_postgres(postgres_url(),
                    "select count(pg_terminate_backend(pid, 5000)) from pg_stat_activity "
                    "where application_name = '" +
                        schema_->name() + "'");
  }

  std::unique_ptr<Database> open(unsigned connections) const {
    auto opened = open_database({.url = schema_->url(), .readers = connections});
    EXPECT_TRUE(opened) << opened.error().message;
    return opened ? *std::move(opened) : nullptr;
  }

  std::unique_ptr<TemporarySchema> schema_;
};

Result<> add_one(Session& s) {
  BERTH_TRY(const auto found, find_setting(s, "n"));
  if (!found) return save_setting(s, "n", {{"n", 1}}, 0, Time{});
  return save_setting(s, "n", {{"n", found->value.at("n").as_int64() + 1}}, found->version, Time{});
}

std::int64_t count_of(Database& database) {
  const auto found = transact(&read_now, database, [](Session& s) { return find_setting(s, "n"); });
  EXPECT_TRUE(found) << found.error().message;
  return found && *found ? (*found)->value.at("n").as_int64() : 0;
}

TEST_F(PostgresTest, WorkGoesOnAfterItsIdleConnectionWasEnded) {
  const auto database = open(1);
  EXPECT_WORKS(write_now(*database, add_one));
  end_connections();
  EXPECT_WORKS(write_now(*database, add_one));
  end_connections();
  EXPECT_EQ(count_of(*database), 2);
}

TEST_F(PostgresTest, AWorkWhoseConnectionIsEndedInTheMiddleRunsAgainAndCountsOnce) {
  const auto database = open(1);
  EXPECT_WORKS(write_now(*database, add_one));
  std::atomic<int> runs = 0;
  EXPECT_WORKS(write_now(*database, [&](Session& s) -> Result<> {
    BERTH_DO(add_one(s));
    if (++runs == 1) end_connections();
    return {};
  }));
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(count_of(*database), 2);
}

TEST_F(PostgresTest, AChangeWhoseCommitIsNotAnsweredIsReportedAsUnknownAndNotRepeated) {
  const auto database = open(1);
  // The trigger runs inside the server's commit and ends the connection there.
  run_on_postgres(schema_->url(), R"sql(
    create function vanish() returns trigger language plpgsql as
      'begin perform pg_terminate_backend(pg_backend_pid()); return null; end';
    create constraint trigger vanish after insert on settings
      deferrable initially deferred for each row execute function vanish();
  )sql");
  std::atomic<int> runs = 0;
  const Result<> done = write_now(*database, [&](Session& s) {
    ++runs;
    return add_one(s);
  });
  ASSERT_FALSE(done);
  EXPECT_EQ(name_of(done.error().code), name_of(Errc::store_unreachable));
  EXPECT_TRUE(done.error().message.contains("unknown")) << done.error().message;
  EXPECT_FALSE(done.error().message.contains("postgresql://")) << done.error().message;
  EXPECT_EQ(runs, 1);
  run_on_postgres(schema_->url(), "drop trigger vanish on settings");
  EXPECT_WORKS(write_now(*database, add_one));
}

TEST_F(PostgresTest, AFailureDoesNotShowWhereTheDatabaseIs) {
  const auto database = open(1);
  const auto failure_of = [&](const char* sql) {
    const Result<> done = read_now(*database, [&](Session& s) -> Result<> {
      BERTH_DO(s.run(sql, {}));
      return {};
    });
    return done ? Error{} : done.error();
  };
  const Error refused = failure_of("select count(*) from no_such_table");
  EXPECT_EQ(name_of(refused.code), name_of(Errc::store_failed));
  EXPECT_EQ(refused.message, "the database failed");
  run_on_postgres(schema_->url(), "drop table settings");
  EXPECT_EQ(failure_of("select 1 from settings").message, "the database failed");
}

TEST_F(PostgresTest, ServersThatStartTogetherMigrateOnce) {
  // A sequence is not rolled back with its transaction, so that it also counts failed attempts.
  run_on_postgres(schema_->url(), R"sql(
    create table schema_migrations (
      number bigint not null primary key, name text not null, applied_at bigint not null);
    create sequence attempts;
    create function count_attempt() returns trigger language plpgsql as
      'begin perform nextval(''attempts''); return new; end';
    create trigger count_attempt before insert on schema_migrations
      for each row execute function count_attempt();
  )sql");
  constexpr int servers = 6;
  std::vector<std::future<Result<std::unique_ptr<Database>>>> starts;
  for (int i = 0; i < servers; ++i) {
    starts.push_back(std::async(
        std::launch::async, [&] { return open_database({.url = schema_->url(), .readers = 1}); }));
  }
  for (auto& start : starts) EXPECT_WORKS(start.get());
  const std::string known = std::to_string(migrations().size());
  EXPECT_EQ(run_on_postgres(schema_->url(), "select count(*) from schema_migrations"), known);
  EXPECT_EQ(run_on_postgres(schema_->url(), "select last_value from attempts"), known);
}

TEST_F(PostgresTest, ConflictingWritersOfTwoServersLoseNothing) {
  const auto one = open(4);
  const auto two = open(4);
  constexpr int each = 20;
  std::atomic<int> failed = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      Database& database = i % 2 == 0 ? *one : *two;
      threads.emplace_back([&] {
        for (int n = 0; n < each; ++n) failed += write_now(database, add_one) ? 0 : 1;
      });
    }
  }
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(count_of(*one), 4 * each);
}

TEST_F(PostgresTest, AStandbyThatCannotBeWrittenToIsSaid) {
  const std::string url = schema_->url() + "%20-cdefault_transaction_read_only%3Don";
  const auto opened = open_database({.url = url});
  ASSERT_FALSE(opened);
  EXPECT_EQ(name_of(opened.error().code), name_of(Errc::store_read_only)) << opened.error().message;
}

TEST_F(PostgresTest, AMissingDatabaseIsNamed) {
  std::string url = postgres_url();
  url.replace(url.rfind('/') + 1, std::string::npos, "no_such_database");
  const auto opened = open_database({.url = url});
  ASSERT_FALSE(opened);
  EXPECT_EQ(name_of(opened.error().code), name_of(Errc::store_unreachable));
  EXPECT_TRUE(opened.error().message.contains("no_such_database")) << opened.error().message;
}

TEST(PostgresUrl, AnUnreachableServerIsNamedWithoutThePassword) {
  const auto opened =
      open_database({.url = "postgresql://ann:hunter2@127.0.0.1:1/berth?connect_timeout=2"});
  ASSERT_FALSE(opened);
  EXPECT_EQ(name_of(opened.error().code), name_of(Errc::store_unreachable));
  EXPECT_TRUE(opened.error().message.contains("127.0.0.1:1/berth")) << opened.error().message;
  EXPECT_FALSE(opened.error().message.contains("hunter2")) << opened.error().message;
  EXPECT_FALSE(opened.error().remedy.empty());
}

TEST(PostgresUrl, AUrlThatCannotBeReadIsNotRepeated) {
  const auto opened = open_database({.url = "postgresql://ann:hunter2@host:port:1/x y?=%zz"});
  ASSERT_FALSE(opened);
  EXPECT_EQ(name_of(opened.error().code), name_of(Errc::config_invalid));
  EXPECT_FALSE(opened.error().message.contains("hunter2")) << opened.error().message;
}

}  // namespace
}  // namespace berth::store
