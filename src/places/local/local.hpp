#pragma once

#include "places/place.hpp"
#include "keepers/keepers.hpp"

namespace berth::drivers {

using LocalOptions = execution::KeeperOptions;

// Commands as processes of this machine, held by one keeper per lease. The first command starts the
// keeper; after a server restart it is found again by its folder.
class Local final : public Driver {
 public:
  // `homes_root` contains the agents' homes; without it each lease has its own home.
  Local(asio::any_io_executor executor, asio::thread_pool& pool, LocalOptions options,
        std::string homes_root = {});

  Task<ProbeReport> probe(const AcquireRequest& request) override;
  Task<Acquired> acquire(const AcquireRequest& request) override;
  bool stays_on_its_server(const bj::object& /*config*/) const override { return true; }
  Task<Workspace> realize(const PlaceRef& lease, const std::optional<std::string>& wanted) override;
  Task<Started> start(const PlaceRef& lease, const Command& command) override;
  Task<Ended> follow(const PlaceRef& lease, const std::string& exec_id, std::uint64_t offset,
                     OutputTaker& taker) override;
  Task<> send(const PlaceRef& lease, const std::string& exec_id, Input input) override;
  Task<> cancel(const PlaceRef& lease, const std::string& exec_id, std::int64_t grace_ms) override;
  Task<> renew(const PlaceRef& lease, std::int64_t deadline_ms) override;
  Task<> forget_output(const PlaceRef& lease, const std::string& exec_id) override;
  Task<execution::Usage> usage(const PlaceRef& lease) override;
  // The files in the lease's own folder, wherever its commands work.
  Task<execution::FileRoot> files(const PlaceRef& lease) override;
  Task<> release(const PlaceRef& lease, core::LeaseEvent how) override;
  Task<> destroy(const PlaceRef& lease) override;

  Task<> close() override;
  Task<std::vector<core::LeaseId>> held() override;

 private:
  Task<std::string> try_keeper(std::string folder);

  asio::any_io_executor executor_;
  asio::thread_pool& pool_;
  execution::Keepers keepers_;
  std::string homes_root_;
  TaskGroup probes_;
};

}  // namespace berth::drivers
