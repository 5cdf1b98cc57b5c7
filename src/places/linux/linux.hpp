#pragma once

#include "base/clock.hpp"
#include "base/random.hpp"
#include "images/image_store.hpp"
#include "keepers/keepers.hpp"
#include "places/linux/egress_gateway.hpp"
#include "places/linux/images.hpp"
#include "places/linux/snapshots.hpp"
#include "places/linux/warm_pool.hpp"
#include "places/sandbox_provider.hpp"

#include <set>

namespace berth::places {

struct LinuxOptions {
  std::string state_root;      // a folder owned by this server, with one folder per sandbox
  std::string keeper_program;  // path of berth-keeper
  std::string images_folder;
  std::string templates_folder = {};
  HoldLife hold_life = HoldLife::until_released;  // for what sandboxes start from
  EgressGateway* egress_gateway = nullptr;  // if null, a sandbox without network has no egress
  // Host folders that every sandbox sees. No config can request one, so a server sets none: its
  // callers do not own its files.
  std::vector<keeper::sandbox::Bind> binds = {};
  std::string homes_root = {};  // agents' homes; if empty, each sandbox has its own home
};

// Sandboxes on this machine. Each is held by its own keeper, in a folder named by our key, and is
// found again by that key: nothing here needs to survive a server restart.
class Linux final : public Place,
                    private Commands,
                    private Files,
                    private Ports,
                    private EgressRules,
                    private Snapshots,
                    private Freezer,
                    private UsageMeter,
                    private SpareMaker {
 public:
  // `random` and `clock` must outlive it.
  Linux(asio::any_io_executor executor, asio::thread_pool& pool, Random& random, const Clock& clock,
        LinuxOptions options);

  Task<ProbeReport> probe(const AcquireRequest& request) override;
  Task<> check_config(const bj::object& config) override;
  Task<Acquired> acquire(const AcquireRequest& request) override;
  // A reusable sandbox is remade around its working directory, and then waits for its next lease.
  Task<> release(const PlaceRef& lease, core::LeaseEvent how) override;
  Task<> destroy(const PlaceRef& lease) override;
  Task<std::vector<PlaceKey>> held() override;
  Task<> close() override;
  Abilities abilities() override {
    return {.commands = this,
            .files = this,
            .ports = this,
            .egress = this,
            .snapshots = this,
            .freezer = this,
            .usage = this,
            .locality = Locality::own_server};
  }

  // Makes a sandbox, runs `true` in it and removes it.
  Task<Verdict> test(bj::object config);
  // The sandboxes that a config wants ready in advance; empty if it wants none.
  Task<std::optional<PoolCustomer>> pool_customer(bj::object config);
  // Makes them ready in idle time, for exactly these customers from now on.
  void serve_pools(std::vector<PoolCustomer> customers) { spares_.serve(std::move(customers)); }
  // Removes unused images, except for spared ones.
  Task<images::Removed> collect_images(images::Spared spared);
  // Records which images environments name: they are kept.
  Task<> note_images(std::vector<images::EnvironmentImage> named);

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
  Task<std::vector<std::uint16_t>> listening(const PlaceRef& lease) override;
  Task<FileRoot> files(const PlaceRef& lease) override;
  Task<Fd> dial(const PlaceRef& lease, std::uint16_t port) override;
  Task<> set_egress(const PlaceRef& lease, core::LinuxEgress policy) override;
  Task<EgressPage> egress_log(const PlaceRef& lease, std::uint64_t offset) override;
  Task<CapturedTemplate> capture_template(const PlaceRef& lease,
                                          const CaptureTemplate& request) override;
  Task<bool> delete_template(const PlaceRef& place, const DeleteTemplate& request) override;
  Task<Changes> changes(const PlaceRef& lease) override;
  Task<std::vector<core::TemplateId>> held_templates() override;
  Task<> freeze(const PlaceRef& lease) override;
  Task<> thaw(const PlaceRef& lease) override;

  // The folder, its keeper, and the sandbox for everything that the keeper will run.
  struct Made {
    keeper::Confined confined;
    RootLayers root;
    bool has_home = false;  // the agent's
  };
  // What is requested of a sandbox: its config, and the host folder that is the agent's home.
  struct Wanted {
    core::LinuxConfig config;
    std::optional<std::string> home = {};
  };
  keeper::sandbox::Plan plan_for(const Wanted& wanted, const RootLayers& root) const;
  // Takes a spare sandbox if there is one, or makes one.
  Task<Made> take(std::string id, Wanted wanted);
  // The same. At the level `minimal`, which cannot show folders, without the agent's home.
  Task<Made> take_with_home(std::string id, Wanted wanted);
  Task<std::optional<std::string>> home_folder(std::optional<core::AgentHomeId> id);
  // A new home starts with what the image or template has in its user's home, except for large
  // files. The sandbox's own user copies it, inside.
  Task<> seed_home(std::string id, core::AgentHomeId home, std::string from);
  Task<std::optional<keeper::Confined>> take_spare(std::string id, keeper::sandbox::Plan plan);
  Task<keeper::Confined> make_spare(std::string id, SpareOrder order,
                                    std::chrono::milliseconds lifetime) override;
  Task<> remove_spare(std::string id) override { return remove(std::move(id)); }
  Task<RootLayers> hold_image(std::string id, const core::LinuxConfig& config);
  Task<keeper::Confined> confine_keeper(std::string id, keeper::sandbox::Plan plan);
  Task<Made> confine(std::string id, Wanted wanted);
  Task<Made> make(std::string id, Wanted wanted);
  // Releases the image that it holds. For the host's image no hold exists.
  Task<> remove(std::string id, std::string image = {});
  // Opened in parallel with everything else that must happen before a command can start.
  Result<> begin_way_out(const std::string& id, const core::LinuxConfig& config);
  Task<> open_way_out(std::string id, core::LinuxConfig config);
  // For a lease that a previous server acquired. A failure is logged: the command continues.
  enum class WayOut { open, shut };  // shut: it could not be opened again
  Task<WayOut> restore_way_out(const PlaceRef& lease);
  // Empty if the sandbox cannot be used any more, which is not an error.
  Task<std::optional<Acquired>> resume(bj::object config, std::string provider_lease_id);
  Task<Acquired> make_lease(const PlaceRef& lease);
  Result<LiveSandbox> live(const PlaceRef& lease) const;
  Task<Verdict> try_sandbox(std::string id, core::LinuxConfig config);
  Task<> empty(std::string id);
  // Ends all processes in it but the first. Fails if that is not seen to be the only one left.
  Task<> end_all_inside(std::string id);
  Task<> run_inside(std::string id, std::vector<std::string> argv);

  keepers::Keepers keepers_;
  Random& random_;
  const Clock& clock_;
  HeldImages images_;
  EgressGateway* egress_gateway_;
  std::vector<keeper::sandbox::Bind> binds_;
  std::string homes_root_;
  std::set<std::string> probes_;  // in progress, and not recorded anywhere
  WarmPool spares_;
};

}  // namespace berth::places
