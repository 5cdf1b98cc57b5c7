#include "egress/resolver.hpp"

#include <gtest/gtest.h>
#include <boost/asio/io_context.hpp>

#include <future>

namespace berth::egress {
namespace {

using namespace std::chrono_literals;
using Addresses = Result<std::vector<Address>>;

Task<> ask_resolver(SystemResolver& resolver, std::string name, std::optional<Addresses>& answer) {
  answer = co_await resolver.resolve(std::move(name));
  co_return Result<>{};
}

// A resolver whose only thread is busy until it is freed.
class EgressResolver : public testing::Test {
 protected:
  ~EgressResolver() override {
    free_thread();
    tasks_.start("test.stop", resolver().stop());
    run();
  }

  SystemResolver& resolver(ResolverLimits limits = {}) {
    if (!resolver_) resolver_.emplace(loop_.get_executor(), pool_, limits);
    return *resolver_;
  }
  void block_thread() {
    asio::post(pool_, [freed = freed_.get_future().share()] { freed.wait(); });
  }
  void free_thread() {
    if (!std::exchange(is_free_, true)) freed_.set_value();
  }
  void start(std::string name, std::optional<Addresses>& answer) {
    tasks_.start("test.ask", ask_resolver(resolver(), std::move(name), answer));
  }
  void run() {
    loop_.restart();
    loop_.run();
  }
  // Runs the loop until there is an answer; look-ups may still be running.
  void run_until(const std::optional<Addresses>& answer) {
    loop_.restart();
    while (!answer) loop_.run_one();
  }

  asio::io_context loop_;
  asio::thread_pool pool_{1};
  std::promise<void> freed_;
  bool is_free_ = false;
  std::optional<SystemResolver> resolver_;
  TaskGroup tasks_{loop_.get_executor()};
};

TEST_F(EgressResolver, FindsTheAddressesOfAName) {
  std::optional<Addresses> answer;
  start("localhost", answer);
  run();
  ASSERT_TRUE(answer && *answer) << (*answer ? "" : answer->error().message);
  for (const Address& address : **answer) {
    EXPECT_TRUE(address.str() == "127.0.0.1" || address.str() == "::1") << address.str();
  }
}

TEST_F(EgressResolver, OneLookUpAnswersAllWhoWaitForTheName) {
  resolver({.lookups_max = 1});
  block_thread();
  std::optional<Addresses> first;
  std::optional<Addresses> second;
  std::optional<Addresses> other;
  start("localhost", first);
  start("localhost", second);
  start("other.invalid", other);
  run_until(other);
  EXPECT_EQ(other->error().code, Errc::overloaded);
  EXPECT_FALSE(first || second);
  free_thread();
  run();
  EXPECT_TRUE(first && *first);
  EXPECT_TRUE(second && *second == *first);
}

TEST_F(EgressResolver, NobodyWaitsLongerThanTheLimit) {
  resolver({.timeout = 20ms});
  block_thread();
  std::optional<Addresses> answer;
  start("localhost", answer);
  run_until(answer);
  EXPECT_EQ(answer->error().code, Errc::timed_out);
  // The look-up itself ended later, and its answer is cached.
  free_thread();
  run();
  std::optional<Addresses> later;
  start("localhost", later);
  run();
  EXPECT_TRUE(later && *later);
}

TEST_F(EgressResolver, RemembersOnlySoManyNames) {
  resolver({.names_max = 1, .keep = 1h});
  std::optional<Addresses> answer;
  start("localhost", answer);
  run();
  std::optional<Addresses> again;
  start("localhost", again);
  run();
  EXPECT_TRUE(again && *again);
  std::optional<Addresses> other;
  start("other.invalid", other);
  run();
  EXPECT_EQ(other->error().code, Errc::overloaded);
}

TEST(EgressMachine, ItsOwnAddressesAreKnown) {
  bool found = false;
  for (const SpecialRange& own : addresses_of_this_machine()) {
    found = found || own.range.first.str() == "127.0.0.1";
  }
  EXPECT_TRUE(found);
}

TEST(EgressMachine, IsReachedByEveryAddressThatLeadsBackHere) {
  for (const char* text : {"127.0.0.1", "127.9.9.9", "0.0.0.0", "::", "::1", "::ffff:127.0.0.1",
                           "::ffff:0.0.0.0", "::127.0.0.1"}) {
    EXPECT_TRUE(is_this_machine(*Address::parse(text))) << text;
  }
  for (const SpecialRange& own : addresses_of_this_machine()) {
    EXPECT_TRUE(is_this_machine(own.range.first)) << own.range.str();
  }
  for (const char* text : {"93.184.216.34", "2606:2800:220:1::1", "198.51.100.7"}) {
    EXPECT_FALSE(is_this_machine(*Address::parse(text))) << text;
  }
}

}  // namespace
}  // namespace berth::egress
