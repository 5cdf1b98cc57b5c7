#include "places/linux/linux.hpp"

#include "base/async/offload.hpp"
#include "base/fault_point.hpp"
#include "base/files.hpp"
#include "base/json/peek.hpp"
#include "base/log.hpp"
#include "core/config/sandbox_fields.hpp"
#include "images/image.hpp"
#include "keeper/sandbox/cgroup/cgroup.hpp"
#include "places/lacks.hpp"
#include "places/linux/inside.hpp"
#include "places/linux/lease_metadata.hpp"
#include "places/linux/listening.hpp"
#include "places/linux/probe_steps.hpp"

#include <sys/stat.h>

#include <chrono>

namespace berth::places {
namespace {

using core::LinuxConfig;
using keepers::KeeperLink;
using keepers::Keepers;

constexpr std::int64_t usual_pool_minutes = 60;
constexpr const char* egress_file = "/egress.jsonl";

Result<LinuxConfig> read_linux_config(const bj::object& config) {
  BERTH_DO(check_config_is_for(core::linux_provider, config));
  BERTH_TRY(LinuxConfig read_config, core::parse_linux_config(config));
  if (!read_config.egress) return read_config;
  const Result<egress::Policy> policy = policy_of(read_config);
  if (!policy) return std::unexpected(egress::in_config(policy.error()));
  return read_config;
}

// What its sandbox was made with, where the lease has recorded it.
Result<LinuxConfig> read_config(const LinuxLease& facts, const PlaceRef& lease) {
  return read_linux_config(facts.own_config().value_or(lease.config));
}

// Empty if the config does not name one, as for a sandbox that is no longer recorded.
std::string image_in(const bj::object& config) {
  return config.contains("template") ? "" : read_loosely<LinuxConfig>(config).image.value_or("");
}

bool is_there(const std::string& path) {
  struct stat seen{};
  return ::lstat(path.c_str(), &seen) == 0;
}

// A config that names something that is missing or unusable is wrong.
std::unexpected<Error> wrong_field(const char* field, Error why) {
  switch (why.code) {
    case Errc::image_not_found:
    case Errc::image_invalid:
    case Errc::template_not_found:
    case Errc::validation_failed:
      why.code = Errc::unprocessable;
      why.issues.push_back({std::string{"/config/"} + field, why.message});
      break;
    default: break;
  }
  return std::unexpected(std::move(why));
}

void tell_of_groups_left(const std::vector<std::string>& groups) {
  for (const std::string& group : groups) log::warn("sandbox.group_left", {{"group", group}});
}

// A killed keeper's sandbox dies with it, including the wardens. Only the control groups are left,
// and in them processes that are still exiting.
Result<> end_what_killed_keepers_held() {
  tell_of_groups_left(keeper::sandbox::sweep_leftovers(keeper::sandbox::detect_layout()));
  return {};
}

// Also covers a sandbox made by a server that was in other groups than this one.
Result<> end_what_it_held(const keeper::ProcessIdentity& killed) {
  tell_of_groups_left(keeper::sandbox::sweep_noted_leftovers(killed.groups_in));
  return end_what_killed_keepers_held();
}

keepers::KeeperOptions keepers_of(const LinuxOptions& options) {
  return {.state_root = options.state_root,
          .keeper_program = options.keeper_program,
          .prefork = std::make_shared<keeper::KeeperPrefork>(
              keeper::KeeperPrefork::Options{.program = options.keeper_program}),
          .noun = "sandbox",
          .after_kill = end_what_it_held};
}

PoolRequest pool_request_of(const LinuxConfig& config) {
  return {.size = static_cast<std::size_t>(config.pool_size.value_or(0)),
          .age_max = std::chrono::minutes{config.pool_age_minutes.value_or(usual_pool_minutes)}};
}

}  // namespace

Linux::Linux(asio::any_io_executor executor, asio::thread_pool& pool, Random& random,
             const Clock& clock, LinuxOptions options)
    : keepers_(std::move(executor), pool, keepers_of(options)),
      random_(random),
      clock_(clock),
      images_(std::move(options.images_folder), std::move(options.templates_folder),
              options.hold_life),
      egress_gateway_(options.egress_gateway),
      binds_(std::move(options.binds)),
      homes_root_(std::move(options.homes_root)),
      spares_(keepers_.executor(), *this, random, clock) {}

Task<> Linux::check_config(const bj::object& config) {
  BERTH_CO_TRY(const LinuxConfig read_config, read_linux_config(config));
  const Result<RootLayers> root = co_await offload(
      keepers_.pool(), [images = images_, read_config] { return images.layers_for(read_config); });
  if (!root) co_return wrong_field(read_config.template_ ? "template" : "image", root.error());
  co_return Result<>{};
}

Task<ProbeReport> Linux::probe(const AcquireRequest& request) {
  const auto begun = std::chrono::steady_clock::now();
  const Result<Verdict> verdict = co_await test(request.lease.config);
  co_return report_of(verdict, core::provider_of(request.lease.config), begun);
}

Task<Verdict> Linux::test(bj::object config) {
  BERTH_CO_TRY(const LinuxConfig wanted, read_linux_config(config));
  // Named like any other, so that what a killed server leaves of it is found and removed.
  const std::string id = core::SandboxId::make(random_, clock_.now()).str();
  probes_.insert(id);
  Result<Verdict> verdict = co_await try_sandbox(id, wanted);
  probes_.erase(id);
  co_return verdict;
}

Task<Verdict> Linux::try_sandbox(std::string id, LinuxConfig wanted) {
  Steps steps;
  bj::object details{{"provider", core::linux_provider}, {"image", wanted.image.value_or("host")}};
  const Result<Made> made = co_await make(id, Wanted{.config = wanted});
  std::string level;
  if (made) level = name_of(made->confined.level);
  if (steps.add("sandbox", made, "A sandbox was made; its isolation is " + level + ".")) {
    details["isolation"] = isolation_of(made->confined);
    const Result<> ran = co_await run_inside(id, {"true"});
    steps.add("command", ran, "A command has run in it.");
    const Result<> removed = co_await remove(id, only_host_of(wanted));
    steps.add("cleanup", removed, "Nothing is left of it.");
  }
  co_return std::move(steps).verdict("This machine makes sandboxes of isolation " + level + ".",
                                     std::move(details));
}

Task<RootLayers> Linux::hold_image(std::string id, const LinuxConfig& config) {
  // The host's own programs are always there, so no disk access is needed.
  if (only_host_of(config) == images::host_name) co_return images_.hold(config, id);
  co_return co_await offload(keepers_.pool(),
                             [images = images_, config, id] { return images.hold(config, id); });
}

Task<keeper::Confined> Linux::confine_keeper(std::string id, keeper::sandbox::Plan plan) {
  const keeper::Confine request{.plan = std::move(plan)};
  BERTH_CO_TRY(const std::optional<keeper::Confined> confined,
               co_await keepers_.ask<keeper::Confined>(id, request, KeeperLink::usual_limit,
                                                       Keepers::IfNone::start));
  if (!confined) {
    co_return fail(Errc::sandbox_setup_failed, keepers_.name_of(id) + ": its keeper has ended");
  }
  co_return *confined;
}

keeper::sandbox::Plan Linux::plan_for(const Wanted& wanted, const RootLayers& root) const {
  keeper::sandbox::Plan plan = plan_of(wanted.config, root);
  plan.binds = binds_;
  if (wanted.home) {
    plan.binds.push_back({.source = *wanted.home,
                          .target = std::string{agent_home_inside},
                          .access = keeper::sandbox::Access::writable});
  }
  return plan;
}

Task<Linux::Made> Linux::confine(std::string id, Wanted wanted) {
  const LinuxConfig& config = wanted.config;
  BERTH_CO_TRY(RootLayers root, co_await hold_image(id, config));
  BERTH_CO_TRY(keeper::Confined confined, co_await confine_keeper(id, plan_for(wanted, root)));
  fault_point("linux.confined");
  BERTH_CO_DO(check_ways_out(config, confined));
  BERTH_CO_DO(expect_limits_in_force(config, confined));
  if (!is_minimal(confined)) BERTH_CO_DO(begin_way_out(id, config));
  co_return Made{.confined = std::move(confined),
                 .root = std::move(root),
                 .has_home = wanted.home.has_value()};
}

Task<Linux::Made> Linux::take(std::string id, Wanted wanted) {
  const LinuxConfig config = wanted.config;
  BERTH_CO_TRY(RootLayers root, co_await hold_image(id, config));
  BERTH_CO_TRY(std::optional<keeper::Confined> spare,
               co_await take_spare(id, plan_for(wanted, root)));
  if (!spare) co_return co_await make(std::move(id), std::move(wanted));
  Result<> opened = expect_limits_in_force(config, *spare);
  if (opened && !is_minimal(*spare)) opened = begin_way_out(id, config);
  if (opened) co_return Made{.confined = *std::move(spare), .root = std::move(root)};
  if (opened.error().code != Errc::cancelled) co_await remove(id);
  co_return std::unexpected(opened.error());
}

Task<std::optional<PoolCustomer>> Linux::pool_customer(bj::object config) {
  BERTH_CO_TRY(LinuxConfig wanted, read_linux_config(config));
  const PoolRequest pool = pool_request_of(wanted);
  if (pool.size == 0) co_return std::nullopt;
  BERTH_CO_TRY(const RootLayers root, co_await offload(keepers_.pool(), [images = images_, wanted] {
                 return images.layers_for(wanted);
               }));
  keeper::sandbox::Plan plan = plan_for(Wanted{.config = wanted}, root);
  SpareOrder order{.config = std::move(wanted), .plan = std::move(plan)};
  co_return PoolCustomer{.order = std::move(order), .request = pool};
}

Task<images::Removed> Linux::collect_images(images::Spared spared) {
  const auto collect = [images = images_, spared]() -> Result<images::Removed> {
    images::Removed removed;
    BERTH_DO(images.with_stores(
        [&](const images::ImageStore& store, const images::TemplateStore& templates) -> Result<> {
          BERTH_TRY(const std::uint64_t drafts, templates.gc());
          BERTH_TRY(removed, store.gc(spared));
          removed.drafts += drafts;
          return {};
        }));
    return removed;
  };
  co_return co_await offload(keepers_.pool(), collect);
}

Task<> Linux::note_images(std::vector<images::EnvironmentImage> named) {
  co_return co_await offload(keepers_.pool(), [images = images_, named = std::move(named)] {
    return images.note_environments(named);
  });
}

// Empty also if the spare's keeper has died meanwhile.
Task<std::optional<keeper::Confined>> Linux::take_spare(std::string id,
                                                        keeper::sandbox::Plan plan) {
  std::optional<SpareSandbox> spare = spares_.take(plan);
  if (!spare) co_return std::nullopt;
  // Released before the old name disappears, by which a later server would find it. The image
  // already has its new holder.
  co_await offload(keepers_.pool(),
                   [images = images_, old = spare->id] { return images.release(old); });
  Result<> taken = co_await keepers_.rename(spare->id, id);
  const std::string& where = taken ? id : spare->id;
  fault_point("linux.spare_taken");
  if (taken) taken = co_await keepers_.renew(id, keeper::limits::first_deadline_ms);
  if (taken) co_return std::move(spare->confined);
  if (taken.error().code == Errc::cancelled) co_return std::unexpected(taken.error());
  log::warn("sandbox.spare_lost", {{"sandbox", spare->id}, {"error", taken.error().message}});
  co_await keepers_.remove(where);
  co_return std::nullopt;
}

Task<keeper::Confined> Linux::make_spare(std::string id, SpareOrder order,
                                         std::chrono::milliseconds lifetime) {
  BERTH_CO_TRY(const RootLayers root, co_await hold_image(id, order.config));
  Result<keeper::Confined> confined =
      fail(Errc::conflict, "image " + *order.config.image + " is another one by now");
  if (plan_for(Wanted{.config = order.config}, root) == order.plan) {
    confined = co_await confine_keeper(id, order.plan);
  }
  if (confined) {
    const Result<> renewed = co_await keepers_.renew(id, lifetime.count());
    if (!renewed) confined = std::unexpected(renewed.error());
  }
  if (!confined && confined.error().code != Errc::cancelled) co_await remove(id);
  co_return confined;
}

// A partly made sandbox is removed, so that a refusal leaves nothing behind.
Task<Linux::Made> Linux::make(std::string id, Wanted wanted) {
  const std::string image = only_host_of(wanted.config);
  Result<Made> made = co_await confine(id, std::move(wanted));
  if (made || made.error().code == Errc::cancelled) co_return made;
  const Result<> removed = co_await remove(id, image);
  if (!removed) {
    log::warn("sandbox.not_removed", {{"sandbox", id}, {"error", removed.error().message}});
  }
  co_return made;
}

Result<> Linux::begin_way_out(const std::string& id, const LinuxConfig& config) {
  if (egress_gateway_ == nullptr) return {};
  const keepers::KeptFolder folder = keepers_.folder_of(id);
  return egress_gateway_->begin({.id = id,
                                 .keeper_folder = folder.keeper(),
                                 .log_path = folder.path + egress_file,
                                 .config = config});
}

Task<> Linux::open_way_out(std::string id, LinuxConfig config) {
  BERTH_CO_DO(begin_way_out(id, config));
  co_return egress_gateway_ != nullptr ? co_await egress_gateway_->wait(std::move(id)) : Result<>{};
}

Task<Linux::WayOut> Linux::restore_way_out(const PlaceRef& lease) {
  const std::string id = folder_id_of(lease);
  const LinuxLease facts = linux_lease(lease.metadata);
  if (egress_gateway_ == nullptr || !facts.box.empty()) co_return WayOut::open;
  // For a new sandbox it is opened in parallel with the rest; no command starts without it.
  if (egress_gateway_->has(id)) {
    BERTH_CO_DO(co_await egress_gateway_->wait(id));
    co_return WayOut::open;
  }
  BERTH_CO_TRY(LinuxConfig config, read_config(facts, lease));
  const Result<> opened = co_await open_way_out(id, std::move(config));
  const Errc code = opened ? Errc::cancelled : opened.error().code;
  if (code == Errc::cancelled || code == Errc::keeper_unreachable) co_return WayOut::open;
  log::warn("sandbox.no_way_out", {{"sandbox", id}, {"error", opened.error().message}});
  co_return WayOut::shut;
}

Task<> Linux::close() {
  BERTH_CO_DO(co_await spares_.stop());
  if (egress_gateway_ != nullptr) BERTH_CO_DO(co_await egress_gateway_->close_all());
  co_return co_await keepers_.close();
}

Task<> Linux::remove(std::string id, std::string image) {
  if (egress_gateway_ != nullptr) BERTH_CO_DO(co_await egress_gateway_->close(id));
  BERTH_CO_DO(co_await keepers_.remove(id));
  if (image == images::host_name) co_return Result<>{};
  co_return co_await offload(keepers_.pool(),
                             [images = images_, id] { return images.release(id); });
}

Task<Acquired> Linux::acquire(const AcquireRequest& request) {
  const bj::object& config = request.lease.config;
  if (request.reusable_id && is_true_in(config, "reuseLease")) {
    BERTH_CO_TRY(std::optional<Acquired> resumed, co_await resume(config, *request.reusable_id));
    if (resumed) co_return *std::move(resumed);
  }
  co_return co_await make_lease(request.lease);
}

Task<Acquired> Linux::make_lease(const PlaceRef& request) {
  BERTH_CO_TRY(LinuxConfig config, read_linux_config(request.config));
  const std::string id = folder_id_of(request);
  // A folder has one keeper in its life, so what an earlier attempt left is removed first.
  if (is_there(keepers_.folder_of(id).path)) {
    BERTH_CO_DO(co_await remove(id, only_host_of(config)));
  }
  BERTH_CO_TRY(const auto home, co_await home_folder(request.home_id));
  BERTH_CO_TRY(const Made made,
               co_await take_with_home(id, Wanted{.config = config, .home = home}));
  const std::string box = is_minimal(made.confined) ? box_of(keepers_.folder_of(id)) : "";
  Acquired lease{.provider = std::string{core::linux_provider},
                 .provider_lease_id = id,
                 .metadata = metadata_of(config, made.root, made.confined, box)};
  if (made.has_home) {
    lease.metadata["agentHome"] = agent_home_inside;
    const std::string own_home = user_of(config, made.root).home;
    if (!made.root.layers.empty()) BERTH_CO_DO(co_await seed_home(id, *request.home_id, own_home));
  }
  // It is read only when a sandbox is resumed.
  if (!config.reuse_lease.value_or(false)) co_return lease;
  const std::string file = keepers_.folder_of(id).path + facts_file;
  BERTH_CO_DO(co_await offload(keepers_.pool(), [file, text = encode_text(lease.metadata)] {
    // Not synced: after a power cut the sandbox does not exist any more either.
    return keeper::Draft{file}.publish(text);
  }));
  co_return lease;
}

Task<std::optional<Acquired>> Linux::resume(bj::object config, std::string provider_lease_id) {
  BERTH_CO_TRY(LinuxConfig wanted, read_linux_config(config));
  // A stored id was ours before, but only a valid key names a folder.
  BERTH_CO_TRY(const core::SandboxId key, core::SandboxId::parse(provider_lease_id));
  const std::string& id = key.str();
  const std::string file = keepers_.folder_of(id).path + facts_file;
  const Result<bj::object> facts =
      co_await offload(keepers_.pool(), [file]() -> Result<bj::object> {
        BERTH_TRY(const std::string text, read_file(file, facts_bytes_max));
        return decode_text<bj::object>(text);
      });
  const Result<> renewed = co_await keepers_.renew(id, keeper::limits::first_deadline_ms);
  // Nothing should have run since it was emptied, but the next lease must not rely on that.
  const Result<> is_alone = co_await end_all_inside(id);
  if (!is_alone && is_alone.error().code == Errc::cancelled) {
    co_return std::unexpected(is_alone.error());
  }
  // An incomplete sandbox is of no use; a new one replaces it.
  if (!facts || !renewed || !is_alone) {
    const Result<> removed = co_await remove(id, only_host_of(wanted));
    if (!removed) {
      log::warn("sandbox.not_removed", {{"sandbox", id}, {"error", removed.error().message}});
    }
    co_return std::optional<Acquired>{};
  }
  BERTH_CO_DO(co_await open_way_out(id, wanted));
  // Egress that the previous lease was granted does not apply to this one.
  if (egress_gateway_ != nullptr) BERTH_CO_DO(egress_gateway_->change(id, wanted));
  Acquired lease{.provider = std::string{core::linux_provider},
                 .provider_lease_id = id,
                 .metadata = *facts,
                 .resumed = true};
  lease.metadata["resumedLease"] = true;
  co_return std::optional{std::move(lease)};
}

Task<> Linux::release(const PlaceRef& lease, core::LeaseEvent how) {
  const bj::object config = config_of(lease);
  BERTH_CO_DO(check_config_is_for(core::linux_provider, config));
  const std::string id = folder_id_of(lease);
  const bool is_orderly = how == core::LeaseEvent::release_succeeded;
  if (!is_orderly || !read_loosely<core::SandboxFields>(config).reuse_lease) {
    co_return co_await remove(id, image_in(config));
  }
  const Result<> emptied = co_await empty(id);
  if (emptied || emptied.error().code == Errc::cancelled) co_return emptied;
  // A sandbox that cannot be emptied is not reused; the next lease finds it missing and gets a new
  // one.
  log::warn("sandbox.not_emptied", {{"sandbox", id}, {"error", emptied.error().message}});
  co_return co_await remove(id, image_in(config));
}

Task<> Linux::destroy(const PlaceRef& lease) {
  const bj::object config = config_of(lease);
  BERTH_CO_DO(check_config_is_for(core::linux_provider, config));
  co_return co_await remove(folder_id_of(lease), image_in(config));
}

Task<> Linux::run_inside(std::string id, std::vector<std::string> argv) {
  const keeper::Exec exec{.exec_id = "own-" + make_uuid(random_, clock_.now()),
                          .argv = std::move(argv),
                          .environment = {"PATH=" + std::string{usual_path}},
                          .cwd = "/",
                          .deadline_ms = 20'000};
  const std::string what = exec.argv.front();
  BERTH_CO_TRY(const std::optional<keeper::Started> started,
               co_await keepers_.ask<keeper::Started>(id, exec));
  BERTH_CO_TRY(const std::optional<keeper::Ended> ended,
               co_await keepers_.ask<keeper::Ended>(id, keeper::Wait{.exec_id = exec.exec_id}));
  const bool succeeded =
      started && ended && ended->outcome == keeper::Outcome::exited && ended->code == 0;
  if (succeeded) co_return Result<>{};
  co_return fail(Errc::command_failed,
                 keepers_.name_of(id) + ": the command " + what + " has failed in it");
}

Task<std::vector<PlaceKey>> Linux::held() {
  BERTH_CO_DO(co_await offload(keepers_.pool(), end_what_killed_keepers_held));
  BERTH_CO_TRY(const std::vector<std::string> names, co_await keepers_.held());
  std::vector<PlaceKey> sandboxes;
  for (const std::string& name : names) {
    if (probes_.contains(name) || spares_.holds(name)) continue;
    if (Result<core::SandboxId> id = core::SandboxId::parse(name)) {
      sandboxes.emplace_back(*std::move(id));
    }
  }
  co_return sandboxes;
}

Task<Workspace> Linux::realize(const PlaceRef& lease, const std::optional<std::string>& wanted) {
  const LinuxLease facts = linux_lease(lease.metadata);
  BERTH_CO_TRY(const LinuxConfig config, read_config(facts, lease));
  const std::string box = facts.box;
  std::string cwd = facts.cwd();
  if (wanted) {
    const std::string folder = keepers_.folder_of(folder_id_of(lease)).keeper();
    // A caller that has read the box path in the lease may use it too.
    const bool is_named = !box.empty() && wanted->starts_with(box + "/");
    const std::string inside = is_named ? wanted->substr(box.size()) : *wanted;
    BERTH_CO_DO(co_await offload(
        keepers_.pool(), [folder, inside] { return expect_folder_inside(folder, inside); }));
    cwd = box + inside;
  }
  const std::string own_home = facts.user_for(config).home;
  const std::optional<std::string> agent_home = facts.agent_home;
  std::string path{usual_path};
  for (const std::string& entry : facts.image_environment) {
    if (entry.starts_with("PATH=")) path = entry.substr(5);
  }
  // Programs that an image or template installed for its user are also found from the agent's home.
  if (agent_home) path = own_home + "/.local/bin:" + path;
  const bool has_way_out = egress_gateway_ != nullptr && box.empty();
  co_return Workspace{.cwd = std::move(cwd),
                      .home = agent_home.value_or(own_home),
                      .path = std::move(path),
                      .scratch = box + "/tmp",
                      .api_url = has_way_out ? egress_gateway_->api_url(config) : std::nullopt};
}

Task<Started> Linux::start(const PlaceRef& lease, const Command& command) {
  BERTH_CO_DO(co_await restore_way_out(lease));
  const LinuxLease facts = linux_lease(lease.metadata);
  BERTH_CO_TRY(const LinuxConfig config, read_config(facts, lease));
  keepers::PlaceRules rules{.environment = facts.image_environment};
  if (egress_gateway_ != nullptr && config.egress) {
    for (std::string& entry : EgressGateway::environment())
      rules.environment.push_back(std::move(entry));
  }
  if (config.output_mb) rules.output_bytes_max = *config.output_mb << 20;
  // Never starts a keeper: a new one would run the command outside the sandbox.
  co_return co_await keepers_.start(folder_id_of(lease), command, Keepers::IfNone::tell,
                                    std::move(rules));
}

Task<Ended> Linux::follow(const PlaceRef& lease, const std::string& exec_id, std::uint64_t offset,
                          OutputTaker& taker) {
  BERTH_CO_TRY(const WayOut way_out, co_await restore_way_out(lease));
  // The reason names paths of this machine, so it is only in the log.
  if (way_out == WayOut::shut) {
    BERTH_CO_DO(co_await taker.warned(
        "The sandbox has lost its egress and its way to this server's API, because they could not "
        "be restored after a restart of the server; the command continues without them"));
  }
  co_return co_await keepers_.follow(folder_id_of(lease), exec_id, offset, taker);
}

Task<> Linux::send(const PlaceRef& lease, const std::string& exec_id, Input input) {
  return keepers_.send(folder_id_of(lease), exec_id, std::move(input));
}

Task<> Linux::cancel(const PlaceRef& lease, const std::string& exec_id, std::int64_t grace_ms) {
  return keepers_.cancel(folder_id_of(lease), exec_id, grace_ms);
}

Task<> Linux::forget_output(const PlaceRef& lease, const std::string& exec_id) {
  return keepers_.forget_output(folder_id_of(lease), exec_id);
}

Task<> Linux::renew(const PlaceRef& lease, std::int64_t deadline_ms) {
  return keepers_.renew(folder_id_of(lease), deadline_ms);
}

Task<Usage> Linux::usage(const PlaceRef& lease) {
  return keepers_.usage(folder_id_of(lease));
}

Task<std::vector<std::uint16_t>> Linux::listening(const PlaceRef& lease) {
  BERTH_CO_TRY(const LinuxConfig config, read_linux_config(config_of(lease)));
  // Any process of the machine may be listening there.
  if (config.network == core::LinuxNetwork::host) co_return lacks(Lack::open_ports, lease);
  co_return co_await offload(
      keepers_.pool(),
      [folder = keepers_.folder_of(folder_id_of(lease)).keeper()] { return ports_inside(folder); });
}

Task<FileRoot> Linux::files(const PlaceRef& lease) {
  const LinuxLease facts = linux_lease(lease.metadata);
  BERTH_CO_TRY(const LinuxConfig config, read_config(facts, lease));
  const std::string folder = keepers_.folder_of(folder_id_of(lease)).keeper();
  BERTH_CO_TRY(FileRoot root,
               co_await offload(keepers_.pool(), [folder, user = facts.user_for(config)] {
                 return files_inside(folder, user);
               }));
  const auto cwd = facts.cwd();
  root.workdir = cwd.substr(facts.box.size());
  co_return root;
}

Task<Fd> Linux::dial(const PlaceRef& lease, std::uint16_t port) {
  BERTH_CO_TRY(const LinuxConfig config, read_linux_config(config_of(lease)));
  if (config.network == core::LinuxNetwork::host) {
    co_return fail(Errc::execution_unsupported,
                   lease.key.name() + ": its sandbox shares the network of this " +
                       "machine, so port " + std::to_string(port) + " is the machine's own",
                   "leave `network: host` out of the environment's config");
  }
  const std::string folder = keepers_.folder_of(folder_id_of(lease)).keeper();
  co_return co_await dial_inside(keepers_.pool(), folder, port);
}

Task<> Linux::set_egress(const PlaceRef& lease, core::LinuxEgress policy) {
  const LinuxLease facts = linux_lease(lease.metadata);
  BERTH_CO_TRY(LinuxConfig config, read_config(facts, lease));
  const bool has_box = !facts.box.empty();
  if (egress_gateway_ == nullptr || has_box || config.network == core::LinuxNetwork::host) {
    co_return lacks(Lack::egress, lease);
  }
  config.egress = std::move(policy);
  BERTH_CO_DO(co_await open_way_out(folder_id_of(lease), config));
  co_return egress_gateway_->change(folder_id_of(lease), config);
}

Task<EgressPage> Linux::egress_log(const PlaceRef& lease, std::uint64_t offset) {
  const std::string file = keepers_.folder_of(folder_id_of(lease)).path + egress_file;
  if (egress_gateway_ != nullptr) egress_gateway_->flush(folder_id_of(lease));
  co_return co_await offload(keepers_.pool(), [file, offset] { return read_log(file, offset); });
}

}  // namespace berth::places
