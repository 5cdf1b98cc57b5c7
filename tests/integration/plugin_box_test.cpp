#include "integration/plugin_fixture.hpp"

#include "base/files.hpp"
#include "keeper/holder/process_tree.hpp"
#include "keeper/sandbox/landlock.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>

// A worker that attacks, in the box of each kind of server.
namespace berth::plugin_test {
namespace {

// Who runs the server, and what the machine lets that server create.
enum class Kind { by_root, by_ordinary_user, without_namespaces };
constexpr uid_t ordinary_user = 54'321;

std::string name_of(const testing::TestParamInfo<Kind>& info) {
  switch (info.param) {
    case Kind::by_root: return "ByRoot";
    case Kind::by_ordinary_user: return "ByOrdinaryUser";
    case Kind::without_namespaces: break;
  }
  return "WithoutNamespaces";
}

bool has(const keeper::BoxReport& box, std::string_view feature) {
  return std::ranges::find(box.features, feature) != box.features.end();
}

Fd listen_on(int family, const sockaddr* address, socklen_t size) {
  Fd made{::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  EXPECT_EQ(::bind(made.get(), address, size), 0) << std::strerror(errno);
  EXPECT_EQ(::listen(made.get(), 8), 0);
  return made;
}

// What an attacker looks for, with permissions for all users: only the box protects it.
class Bait {
 public:
  explicit Bait(const std::string& folder) : home_(folder + "/home"), other_(folder + "/files/o") {
    for (const std::string& path : {home_, other_}) std::filesystem::create_directories(path);
    for (const std::string& file : {home_ + "/master.key", home_ + "/berth.db", folder + "/bait"}) {
      std::ofstream{file} << "secret";
      EXPECT_EQ(::chmod(file.c_str(), 0666), 0);
    }
    EXPECT_EQ(::chmod(home_.c_str(), 0777), 0);
    EXPECT_EQ(::chmod((folder + "/files").c_str(), 0755), 0);
    sockaddr_in loopback{};
    loopback.sin_family = AF_INET;
    loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    api_ = listen_on(AF_INET, reinterpret_cast<sockaddr*>(&loopback), sizeof loopback);
    socklen_t size = sizeof loopback;
    ::getsockname(api_.get(), reinterpret_cast<sockaddr*>(&loopback), &size);
    port_ = ntohs(loopback.sin_port);
    path_socket_ = listen_unix(folder + "/socket", 0);
    ::chmod((folder + "/socket").c_str(), 0777);
    abstract_socket_ = listen_unix("berth-bait-" + std::to_string(::getpid()), 1);
  }
  bj::object params(const std::string& folder, const std::string& mine, bool strong) const {
    return {{"home", home_},
            {"other", other_},
            {"bait", folder + "/bait"},
            {"server", ::getpid()},
            {"port", port_},
            {"socket", folder + "/socket"},
            {"abstract", "berth-bait-" + std::to_string(::getpid())},
            {"mine", mine},
            {"strong", strong}};
  }

 private:
  static Fd listen_unix(const std::string& name, std::size_t zeros) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    name.copy(address.sun_path + zeros, sizeof address.sun_path - zeros);
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + zeros + name.size());
    return listen_on(AF_UNIX, reinterpret_cast<sockaddr*>(&address), size);
  }

  std::string home_;
  std::string other_;
  Fd api_;
  Fd path_socket_;
  Fd abstract_socket_;
  std::uint16_t port_ = 0;
};

class PluginBoxTest : public PluginTest, public testing::WithParamInterface<Kind> {
 protected:
  void SetUp() override {
    if (::geteuid() != 0 && GetParam() != Kind::by_ordinary_user) GTEST_SKIP() << "needs root";
    if (GetParam() == Kind::without_namespaces && keeper::sandbox::landlock_version() == 0) {
      GTEST_SKIP() << "this kernel has no Landlock";
    }
    PluginTest::SetUp();
    std::filesystem::copy_file(BERTH_PLUGIN_WORKERS "/hostile.py",
                               folder_.file("package/worker.py"),
                               std::filesystem::copy_options::overwrite_existing);
    config_.shared_folders.clear();
    config_.home = folder_.file("home");
    if (GetParam() != Kind::by_root) become_ordinary();
    bait_ = std::make_unique<Bait>(folder_.path());
    open_host();
    const Result<> started = await(host_->start(plugin()));
    ASSERT_TRUE(started) << started.error().message;
  }
  // The keeper is started as another user, like that user's server would.
  void become_ordinary() {
    if (::geteuid() != 0) return;
    std::ofstream script{folder_.file("keeper")};
    script << "#!/bin/sh\nexec setpriv --reuid 54321 --regid 54321 --clear-groups ";
    if (GetParam() == Kind::without_namespaces) {
      // In a user namespace that cannot create more.
      script << "unshare --user --map-user=54321 --map-group=54321 --keep-caps sh -c '"
                "echo 0 > /proc/sys/user/max_user_namespaces || exit 99; "
                "exec setpriv --inh-caps=-all --ambient-caps=-all -- \"$0\" \"$@\"' ";
    }
    script << BERTH_KEEPER << " \"$@\"\n";
    script.close();
    ASSERT_EQ(::chmod(folder_.file("keeper").c_str(), 0755), 0);
    config_.keeper_program = folder_.file("keeper");
    config_.first_user = ordinary_user;
    config_.users_max = 1;
  }
  std::string mine() const { return config_.files_folder + "/" + id_.str(); }
  bool is_strong() const { return host_->status(id_)->box.level == keeper::BoxLevel::strong; }

