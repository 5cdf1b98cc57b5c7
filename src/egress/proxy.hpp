#pragma once

#include "base/async/task.hpp"
#include "base/clock.hpp"
#include "base/owned.hpp"
#include "egress/decision_log.hpp"
#include "egress/limits.hpp"
#include "egress/policy.hpp"
#include "egress/request.hpp"
#include "egress/resolver.hpp"
#include "egress/synthetic_names.hpp"

#include <boost/asio/io_context.hpp>

#include <memory>

namespace berth::egress {

// Where the server's own API listens: a unix socket, or an address and a port.
struct Callback {
  std::string unix_path = {};  // if set, the address is ignored
  Address address = {};
  std::uint16_t port = 0;
  std::string host;  // the Host field that the API trusts
};

struct ProxyOptions {
  std::string lease;  // for the server's log
  Policy policy = {};
  Limits limits = {};
  std::optional<Callback> callback = {};  // without it the reserved name is unreachable
  // The ports of this server, even without a callback: no rule opens them on this machine.
  std::vector<std::uint16_t> own_ports = {};
  // The addresses that stand for names at a transparent door. Must outlive the proxy.
  SyntheticNames* names = nullptr;
  std::string log_path = {};  // for decisions, as JSON lines; empty: no file
  DecisionLogLimits log_limits = {};
};

// The traffic so far.
struct Traffic {
  std::size_t connections = 0;  // currently open
  std::uint64_t requests = 0;
  std::uint64_t denied = 0;
  std::uint64_t bytes_up = 0;
  std::uint64_t bytes_down = 0;
};

// The way out of one sandbox. Its listeners are made in the sandbox's network namespace, which has
// no other way out. The proxy accepts there and connects from the server's side to what the policy
// allows. Runs only on the loop's thread. Everything ends with stop().
class Proxy {
 public:
  // The resolver and the clock must outlive the proxy.
  Proxy(asio::io_context& loop, Resolver& resolver, const Clock& clock, ProxyOptions options);
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;
  // The proxy must have been stopped, or the loop must have run out of work.
  ~Proxy();

  // Serves the clients of a listening descriptor. Fails io_failed if it is not one.
  Result<> listen(Fd listener, Door door = Door::proxy);
  // Applies from now on, also to open connections: a tunnel to a target that is no longer allowed
  // is cut.
  void set_policy(Policy policy);
  const Policy& policy() const;
  // Logs a decision about the same client that was made outside the proxy.
  void note(LogEntry entry);
  // Writes the decisions so far to the log file.
  void flush();
  // The newest decisions, oldest first.
  std::vector<LogEntry> decisions(std::size_t count) const;
  Traffic traffic() const;
  // Closes the listeners, cuts every connection and returns when nothing is left.
  Task<> stop();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace berth::egress
