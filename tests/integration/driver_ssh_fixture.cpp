#include "integration/driver_ssh_fixture.hpp"

#include "base/files.hpp"

#include <csignal>
#include <filesystem>

namespace berth::drivers {

Task<> Collected::take(std::span<const OutputPiece> pieces) {
  for (const OutputPiece& piece : pieces) {
    EXPECT_EQ(piece.offset, next_offset) << "a piece was lost or came twice";
    next_offset = piece.next_offset;
    if (piece.kind == OutputKind::out) out += piece.bytes;
    if (piece.kind == OutputKind::err) err += piece.bytes;
  }
  co_return on_batch();
}

void SshTest::SetUp() {
  const std::string missing = tests::PrivateSshd::missing();
  if (!missing.empty()) GTEST_SKIP() << missing;
  std::signal(SIGPIPE, SIG_IGN);
  sshd_ = std::make_unique<tests::PrivateSshd>();
}

void SshTest::TearDown() {
  if (driver_) close();
}

void SshTest::use_sshd(std::vector<std::string> settings) {
  sshd_ = std::make_unique<tests::PrivateSshd>(std::move(settings));
}

ssh::Options SshTest::options() const {
  ssh::Options options;
  options.keeper_program = BERTH_KEEPER;
  options.control_root = control_root();
  return options;
}

void SshTest::make_driver(ssh::Options options) {
  auto made = Ssh::open(loop_.get_executor(), clock_, std::move(options));
  ASSERT_TRUE(made) << made.error().message;
  driver_ = *std::move(made);
}

LeaseFacts SshTest::lease() {
  LeaseFacts facts{.lease_id = core::LeaseId::make(random_, clock_.now()),
                   .company_id = core::CompanyId::make(random_, clock_.now()),
                   .run_id = core::RunId::make(random_, clock_.now())};
  facts.config = {
      {"host", "127.0.0.1"},
      {"port", sshd_->port()},
      {"username", sshd_->user()},
      {"remoteWorkspacePath", sshd_->workspace()},
      {"privateKey", nullptr},
      {"privateKeySecretRef", bj::object{{"type", "secret_ref"},
                                         {"secretId", "3f2504e0-4f89-41d3-9a0c-0305e82c3301"},
                                         {"version", "latest"}}},
      {"knownHosts", sshd_->known_hosts()},
      {"strictHostKeyChecking", true}};
  facts.secrets.emplace("privateKeySecretRef", Secret{sshd_->private_key()});
  return facts;
}

LeaseFacts SshTest::acquired() {
  LeaseFacts facts = lease();
  AcquireRequest request{.lease = facts.clone()};
  const auto result = wait(driver().acquire(request));
  EXPECT_TRUE(result) << result.error().message;
  if (!result) return facts;
  facts.metadata = result->metadata;
  facts.provider_lease_id = result->provider_lease_id;
  return facts;
}

Command SshTest::shell(std::string script, std::string exec_id) {
  Command command{
      .exec_id = std::move(exec_id), .argv = {"/bin/sh", "-c", std::move(script)}, .cwd = "/"};
  command.environment.emplace("PATH", Secret{"/usr/local/bin:/usr/bin:/bin"});
  return command;
}

Command SshTest::command(const LeaseFacts& lease, std::string script, std::string exec_id) {
  Command made = shell(std::move(script), std::move(exec_id));
  made.cwd = lease.metadata.at("remoteCwd").as_string();
  return made;
}

Ended SshTest::run(const LeaseFacts& lease, const Command& command, Collected& output) {
  const auto started = wait(driver().start(lease, command));
  EXPECT_TRUE(started) << name_of(started.error().code) << ": " << started.error().message;
  if (!started) return {};
  const auto ended = wait(driver().follow(lease, command.exec_id, output.next_offset, output));
  EXPECT_TRUE(ended) << name_of(ended.error().code) << ": " << ended.error().message;
  return ended.value_or(Ended{});
}

std::string SshTest::lease_folder(const LeaseFacts& lease) const {
  return sshd_->workspace() + "/.berth/leases/" + lease.lease_id.str();
}

void SshTest::close() {
  const auto closed = wait(driver().close());
  EXPECT_TRUE(closed) << closed.error().message;
  driver_.reset();
  EXPECT_TRUE(tests::processes_with(control_root()).empty()) << "an ssh process is left";
  const auto left = names_in(control_root());
  EXPECT_TRUE(!left || left->empty()) << "a socket, key or folder is left in " << control_root();
}

bool SshTest::run_loop_until(const std::function<bool()>& is_so, std::chrono::milliseconds limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  while (!is_so()) {
    if (std::chrono::steady_clock::now() >= until) return false;
    if (loop_.stopped()) loop_.restart();
    loop_.run_one_for(20ms);
  }
  return true;
}

}  // namespace berth::drivers