  std::unique_ptr<Bait> bait_;
};

TEST_P(PluginBoxTest, LeavesNothingOpenToAHostileWorker) {
  const CallResult report = call("attack", bait_->params(folder_.path(), mine(), is_strong()));
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_GE(report->as_object().size(), 20U);
  for (const auto& [attempt, outcome] : report->as_object()) {
    // Without namespaces the process table is the machine's; the label reports that.
    if (!is_strong() && attempt == "processes of others") continue;
    EXPECT_FALSE(std::string_view{outcome.as_string()}.starts_with("OPEN"))
        << attempt << ": " << outcome;
  }
  EXPECT_EQ(host_->status(id_)->state, WorkerState::running);
}

TEST_P(PluginBoxTest, HoldsWhatAWorkerNeeds) {
  const CallResult facts = call("works", bait_->params(folder_.path(), mine(), is_strong()));
  ASSERT_TRUE(facts) << facts.error().message;
  EXPECT_EQ(facts->at("shell"), "from a shell\n");
  EXPECT_EQ(facts->at("cwd"), bj::string(folder_.file("package")));
  const std::string_view status = facts->at("status").as_string();
  EXPECT_TRUE(status.contains("NoNewPrivs:\t1")) << status;
  EXPECT_TRUE(status.contains("Seccomp:\t2")) << status;
  EXPECT_TRUE(status.contains("CapEff:\t0000000000000000")) << status;
  EXPECT_TRUE(std::filesystem::exists(mine() + "/kept"));
  EXPECT_TRUE(std::filesystem::exists(mine() + "/tmp/scratch"));
  // Its files are available to its next worker, and to no other.
  ASSERT_TRUE(await(host_->stop(id_)));
  ASSERT_TRUE(await(host_->start(plugin())));
  EXPECT_TRUE(call("works", bait_->params(folder_.path(), mine(), is_strong())));
}

TEST_P(PluginBoxTest, IsLabelledWithItsStrengthAndWithWhatIsMissing) {
  const auto status = host_->status(id_);
  ASSERT_TRUE(status);
  const keeper::BoxReport& box = status->box;
  const bool has_namespaces = GetParam() != Kind::without_namespaces;
  EXPECT_EQ(box.level, has_namespaces ? keeper::BoxLevel::strong : keeper::BoxLevel::weak);
  EXPECT_EQ(has(box, "network-namespace"), has_namespaces);
  EXPECT_TRUE(has(box, "seccomp"));
  const auto is_uid = [](const keeper::Missing& missing) { return missing.feature == "uid-range"; };
  EXPECT_EQ(std::ranges::any_of(box.missing, is_uid), GetParam() != Kind::by_root);
}

INSTANTIATE_TEST_SUITE_P(Servers, PluginBoxTest,
                         testing::Values(Kind::by_root, Kind::by_ordinary_user,
                                         Kind::without_namespaces),
                         name_of);

TEST_P(PluginBoxTest, EndsWithItsKeeper) {
  const auto status = host_->status(id_);
  ASSERT_TRUE(status && status->pid);
  const auto keeper_pid = static_cast<pid_t>(*status->pid);
  const std::vector<pid_t> all = keeper::descendants_of(keeper_pid);
  ASSERT_FALSE(all.empty());
  ASSERT_EQ(::kill(keeper_pid, SIGKILL), 0);
  const auto is_alive = [](pid_t pid) {
    const auto stat = keeper::process_stat(pid);
    return stat && stat->state != 'Z';
  };
  EXPECT_TRUE(run_until([&] { return std::ranges::none_of(all, is_alive); }));
}

// Takes the sockets of boxes, and keeps them.
class DoorKeeper final : public WayOut {
 public:
  std::vector<std::uint16_t> ports() const override { return {443}; }
  Result<> open(Request request) override {
    sockets = std::move(request.sockets);
    return {};
  }
  Result<> change(const core::PluginId& /*plugin*/, std::vector<std::string> /*allow*/) override {
    return {};
  }
  Task<> close(core::PluginId /*plugin*/) override {
    sockets = {};
    co_return Result<>{};
  }
  std::vector<bj::object> decisions(const core::PluginId& /*plugin*/,
                                    std::size_t /*count*/) const override {
    return {};
  }

