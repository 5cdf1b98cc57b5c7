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
  std::string unix_path = {};  // where it is not empty, the address does not count
  Address address = {};
  std::uint16_t port = 0;
  std::string host;  // the Host field that the API trusts
};

struct ProxyOptions {
  std::string lease;  // for the log of the server
  Policy policy = {};
  Limits limits = {};
  std::optional<Callback> callback = {};  // without it the reserved name leads nowhere
  // Where this server listens, also without a callback: no rule opens these ports on this machine.
  std::vector<std::uint16_t> own_ports = {};
  // Whose addresses stand for names at a transparent door. Outlives the proxy.
  SyntheticNames* names = nullptr;
  std::string log_path = {};  // of the decisions, as JSON lines; empty: no file
  DecisionLogLimits log_limits = {};
};

// What has gone through so far.
struct Traffic {
  std::size_t connections = 0;  // open now
  std::uint64_t requests = 0;
  std::uint64_t denied = 0;
  std::uint64_t bytes_up = 0;
  std::uint64_t bytes_down = 0;
};

// The way out of one sandbox. Its listeners are made inside the sandbox's network namespace, which
// has no other way out; the proxy accepts there and connects from the server's side, to what the
// policy allows. One thread, that of the loop. Everything ends with stop().
class Proxy {
 public:
  // The resolver and the clock outlive the proxy.
  Proxy(asio::io_context& loop, Resolver& resolver, const Clock& clock, ProxyOptions options);
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;
  // The proxy was stopped by now, or the loop has run dry.
  ~Proxy();

  // Serves the clients of a descriptor that listens already. Fails io_failed when it is none.
  Result<> listen(Fd listener, Door door = Door::proxy);
  // Counts from now on, also for what is open: a tunnel to a target that is no longer allowed is
  // cut.
  void set_policy(Policy policy);
  const Policy& policy() const;
  // Writes down a decision that was made beside the proxy, about the same client.
  void note(LogEntry entry);
  // Brings what was decided so far into the file of the log.
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
