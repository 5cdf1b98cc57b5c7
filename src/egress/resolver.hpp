#pragma once

#include "base/async/task.hpp"
#include "base/async/task_group.hpp"
#include "egress/address.hpp"

#include <boost/asio/thread_pool.hpp>

#include <chrono>
#include <list>
#include <map>

namespace berth::egress {

// Where a name leads. The proxy asks once for each request and connects to what it was told.
class Resolver {
 public:
  virtual ~Resolver() = default;
  // Ends within a time of its own. Fails server_unreachable, timed_out or overloaded.
  virtual Task<std::vector<Address>> resolve(std::string name) = 0;
};

struct ResolverLimits {
  std::size_t names_max = 1024;  // remembered and asked for, together
  std::size_t lookups_max = 32;  // at the same time
  std::chrono::milliseconds timeout{5'000};
  std::chrono::milliseconds keep{10'000};        // an answer
  std::chrono::milliseconds keep_failed{1'000};  // that there is none
};

// The resolver of the machine. One for all sandboxes: who asks for a name that is being looked up
// waits for the same answer, and answers are kept for a few seconds.
class SystemResolver final : public Resolver {
 public:
  // getaddrinfo blocks and cannot be ended, so it has threads of its own, and who waits for it goes
  // away in time while the look-up itself goes on.
  SystemResolver(asio::any_io_executor executor, asio::thread_pool& pool,
                 ResolverLimits limits = {});

  Task<std::vector<Address>> resolve(std::string name) override;
  // Waits for the look-ups that still go on.
  Task<> stop() { return lookups_.stop(); }

 private:
  using Moment = std::chrono::steady_clock::time_point;
  struct Answer {
    explicit Answer(const asio::any_io_executor& executor) : arrived(executor) {}
    asio::steady_timer arrived;  // cancelled when the answer is there, over when it is too late
    Result<std::vector<Address>> addresses = std::vector<Address>{};
    Moment until = Moment::max();  // max: being looked up
  };
  using Known = std::map<std::string, std::shared_ptr<Answer>>;

  Task<> look_up(std::string name, std::shared_ptr<Answer> answer);
  bool make_room(Moment now);

  asio::any_io_executor executor_;
  asio::thread_pool& pool_;
  ResolverLimits limits_;
  Known known_;
  TaskGroup lookups_;
};

// The addresses of this machine's own interfaces, as special ranges for Policy: what listens here
// may trust whoever reaches it from here.
std::vector<SpecialRange> addresses_of_this_machine();

// Both kinds of ranges that need a rule or an allowance: special_ranges(), and the addresses of
// this machine.
std::vector<SpecialRange> addresses_that_are_not_public();

// Whether a connection to this address stays on this machine: a loopback or unspecified address, or
// one that an interface has now. True as well when the interfaces cannot be listed.
bool is_this_machine(const Address& address);

}  // namespace berth::egress
