#pragma once

#include "base/clock.hpp"
#include "base/random.hpp"
#include "core/rows/activity.hpp"
#include "core/rows/agent.hpp"
#include "core/rows/company.hpp"
#include "core/rows/environment.hpp"
#include "core/rows/lease.hpp"
#include "core/rows/node.hpp"
#include "core/rows/run.hpp"
#include "core/rows/sandbox.hpp"
#include "core/rows/secret.hpp"
#include "core/rows/token.hpp"
#include "store/sql/database.hpp"
#include "support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <type_traits>

namespace berth::store {

// "" when there is no PostgreSQL to test with.
std::string postgres_url();
inline constexpr auto postgres_advice =
    "PostgreSQL is not at hand: run the tests with 'tools/with-postgres CMD', or set BERTH_TEST_PG "
    "to the URL of a database that they may write to";

using tests::TemporaryFolder;

// A PostgreSQL schema for one test; its connections use its name as application_name.
class TemporarySchema {
 public:
  TemporarySchema();
  TemporarySchema(const TemporarySchema&) = delete;
  TemporarySchema& operator=(const TemporarySchema&) = delete;
  ~TemporarySchema();
  const std::string& url() const { return url_; }
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  std::string url_;
};

// Runs statements on its own connection, bypassing the store; returns the first column of the first
// row.
std::string run_on_postgres(const std::string& url, const std::string& sql);

// A place for one database on either engine.
class Place {
 public:
  explicit Place(EngineKind engine);
  std::string url() const;

 private:
  std::unique_ptr<TemporaryFolder> folder_;
  std::unique_ptr<TemporarySchema> schema_;
};

// transact(&write_now, database, [&](Session& s) { return find_agent(s, ...); })
template <class Work>
auto transact(Result<> (*run)(Database&, Database::Work), Database& database, Work work) {
  using Answer = std::invoke_result_t<Work&, Session&>;
  std::optional<Answer> answer;
  Result<> done = run(database, [&](Session& session) -> Result<> {
    answer.emplace(work(session));
    if (!*answer) return std::unexpected(answer->error());
    return {};
  });
  return done ? *std::move(answer) : Answer{std::unexpected(std::move(done).error())};
}

// One database on the parameter's engine, fresh for each test, and rows to put into it.
class StoreContract : public testing::TestWithParam<EngineKind> {
 protected:
  void SetUp() override;

  template <class Work>
  auto read(Work work) {
    return transact(&read_now, *database_, std::move(work));
  }
  template <class Work>
  auto write(Work work) {
    return transact(&write_now, *database_, std::move(work));
  }
  // The first column of the first row, as a number.
  std::int64_t number(const std::string& sql);

  template <class Id>
  Id fresh() {
    return Id::make(random_, clock_.now());
  }
  Time now() const { return clock_.now(); }

  core::Company company(const std::string& name = "Acme");
  core::Agent agent(const core::CompanyId& company);
  core::Environment environment(const core::CompanyId& company, const std::string& name);
  core::Environment local_environment(const core::CompanyId& company);
  core::LeaseRecord lease(const core::Environment& environment, core::LeaseState status);
  core::Run run(const core::CompanyId& company);
  core::Sandbox sandbox(const core::Environment& environment, core::SandboxState status);
  core::Node node();
  core::SecretRecord secret(const core::CompanyId& company, const std::string& name);
  core::SecretVersion version(const core::SecretId& secret, std::int64_t number);
  core::SecretBinding binding(const core::SecretRecord& secret, core::SecretTarget type,
                              const std::string& target, const std::string& path);
  core::SecretAccessEvent access_event(const core::SecretRecord& secret);
  core::Activity activity(const core::CompanyId& company, const std::string& entity);
  core::Token token(std::optional<core::CompanyId> company);

  // The same, put into the database.
  core::Company given_company(const std::string& name = "Acme");
  core::Environment given_environment(const core::CompanyId& company, const std::string& name);
  core::Run given_run(const core::CompanyId& company);
  core::Node given_node();
  core::SecretRecord given_secret(const core::CompanyId& company, const std::string& name);

  FakeClock clock_;
  SeededRandom random_{42};
  std::unique_ptr<Place> place_;
  std::unique_ptr<Database> database_;
};

inline std::string engine_name(const testing::TestParamInfo<EngineKind>& engine) {
  return engine.param == EngineKind::sqlite ? "Sqlite" : "Postgres";
}

#define BERTH_ON_BOTH_ENGINES(Suite)                                                           \
  INSTANTIATE_TEST_SUITE_P(                                                                    \
      Engines, Suite, testing::Values(store::EngineKind::sqlite, store::EngineKind::postgres), \
      store::engine_name)

// EXPECT_FAILS(write(...), Errc::conflict)
#define EXPECT_FAILS(expression, errc)            \
  if (const auto result = (expression); result)   \
    ADD_FAILURE() << #expression << " succeeded"; \
  else                                            \
    EXPECT_EQ(name_of(result.error().code), name_of(errc)) << result.error().message

#define EXPECT_WORKS(expression)                                               \
  if (const auto result = (expression); !result)                               \
  ADD_FAILURE() << #expression << ": " << name_of(result.error().code) << ": " \
                << result.error().message

}  // namespace berth::store
