#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "support/temporary_folder.hpp"

namespace berth::tests {

// A background program with nothing on its streams, which ends with this object.
class Spawned {
 public:
  Spawned(std::vector<std::string> words, std::vector<std::string> environment);
  Spawned(const Spawned&) = delete;
  Spawned& operator=(const Spawned&) = delete;
  ~Spawned();

  pid_t pid() const { return pid_; }
  // Its status as waitpid gives it.
  int wait();

 private:
  pid_t pid_ = 0;
};

// A real sshd for one test on a loopback port: own host key, own client key, own configuration, and
// a separate home for the login user. It accepts only the test's user.
class PrivateSshd {
 public:
  // Why none can be started here; empty when one can. A test that needs one skips with this reason.
  static std::string missing();

  // Lines for its configuration, such as `MaxSessions 2`.
  explicit PrivateSshd(const std::vector<std::string>& settings = {});
  PrivateSshd(const PrivateSshd&) = delete;
  PrivateSshd& operator=(const PrivateSshd&) = delete;
  ~PrivateSshd();

  // On the same port as before.
  void start();
  // Kills it and all its connections at once.
  void kill_all();

  int port() const { return port_; }
  const std::string& user() const { return user_; }
  std::string home() const { return folder_.file("home"); }
  std::string workspace() const { return folder_.file("workspace"); }
  std::string private_key() const;
  std::string key_file() const { return folder_.file("client_key"); }
  // A key that cannot be read without a passphrase.
  std::string protected_key() const;
  // A key that it does not accept.
  std::string strange_key() const;
  std::string known_hosts() const;
  // A known hosts file with another key for this host.
  std::string wrong_known_hosts() const;
  std::string log() const;

 private:
  std::string read(const std::string& name) const;
  bool answers() const;

  TemporaryFolder folder_;
  std::string user_;
  int port_ = 0;
  pid_t pid_ = 0;
};

// Every process below this one, at any depth.
std::vector<pid_t> processes_below(pid_t root);
// All processes whose arguments contain the text.
std::vector<pid_t> processes_with(const std::string& text);

}  // namespace berth::tests
