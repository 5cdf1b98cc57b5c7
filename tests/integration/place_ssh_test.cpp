#include "base/digest.hpp"
#include "base/files.hpp"
#include "integration/place_ssh_fixture.hpp"
#include "support/loopback_server.hpp"

#include <sys/mount.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>

namespace berth::place_test {
namespace {

using namespace places;

INSTANTIATE_TEST_SUITE_P(Ssh, PlaceContract,
                         testing::ValuesIn(places_if_there_is_an_sshd(&make_ssh_ground)));
INSTANTIATE_TEST_SUITE_P(Ssh, CommandContract,
                         testing::ValuesIn(places_if_there_is_an_sshd(&make_ssh_ground)));
INSTANTIATE_TEST_SUITE_P(Ssh, SshTest,
                         testing::ValuesIn(places_if_there_is_an_sshd(&make_ssh_ground)));

TEST(SshTests, HaveAnSshd) {
  const std::string missing = tests::PrivateSshd::missing();
  if (!missing.empty()) GTEST_SKIP() << missing;
}

// A listener that accepts connections and never sends anything.
class Silence {
 public:
  Silence() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(socket_.get(), 16), 0);
    ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
  }
  int port() const { return port_; }

 private:
  Fd socket_;
  int port_ = 0;
};

TEST_P(SshTest, ALeaseSaysWhereItIs) {
  const PlaceRef lease = new_lease();
  const std::string at = sshd().user() + "@127.0.0.1:" + std::to_string(sshd().port());
  EXPECT_EQ(lease.provider_lease_id, "ssh://" + at + sshd().workspace());
  const auto text = [&](const char* key) {
    return std::string{lease.metadata.at(key).as_string()};
  };
  EXPECT_EQ(text("host"), "127.0.0.1");
  EXPECT_EQ(lease.metadata.at("port").as_int64(), sshd().port());
  EXPECT_EQ(text("username"), sshd().user());
  EXPECT_EQ(text("remoteWorkspacePath"), sshd().workspace());
  EXPECT_EQ(text("remoteCwd"), sshd().workspace());
  EXPECT_EQ(text("home"), sshd().home());
  EXPECT_TRUE(text("path").contains("/bin"));
  EXPECT_EQ(text("supervision"), "keeper");
  EXPECT_FALSE(lease.metadata.contains("paperclipApiUrl"));
  release(lease);
}

TEST_P(SshTest, AnotherHostKeyThanTheKnownOneIsRefused) {
  AcquireRequest request = this->request();
  request.lease.config["knownHosts"] = sshd().wrong_known_hosts();
  EXPECT_EQ(refusal(request).code, Errc::ssh_host_key_changed);
}

TEST_P(SshTest, AHostWhoseKeyNobodyStatedIsRefused) {
  AcquireRequest other = request();
  other.lease.config["knownHosts"] = "example.org ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA==";
  EXPECT_EQ(refusal(other).code, Errc::ssh_host_key_unknown);
  AcquireRequest none = request();
  none.lease.config["knownHosts"] = nullptr;
  const Error error = refusal(none);
  EXPECT_EQ(error.code, Errc::ssh_host_key_unknown);
  EXPECT_TRUE(error.remedy.contains("ssh-keyscan -p " + std::to_string(sshd().port())));
}

TEST_P(SshTest, AnyHostKeyIsTakenWhereItIsNotChecked) {
  AcquireRequest request = this->request();
  request.lease.config["knownHosts"] = sshd().wrong_known_hosts();
  request.lease.config["strictHostKeyChecking"] = false;
  const auto acquired = await(place().acquire(request));
  ASSERT_TRUE(acquired) << acquired.error().message;
  release(request.lease);
}

TEST_P(SshTest, AKeyThatTheHostDoesNotKnowIsRefused) {
  AcquireRequest request = this->request();
  request.lease.secrets.insert_or_assign("privateKeySecretRef", Secret{sshd().strange_key()});
  const Error error = refusal(request);
  EXPECT_EQ(error.code, Errc::ssh_auth_failed);
  EXPECT_TRUE(error.message.contains(sshd().user() + "@127.0.0.1:")) << error.message;
}

