#pragma once

#include "base/clock.hpp"
#include "fake/held_command.hpp"
#include "fake/sandbox_folder.hpp"
#include "sdk/about.hpp"
#include "sdk/call.hpp"
#include "sdk/config_form.hpp"
#include "sdk/values.hpp"

#include <map>
#include <mutex>
#include <string>

// `fake-plugin`: a provider whose sandboxes are folders on this machine and whose commands really
// run there. It does not isolate anything. It exists so that everything around a provider can be
// tested with a real one, on any machine, without an account.
namespace berth::fake {

inline constexpr std::string_view provider_key = "fake-plugin";

struct Config {
  std::string image = "fake:latest";
  double timeout_ms = 300'000;
  bool reuse_lease = false;

  static sdk::Notes<Config> notes();
};
BOOST_DESCRIBE_STRUCT(Config, (), (image, timeout_ms, reuse_lease))

// A sandbox's files are found from its lease id alone, so that a worker that was killed finds
// everything again. Only setup sessions, which hold nothing, live in memory.
class Fake {
 public:
  using Config = fake::Config;

  static sdk::About about();
  // Tolerant: a value of the wrong type is replaced by the default.
  static Result<Config> read_config(const bj::object& given);

  Result<sdk::Probed> probe(sdk::Call& call, const Config& config, const sdk::Probe& request);
  Result<sdk::Lease> acquire_lease(sdk::Call& call, const Config& config,
                                   const sdk::AcquireLease& request);
  Result<sdk::Lease> resume_lease(sdk::Call& call, const Config& config,
                                  const sdk::ResumeLease& request);
  Result<> release_lease(sdk::Call& call, const Config& config, const sdk::EndLease& request);
  Result<> destroy_lease(sdk::Call& call, const Config& config, const sdk::EndLease& request);
  Result<sdk::Workspace> realize_workspace(sdk::Call& call, const Config& config,
                                           const sdk::RealizeWorkspace& request);
  Result<sdk::Executed> execute(sdk::Call& call, const Config& config, const sdk::Execute& request);

  Result<sdk::Setup> start_setup(sdk::Call& call, const Config& config,
                                 const sdk::StartSetup& request);
  Result<sdk::Setup> get_setup(sdk::Call& call, const Config& config, const sdk::GetSetup& request);
  Result<sdk::Template> capture_template(sdk::Call& call, const Config& config,
                                         const sdk::CaptureTemplate& request);
  Result<sdk::SetupEnded> cancel_setup(sdk::Call& call, const Config& config,
                                       const sdk::CancelSetup& request);
  Result<sdk::TemplateDeleted> delete_template(sdk::Call& call, const Config& config,
                                               const sdk::DeleteTemplate& request);

  // Ends the commands that still run.
  void closing() { commands_.stop_all(); }

 private:
  Result<sdk::Lease> lease_of(const Config& config, const std::string& id);
  std::string setup_status(const std::string& id);

  SystemClock clock_;
  HeldCommands commands_;
  std::mutex lock_;
  std::map<std::string, std::string> setups_;  // status by id
};

}  // namespace berth::fake
