#pragma once

#include "base/async/task_group.hpp"
#include "contract/store_fixture.hpp"
#include "engine/engine.hpp"
#include "store/sql/failing.hpp"

#include <boost/asio/io_context.hpp>

namespace berth::engine {

// Offers the provider `linux` as a server does that has it; no test here makes its sandboxes.
void list_linux(Catalog& catalog);

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
  std::unique_ptr<store::FailingDatabase> failing_;
  std::unique_ptr<store::Store> store_;
  std::optional<vault::Vault> vault_;
  std::unique_ptr<Feed> feed_;
  std::unique_ptr<store::TemporaryFolder> folder_;
  places::Registry places_;  // a test adds those that it needs
  std::optional<RunLogs> logs_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace berth::engine
