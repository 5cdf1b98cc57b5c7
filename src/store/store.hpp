#pragma once

#include "base/async/task.hpp"
#include "store/sql/database.hpp"

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <optional>
#include <type_traits>
#include <utility>

namespace berth::store {

// The database as the event loop sees it: transactions are awaited and resume on the caller's
// thread. The domain verbs are functions of a Session in the topic headers (environments.hpp,
// secrets.hpp, ...), so that a use case can combine several in one transaction.
class Store {
 public:
  explicit Store(Database& database) : database_(database) {}

  // auto company = co_await store.read([&](Session& s) { return find_company(s, id); });
  // The work runs on another thread, perhaps more than once, while the caller waits. It may refer
  // to the caller's variables, and must not consume them.
  template <class Work>
  auto read(Work work) -> asio::awaitable<std::invoke_result_t<Work&, Session&>> {
    co_return co_await transact<Work>(&Database::read, std::move(work));
  }
  template <class Work>
  auto write(Work work) -> asio::awaitable<std::invoke_result_t<Work&, Session&>> {
    co_return co_await transact<Work>(&Database::write, std::move(work));
  }

  EngineKind engine() const { return database_.engine(); }

 private:
  using Verb = void (Database::*)(Database::Work, Database::Done);

  static asio::awaitable<Result<>> run(Database& database, Verb verb, Database::Work work);

  template <class Work>
  auto transact(Verb verb, Work work) -> asio::awaitable<std::invoke_result_t<Work&, Session&>> {
    using Answer = std::invoke_result_t<Work&, Session&>;
    std::optional<Answer> answer;
    Database::Work step = [&](Session& session) -> Result<> {
      answer.emplace(work(session));
      if (!*answer) return std::unexpected(answer->error());
      return {};
    };
    Result<> done = co_await run(database_, verb, std::move(step));
    if (!done) co_return Answer{std::unexpected(std::move(done).error())};
    co_return *std::move(answer);
  }

  Database& database_;
};

}  // namespace berth::store
