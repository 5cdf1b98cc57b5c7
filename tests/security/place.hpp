#pragma once

#include "base/result.hpp"
#include "keeper/holder/prefork.hpp"
#include "keeper/protocol/client.hpp"
#include "keeper/sandbox/plan.hpp"
#include "support/temporary_folder.hpp"

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::security_test {

using namespace std::chrono_literals;

// Where the hostile program is in every sandbox.
inline constexpr const char* hostile_inside = "/opt/hostile";

// Which user made the sandbox, and which user its commands run as.
enum class Starter : std::uint8_t { root, ordinary };
// Whether the machine allows user namespaces, as far as the keeper can see.
enum class UserNamespaces : std::uint8_t { allowed, forbidden };
struct Place {
  Starter starter = Starter::root;
  keeper::sandbox::Identity identity = keeper::sandbox::Identity::user;
  UserNamespaces user_namespaces = UserNamespaces::allowed;
  bool is_minimal() const {
    return starter == Starter::ordinary && user_namespaces == UserNamespaces::forbidden;
  }
  friend bool operator==(const Place&, const Place&) = default;
};
std::string name_of(const Place& place);
void PrintTo(const Place& place, std::ostream* out);  // the name that GoogleTest looks for
// Why the test's user cannot make such a sandbox; empty when it can.
std::string reason_against(const Place& place);

// Polls until it is true, at most for the limit: for facts that the kernel does not announce.
bool eventually(const std::function<bool()>& is_so, std::chrono::milliseconds limit = 20s);

// A plan with every limit that hostile programs test, and the hostile program in it.
keeper::sandbox::Plan plan_of(const Place& place, const std::string& hostile);

struct Deed {
  keeper::Ended ended;
  std::string out;
  // Its first output line, or "killed SIGNAL".
  std::string verdict() const;
};

// A keeper that has made one sandbox. Ends with its owner, with all that ran in it.
class Sandbox {
 public:
  struct Origin {
    Place place;
    keeper::sandbox::Plan plan;
    std::vector<std::string> environment;  // of the keeper
  };
  static Result<std::unique_ptr<Sandbox>> make(const Origin& origin);
  Sandbox(const Sandbox&) = delete;
  Sandbox& operator=(const Sandbox&) = delete;
  ~Sandbox();

  const keeper::Confined& isolation() const { return isolation_; }
  keeper::KeeperClient& client() { return *client_; }
  pid_t keeper_pid() const { return pid_; }
  const std::string& folder() const { return folder_; }

  // Where the files of a sandbox without namespaces are.
  std::string box() const;
  // A request for the hostile program with these arguments.
  keeper::Exec hostile(std::vector<std::string> words);
  Result<Deed> run(const keeper::Exec& exec);
  std::string output_of(const std::string& exec_id) const;
  // Ends everything, and waits for the keeper.
  Result<> stop(std::chrono::milliseconds grace = 0ms);
  // Ends the keeper like a crash.
  void lose_keeper();

 private:
  Sandbox() = default;
  Result<> start(const Origin& origin);
  Result<> start_apart(const Place& place, const keeper::SpawnOptions& options);
  bool is_over() const;

  Place place_;
  tests::TemporaryFolder root_;
  std::optional<keeper::KeeperPrefork> prefork_;  // of root's sandboxes
  std::string folder_;
  pid_t pid_ = 0;
  std::optional<keeper::KeeperClient> client_;
  keeper::Confined isolation_;
  int last_id_ = 0;
};

// The hostile program in a folder that all users can reach, wherever the build folder is.
class HostileProgram {
 public:
  HostileProgram();
  std::string path() const { return folder_.file("hostile"); }

 private:
  tests::TemporaryFolder folder_;
};

}  // namespace berth::security_test
