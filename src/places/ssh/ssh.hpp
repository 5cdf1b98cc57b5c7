#pragma once

#include "base/async/task_group.hpp"
#include "base/clock.hpp"
#include "places/place.hpp"
#include "places/ssh/connection.hpp"
#include "places/ssh/control_folder.hpp"
#include "places/ssh/held_lease.hpp"
#include "places/ssh/options.hpp"

#include <map>
#include <memory>
#include <string>

namespace berth::places {

// Commands on hosts that are reached through OpenSSH. Leases with the same target share a
// connection, which ends a while after the last of them. On the host a keeper holds each lease's
// commands; if it cannot run, a shell script does.
//
// The program must ignore SIGPIPE: a connection may break during a write.
class Ssh final : public Place, private Commands {
 public:
  // Ends what a killed server left of its connections. Clock and resolver must outlive the driver.
  static Result<std::unique_ptr<Ssh>> open(const asio::any_io_executor& executor,
                                           const Clock& clock, egress::Resolver& resolver,
                                           ssh::Options options);

  // Steps: connect, authenticate, workspace, keeper, callback.
  Task<ProbeReport> probe(const AcquireRequest& request) override;
  Task<> check_config(const bj::object& config) override;
  Task<Acquired> acquire(const AcquireRequest& request) override;
  Task<> release(const PlaceRef& lease, core::LeaseEvent how) override;
  Task<> destroy(const PlaceRef& lease) override;
  Task<std::vector<PlaceKey>> held() override;
  Task<> close() override;
  Abilities abilities() override { return {.commands = this}; }

  // The processes that hold connections, for tests.
  std::vector<pid_t> master_pids() const;

 private:
  Task<Workspace> realize(const PlaceRef& lease, const std::optional<std::string>& wanted) override;
  Task<Started> start(const PlaceRef& lease, const Command& command) override;
  Task<Ended> follow(const PlaceRef& lease, const std::string& exec_id, std::uint64_t offset,
                     OutputTaker& taker) override;
  Task<> send(const PlaceRef& lease, const std::string& exec_id, Input input) override;
  Task<> cancel(const PlaceRef& lease, const std::string& exec_id, std::int64_t grace_ms) override;
  Task<> renew(const PlaceRef& lease, std::int64_t deadline_ms) override;
  // The output is deleted with the lease.
  Task<> forget_output(const PlaceRef& lease, const std::string& exec_id) override;

  Ssh(const asio::any_io_executor& executor, const Clock& clock, egress::Resolver& resolver,
      ssh::Options options, ssh::ControlFolder folder);

  Result<ssh::Connection::Use> connection_of(const PlaceRef& lease);
  // The acquired lease; reattached if another server acquired it.
  Result<std::shared_ptr<ssh::HeldLease>> held_lease(const PlaceRef& lease);
  std::shared_ptr<ssh::HeldLease> hold(const PlaceRef& lease, ssh::Connection::Use connection,
                                       std::string_view supervision);
  // The origin at which the host reaches this server.
  static Task<std::string> callback_from(ssh::Connection& connection, const Callback& callback);
  Task<bj::object> facts_of(const AcquireRequest& request, ssh::Connection& connection);
  Task<> remove(const PlaceRef& lease);
  void end_idle(ssh::Connection& connection);
  static Task<> close_connection(std::shared_ptr<ssh::Connection> connection);

  ssh::Options options_;
  ssh::ControlFolder folder_;
  ssh::KeeperProgram keeper_;
  TaskGroup tasks_;
  ssh::Connection::Shared shared_;
  std::map<std::string, std::shared_ptr<ssh::Connection>> connections_;  // by fingerprint
  std::map<PlaceKey, std::shared_ptr<ssh::HeldLease>> leases_;
  // Whether this server made anything on the host for a lease.
  std::map<PlaceKey, bool> entered_;
};

}  // namespace berth::places
