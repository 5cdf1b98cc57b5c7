#include "base/files.hpp"
#include "integration/place_ssh_fixture.hpp"

#include <gmock/gmock.h>

#include <sys/stat.h>

// Which addresses of a host are used, and which are not.
namespace berth::place_test {
namespace {

using namespace places;

class SshAddress : public SshTest {
 protected:
  KnownNames& names() { return ssh_ground().names; }
  std::string port() { return std::to_string(sshd().port()); }
  // The sshd's own line, under another name.
  std::string known_as(const std::string& name) {
    std::string lines = sshd().known_hosts();
    const std::string own = "[127.0.0.1]:" + port();
    for (std::size_t at = lines.find(own); at != lines.npos; at = lines.find(own, at)) {
      lines.replace(at, own.size(), name);
      at += name.size();
    }
    return lines;
  }
  AcquireRequest request_for(const std::string& host, PrivateAddresses may) {
    AcquireRequest out = request();
    out.lease.config["host"] = host;
    out.lease.config["knownHosts"] = known_as("[" + host + "]:" + port());
    out.lease.private_addresses = may;
    return out;
  }
  // An ssh that reaches nothing, and records its arguments.
  void use_deaf_ssh() {
    const std::string program = folder_.file("ssh");
    EXPECT_TRUE(create_file(program,
                            "#!/bin/sh\nprintf '%s\\n' \"$@\" >> " + folder_.file("asked") +
                                "\necho 'connect to host: Connection refused' >&2\nexit 255\n",
                            0700));
    ssh::Options deaf = ssh_ground().options;
    deaf.ssh_program = program;
    use(deaf);
  }
  std::string asked_of_ssh() { return read_file(folder_.file("asked"), 1 << 20).value_or(""); }

 private:
  tests::TemporaryFolder folder_;
};
INSTANTIATE_TEST_SUITE_P(Ssh, SshAddress,
                         testing::ValuesIn(places_if_there_is_an_sshd(&make_ssh_ground)));

TEST_P(SshAddress, IsLookedUpOnceAndTheHostKeyIsKnownByTheName) {
  names().addresses["builder.example"] = {{"127.0.0.1"}};
  for (const std::string& known : {"[builder.example]:" + port(), std::string{"builder.example"},
                                   "other.example,[BUILDER.example]:" + port()}) {
    names().asked.clear();
    restart();
    AcquireRequest named = request_for("Builder.example", PrivateAddresses::reachable);
    names().addresses["Builder.example"] = {{"127.0.0.1"}};
    named.lease.config["knownHosts"] = known_as(known);
    const auto acquired = await(place().acquire(named));
    ASSERT_TRUE(acquired) << known << ": " << acquired.error().message;
    EXPECT_THAT(names().asked, testing::ElementsAre("Builder.example"));
    EXPECT_TRUE(acquired->metadata.at("privateAddress").as_bool());
    named.lease.metadata = acquired->metadata;
    release(named.lease);
  }
}

TEST_P(SshAddress, OfAnotherHostWithTheSameKeyNameIsNotTrusted) {
  names().addresses["builder.example"] = {{"127.0.0.1"}};
  AcquireRequest named = request_for("builder.example", PrivateAddresses::reachable);
  named.lease.config["knownHosts"] = sshd().known_hosts();  // knows the address, not the name
  EXPECT_EQ(refusal(named).code, Errc::ssh_host_key_unknown);
}

TEST_P(SshAddress, IsTriedAfterOneThatDoesNotAnswer) {
  names().addresses["builder.example"] = {{"::1", "127.0.0.1"}};
  AcquireRequest named = request_for("builder.example", PrivateAddresses::reachable);
  const auto acquired = await(place().acquire(named));
  ASSERT_TRUE(acquired) << acquired.error().message;
  named.lease.metadata = acquired->metadata;
  release(named.lease);
}

TEST_P(SshAddress, ThatIsNotPublicIsRefusedLikeOneThatIsNotThere) {
  use_deaf_ssh();
  names().addresses["inside.example"] = {{"127.0.0.1"}};
  names().addresses["mixed.example"] = {{"93.184.216.34", "10.0.0.1"}};
  names().addresses["mapped.example"] = {{"::ffff:169.254.169.254"}};
  names().addresses["public.example"] = {{"93.184.216.34"}};
  std::set<std::string> said;
  for (const std::string host : {"inside.example", "mixed.example", "mapped.example",
                                 "unknown.example", "127.0.0.1", "::1", "public.example"}) {
    const Error error = refusal(request_for(host, PrivateAddresses::refused));
    EXPECT_EQ(error.code, Errc::ssh_unreachable) << host;
    std::string text = error.message + error.remedy;
    text.replace(text.find(host), host.size(), "HOST");
    said.insert(text);
    const auto report = await(place().probe(request_for(host, PrivateAddresses::refused)));
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(report->summary, error.message);
    EXPECT_EQ(report->steps.back().name, "connect");
  }
  EXPECT_EQ(said.size(), 1U) << testing::PrintToString(said);
  EXPECT_THAT(*said.begin(), testing::HasSubstr("berth company allow COMPANY private-ssh"));
  EXPECT_THAT(asked_of_ssh(), testing::HasSubstr("HostName=93.184.216.34"));
  for (const char* inside : {"127.0.0.1", "10.0.0.1", "169.254", "::1"}) {
    EXPECT_THAT(asked_of_ssh(), testing::Not(testing::HasSubstr(inside)));
  }
}

TEST_P(SshAddress, ThatWasCheckedIsTheOneThatIsUsed) {
  use_deaf_ssh();
  names().addresses["moving.example"] = {{"93.184.216.34"}, {"127.0.0.1"}};
  refusal(request_for("moving.example", PrivateAddresses::refused));
  EXPECT_THAT(names().asked, testing::ElementsAre("moving.example"));
  EXPECT_THAT(asked_of_ssh(), testing::HasSubstr("HostName=93.184.216.34"));
  const std::string before = asked_of_ssh();
  refusal(request_for("moving.example", PrivateAddresses::refused));
  EXPECT_EQ(asked_of_ssh(), before) << "ssh was asked for an address that is not public";
}

}  // namespace
}  // namespace berth::place_test
