#pragma once

#include "base/clock.hpp"
#include "places/remote/remote_place.hpp"
#include "support/temporary_folder.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

// Plugins whose worker is a small test program, under the real host and keeper.
namespace berth::plugin_test {

using namespace plugins;

inline constexpr const char* company_text = "11111111-1111-4111-8111-111111111111";

// What the host reported and was asked.
class Services final : public HostServices {
 public:
  bool has(std::string_view method) const override {
    return method == "config.get" || method == "state.get" || method == "state.set";
  }
  Task<bj::value> answer(RequestScope scope, std::string method, bj::object params) override;
  Task<std::vector<CompanyConfig>> configs(core::PluginId plugin) override;
  void log(const core::PluginId& plugin, PluginLogLine line) override;
  void state_changed(const core::PluginId& plugin, WorkerState state, StateReason reason) override;

  bool has_log(std::string_view part) const;

  std::vector<std::string> asked;
  std::vector<PluginLogLine> lines;
  std::vector<WorkerState> states;
  std::string last_reason;  // the sentence
  std::string last_words;   // of the worker
  std::vector<CompanyConfig> stored;
};

class PluginTest : public ::testing::Test {
 protected:
  PluginTest();
  void SetUp() override;
  void TearDown() override;

  // Options are words such as "dialect=a start=die", which the worker reads from its manifest.
  static Manifest manifest(const std::string& options = "");
  InstalledPlugin plugin(const std::string& options = "");
  void open_host();
  void start(const std::string& options = "");
  WorkerCommand command_of(const Manifest& manifest);
  Launching launching() const;

  template <class T>
  Result<T> await(Task<T> task) {
    std::optional<Result<T>> answer;
    asio::co_spawn(loop_, std::move(task), [&](std::exception_ptr thrown, Result<T> result) {
      if (thrown) std::rethrow_exception(thrown);
      answer = std::move(result);
    });
    run_until([&] { return answer.has_value(); });
    if (!answer) return fail(Errc::bug, "the task did not end in time");
    return *std::move(answer);
  }
  CallResult call(std::string method, bj::object params = {});
  bool run_until(const std::function<bool()>& holds);
  bool state_becomes(WorkerState state);

  asio::io_context loop_;
  SystemClock clock_;
  SystemRandom random_;
  tests::TemporaryFolder folder_;
  Services services_;
  HostConfig config_;
  std::unique_ptr<Host> host_;
  core::PluginId id_;
  core::CompanyId company_;
};

}  // namespace berth::plugin_test
