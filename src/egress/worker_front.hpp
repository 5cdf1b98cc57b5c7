#pragma once

#include "egress/name_server.hpp"
#include "egress/proxy.hpp"

#include <span>

namespace berth::egress {

// Sockets that were made in a worker's network namespace, where SyntheticNames::range() is local.
// An unset descriptor is not served.
struct WorkerSockets {
  std::vector<Fd> transparent = {};  // listen on 0.0.0.0, one per port
  Fd names = {};                     // UDP, bound to the DNS port
  Fd proxy = {};                     // listens for clients that use an HTTP proxy
};

struct WorkerFrontOptions {
  std::string worker;  // for the server's log
  Policy policy = {};
  Limits limits = {};
  std::vector<std::uint16_t> own_ports = {};  // as in ProxyOptions
  std::string log_path = {};                  // for decisions; empty: no file
  DecisionLogLimits log_limits = {};
};

// The way out of a plugin's worker, whose programs do not use a proxy. The worker looks up a name,
// gets a synthetic address and connects to it. The server accepts that connection, looks up the
// name itself, and relays the bytes if the policy allows it, as for CONNECT.
class WorkerFront {
 public:
  // The resolver and the clock must outlive it.
  WorkerFront(asio::io_context& loop, Resolver& resolver, const Clock& clock,
              WorkerFrontOptions options);
  WorkerFront(const WorkerFront&) = delete;
  WorkerFront& operator=(const WorkerFront&) = delete;

  // Fails io_failed if a descriptor has the wrong type. The caller must then stop the front.
  Result<> listen(WorkerSockets sockets);
  // Applies from now on, also to open connections.
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

// What a worker may reach by default: every public name and address on these ports, modified by the
// rules. No private or metadata addresses and not this machine, unless the rules name their range.
// Fails as Policy::parse does.
Result<Policy> worker_policy(std::span<const std::uint16_t> ports, Rules rules = {});

}  // namespace berth::egress