TEST_P(SshTest, WhatIsNoKeyIsRefusedBeforeAnythingIsReached) {
  sshd().kill_all();
  for (const std::string& text :
       {std::string{"garbage"},
        std::string{
            "-----BEGIN OPENSSH PRIVATE KEY-----\ngarbage\n-----END OPENSSH PRIVATE KEY-----"},
        sshd().protected_key()}) {
    AcquireRequest request = this->request();
    request.lease.secrets.insert_or_assign("privateKeySecretRef", Secret{text});
    EXPECT_EQ(refusal(request).code, Errc::ssh_key_invalid) << text.substr(0, 40);
  }
}

TEST_P(SshTest, AKeyWithTheLineEndsOfAnotherSystemIsUnderstood) {
  AcquireRequest request = this->request();
  std::string key;
  for (const char c : sshd().private_key()) key += c == '\n' ? "\r\n" : std::string{c};
  key.resize(key.size() - 2);
  request.lease.secrets.insert_or_assign("privateKeySecretRef", Secret{key});
  const auto acquired = await(place().acquire(request));
  ASSERT_TRUE(acquired) << acquired.error().message;
  release(request.lease);
}

TEST_P(SshTest, WithoutAKeyThoseOfTheServersUserAreNotTried) {
  AcquireRequest request = this->request();
  request.lease.config["privateKeySecretRef"] = nullptr;
  request.lease.secrets.clear();
  EXPECT_EQ(refusal(request).code, Errc::ssh_auth_failed);
  EXPECT_TRUE(ssh().master_pids().empty());
}

TEST_P(SshTest, AHostThatDoesNotAnswerIsUnreachable) {
  ssh::Options hasty = ssh_ground().options;
  hasty.connect_limit = 1s;
  use(hasty);
  const Silence silence;
  AcquireRequest silent = request();
  silent.lease.config["port"] = silence.port();
  EXPECT_EQ(refusal(silent).code, Errc::ssh_unreachable);
  sshd().kill_all();
  const Error closed = refusal(request());
  EXPECT_EQ(closed.code, Errc::ssh_unreachable);
  EXPECT_TRUE(closed.message.contains("nothing listens")) << closed.message;
}

TEST_P(SshTest, AProbeSaysWhichStepFailedAndWhatToDo) {
  AcquireRequest wrong = request();
  wrong.lease.secrets.insert_or_assign("privateKeySecretRef", Secret{sshd().strange_key()});
  const auto login = await(place().probe(wrong));
  ASSERT_TRUE(login) << login.error().message;
  EXPECT_FALSE(login->ok);
  ASSERT_EQ(login->steps.size(), 2U);
  EXPECT_TRUE(login->steps[0].ok);
  EXPECT_EQ(login->steps[1].name, "authenticate");
  EXPECT_EQ(login->steps[1].code, "ssh_auth_failed");
  EXPECT_TRUE(login->steps[1].remedy.has_value());
  ASSERT_TRUE(login->details);
  EXPECT_EQ(login->details->at("error").as_string(), login->summary);
  EXPECT_EQ(login->details->at("code").as_string(), "ssh_auth_failed");
  EXPECT_EQ(login->details->at("username").as_string(), sshd().user());

  AcquireRequest nowhere = request();
  nowhere.lease.config["remoteWorkspacePath"] = "/proc/no-folder";
  const auto workspace = await(place().probe(nowhere));
  ASSERT_TRUE(workspace) << workspace.error().message;
  EXPECT_FALSE(workspace->ok);
  EXPECT_EQ(workspace->steps.back().name, "workspace");

  sshd().kill_all();
  restart();
  const auto connect = await(place().probe(request()));
  ASSERT_TRUE(connect) << connect.error().message;
  EXPECT_EQ(connect->steps.back().name, "connect");
  EXPECT_EQ(connect->steps.back().code, "ssh_unreachable");
}

TEST_P(SshTest, TheAddressOfThisServerIsTriedFromThere) {
  const tests::LoopbackServer server{[](const tests::SeenRequest& seen) {
    return seen.line.starts_with("GET /api/health ") ? tests::http_answer(200, "{}")
                                                     : tests::http_answer(404, "");
  }};
  const Silence silence;
  const std::string dead = "http://127.0.0.1:" + std::to_string(silence.port());
  AcquireRequest request = this->request();
  request.callback = {.candidates = {"http://127.0.0.1:1", server.url(), dead}, .required = true};
  const auto acquired = await(place().acquire(request));
  ASSERT_TRUE(acquired) << acquired.error().message;
  EXPECT_EQ(acquired->metadata.at("paperclipApiUrl"), bj::value(server.url()));
  PlaceRef lease = request.lease.clone();
  lease.metadata = acquired->metadata;
  const auto workspace = await(commands().realize(lease, std::nullopt));
  ASSERT_TRUE(workspace);
  EXPECT_EQ(workspace->api_url, server.url());
  release(lease);
  // Within a minute, the cached answer is used.
  ASSERT_TRUE(await(place().acquire(request)));
  release(lease);
  EXPECT_EQ(server.seen().size(), 1U);
}

