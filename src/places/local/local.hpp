#pragma once

#include "base/async/task_group.hpp"
#include "keepers/keepers.hpp"
#include "places/place.hpp"

namespace berth::places {

using LocalOptions = keepers::KeeperOptions;

// Commands as processes of this machine, held by one keeper per lease. The first command starts the
// keeper; after a server restart it is found again by its folder.
class Local final : public Place, private Commands, private Files, private UsageMeter {
 public:
  // `homes_root` contains the agents' homes; without it each lease has its own home.
  Local(asio::any_io_executor executor, asio::thread_pool& pool, LocalOptions options,
        std::string homes_root = {});

  Task<ProbeReport> probe(const AcquireRequest& request) override;
  Task<> check_config(const bj::object& config) override;
  Task<Acquired> acquire(const AcquireRequest& request) override;
  Task<> release(const PlaceRef& lease, core::LeaseEvent how) override;
  Task<> destroy(const PlaceRef& lease) override;
  Task<std::vector<PlaceKey>> held() override;
  Task<> close() override;
  Abilities abilities() override {
    return {.commands = this, .files = this, .usage = this, .locality = Locality::own_server};
  }

 private:
  Task<Workspace> realize(const PlaceRef& lease, const std::optional<std::string>& wanted) override;
  Task<Started> start(const PlaceRef& lease, const Command& command) override;
  Task<Ended> follow(const PlaceRef& lease, const std::string& exec_id, std::uint64_t offset,
                     OutputTaker& taker) override;
  Task<> send(const PlaceRef& lease, const std::string& exec_id, Input input) override;
  Task<> cancel(const PlaceRef& lease, const std::string& exec_id, std::int64_t grace_ms) override;
  Task<> renew(const PlaceRef& lease, std::int64_t deadline_ms) override;
  Task<> forget_output(const PlaceRef& lease, const std::string& exec_id) override;
  Task<Usage> usage(const PlaceRef& lease) override;
  // The files in the lease's own folder, wherever its commands work.
  Task<FileRoot> files(const PlaceRef& lease) override;

  Task<std::string> try_keeper(std::string folder);

  asio::any_io_executor executor_;
  asio::thread_pool& pool_;
  keepers::Keepers keepers_;
  std::string homes_root_;
  TaskGroup probes_;
};

}  // namespace berth::places
