#pragma once

#include "base/task_group.hpp"
#include "contract/store_fixture.hpp"
#include "engine/engine.hpp"

#include <boost/asio/io_context.hpp>

namespace berth::engine {

// Passes everything on, and fails the n-th statement of every write: what a use case leaves then is
// what a broken disk would leave.
class FailingDatabase final : public store::Database {
 public:
  explicit FailingDatabase(store::Database& real) : real_(real) {}

  store::EngineKind engine() const override { return real_.engine(); }
  void read(Work work, Done done) override { real_.read(std::move(work), std::move(done)); }
  void write(Work work, Done done) override;

  void fail_at(int statement) { fail_at_ = statement; }
  // How many statements the last write ran.
  int statements() const { return statements_; }

 private:
  store::Database& real_;
  int fail_at_ = 0;
  int statements_ = 0;
};

// The engine over a fresh database of the parameter's engine.
class EngineContract : public store::StoreContract {
 protected:
  void SetUp() override;

  // Runs the loop until the task has ended.
  template <class T>
  Result<T> run(Task<T> task) {
    std::optional<Result<T>> outcome;
    loop_.restart();
    TaskGroup group{loop_.get_executor()};
    group.start("test", keep(std::move(task), outcome));
    loop_.run();
    return *std::move(outcome);
  }

  template <class T>
  static Task<> keep(Task<T> task, std::optional<Result<T>>& outcome) {
    outcome.emplace(co_await std::move(task));
    co_return Result<>{};
  }

  core::Call admin() const {
    return {.who = {.kind = core::CallerKind::local_operator, .role = core::Role::admin}};
  }
  CreateEnvironment ssh(const std::string& name) const;
  CreateSecret secret_named(const std::string& name) const;

  asio::io_context loop_;
  std::unique_ptr<FailingDatabase> failing_;
  std::unique_ptr<store::Store> store_;
  std::optional<vault::Vault> vault_;
  std::unique_ptr<Feed> feed_;
  std::unique_ptr<store::TemporaryFolder> folder_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace berth::engine