TEST_P(SshTest, WithoutAnAddressThatAnswersAcquireFailsWhereOneIsRequired) {
  AcquireRequest request = this->request();
  request.callback = {.candidates = {"http://127.0.0.1:1"}, .required = true};
  const Error error = refusal(request);
  EXPECT_EQ(error.code, Errc::callback_unreachable);
  EXPECT_TRUE(error.message.contains("http://127.0.0.1:1")) << error.message;
  EXPECT_EQ(ground().leftovers(), std::vector<std::string>{});
  request.callback.required = false;
  EXPECT_TRUE(await(place().acquire(request)));
  release(request.lease);
}

TEST_P(SshTest, TheKeeperIsCopiedOncePerVersion) {
  release(new_lease());
  ASSERT_EQ(ssh_ground().keepers().size(), 1U);
  const std::string path = sshd().home() + "/.cache/berth/" + ssh_ground().keepers()[0];
  struct stat before{};
  ASSERT_EQ(::stat(path.c_str(), &before), 0);
  EXPECT_EQ(before.st_mode & 0777U, 0700U);
  release(new_lease());
  restart();
  release(new_lease());
  struct stat after{};
  ASSERT_EQ(::stat(path.c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
  EXPECT_EQ(ssh_ground().keepers().size(), 1U);
}

TEST_P(SshTest, ADamagedCopyOfTheKeeperIsReplaced) {
  release(new_lease());
  ASSERT_EQ(ssh_ground().keepers().size(), 1U);
  const std::string path = sshd().home() + "/.cache/berth/" + ssh_ground().keepers()[0];
  std::ofstream{path, std::ios::trunc} << "#!/bin/sh\necho 0.1.0\n";
  restart();
  const PlaceRef lease = new_lease();
  const auto original = read_file(BERTH_KEEPER, std::size_t{1} << 30);
  const auto copy = read_file(path, std::size_t{1} << 30);
  ASSERT_TRUE(original && copy);
  EXPECT_EQ(sha256_hex(*original), sha256_hex(*copy));
  release(lease);
}

TEST_P(SshTest, AKeeperThatSomebodyRemovedIsCopiedAgain) {
  const PlaceRef first = new_lease();
  std::filesystem::remove_all(sshd().home() + "/.cache");
  const PlaceRef second = new_lease();
  for (const PlaceRef* lease : {&first, &second}) {
    Collected output;
    EXPECT_EQ(run(*lease, shell("echo fine"), output).exit_code, 0);
  }
  ASSERT_TRUE(await(place().release(first, core::LeaseEvent::release_succeeded)));
  release(second);
}

TEST_P(SshTest, AnAgentThatTheServerIsGivenServesEnvironmentsWithoutAKey) {
  const tests::TemporaryFolder folder;
  const tests::Spawned agent{{"/usr/bin/ssh-agent", "-D", "-a", folder.file("agent")}, {}};
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(folder.file("agent")); }));
  tests::Spawned{{"/usr/bin/ssh-add", "-q", sshd().key_file()},
                 {"SSH_AUTH_SOCK=" + folder.file("agent")}}
      .wait();
  ssh::Options with_agent = ssh_ground().options;
  with_agent.agent_socket = folder.file("agent");
  use(with_agent);
  AcquireRequest request = this->request();
  request.lease.config["privateKeySecretRef"] = nullptr;
  request.lease.secrets.clear();
  const auto acquired = await(place().acquire(request));
  ASSERT_TRUE(acquired) << acquired.error().message;
  release(request.lease);
}

