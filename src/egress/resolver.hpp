#pragma once

#include "base/async/task.hpp"
#include "base/async/task_group.hpp"
#include "egress/address.hpp"

#include <boost/asio/thread_pool.hpp>

#include <chrono>
#include <list>
#include <map>

namespace berth::egress {

// Looks up names. The proxy asks once per request and connects to the answer.
class Resolver {
 public:
  virtual ~Resolver() = default;
  // Has its own time limit. Fails server_unreachable, timed_out or overloaded.
  virtual Task<std::vector<Address>> resolve(std::string name) = 0;
};

struct ResolverLimits {
  std::size_t names_max = 1024;  // cached and being looked up, together
  std::size_t lookups_max = 32;  // at the same time
  std::chrono::milliseconds timeout{5'000};
  std::chrono::milliseconds keep{10'000};        // for an answer
  std::chrono::milliseconds keep_failed{1'000};  // for a failure
};

// The machine's resolver. One for all sandboxes: requests for a name that is being looked up share
// the answer, and answers are cached for a few seconds.
class SystemResolver final : public Resolver {
 public:
  // getaddrinfo blocks and cannot be cancelled, so it has its own threads. A caller stops waiting
  // in time while the look-up itself continues.
  SystemResolver(asio::any_io_executor executor, asio::thread_pool& pool,
                 ResolverLimits limits = {});

  Task<std::vector<Address>> resolve(std::string name) override;
  // Waits for look-ups that are still running.
  Task<> stop() { return lookups_.stop(); }

 private:
  using Moment = std::chrono::steady_clock::time_point;
  struct Answer {
    explicit Answer(const asio::any_io_executor& executor) : arrived(executor) {}
    asio::steady_timer arrived;  // cancelled by the answer, expires at the time limit
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

// The addresses of this machine's own interfaces, as special ranges for Policy: services here may
// trust local clients.
std::vector<SpecialRange> addresses_of_this_machine();

// All ranges that need a rule or an allowance: special_ranges() and this machine's addresses.
std::vector<SpecialRange> addresses_that_are_not_public();

// Whether a connection to this address remains on this machine: a loopback or unspecified address,
// or one that an interface has now. Also true if the interfaces cannot be listed.
bool is_this_machine(const Address& address);

}  // namespace berth::egress
