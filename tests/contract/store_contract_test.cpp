#include "contract/store_fixture.hpp"
#include "store/companies.hpp"
#include "store/places/environments.hpp"
#include "store/places/leases.hpp"
#include "store/secrets.hpp"
#include "store/settings.hpp"
#include "store/sql/failing.hpp"
#include "store/sql/migrations.hpp"

#include <future>
#include <latch>
#include <thread>

// What both engines guarantee about transactions and the schema.
namespace berth::store {
namespace {

using Transactions = StoreContract;
BERTH_ON_BOTH_ENGINES(Transactions);

TEST_P(Transactions, MigrationsAreAppliedOnceHoweverOftenTheDatabaseIsOpened) {
  const auto applied = [&] { return number("select count(*) from schema_migrations"); };
  const std::int64_t known = static_cast<std::int64_t>(migrations().size());
  EXPECT_EQ(applied(), known);
  given_company();
  database_.reset();
  auto again = open_database({.url = place_->url()});
  ASSERT_TRUE(again) << again.error().message;
  database_ = *std::move(again);
  EXPECT_EQ(applied(), known);
  EXPECT_EQ(number("select count(*) from companies"), 1);
}

TEST_P(Transactions, ADatabaseFromANewerProgramIsRefusedWithARemedy) {
  EXPECT_WORKS(write([&](Session& s) {
    return s.run("insert into schema_migrations (number, name, applied_at) values (99, 'x', 0)",
                 {});
  }));
  database_.reset();
  const auto opened = open_database({.url = place_->url()});
  ASSERT_FALSE(opened);
  EXPECT_EQ(name_of(opened.error().code), name_of(Errc::store_newer));
  EXPECT_TRUE(opened.error().message.contains("99")) << opened.error().message;
  EXPECT_FALSE(opened.error().remedy.empty());
}

TEST_P(Transactions, AMigrationThatFailsHalfWayLeavesNothing) {
  const std::vector<Migration> broken{migrations().begin(), migrations().end()};
  std::vector<Migration> known = broken;
  known.push_back({known.back().number + 1, "broken",
                   "create table half (id bigint);\ncreate table half (id bigint);\n"});
  EXPECT_FALSE(
      write([&](Session& s) { return migrate_one(s, database_->engine(), known, now(), "test"); }));
  EXPECT_FALSE(read([&](Session& s) { return s.run("select * from half", {}); }));
  EXPECT_EQ(number("select count(*) from schema_migrations"),
            static_cast<std::int64_t>(broken.size()));
}

TEST_P(Transactions, AnErrorOfTheWorkUndoesAllOfItsStatements) {
  const core::Company made = company();
  EXPECT_FAILS(write([&](Session& s) -> Result<> {
                 BERTH_DO(insert_company(s, made));
                 return fail(Errc::unprocessable, "changed my mind");
               }),
               Errc::unprocessable);
  EXPECT_EQ(number("select count(*) from companies"), 0);
}

TEST_P(Transactions, AnExceptionOfTheWorkIsAnErrorAndUndoesIt) {
  const core::Company made = company();
  EXPECT_FAILS(write([&](Session& s) -> Result<> {
                 BERTH_DO(insert_company(s, made));
                 throw std::runtime_error{"thrown by the test"};
               }),
               Errc::bug);
  EXPECT_EQ(number("select count(*) from companies"), 0);
}

TEST_P(Transactions, AWorkThatPassesOverAFailedStatementDoesNotSucceed) {
  const core::Company made = company();
  EXPECT_FAILS(write([&](Session& s) -> Result<> {
                 BERTH_DO(insert_company(s, made));
                 static_cast<void>(insert_company(s, made));
                 return {};
               }),
               Errc::store_constraint);
  EXPECT_EQ(number("select count(*) from companies"), 0);
}

TEST_P(Transactions, AStatementAfterAFailedOneFailsAlike) {
  const core::Company made = given_company();
  std::optional<Error> later;
  static_cast<void>(write([&](Session& s) -> Result<> {
    Result<> first = insert_company(s, made);
    if (const auto second = count_companies(s); !second) later = second.error();
    return first;
  }));
  ASSERT_TRUE(later);
  EXPECT_EQ(name_of(later->code), name_of(Errc::store_constraint));
}

TEST_P(Transactions, AReadCannotWrite) {
  const core::Company made = company();
  EXPECT_FALSE(read([&](Session& s) { return insert_company(s, made); }));
  EXPECT_EQ(number("select count(*) from companies"), 0);
}

TEST_P(Transactions, TextWithANulByteIsRefusedNotCut) {
  core::Company made = company(std::string{"a\0b", 3});
  EXPECT_FAILS(write([&](Session& s) { return insert_company(s, made); }), Errc::validation_failed);
  EXPECT_EQ(number("select count(*) from companies"), 0);
}

TEST_P(Transactions, ADocumentComesBackAsItWas) {
  const bj::object document = {{"text", "\u00e4\u4e16\"'\\\n\u0001"},
                               {"nul", "\u0000"},
                               {"big", 9007199254740993},
                               {"none", nullptr},
                               {"list", {1, true}}};
  EXPECT_WORKS(write([&](Session& s) { return save_setting(s, "x", document, 0, now()); }));
  const auto found = read([&](Session& s) { return find_setting(s, "x"); });
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->value, document);
}

// Holds the database's writer inside a transaction until the test releases it, so that the jobs
// behind it are committed together.
class HeldWriter {
 public:
  // `outcome` is the result of the held transaction.
  explicit HeldWriter(Database& database, Result<> outcome = {}) {
    database.write(
        [this, outcome = std::move(outcome)](Session&) -> Result<> {
          entered_.count_down();
          go_.wait();
          return outcome;
        },
        [this](Result<>) { ended_.count_down(); });
    entered_.wait();
  }
  HeldWriter(const HeldWriter&) = delete;
  HeldWriter& operator=(const HeldWriter&) = delete;
  ~HeldWriter() {
    go_.count_down();
    ended_.wait();
  }