TEST_P(SshTest, WhereTheHomeCannotBeWrittenTheKeeperIsInTheWorkspace) {
  std::ofstream{sshd().home() + "/.cache"} << "no folder";
  const PlaceRef lease = new_lease();
  Collected output;
  EXPECT_EQ(run(lease, shell("echo fine"), output).exit_code, 0);
  ASSERT_TRUE(await(place().release(lease, core::LeaseEvent::release_succeeded)));
  const auto left = ground().leftovers();
  ASSERT_EQ(left.size(), 1U);
  EXPECT_TRUE(left[0].starts_with("keeper-"));
}

TEST_P(SshTest, AHostThatCannotRunTheKeeperIsUsedWithoutIt) {
  const tests::TemporaryFolder folder;
  std::ofstream{folder.file("keeper")} << "no program of this machine";
  ssh::Options foreign = ssh_ground().options;
  foreign.keeper_program = folder.file("keeper");
  use(foreign);
  const PlaceRef lease = new_lease();
  EXPECT_EQ(lease.metadata.at("supervision"), bj::value("sh"));
  Collected output;
  EXPECT_EQ(run(lease, shell("echo fine"), output).exit_code, 0);
  EXPECT_EQ(output.out, "fine\n");
  release(lease);
  EXPECT_EQ(ssh_ground().keepers(), std::vector<std::string>{}) << "what cannot run was kept";
}

TEST_P(SshTest, AFullDiskOfTheHostIsSaidSo) {
  const std::string home = sshd().home();
  if (::mount("tmpfs", home.c_str(), "tmpfs", 0, "size=64k") != 0) {
    GTEST_SKIP() << "a small file system cannot be mounted here: that needs root";
  }
  AcquireRequest request = this->request();
  request.lease.config["remoteWorkspacePath"] = home + "/work";
  const Error error = refusal(request);
  EXPECT_EQ(error.code, Errc::remote_disk_full) << error.message;
  EXPECT_EQ(ssh_ground().keepers(), std::vector<std::string>{}) << "half a keeper is left";
  restart();
  ::umount2(home.c_str(), MNT_DETACH);
}

TEST_P(SshTest, AGreetingOfTheLoginShellIsNotTakenForAnAnswer) {
  std::ofstream{sshd().home() + "/.bashrc"} << "echo welcome; echo '#berth' >&2\n";
  const PlaceRef lease = new_lease();
  Collected output;
  run(lease, shell("echo fine"), output);
  EXPECT_EQ(output.out, "fine\n");
  release(lease);
}

TEST_P(SshTest, LeasesOfATargetShareOneConnectionWhichEndsWhenNobodyNeedsIt) {
  ssh::Options hasty = ssh_ground().options;
  hasty.idle = 200ms;
  use(hasty);
  const PlaceRef one = new_lease();
  const PlaceRef two = new_lease();
  EXPECT_EQ(ssh().master_pids().size(), 1U);
  ASSERT_TRUE(await(place().release(one, core::LeaseEvent::release_succeeded)));
  ASSERT_TRUE(await(commands().renew(two, 60'000)));
  EXPECT_EQ(ssh().master_pids().size(), 1U);
  const pid_t master = ssh().master_pids()[0];
  ASSERT_TRUE(await(place().release(two, core::LeaseEvent::release_succeeded)));
  EXPECT_TRUE(run_until([&] { return !is_running(master); }));
  EXPECT_TRUE(ssh().master_pids().empty());
  release(new_lease());
}

std::unique_ptr<Ground> make_narrow_place() {
  return std::make_unique<SshGround>(std::vector<std::string>{"MaxSessions 2"});
}
class NarrowSshTest : public SshTest {};
INSTANTIATE_TEST_SUITE_P(Ssh, NarrowSshTest,
                         testing::ValuesIn(places_if_there_is_an_sshd(&make_narrow_place)));

TEST_P(NarrowSshTest, WhereFewSessionsShareAConnectionThereAreMore) {
  std::vector<PlaceRef> leases;
  leases.reserve(4);
  for (int i = 0; i < 4; ++i) leases.push_back(new_lease());
  EXPECT_GT(ssh().master_pids().size(), 1U);
  for (const PlaceRef& lease : leases) {
    Collected output;
    EXPECT_EQ(run(lease, shell("echo fine"), output).exit_code, 0);
  }
  for (const PlaceRef& lease : leases) {
    EXPECT_TRUE(await(place().release(lease, core::LeaseEvent::release_succeeded)));
  }
}

}  // namespace
}  // namespace berth::place_test
