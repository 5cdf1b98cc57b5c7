#pragma once

#include "integration/place_contract.hpp"
#include "places/ssh/ssh.hpp"
#include "support/sshd.hpp"
#include "support/temporary_folder.hpp"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace berth::place_test {

// Names that resolve as a test sets them; every other name is unknown.
class KnownNames final : public egress::Resolver {
 public:
  Task<std::vector<egress::Address>> resolve(std::string name) override {
    asked.push_back(name);
    const auto found = addresses.find(name);
    if (found == addresses.end()) co_return fail(Errc::server_unreachable, name + " is unknown");
    // The last answer is repeated.
    const std::vector<std::string> answer = found->second.front();
    if (found->second.size() > 1) found->second.erase(found->second.begin());
    std::vector<egress::Address> out;
    for (const std::string& text : answer) out.push_back(*egress::Address::parse(text));
    co_return out;
  }

  std::map<std::string, std::vector<std::vector<std::string>>>
      addresses;  // one answer for each lookup
  std::vector<std::string> asked;
};

// A private sshd on loopback, and a place that knows its key.
class SshGround final : public Ground {
 public:
  SshGround();
  explicit SshGround(std::vector<std::string> sshd_settings);

  std::unique_ptr<places::Place> make_place(asio::any_io_executor executor,
                                            asio::thread_pool& pool) override;
  bj::object config() const override;
  core::DriverKind driver() const override { return core::DriverKind::ssh; }
  std::set<std::string> abilities() const override { return {"commands", "found by key"}; }
  void add_secrets(places::PlaceRef& lease) const override;
  pid_t keeper_of(const places::PlaceRef& lease) const override;
  // Of leases in the workspace, and of servers in the control folder once their place has closed.
  std::vector<std::string> leftovers() const override;

  tests::PrivateSshd& sshd() { return sshd_; }
  std::string berth_folder() const { return sshd_.workspace() + "/.berth"; }
  std::string control_root() const { return control_.file("c"); }
  // The programs that were copied to the host.
  std::vector<std::string> keepers() const;

  places::ssh::Options options;  // for the next place
  KnownNames names;

 private:
  tests::TemporaryFolder control_;
  tests::PrivateSshd sshd_;
  SystemClock clock_;
};

std::unique_ptr<Ground> make_ssh_ground();
// With a server that is configured not to use a keeper.
std::unique_ptr<Ground> make_shell_place();

// Tests of the place alone; the parameter creates an SshGround.
class SshTest : public PlaceContract {
 protected:
  // Closes the place, and checks for leftovers on this machine.
  void TearDown() override;

  SshGround& ssh_ground() { return static_cast<SshGround&>(ground()); }
  tests::PrivateSshd& sshd() { return ssh_ground().sshd(); }
  places::Ssh& ssh() { return static_cast<places::Ssh&>(place()); }
  // A server with other settings.
  void use(places::ssh::Options options);

  places::Command shell(std::string script, std::string exec_id = "e1");
  // Start and follow to the end.
  places::Ended run(const places::PlaceRef& lease, const places::Command& command,
                    Collected& output);
  void release(const places::PlaceRef& lease);
  // The error of acquire.
  Error refusal(const places::AcquireRequest& request);
};

// Everything that CommandContract and SshTest offer, for tests that begin with a lease.
std::vector<GroundMaker> places_if_there_is_an_sshd(GroundMaker maker);

}  // namespace berth::place_test
