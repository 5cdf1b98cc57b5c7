#include "integration/plugin_fixture.hpp"

#include "base/files.hpp"

#include <boost/json/parse.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>

namespace berth::plugin_test {

using namespace std::chrono_literals;

Task<bj::value> Services::answer(RequestScope scope, std::string method, bj::object /*params*/) {
  asked.push_back(method + " " + (scope.company_id ? scope.company_id->str() : "-"));
  if (method == "state.set") co_return fail(Errc::conflict, "state is read only here");
  co_return bj::object{{"answered", method}};
}

Task<std::vector<CompanyConfig>> Services::configs(core::PluginId /*plugin*/) {
  co_return stored;
}

void Services::log(const core::PluginId& /*plugin*/, PluginLogLine line) {
  lines.push_back(std::move(line));
}

void Services::state_changed(const core::PluginId& /*plugin*/, WorkerState state,
                             StateReason reason) {
  states.push_back(state);
  if (!reason.sentence.empty()) last_reason = std::move(reason.sentence);
  if (!reason.worker_said.empty()) last_words = std::move(reason.worker_said);
}

bool Services::has_log(std::string_view part) const {
  return std::ranges::any_of(
      lines, [&](const PluginLogLine& line) { return line.message.contains(part); });
}

PluginTest::PluginTest()
    : id_(core::PluginId::make(random_, clock_.now())),
      company_(*core::CompanyId::parse(company_text)) {}

void PluginTest::SetUp() {
  ::signal(SIGPIPE, SIG_IGN);  // as the server does
  // A worker is another user, who must be able to read its own package.
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0755), 0);
  std::filesystem::create_directory(folder_.file("package"));
  std::filesystem::copy_file(BERTH_PLUGIN_WORKERS "/provider.py",
                             folder_.file("package/worker.py"));
  ASSERT_EQ(::chmod(folder_.file("package/worker.py").c_str(), 0755), 0);
  // Its files are inside the test's own folder too, and are removed with it. The test and the
  // worker both use it, as an operator's folder.
  std::filesystem::create_directory(folder_.file("work"));
  ASSERT_EQ(::chmod(folder_.file("work").c_str(), 0777), 0);
  config_.shared_folders = {folder_.file("work")};
  config_.files_folder = folder_.file("files");
  const char* path = std::getenv("PATH");
  config_.keeper_program = BERTH_KEEPER;
  config_.folder = folder_.file("execs");
  config_.exchange_folder = folder_.file("exchange");
  config_.environment = {{"PATH", path == nullptr ? "/usr/bin:/bin" : path},
                         {"OPENAI_API_KEY", "passed-through"},
                         {"E2B_API_KEY", "of-another"},
                         {"HOME", "/root"}};
  config_.back_off = {.first = 1ms, .longest = 20ms, .crashes_max = 3, .healthy_after = 60s};
  config_.stop_times = {.shutdown = 2s, .exit = 500ms, .terminate = 5s, .kill = 5s};
}

void PluginTest::TearDown() {
  if (!host_) return;
  const Result<> closed = await(host_->close());
  EXPECT_TRUE(closed) << closed.error().message;
  host_.reset();
}

Manifest PluginTest::manifest(const std::string& options) {
  bj::value document = bj::parse(R"({
    "id": "test.boxes", "apiVersion": 1, "version": "1.0.0", "displayName": "Boxes",
    "author": "Tests", "categories": ["connector"],
    "capabilities": ["environment.drivers.register", "plugin.state.read"],
    "entrypoints": {"worker": "worker.py"},
    "environmentDrivers": [{"driverKey": "boxes", "kind": "sandbox_provider",
      "displayName": "Boxes", "configSchema": {"type": "object"},
      "supportsInteractiveSetup": true, "supportsTemplateCapture": true,
      "supportsTemplateDelete": true, "supportsLoginPty": true,
      "templateConfigBinding": {"field": "image", "unsetFields": ["size"]},
      "sandboxCapabilities": {"reusableLeases": true, "duplexCommandStream": true}}]
  })");
  document.as_object()["description"] = "Boxes of the tests " + options;
  if (options.contains("declares=nothing")) {
    bj::object& driver = document.at("environmentDrivers").at(0).as_object();
    for (const char* key : {"supportsInteractiveSetup", "supportsTemplateCapture",
                            "supportsTemplateDelete", "supportsLoginPty", "sandboxCapabilities"}) {
      driver.erase(key);
    }
  }
  Result<Manifest> read = parse_manifest(document);
  EXPECT_TRUE(read) << read.error().message;
  return *std::move(read);
}

InstalledPlugin PluginTest::plugin(const std::string& options) {
  return {.id = id_,
          .manifest = manifest(options + " root=" + folder_.file("work")),
          .package = {.folder = folder_.file("package"), .name = "boxes"}};
}

WorkerCommand PluginTest::command_of(const Manifest& manifest) {
  const Package package{.folder = folder_.file("package"), .name = "boxes"};
  Result<WorkerCommand> command = worker_command(manifest, package, id_.str(), config_.environment);
  EXPECT_TRUE(command) << command.error().message;
  return *std::move(command);
}

Launching PluginTest::launching() const {
  Launching out{.keeper_program = BERTH_KEEPER};
  if (::geteuid() == 0) out.user = WorkerUser{.uid = 61'399, .gid = 61'399};
  return out;
}

void PluginTest::open_host() {
  host_ = std::make_unique<Host>(loop_.get_executor(), config_, services_, clock_, random_);
}

void PluginTest::start(const std::string& options) {
  if (!host_) open_host();
  const Result<> started = await(host_->start(plugin(options)));
  ASSERT_TRUE(started) << started.error().message;
}

CallResult PluginTest::call(std::string method, bj::object params) {
  std::optional<CallResult> answer;
  PluginCall made{.method = std::move(method), .params = std::move(params)};
  asio::co_spawn(loop_, host_->call(id_, std::move(made)),
                 [&](std::exception_ptr thrown, CallResult result) {
                   if (thrown) std::rethrow_exception(thrown);
                   answer = std::move(result);
                 });
  run_until([&] { return answer.has_value(); });
  if (!answer) return std::unexpected(CallFailure{.message = "the call did not end in time"});
  return *std::move(answer);
}

bool PluginTest::run_until(const std::function<bool()>& holds) {
  const auto end = std::chrono::steady_clock::now() + 60s;
  loop_.restart();
  bool held = holds();
  while (!held && std::chrono::steady_clock::now() < end) {
    if (loop_.run_one_for(50ms) == 0) loop_.restart();
    held = holds();
  }
  return held;
}

bool PluginTest::state_becomes(WorkerState state) {
  return run_until([&] {
    const auto status = host_->status(id_);
    return status && status->state == state;
  });
}

}  // namespace berth::plugin_test
