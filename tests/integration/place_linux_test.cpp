#include "base/clock.hpp"
#include "base/files.hpp"
#include "integration/place_contract.hpp"
#include "keeper/holder/process_tree.hpp"
#include "keeper/protocol/state_folder.hpp"
#include "keeper/sandbox/cgroup/cgroup.hpp"
#include "places/linux/linux.hpp"
#include "support/temporary_folder.hpp"

#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

// The contract over the provider `linux`, and that provider's further
// guarantees.
namespace berth::place_test {
namespace {

using namespace places;

// A process's pid in the innermost of its pid namespaces.
pid_t own_pid_of(pid_t pid) {
  std::ifstream status{"/proc/" + std::to_string(pid) + "/status"};
  std::string line;
  while (std::getline(status, line)) {
    if (!line.starts_with("NSpid:")) continue;
    return static_cast<pid_t>(
        std::strtol(line.c_str() + line.find_last_of("\t ") + 1, nullptr, 10));
  }
  return 0;
}

class LinuxGround final : public Ground {
 public:
  std::unique_ptr<Place> make_place(asio::any_io_executor executor,
                                    asio::thread_pool& pool) override {
    auto made = std::make_unique<places::Linux>(
        std::move(executor), pool, random_, clock_,
        places::LinuxOptions{.state_root = root(),
                             .keeper_program = BERTH_KEEPER,
                             .images_folder = folder_.file("images"),
                             .templates_folder = folder_.file("templates"),
                             .egress_gateway = gateway_ ? &*gateway_ : nullptr});
    provider_ = made.get();
    return made;
  }
  bj::object config() const override { return {{"provider", "linux"}}; }
  std::set<std::string> abilities() const override {
    return {"commands", "egress",    "files", "found by key",  "freezer",
            "ports",    "snapshots", "usage", "on this server"};
  }
  pid_t keeper_of(const PlaceRef& lease) const override {
    const auto found = keeper::look_at_keeper(root() + "/" + lease.key.str() + "/keeper");
    if (!found) return 0;
    keepers_.insert(found->identity.pid);
    return found->identity.pid;
  }
  pid_t pid_here(const PlaceRef& lease, pid_t pid_there) const override {
    for (const pid_t process : keeper::descendants_of(keeper_of(lease))) {
      if (own_pid_of(process) == pid_there) return process;
    }
    return 0;
  }
  // Sandbox folders, visible mounts, and control groups of ended keepers: only those that this test
  // has seen, because other tests run at the same time.
  std::vector<std::string> leftovers() const override {
    std::vector<std::string> left = names_in(root()).value_or(std::vector<std::string>{});
    std::ifstream mounts{"/proc/self/mountinfo"};
    std::string line;
    while (std::getline(mounts, line)) {
      if (line.contains(root())) left.push_back(line);
    }
    for (std::string& group : find_leftovers(keeper::sandbox::detect_layout())) {
      const auto made_it = [&](pid_t pid) {
        return group.contains("." + std::to_string(pid) + "-");
      };
      if (std::ranges::any_of(keepers_, made_it)) left.push_back(std::move(group));
    }
    return left;
  }
  std::string root() const { return folder_.file("sandboxes"); }
  // For the places that are made from now on.
  places::EgressGateway& give_gateway(asio::io_context& loop, asio::thread_pool& pool) {
    return gateway_.emplace(loop, pool, clock_);
  }
  places::Linux& provider() const { return *provider_; }  // the most recent one

