#include "fake/fake.hpp"

#include "base/files.hpp"
#include "base/json/peek.hpp"

#include <cmath>

namespace berth::fake {
namespace {

constexpr std::string_view blanks = " \t\r\n\v\f";
constexpr std::string_view setup_scheme = "fake-plugin-setup://";

std::string_view trimmed(std::string_view text) {
  const std::size_t from = text.find_first_not_of(blanks);
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(blanks) - from + 1);
}

std::optional<std::string> text_at(const std::optional<bj::object>& object, std::string_view key) {
  auto text = peek<std::string>(object, key);
  return text && !text->empty() ? std::move(text) : std::nullopt;
}

sdk::ConnectionSummary summary() {
  return {.type = "ssh", .username = "fake", .command_redacted = true};
}

sdk::ConnectionPayload payload() {
  return {.type = "ssh", .command = "ssh fake@[placeholder]", .token = "[placeholder]"};
}

// The name of a template: that of its setup session, or of the run whose sandbox it was.
std::string source_of(std::string_view lease_id) {
  if (lease_id.starts_with(setup_scheme)) {
    return std::string{lease_id.substr(lease_id.rfind('/') + 1)};
  }
  lease_id.remove_prefix(std::min(lease_id.size(), provider_key.size() + 3));  // and its "://"
  return std::string{lease_id.substr(0, lease_id.find('/'))};
}

// What is executed: the command and its arguments, without a shell.
std::vector<std::string> argv_of(const sdk::Execute& request) {
  std::vector<std::string> argv{request.command};
  if (request.args) argv.insert(argv.end(), request.args->begin(), request.args->end());
  return argv;
}

// Every given variable, and a PATH if none was given.
std::vector<std::string> environment_of(const sdk::Execute& request) {
  std::map<std::string, std::string> variables =
      request.env.value_or(std::map<std::string, std::string>{});
  variables.try_emplace("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin");
  std::vector<std::string> out;
  for (const auto& [name, value] : variables) out.push_back(name + "=" + value);
  return out;
}

std::string command_line_of(const sdk::Execute& request) {
  std::string line;
  for (const std::string& word : argv_of(request)) line += (line.empty() ? "" : " ") + word;
  return line;
}

// Where the command starts: the caller's folder, or the sandbox's workspace.
std::string cwd_of(const sdk::Execute& request) {
  if (request.cwd && !request.cwd->empty()) return *request.cwd;
  return text_at(request.lease.metadata, "remoteCwd").value_or("/");
}

}  // namespace

sdk::Notes<Config> Config::notes() {
  return {{&Config::image, {.title = "Image", .says = "A label; every sandbox is the same."}},
          {&Config::timeout_ms,
           {.title = "Time limit",
            .says = "Ends commands that have no limit of their own; 0 is none.",
            .unit = "ms"}},
          {&Config::reuse_lease,
           {.title = "Keep the sandbox", .says = "One sandbox per environment, kept on release."}}};
}

sdk::About Fake::about() {
  return {.id = "berth.fake-plugin",
          .version = "0.1.0",
          .display_name = "Fake sandbox provider",
          .description =
              "Runs real commands in a temporary folder of this machine, isolated from "
              "nothing. For tests and for trying things out.",
          .author = "Berth",
          .driver_key = std::string{provider_key},
          .driver = {{"interactiveSetupConnectionTypes", bj::array{"ssh"}},
                     {"templateRefKind", "provider_template"},
                     {"templateConfigBinding", bj::object{{"field", "image"}}},
                     {"sandboxCapabilities",
                      bj::object{{"reusableLeases", true}, {"incrementalSessionOutput", true}}}}};
}

Result<Config> Fake::read_config(const bj::object& given) {
  const Config usual;
  auto config = read_loosely<Config>(given);
  config.image = std::string{trimmed(config.image)};
  if (config.image.empty()) config.image = usual.image;
  if (!std::isfinite(config.timeout_ms)) config.timeout_ms = usual.timeout_ms;
  return config;
}

Result<sdk::Probed> Fake::probe(sdk::Call& /*call*/, const Config& config,
                                const sdk::Probe& /*request*/) {
  bj::object facts = sdk::shown_config(config);
  facts["provider"] = provider_key;
  return sdk::Probed{.summary = "Fake sandbox provider is ready for image " + config.image + ".",
                     .metadata = std::move(facts)};
}

Result<sdk::Lease> Fake::lease_of(const Config& config, const std::string& id) {
  BERTH_TRY(const SandboxFolder folder, SandboxFolder::of_lease(id));
  BERTH_TRY(const SandboxFolder::Made made, folder.make());
  return sdk::Lease{
      .provider_lease_id = id,
      .metadata = bj::object{{"provider", provider_key},
                             {"image", config.image},
                             {"reuseLease", config.reuse_lease},
                             {"remoteCwd", folder.workspace()},
                             {"fakeRootDir", folder.path()},
                             {"resumedLease", made == SandboxFolder::Made::was_there}}};
}

// The id is derived from the request: a host that has lost the response retries, and gets the same
// sandbox instead of a second one.
Result<sdk::Lease> Fake::acquire_lease(sdk::Call& /*call*/, const Config& config,
                                       const sdk::AcquireLease& request) {
  const std::string path =
      config.reuse_lease ? request.environment_id : request.run_id + "/" + request.environment_id;
  return lease_of(config, std::string{provider_key} + "://" + path);
}

Result<sdk::Lease> Fake::resume_lease(sdk::Call& /*call*/, const Config& config,
                                      const sdk::ResumeLease& request) {
  BERTH_TRY(sdk::Lease lease, lease_of(config, request.provider_lease_id));
  (*lease.metadata)["resumedLease"] = true;
  return lease;
}

