#include "store/store.hpp"

namespace berth::store {

asio::awaitable<Result<>> Store::run(Database& database, Verb verb, Database::Work work) {
  return asio::async_initiate<const asio::use_awaitable_t<>, void(Result<>)>(
      [&database, verb](auto handler, Database::Work job) {
        auto home = asio::get_associated_executor(handler);
        auto keep_alive = asio::make_work_guard(home);
        Database::Done done = [handler = std::move(handler), home,
                               keep_alive = std::move(keep_alive)](Result<> result) mutable {
          asio::post(home, [handler = std::move(handler), result = std::move(result)]() mutable {
            handler(std::move(result));
          });
        };
        (database.*verb)(std::move(job), std::move(done));
      },
      asio::use_awaitable, std::move(work));
}

}  // namespace berth::store