 private:
  std::latch entered_{1};
  std::latch go_{1};
  std::latch ended_{1};
};

TEST_P(Transactions, OneFailingWorkAmongManyUndoesOnlyItself) {
  constexpr int count = 40;
  std::vector<core::Company> companies;
  for (int i = 0; i < count; ++i) companies.push_back(company("c" + std::to_string(i)));
  std::vector<std::promise<Result<>>> ends(count);
  {
    const HeldWriter held{*database_};
    for (int i = 0; i < count; ++i) {
      database_->write(
          [&companies, i](Session& s) -> Result<> {
            BERTH_DO(insert_company(s, companies[i]));
            return i % 4 == 3 ? insert_company(s, companies[i]) : Result<>{};
          },
          [&ends, i](Result<> result) { ends[i].set_value(std::move(result)); });
    }
  }
  for (int i = 0; i < count; ++i) {
    EXPECT_EQ(ends[i].get_future().get().has_value(), i % 4 != 3) << "job " << i;
  }
  EXPECT_EQ(number("select count(*) from companies"), count * 3 / 4);
}

TEST_P(Transactions, AFailingFirstWorkTakesNoneOfTheOthersWithIt) {
  const core::Company acme = company("Acme");
  std::promise<Result<>> second;
  std::promise<Result<>> third;
  {
    const HeldWriter held{*database_, fail(Errc::unprocessable, "the first")};
    database_->write([](Session&) -> Result<> { return fail(Errc::unprocessable, "the second"); },
                     [&](Result<> result) { second.set_value(std::move(result)); });
    database_->write([&](Session& s) { return insert_company(s, acme); },
                     [&](Result<> result) { third.set_value(std::move(result)); });
  }
  EXPECT_FALSE(second.get_future().get());
  EXPECT_WORKS(third.get_future().get());
  EXPECT_EQ(number("select count(*) from companies"), 1);
}

TEST_P(Transactions, WritersOnEightThreadsLoseNothing) {
  constexpr int threads = 8;
  constexpr int each = 25;
  EXPECT_WORKS(write([&](Session& s) { return save_setting(s, "n", {{"n", 0}}, 0, now()); }));
  const auto add_one = [&]() -> Result<> {
    return write_now(*database_, [&](Session& s) -> Result<> {
      BERTH_TRY(const auto found, find_setting(s, "n"));
      const std::int64_t n = found->value.at("n").as_int64();
      return save_setting(s, "n", {{"n", n + 1}}, found->version, now());
    });
  };
  std::atomic<int> failed = 0;
  {
    std::vector<std::jthread> pool;
    for (int i = 0; i < threads; ++i) {
      pool.emplace_back([&] {
        for (int n = 0; n < each; ++n) failed += add_one() ? 0 : 1;
      });
    }
  }
  EXPECT_EQ(failed, 0);
  const auto end = read([&](Session& s) { return find_setting(s, "n"); });
  ASSERT_TRUE(end && *end);
  EXPECT_EQ((*end)->value.at("n").as_int64(), threads * each);
}

TEST_P(Transactions, AReadDoesNotWaitForAWriterAndSeesNoHalf) {
  const core::Company made = company();
  std::latch inserted{1};
  std::latch go{1};
  std::promise<Result<>> ended;
  database_->write(
      [&](Session& s) -> Result<> {
        BERTH_DO(insert_company(s, made));
        inserted.count_down();
        go.wait();
        return {};
      },
      [&](Result<> result) { ended.set_value(std::move(result)); });
  inserted.wait();
  EXPECT_EQ(number("select count(*) from companies"), 0);
  go.count_down();
  EXPECT_WORKS(ended.get_future().get());
  EXPECT_EQ(number("select count(*) from companies"), 1);
}

TEST_P(Transactions, AReadIsOneSnapshot) {
  std::latch first{1};
  std::latch go{1};
  std::promise<Result<>> ended;
  std::int64_t before = -1;
  std::int64_t after = -1;
  database_->read(
      [&](Session& s) -> Result<> {
        BERTH_TRY(before, count_companies(s));
        first.count_down();
        go.wait();
        BERTH_TRY(after, count_companies(s));
        return {};
      },
      [&](Result<> result) { ended.set_value(std::move(result)); });
  first.wait();
  given_company();
  go.count_down();
  EXPECT_WORKS(ended.get_future().get());
  EXPECT_EQ(before, 0);
  EXPECT_EQ(after, 0);
}

TEST_P(Transactions, MoreJobsThanTheQueueHoldsAreAnsweredAsOverloaded) {
  std::atomic<int> overloaded = 0;
  std::atomic<int> answered = 0;
  constexpr int sent = 6000;
  {
    const HeldWriter held{*database_};
    // SQLite's readers wait elsewhere; PostgreSQL has one queue for both.
    std::vector<std::unique_ptr<HeldWriter>> others;
    if (GetParam() == EngineKind::postgres) {
      for (int i = 0; i < 3; ++i) others.push_back(std::make_unique<HeldWriter>(*database_));
    }
    for (int i = 0; i < sent; ++i) {
      database_->write([](Session&) -> Result<> { return {}; },
                       [&](Result<> result) {
                         if (!result && result.error().code == Errc::overloaded) ++overloaded;
                         ++answered;
                       });
    }
  }
  database_.reset();
  EXPECT_GT(overloaded, 0);
  EXPECT_LT(overloaded, sent);
  EXPECT_EQ(answered, sent);
}

TEST_P(Transactions, DestructionFinishesWhatWasAccepted) {
  constexpr int count = 200;
  std::atomic<int> worked = 0;
  std::vector<core::Company> companies;
  for (int i = 0; i < count; ++i) companies.push_back(company());
  for (const core::Company& made : companies) {
    database_->write([&](Session& s) { return insert_company(s, made); },
                     [&](Result<> result) { worked += result ? 1 : 0; });
  }
  database_.reset();
  EXPECT_EQ(worked, count);
  database_ = open_database({.url = place_->url()}).value();
  EXPECT_EQ(number("select count(*) from companies"), count);
}

// Every step of a use case fails once; each time the database looks as if it had never begun.
TEST_P(Transactions, AWorkThatFailsAtAnyStatementLeavesNothing) {
  FailingDatabase failing{*database_};
  const core::Company acme = given_company();
  const core::Environment place = environment(acme.id, "box");
  const core::SecretRecord key = secret(acme.id, "ssh-key");
  const auto use_case = [&](Session& s) -> Result<> {
    BERTH_DO(insert_environment(s, place));
    BERTH_DO(insert_secret(s, key));
    BERTH_DO(insert_version(s, version(key.id, 1)));
    return replace_bindings(
        s, {core::SecretTarget::environment, place.id.str(), "", ""},
        {binding(key, core::SecretTarget::environment, place.id.str(), "privateKey")});
  };
  const auto rows = [&] {
    return number(
        "select (select count(*) from environments)"
        " + (select count(*) from company_secrets)"
        " + (select count(*) from company_secret_versions)"
        " + (select count(*) from company_secret_bindings)");
  };
  std::int64_t nth = 1;
  for (;; ++nth) {
    failing.fail_at(nth);
    const Result<> done = write_now(failing, use_case);
    if (done) break;
    EXPECT_EQ(name_of(done.error().code), name_of(Errc::store_failed)) << "statement " << nth;
    EXPECT_EQ(rows(), 0) << "after statement " << nth;
  }
  EXPECT_GT(nth, 5) << "the walk ended before the use case did";
  EXPECT_EQ(rows(), 4);
}

}  // namespace
}  // namespace berth::store
