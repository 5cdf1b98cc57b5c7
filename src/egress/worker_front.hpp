#pragma once

#include "egress/name_server.hpp"
#include "egress/proxy.hpp"

#include <span>

namespace berth::egress {

// Sockets that were made inside a worker's network namespace, where SyntheticNames::range() is
// local. A descriptor that is not set is not served.
struct WorkerSockets {
  std::vector<Fd> transparent = {};  // listen on 0.0.0.0, one for each port
  Fd names = {};                     // UDP, bound to the port of DNS
  Fd proxy = {};                     // listens for clients that know an HTTP proxy
};

struct WorkerFrontOptions {
  std::string worker;  // for the log of the server
  Policy policy = {};
  Limits limits = {};
  std::vector<std::uint16_t> own_ports = {};  // as in ProxyOptions
  std::string log_path = {};                  // of the decisions; empty: no file
  DecisionLogLimits log_limits = {};
};

// The way out of the worker of a plugin, whose programs know nothing of a proxy. The worker looks a
// name up, gets a synthetic address and connects to it. The server accepts that connection, looks
// the name up itself, and passes the bytes on when the policy allows it, as for CONNECT.
class WorkerFront {
 public:
  // The resolver and the clock outlive it.
  WorkerFront(asio::io_context& loop, Resolver& resolver, const Clock& clock,
              WorkerFrontOptions options);
  WorkerFront(const WorkerFront&) = delete;
  WorkerFront& operator=(const WorkerFront&) = delete;

  // Fails io_failed when a descriptor is not what it should be. The caller then stops the front.
  Result<> listen(WorkerSockets sockets);
  // Counts from now on, also for what is open.
  void set_policy(Policy policy) { proxy_.set_policy(std::move(policy)); }
  std::vector<LogEntry> decisions(std::size_t count) const { return proxy_.decisions(count); }
  Traffic traffic() const { return proxy_.traffic(); }
  // Closes every socket, cuts every connection and returns when nothing is left.
  Task<> stop();

 private:
  SyntheticNames names_;
  Proxy proxy_;
  NameAnswers answers_;
  NameServer name_server_;
};

// What a worker may reach by default: every public name and address on these ports, and besides
// what the rules open or deny. Neither private nor metadata addresses nor this machine, unless the
// rules name their range. Fails as Policy::parse does.
Result<Policy> worker_policy(std::span<const std::uint16_t> ports, Rules rules = {});

}  // namespace berth::egress
