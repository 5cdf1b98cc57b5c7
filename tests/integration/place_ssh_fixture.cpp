#include "integration/place_ssh_fixture.hpp"

#include "base/files.hpp"
#include "keeper/protocol/state_folder.hpp"

namespace berth::place_test {

using namespace places;

SshGround::SshGround() : SshGround(std::vector<std::string>{}) {}

SshGround::SshGround(std::vector<std::string> sshd_settings) : sshd_(std::move(sshd_settings)) {
  options.keeper_program = BERTH_KEEPER;
  options.control_root = control_root();
}

std::unique_ptr<Place> SshGround::make_place(asio::any_io_executor executor,
                                             asio::thread_pool& /*pool*/) {
  auto made = Ssh::open(executor, clock_, names, options);
  EXPECT_TRUE(made) << made.error().message;
  return made ? *std::move(made) : nullptr;
}

bj::object SshGround::config() const {
  return {{"host", "127.0.0.1"},
          {"port", sshd_.port()},
          {"username", sshd_.user()},
          {"remoteWorkspacePath", sshd_.workspace()},
          {"privateKey", nullptr},
          {"privateKeySecretRef", bj::object{{"type", "secret_ref"},
                                             {"secretId", "3f2504e0-4f89-41d3-9a0c-0305e82c3301"},
                                             {"version", "latest"}}},
          {"knownHosts", sshd_.known_hosts()},
          {"strictHostKeyChecking", true}};
}

void SshGround::add_secrets(PlaceRef& lease) const {
  lease.secrets.insert_or_assign("privateKeySecretRef", Secret{sshd_.private_key()});
  lease.private_addresses = PrivateAddresses::reachable;
}

pid_t SshGround::keeper_of(const PlaceRef& lease) const {
  const auto found = keeper::look_at_keeper(berth_folder() + "/leases/" + lease.key.str());
  return found ? found->identity.pid : 0;
}

std::vector<std::string> SshGround::leftovers() const {
  return names_in(berth_folder()).value_or(std::vector<std::string>{});
}

std::vector<std::string> SshGround::keepers() const {
  return names_in(sshd_.home() + "/.cache/berth").value_or(std::vector<std::string>{});
}

std::unique_ptr<Ground> make_ssh_ground() {
  return std::make_unique<SshGround>();
}

std::unique_ptr<Ground> make_shell_place() {
  auto place = std::make_unique<SshGround>();
  place->options.supervision = ssh::Supervision::shell;
  return place;
}

std::vector<GroundMaker> places_if_there_is_an_sshd(GroundMaker maker) {
  if (!tests::PrivateSshd::missing().empty()) return {};
  return {maker};
}

void SshTest::TearDown() {
  const std::string root = ssh_ground().control_root();
  EXPECT_TRUE(await(place().close()));
  EXPECT_EQ(tests::processes_with(root), std::vector<pid_t>{}) << "an ssh process is left";
  EXPECT_TRUE(run_until([&] { return loop_.stopped(); })) << "a task of the place is left";
  PlaceContract::TearDown();
  EXPECT_EQ(names_in(root).value_or(std::vector<std::string>{}), std::vector<std::string>{});
}

void SshTest::use(ssh::Options options) {
  ssh_ground().options = std::move(options);
  restart();
}

Command SshTest::shell(std::string script, std::string exec_id) {
  Command command{.exec_id = std::move(exec_id),
                  .argv = {"sh", "-c", std::move(script)},
                  .cwd = sshd().workspace(),
                  .grace_ms = 200};
  command.environment.emplace("PATH", Secret{"/usr/local/bin:/usr/bin:/bin"});
  return command;
}

Ended SshTest::run(const PlaceRef& lease, const Command& command, Collected& output) {
  const auto started = await(commands().start(lease, command));
  EXPECT_TRUE(started) << name_of(started.error().code) << ": " << started.error().message;
  if (!started) return {};
  const auto ended = await(commands().follow(lease, command.exec_id, 0, output));
  EXPECT_TRUE(ended) << name_of(ended.error().code) << ": " << ended.error().message;
  EXPECT_FALSE(output.has_gaps);
  return ended.value_or(Ended{});
}

void SshTest::release(const PlaceRef& lease) {
  const auto released = await(place().release(lease, core::LeaseEvent::release_succeeded));
  EXPECT_TRUE(released) << released.error().message;
  EXPECT_EQ(ground().leftovers(), std::vector<std::string>{});
}

Error SshTest::refusal(const AcquireRequest& request) {
  const Result<Acquired> acquired = await(place().acquire(request));
  EXPECT_FALSE(acquired);
  if (acquired) return {};
  EXPECT_FALSE(acquired.error().remedy.empty()) << acquired.error().message;
  return acquired.error();
}

}  // namespace berth::place_test