 private:
  tests::TemporaryFolder folder_;
  SystemRandom random_;
  SystemClock clock_;
  std::optional<places::EgressGateway> gateway_;
  places::Linux* provider_ = nullptr;
  mutable std::set<pid_t> keepers_;
};

std::unique_ptr<Ground> make_linux_ground() {
  return std::make_unique<LinuxGround>();
}

INSTANTIATE_TEST_SUITE_P(Linux, PlaceContract, testing::Values(&make_linux_ground));
INSTANTIATE_TEST_SUITE_P(Linux, CommandContract, testing::Values(&make_linux_ground));
INSTANTIATE_TEST_SUITE_P(Linux, FilesContract, testing::Values(&make_linux_ground));
INSTANTIATE_TEST_SUITE_P(Linux, UsageContract, testing::Values(&make_linux_ground));
INSTANTIATE_TEST_SUITE_P(Linux, PortsContract, testing::Values(&make_linux_ground));
INSTANTIATE_TEST_SUITE_P(Linux, EgressContract, testing::Values(&make_linux_ground));
INSTANTIATE_TEST_SUITE_P(Linux, SnapshotsContract, testing::Values(&make_linux_ground));
INSTANTIATE_TEST_SUITE_P(Linux, FreezerContract, testing::Values(&make_linux_ground));

class LinuxSandbox : public CommandContract {
 protected:
  const LinuxGround& linux_ground() { return static_cast<const LinuxGround&>(ground()); }
  AcquireRequest request_with(bj::object more) {
    AcquireRequest wanted = request();
    for (const auto& [key, value] : more) wanted.lease.config[key] = value;
    return wanted;
  }
  std::string said_by(const PlaceRef& where, std::string script) {
    Command command = shell(std::move(script));
    const Result<Started> started = await(commands().start(where, command));
    EXPECT_TRUE(started) << started.error().message;
    Collected output;
    const Result<Ended> ended = await(commands().follow(where, command.exec_id, 0, output));
    EXPECT_TRUE(ended) << ended.error().message;
    return output.out + output.err;
  }
  std::string spare_besides(const std::set<std::string>& known) {
    for (std::string& name : names_in(linux_ground().root()).value()) {
      if (!known.contains(name)) return std::move(name);
    }
    return {};
  }
  // Its keeper has a child: the first process of the sandbox.
  bool is_confined(const std::string& id) {
    const auto found = keeper::look_at_keeper(linux_ground().root() + "/" + id + "/keeper");
    return found && !keeper::descendants_of(found->identity.pid).empty();
  }
  PlaceRef acquired(const AcquireRequest& wanted) {
    PlaceRef facts = wanted.lease.clone();
    const Result<Acquired> made = await(place().acquire(wanted));
    EXPECT_TRUE(made) << made.error().message;
    if (made) {
      facts.provider_lease_id = made->provider_lease_id;
      facts.metadata = made->metadata;
    }
    return facts;
  }
};
INSTANTIATE_TEST_SUITE_P(Place, LinuxSandbox, testing::Values(&make_linux_ground));

TEST_P(LinuxSandbox, ALeaseTellsItsIsolationAndTheConfigThatItsTeardownNeeds) {
  const bj::object& metadata = lease().metadata;
  ASSERT_TRUE(metadata.contains("isolation"));
  const bj::object& isolation = metadata.at("isolation").as_object();
  EXPECT_FALSE(isolation.at("level").as_string().empty());
  EXPECT_FALSE(isolation.at("features").as_array().empty());
  EXPECT_TRUE(isolation.contains("missing"));
  EXPECT_TRUE(isolation.contains("remedy"));
  EXPECT_EQ(metadata.at("config").at("provider"), bj::value("linux"));
  PlaceRef changed = lease().clone();
  changed.config = {{"provider", "gone"}};
  EXPECT_TRUE(await(place().release(changed, core::LeaseEvent::release_succeeded)));
  EXPECT_EQ(ground().leftovers(), std::vector<std::string>{});
}

TEST_P(LinuxSandbox, ACommandSeesNeitherOurProcessesNorOurFolders) {
  const std::string processes = said_by(lease(), "ls -d /proc/[0-9]* | wc -l; cat /proc/1/comm");
  EXPECT_LT(std::strtol(processes.c_str(), nullptr, 10), 12) << processes;
  const std::string folder = said_by(lease(), "ls -d " + linux_ground().root() + " 2>&1; id -u");
  EXPECT_TRUE(folder.contains("No such file")) << folder;
  EXPECT_FALSE(folder.ends_with("\n0\n")) << folder;
}

TEST_P(LinuxSandbox, APortOfItsLoopbackIsReachedOverEitherProtocol) {
  const Result<Fd> nobody = await(ports().dial(lease(), 8090));
  ASSERT_FALSE(nobody);
  EXPECT_EQ(nobody.error().code, Errc::port_unreachable);
  EXPECT_FALSE(nobody.error().remedy.empty());
  for (const auto& [family, address] :
       {std::pair{"AF_INET", "127.0.0.1"}, std::pair{"AF_INET6", "::1"}}) {
    const Command listening =
        command({"python3", "-c",
                 std::string{"import socket\ns = socket.create_server(('"} + address +
                     "', 8090), family=socket." + family +
                     ")\nwhile True: s.accept()[0].sendall(b'" + family + "')"});
    ASSERT_TRUE(await(commands().start(lease(), listening)));
    Result<Fd> reached = fail(Errc::port_unreachable, "not tried");
    for (int i = 0; i < 5000 && !reached; ++i) reached = await(ports().dial(lease(), 8090));
    ASSERT_TRUE(reached) << reached.error().message;
    pollfd wanted{reached->get(), POLLIN, 0};
    ASSERT_EQ(::poll(&wanted, 1, 20'000), 1);
    std::string got(16, '\0');
    got.resize(static_cast<std::size_t>(
        std::max<ssize_t>(::recv(reached->get(), got.data(), got.size(), 0), 0)));
    EXPECT_EQ(got, family);
    EXPECT_TRUE(await(commands().cancel(lease(), listening.exec_id, 0)));
  }
}

class Warned final : public OutputTaker {
 public:
  Task<> take(std::span<const OutputPiece> /*pieces*/) override { co_return Result<>{}; }
  Task<> warned(std::string message) override {
    warning = std::move(message);
    co_return Result<>{};
  }
  std::string warning;
};

TEST_P(LinuxSandbox, ACommandWhoseEgressIsNotRestoredAfterARestartSaysSo) {
  // What runs inside has the port of the proxy, so that the next server cannot listen there.
  const Command taking = command({"python3", "-c",
                                  "import socket, time\n"
                                  "s = socket.create_server(('127.0.0.1', 3128))\n"
                                  "time.sleep(600)"});
  ASSERT_TRUE(await(commands().start(lease(), taking)));
  Result<Fd> reached = fail(Errc::port_unreachable, "not tried");
  for (int i = 0; i < 5000 && !reached; ++i) reached = await(ports().dial(lease(), 3128));
  ASSERT_TRUE(reached) << reached.error().message;
  places::EgressGateway& gateway = static_cast<LinuxGround&>(ground()).give_gateway(loop_, pool_);
  restart();
  Warned taker;
  const auto following = begin(commands().follow(lease(), taking.exec_id, 0, taker));
  EXPECT_TRUE(run_until([&] { return !taker.warning.empty(); }, 20s));
  EXPECT_TRUE(taker.warning.contains("lost its egress")) << taker.warning;
  EXPECT_FALSE(taker.warning.contains(linux_ground().root())) << taker.warning;
  EXPECT_TRUE(await(commands().cancel(lease(), taking.exec_id, 0)));
  EXPECT_TRUE(finish(following));
  EXPECT_TRUE(await(gateway.close_all()));
}

TEST_P(LinuxSandbox, WithTheNetworkOfThisMachineNoPortIsReached) {
  const PlaceRef shared = acquired(request_with({{"network", "host"}}));
  const Result<Fd> refused = await(ports().dial(shared, 22));
  EXPECT_TRUE(await(place().destroy(shared)));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::execution_unsupported);
}

TEST_P(LinuxSandbox, AConfigThatAsksForMoreThanIsPossibleIsRefusedAndLeavesNothing) {
  // More open files than most machines let a process have.
  constexpr rlim_t many = 1 << 20;
  rlimit here{};
  ::getrlimit(RLIMIT_NOFILE, &here);
  if (here.rlim_max >= many) GTEST_SKIP() << "a process may have that many open files here";
  const AcquireRequest wanted = request_with({{"openFiles", std::int64_t{many}}});
  const Result<Acquired> refused = await(place().acquire(wanted));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::sandbox_setup_failed) << refused.error().message;
  EXPECT_TRUE(refused.error().message.contains("open files of one process: 1048576 are wanted"));
  EXPECT_TRUE(refused.error().message.contains(std::to_string(here.rlim_max)));
  EXPECT_TRUE(refused.error().remedy.contains("LimitNOFILE")) << refused.error().remedy;
  EXPECT_FALSE(std::filesystem::exists(linux_ground().root() + "/" + wanted.lease.key.str()));
}

TEST_P(LinuxSandbox, AsManyOpenFilesAsTheConfigSaysAreThereForACommand) {
  rlimit here{};
  ::getrlimit(RLIMIT_NOFILE, &here);
  const auto most = static_cast<std::int64_t>(std::min<rlim_t>(here.rlim_max, 1 << 20));
  for (const std::int64_t files : {std::int64_t{64}, most}) {
    const PlaceRef lease = acquired(request_with({{"openFiles", files}}));
    const std::string number = std::to_string(files);
    EXPECT_EQ(said_by(lease, "ulimit -Sn; ulimit -Hn"), number + "\n" + number + "\n");
    EXPECT_TRUE(await(place().destroy(lease)));
  }
}

TEST_P(LinuxSandbox, AnImageThatIsNotThereIsSaidSoAndLeavesNothing) {
  const AcquireRequest wanted = request_with({{"image", "no-such-image"}});
  const Result<Acquired> refused = await(place().acquire(wanted));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::image_not_found) << refused.error().message;
  EXPECT_FALSE(std::filesystem::exists(linux_ground().root() + "/" + wanted.lease.key.str()));
}

TEST_P(LinuxSandbox, AReusableSandboxIsEmptiedHoweverMuchIsInIt) {
  AcquireRequest wanted = request_with({{"reuseLease", true}});
  PlaceRef first = acquired(wanted);
  constexpr auto fill =
      "echo kept > file; cd /tmp; seq -f %0200.0f 15000 | xargs touch; mkdir -p closed/deeper; "
      "touch closed/deeper/.x; ln -s /workspace closed/way; chmod 0 closed/deeper closed";
  EXPECT_EQ(said_by(first, fill), "");
  ASSERT_TRUE(await(place().release(first, core::LeaseEvent::release_succeeded)));
  wanted.reusable_id = first.provider_lease_id;
  const Result<Acquired> resumed = await(place().acquire(wanted));
  ASSERT_TRUE(resumed) << resumed.error().message;
  EXPECT_TRUE(resumed->resumed);
  EXPECT_EQ(said_by(first, "cat file; ls -A /tmp; stat -c %a /tmp"), "kept\n1777\n");
  EXPECT_TRUE(await(place().destroy(first)));
}

TEST_P(LinuxSandbox, AReusableSandboxWaitsEmptyOfProcessesAndTemporaryFiles) {
  AcquireRequest wanted = request_with({{"reuseLease", true}});
  PlaceRef first = acquired(wanted);
  EXPECT_EQ(said_by(first, "echo kept > file; echo gone > /tmp/file; echo gone > /dev/shm/.f"), "");
  Command left = shell("sleep 1000");
  ASSERT_TRUE(await(commands().start(first, left)));
  ASSERT_TRUE(await(place().release(first, core::LeaseEvent::release_succeeded)));
  restart();
  wanted.reusable_id = first.provider_lease_id;
  const Result<Acquired> resumed = await(place().acquire(wanted));
  ASSERT_TRUE(resumed) << resumed.error().message;
  EXPECT_TRUE(resumed->resumed);
  EXPECT_EQ(resumed->provider_lease_id, first.provider_lease_id);
  EXPECT_TRUE(resumed->metadata.contains("isolation"));
  EXPECT_EQ(said_by(first, "cat file; ls -A /tmp /dev/shm; ps ax | grep -c '[s]leep 1000'"),
            "kept\n/dev/shm:\n\n/tmp:\n0\n");
  ASSERT_TRUE(await(place().release(first, core::LeaseEvent::release_failed)));
  EXPECT_FALSE(std::filesystem::exists(linux_ground().root() + "/" + first.key.str()));
  const Result<Acquired> fresh = await(place().acquire(wanted));
  ASSERT_TRUE(fresh) << fresh.error().message;
  EXPECT_FALSE(fresh->resumed);
  EXPECT_EQ(said_by(first, "ls -A"), "");
  EXPECT_TRUE(await(place().destroy(first)));
}

// What a shell, git, npm or the loader of the next run would read by itself.
constexpr auto leave_traps =
    "(h=/home/sandbox; test $(id -u) != 0 || h=/root; "
    "echo mine > file; mkdir -p .git/hooks deep/er; echo hook > .git/hooks/pre-commit; "
    "chmod 500 deep/er deep; "
    "for f in $h/.bashrc $h/.profile $h/.gitconfig $h/.npmrc $h/.local/bin/git "
    "/etc/profile.d/x.sh /etc/ld.so.preload /usr/local/bin/git /var/tmp/x /opt/x /tmp/x /x; do "
    "mkdir -p ${f%/*}; echo trap > $f; done; "
    "echo trap::0:0::/:/bin/sh >> /etc/passwd; chmod 777 /; chmod 000 $h; chmod 555 .) "
    "2>/dev/null; true";
constexpr auto look_for_traps =
    "h=/home/sandbox; test $(id -u) != 0 || h=/root; "
    "cat file .git/hooks/pre-commit; stat -c %a . deep; ls -A $h; "
    "cat /etc/profile.d/x.sh /etc/ld.so.preload /usr/local/bin/git /var/tmp/x /opt/x /tmp/x /x "
    "2>/dev/null; grep trap /etc/passwd; stat -c %a /; echo trap > $h/.bashrc; echo trap > /tmp/x; "
    "echo looked";

TEST_P(LinuxSandbox, OnlyTheWorkspaceOutlivesALeaseInASandboxThatIsReused) {
  for (const char* user : {"user", "root"}) {
    AcquireRequest wanted = request_with({{"reuseLease", true}, {"user", user}});
    PlaceRef lease = acquired(wanted);
    EXPECT_EQ(said_by(lease, leave_traps), "");
    // More than once: the kept part remains the same, and the new part is new each time.
    for (int round = 0; round < 3; ++round) {
      ASSERT_TRUE(await(place().release(lease, core::LeaseEvent::release_succeeded)));
      wanted.reusable_id = lease.provider_lease_id;
      const Result<Acquired> next = await(place().acquire(wanted));
      ASSERT_TRUE(next) << next.error().message;
      EXPECT_TRUE(next->resumed);
      EXPECT_EQ(said_by(lease, look_for_traps), "mine\nhook\n555\n500\n755\nlooked\n") << user;
    }
    EXPECT_TRUE(await(place().destroy(lease)));
  }
}

TEST_P(LinuxSandbox, AWorkspaceThatIsALinkIsNotKept) {
  AcquireRequest wanted = request_with({{"reuseLease", true}, {"user", "root"}});
  PlaceRef lease = acquired(wanted);
  EXPECT_EQ(said_by(lease,
                    "cd /; mkdir /evil; echo trap > /evil/x; rmdir /workspace; "
                    "ln -s /evil /workspace"),
            "");
  ASSERT_TRUE(await(place().release(lease, core::LeaseEvent::release_succeeded)));
  wanted.reusable_id = lease.provider_lease_id;
  ASSERT_TRUE(await(place().acquire(wanted)));
  EXPECT_EQ(said_by(lease, "ls -A /evil /workspace 2>/dev/null; stat -c %F /workspace"),
            "/workspace:\ndirectory\n");
  EXPECT_TRUE(await(place().destroy(lease)));
}

// It outlives its command by ending the process that watches it.
constexpr auto lie_in_wait =
    "(setsid sh -c 'while :; do for p in /proc/[0-9]*; do "
    "tr \"\\0\" \"\\n\" <$p/environ 2>/dev/null | grep ^TOKEN_X >>/workspace/stolen; done; done' "
    ">/dev/null 2>&1 </dev/null &); kill -9 $PPID; sleep 1000";

TEST_P(LinuxSandbox, NobodyOfTheLeaseBeforeIsInASandboxThatIsReused) {
  AcquireRequest wanted = request_with({{"reuseLease", true}});
  PlaceRef first = acquired(wanted);
  Command hostile = shell(lie_in_wait);
  ASSERT_TRUE(await(commands().start(first, hostile)));
  Collected output;
  const Result<Ended> ended = await(commands().follow(first, hostile.exec_id, 0, output));
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ(ended->outcome, Outcome::lost);
  ASSERT_TRUE(await(place().release(first, core::LeaseEvent::release_succeeded)));

  wanted.reusable_id = first.provider_lease_id;
  const Result<Acquired> next = await(place().acquire(wanted));
  ASSERT_TRUE(next) << next.error().message;
  EXPECT_FALSE(next->resumed) << "a sandbox in which a command was lost is not used again";
  Command secret = shell("sleep 0.5; cat stolen 2>/dev/null; set -- /proc/[0-9]*; echo $#");
  secret.environment.insert_or_assign("TOKEN_X", Secret{"of-the-next-run"});
  ASSERT_TRUE(await(commands().start(first, secret)));
  Collected said;
  ASSERT_TRUE(await(commands().follow(first, secret.exec_id, 0, said)));
  // Pid 1, the warden and the shell.
  EXPECT_EQ(said.out, "3\n");
  EXPECT_TRUE(await(place().destroy(first)));
}

TEST_P(LinuxSandbox, ASandboxThatWasMadeAheadIsTakenByTheNextLeaseAndByNoOther) {
  const bj::object pooled{{"poolSize", 1}};
  const auto folders = [&] { return names_in(linux_ground().root())->size(); };
  auto customer = await(linux_ground().provider().pool_customer(request_with(pooled).lease.config));
  ASSERT_TRUE(customer && *customer);
  linux_ground().provider().serve_pools({**std::move(customer)});
  // The lease of the suite, and the one that is created in advance.
  ASSERT_TRUE(run_until([&] { return folders() == 2; }));
  const std::string spare = spare_besides({lease().key.str()});
  ASSERT_TRUE(run_until([&] { return is_confined(spare); }));
  const auto held = await(place().held());
  ASSERT_TRUE(held) << held.error().message;
  EXPECT_EQ(held->size(), 1U) << "what is ready belongs to nobody yet, and is nobody's to sweep";

  // Only the pool knows whether it is ready already; then it is the one that is taken.
  const auto is_taken = [&] {
    return !std::filesystem::exists(linux_ground().root() + "/" + spare);
  };
  std::vector<PlaceRef> leases;
  while (!is_taken() && leases.size() < 20) leases.push_back(acquired(request_with(pooled)));
  EXPECT_TRUE(is_taken());
  EXPECT_EQ(said_by(leases.back(), "echo $(whoami)@$(hostname); ls -A"), "sandbox@sandbox\n");
  for (const PlaceRef& facts : leases) {
    EXPECT_TRUE(await(place().release(facts, core::LeaseEvent::release_succeeded)));
  }
  restart();  // which removes the ready ones
  EXPECT_EQ(names_in(linux_ground().root()), std::vector{lease().key.str()});
}

TEST_P(LinuxSandbox, WhatThisMachineHoldsIsNamed) {
  const auto held = await(place().held());
  ASSERT_TRUE(held) << held.error().message;
  ASSERT_EQ(held->size(), 1U);
  ASSERT_TRUE(held->front().sandbox());
  EXPECT_EQ(held->front().str(), lease().key.str());
}

}  // namespace
}  // namespace berth::place_test