Result<> Fake::release_lease(sdk::Call& call, const Config& config, const sdk::EndLease& request) {
  if (config.reuse_lease) return {};
  return destroy_lease(call, config, request);
}

Result<> Fake::destroy_lease(sdk::Call& /*call*/, const Config& /*config*/,
                             const sdk::EndLease& request) {
  if (!request.provider_lease_id || request.provider_lease_id->empty()) return {};
  BERTH_TRY(const SandboxFolder folder, SandboxFolder::of_lease(*request.provider_lease_id));
  return folder.remove();
}

Result<sdk::Workspace> Fake::realize_workspace(sdk::Call& /*call*/, const Config& /*config*/,
                                               const sdk::RealizeWorkspace& request) {
  std::optional<std::string> cwd;
  if (request.lease.provider_lease_id && !request.lease.provider_lease_id->empty()) {
    BERTH_TRY(const SandboxFolder folder,
              SandboxFolder::of_lease(*request.lease.provider_lease_id));
    if (folder.is_there()) cwd = folder.workspace();
  }
  if (!cwd) cwd = text_at(request.lease.metadata, "remoteCwd");
  if (!cwd) cwd = request.workspace.remote_path;
  if (!cwd) cwd = request.workspace.local_path;
  if (!cwd || !cwd->starts_with('/')) {
    return fail(Errc::workspace_realization_failed,
                "neither the lease nor the workspace names an absolute folder");
  }
  BERTH_DO(make_directories(*cwd, 0700));
  return sdk::Workspace{.cwd = *cwd,
                        .metadata = bj::object{{"provider", provider_key}, {"remoteCwd", *cwd}}};
}

Result<sdk::Executed> Fake::execute(sdk::Call& call, const Config& config,
                                    const sdk::Execute& request) {
  HeldCommand command{.argv = argv_of(request),
                      .environment = environment_of(request),
                      .cwd = cwd_of(request),
                      .stdin_bytes = request.stdin_,
                      .timeout_ms = request.timeout_ms.value_or(config.timeout_ms)};
  if (request.lease.provider_lease_id && !request.lease.provider_lease_id->empty()) {
    BERTH_TRY(const SandboxFolder folder,
              SandboxFolder::of_lease(*request.lease.provider_lease_id));
    if (folder.is_there()) {
      BERTH_DO(make_directories(folder.workspace(), 0700));
      command.keepers_folder = folder.keepers();
    }
  }
  const std::string started_at = to_iso8601(clock_.now());
  BERTH_TRY(sdk::Executed executed, commands_.run(command, call));
  if (!executed.metadata) executed.metadata.emplace();
  (*executed.metadata)["startedAt"] = started_at;
  (*executed.metadata)["commandLine"] = command_line_of(request);
  return executed;
}

Result<sdk::Setup> Fake::start_setup(sdk::Call& /*call*/, const Config& /*config*/,
                                     const sdk::StartSetup& request) {
  const std::string id =
      std::string{setup_scheme} + request.environment_id + "/" + request.session_id;
  const std::lock_guard lock{lock_};
  setups_[id] = "waiting_for_user";
  return sdk::Setup{.provider_lease_id = id,
                    .status = "waiting_for_user",
                    .connection_summary = summary(),
                    .connection_payload = payload(),
                    .expires_at = request.expires_at,
                    .metadata = bj::object{{"provider", provider_key}}};
}

std::string Fake::setup_status(const std::string& id) {
  const std::lock_guard lock{lock_};
  const auto found = setups_.find(id);
  return found == setups_.end() ? "missing" : found->second;
}

Result<sdk::Setup> Fake::get_setup(sdk::Call& /*call*/, const Config& /*config*/,
                                   const sdk::GetSetup& request) {
  sdk::Setup setup{.provider_lease_id = request.provider_lease_id,
                   .status = setup_status(request.provider_lease_id),
                   .metadata = bj::object{{"provider", provider_key}}};
  if (setup.status != "waiting_for_user") return setup;
  setup.connection_summary = summary();
  if (request.include_connection_payload.value_or(false)) setup.connection_payload = payload();
  return setup;
}

Result<sdk::Template> Fake::capture_template(sdk::Call& /*call*/, const Config& /*config*/,
                                             const sdk::CaptureTemplate& request) {
  const std::string& id = request.provider_lease_id;
  if (id.starts_with(setup_scheme)) {
    if (setup_status(id) != "waiting_for_user") {
      return fail(Errc::setup_session_not_found, id + ": no such setup session is open",
                  "start the interactive setup again");
    }
    const std::lock_guard lock{lock_};
    setups_[id] = "promoted";
  } else {
    BERTH_TRY(const SandboxFolder folder, SandboxFolder::of_lease(id));
    if (!folder.is_there()) return fail(Errc::sandbox_not_found, id + ": there is no such sandbox");
  }
  return sdk::Template{
      .template_ref = "fake-template:" + request.environment_id + ":" + source_of(id),
      .template_kind = "provider_template",
      .metadata = bj::object{{"provider", provider_key}}};
}

Result<sdk::SetupEnded> Fake::cancel_setup(sdk::Call& /*call*/, const Config& /*config*/,
                                           const sdk::CancelSetup& request) {
  const std::lock_guard lock{lock_};
  return sdk::SetupEnded{.status = setups_.erase(request.provider_lease_id) > 0 ? "cancelled"
                                                                                : "missing"};
}

Result<sdk::TemplateDeleted> Fake::delete_template(sdk::Call& /*call*/, const Config& /*config*/,
                                                   const sdk::DeleteTemplate& request) {
  return sdk::TemplateDeleted{.deleted = request.template_ref.starts_with("fake-template:")};
}

}  // namespace berth::fake
