#pragma once

#include "places/ssh/ssh.hpp"
#include "integration/driver_contract.hpp"
#include "support/sshd.hpp"
#include "support/temporary_folder.hpp"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace berth::driver_test {

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

// A private sshd on loopback, and a driver that knows its key.
class SshPlace final : public DriverPlace {
 public:
  SshPlace();
  explicit SshPlace(std::vector<std::string> sshd_settings);

  std::unique_ptr<drivers::Driver> make_driver(asio::any_io_executor executor,
                                               asio::thread_pool& pool) override;
  bj::object config() const override;
  void add_secrets(drivers::PlaceRef& lease) const override;
  pid_t keeper_of(const drivers::PlaceRef& lease) const override;
  // Of leases in the workspace, and of servers in the control folder once their driver has closed.
  std::vector<std::string> leftovers() const override;

  tests::PrivateSshd& sshd() { return sshd_; }
  std::string berth_folder() const { return sshd_.workspace() + "/.berth"; }
  std::string control_root() const { return control_.file("c"); }
  // The programs that were copied to the host.
  std::vector<std::string> keepers() const;

  drivers::ssh::Options options;  // for the next driver
  KnownNames names;

 private:
  tests::TemporaryFolder control_;
  tests::PrivateSshd sshd_;
  SystemClock clock_;
};

std::unique_ptr<DriverPlace> make_ssh_place();
// With a server that is configured not to use a keeper.
std::unique_ptr<DriverPlace> make_shell_place();

// Tests of the driver alone; the parameter creates an SshPlace.
class SshTest : public DriverContract {
 protected:
  // Closes the driver, and checks for leftovers on this machine.
  void TearDown() override;

  SshPlace& ssh_place() { return static_cast<SshPlace&>(place()); }
  tests::PrivateSshd& sshd() { return ssh_place().sshd(); }
  drivers::Ssh& ssh() { return static_cast<drivers::Ssh&>(driver()); }
  // A server with other settings.
  void use(drivers::ssh::Options options);

  drivers::Command shell(std::string script, std::string exec_id = "e1");
  // Start and follow to the end.
  drivers::Ended run(const drivers::PlaceRef& lease, const drivers::Command& command,
                     Collected& output);
  void release(const drivers::PlaceRef& lease);
  // The error of acquire.
  Error refusal(const drivers::AcquireRequest& request);
};

// Everything that CommandContract and SshTest offer, for tests that begin with a lease.
std::vector<PlaceMaker> places_if_there_is_an_sshd(PlaceMaker maker);

}  // namespace berth::driver_test