  keeper::PluginSockets sockets;
};

class PluginDoorTest : public PluginTest {
 protected:
  void TearDown() override {
    PluginTest::TearDown();
    host_.reset();
  }
  // The worker connects, and the gateway reports which address it has connected to.
  CallResult reach(const char* address) {
    std::optional<CallResult> answer;
    PluginCall made{.method = "reach", .params = {{"address", address}, {"port", 443}}};
    asio::co_spawn(loop_, host_->call(id_, std::move(made)),
                   [&](std::exception_ptr, CallResult result) { answer = std::move(result); });
    Fd accepted;
    run_until([&] {
      accepted = Fd{::accept4(way_out_.sockets.doors[0].listener.get(), nullptr, nullptr, 0)};
      return accepted || answer;
    });
    sockaddr_in meant{};
    socklen_t size = sizeof meant;
    if (accepted) ::getsockname(accepted.get(), reinterpret_cast<sockaddr*>(&meant), &size);
    std::array<char, INET_ADDRSTRLEN> text{};
    ::inet_ntop(AF_INET, &meant.sin_addr, text.data(), text.size());
    (void)!::write(accepted.get(), text.data(), std::strlen(text.data()));
    run_until([&] { return answer.has_value(); });
    return answer ? *std::move(answer) : std::unexpected(CallFailure{});
  }

  DoorKeeper way_out_;
};

TEST_F(PluginDoorTest, GivesTheServerTheConnectionsOfTheWorkerWithTheAddressesItMeant) {
  std::filesystem::copy_file(BERTH_PLUGIN_WORKERS "/hostile.py", folder_.file("package/worker.py"),
                             std::filesystem::copy_options::overwrite_existing);
  config_.way_out = &way_out_;
  start();
  if (host_->status(id_)->box.level != keeper::BoxLevel::strong) {
    GTEST_SKIP() << "no namespaces can be made here";
  }
  ASSERT_TRUE(way_out_.sockets.names_udp && way_out_.sockets.proxy);
  ASSERT_EQ(way_out_.sockets.doors.size(), 1U);
  EXPECT_EQ(way_out_.sockets.doors[0].port, 443);
  // An address that represents a name, and one that the worker knows itself.
  for (const char* address : {"198.18.7.9", "203.0.113.5"}) {
    const CallResult answer = reach(address);
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->at("heard"), bj::string(address));
    EXPECT_EQ(answer->at("proxy"), "http://127.0.0.1:3128");
    EXPECT_EQ(answer->at("servers"), "nameserver 127.0.0.1\n");
  }
}

class PluginBoxDemandTest : public PluginTest {};

TEST_F(PluginBoxDemandTest, RefusesAWorkerWhoseBoxWouldBeTooWeak) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  std::ofstream{folder_.file("keeper")}
      << "#!/bin/sh\nexec setpriv --reuid 54321 --regid 54321 --clear-groups unshare --user "
         "--map-user=54321 --map-group=54321 --keep-caps sh -c '"
         "echo 0 > /proc/sys/user/max_user_namespaces || exit 99; "
         "exec setpriv --inh-caps=-all --ambient-caps=-all -- \"$0\" \"$@\"' "
      << BERTH_KEEPER << " \"$@\"\n";
  ASSERT_EQ(::chmod(folder_.file("keeper").c_str(), 0755), 0);
  config_.keeper_program = folder_.file("keeper");
  config_.first_user = ordinary_user;
  config_.users_max = 1;
  config_.least_isolation = keeper::BoxLevel::strong;
  open_host();
  const Result<> started = await(host_->start(plugin()));
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, Errc::isolation_too_weak) << started.error().message;
  EXPECT_TRUE(started.error().remedy.contains("max_user_namespaces")) << started.error().remedy;
}

}  // namespace
}  // namespace berth::plugin_test
