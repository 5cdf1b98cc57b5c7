#pragma once

#include "base/async/task.hpp"
#include "base/json/json.hpp"
#include "base/owned.hpp"
#include "base/secret.hpp"
#include "base/time.hpp"
#include "core/config/linux_config.hpp"
#include "core/ids.hpp"
#include "core/rows/agent_home.hpp"
#include "core/rows/run.hpp"

#include <sys/types.h>

#include <map>
#include <span>
#include <variant>
#include <vector>

// What it means to execute a command in a place: the values, and the verbs. Everything that a verb
// needs to find, follow and end what it started is in the lease that it is given, so each works as
// well after a restart of the server as before it.
namespace berth::execution {

// Whether the server itself may connect to an address that is not public, for an SSH environment.
enum class PrivateAddresses { refused, reachable };

// The lease for which something is done, as it was recorded before the place was first asked.
struct PlaceRef {
  core::LeaseId lease_id;
  core::CompanyId company_id;
  std::optional<core::EnvironmentId> environment_id = {};
  std::optional<core::RunId> run_id = {};  // absent: an ad-hoc lease of a test
  std::optional<core::SandboxId> sandbox_id = {};
  // The folder that its agent is at home in, where that lies on the disk of this server.
  std::optional<core::AgentHomeId> home_id = {};
  bj::object config = {};                      // stored shape: secret ids, never values
  std::map<std::string, Secret> secrets = {};  // values by their path in the config
  std::optional<std::string> provider_lease_id = {};
  bj::object metadata = {};  // what acquire returned
  PrivateAddresses private_addresses = PrivateAddresses::refused;

  PlaceRef clone() const;
};

// A sandbox of which this machine still holds something, whoever knows of it.
struct HeldSandbox {
  core::SandboxId id;
  std::string provider;
};

// Where the command works, in paths of the place itself.
struct Workspace {
  std::string cwd;
  std::optional<std::string> home = {};
  std::optional<std::string> path = {};     // PATH of a login there; absent: the usual one
  std::optional<std::string> scratch = {};  // removed with the lease
  std::optional<std::string> api_url = {};  // under which this server was reached from there
};

struct NoStdin {};
struct StdinBytes {
  Secret bytes;
};
struct StdinPipe {};  // fed by send()

struct Command {
  std::string exec_id;  // one command of a lease; starting it twice runs it once
  std::vector<std::string> argv = {};
  std::map<std::string, Secret> environment = {};  // all of it: nothing is inherited
  // The values in it that are secrets: whatever stands between here and the command hides them.
  std::vector<Secret> secrets = {};
  std::string cwd = {};
  std::variant<NoStdin, StdinBytes, StdinPipe> input = NoStdin{};
  std::optional<core::TerminalSize> terminal = {};
  std::optional<std::int64_t> timeout_ms = {};
  std::int64_t grace_ms = 15'000;
  std::int64_t output_bytes_max = std::int64_t{4} << 30;
};

// What a place says to every command in it.
struct PlaceRules {
  std::vector<std::string> environment = {};  // NAME=value, for names that the command's own lacks
  std::optional<std::int64_t> output_bytes_max = {};
};

struct Started {
  std::optional<std::int64_t> pid = {};
  Time started_at;
};

BOOST_DEFINE_ENUM_CLASS(OutputKind, out, err, note)

// A piece of output, in order of arrival. `next_offset` is where to go on reading after it.
struct OutputPiece {
  std::uint64_t offset = 0;
  std::uint64_t next_offset = 0;
  OutputKind kind = OutputKind::out;
  Time at;
  std::string_view bytes;
};

// Takes output as it comes. It is awaited, so a slow taker slows the reading and nothing is lost;
// an error of it ends the following, not the command.
class OutputTaker {
 public:
  virtual ~OutputTaker() = default;
  virtual Task<> take(std::span<const OutputPiece> pieces) = 0;
};

// `lost`: whoever watched the command was killed, and the command with it. `lapsed`: nobody renewed
// the lease, so the command was ended.
BOOST_DEFINE_ENUM_CLASS(Outcome, exited, signaled, timed_out, stopped, lapsed, lost)

struct Ended {
  Outcome outcome = Outcome::lost;
  std::optional<std::int64_t> exit_code = {};
  std::optional<std::string> signal = {};  // "SIGKILL"
  Time started_at = {};
  Time ended_at = {};
  bj::object usage = {};  // userMs, systemMs, residentBytesMax, ...
  std::int64_t bytes_over_limit = 0;
  std::int64_t bytes_lost = 0;   // refused by a full disk
  std::int64_t left_behind = 0;  // processes that could not be killed
  std::int64_t oom_kills = 0;    // in its sandbox while it ran, for want of memory
};

struct EndOfInput {};
struct SignalNumber {
  int number = 0;
};
using Input = std::variant<std::string, EndOfInput, core::TerminalSize, SignalNumber>;

// What a place uses now, and has used. What is not counted there is 0, or absent where a 0 would be
// believed.
struct Usage {
  std::int64_t cpu_ms = 0;
  std::int64_t memory_bytes = 0;  // now
  std::int64_t memory_bytes_peak = 0;
  std::int64_t processes = 0;
  std::int64_t processes_peak = 0;  // threads too
  std::optional<std::int64_t> read_bytes = {};
  std::optional<std::int64_t> written_bytes = {};
  std::int64_t oom_kills = 0;
};
BOOST_DESCRIBE_STRUCT(Usage, (),
                      (cpu_ms, memory_bytes, memory_bytes_peak, processes, processes_peak,
                       read_bytes, written_bytes, oom_kills))

// The files of a place, for whoever moves some in or out: a folder, whose tree its commands may
// change at any moment.
struct FileRoot {
  struct User {
    uid_t uid = 0;
    gid_t gid = 0;
  };
  // refused: the tree is one folder of one file system. entered: it is put together from mounts,
  // which all belong to the place.
  enum class Mounts { refused, entered };

  Fd folder;                      // O_PATH is enough
  std::optional<User> user = {};  // whose they are; absent: the server's own
  Mounts mounts = Mounts::refused;
  // Where commands work, where the folder is their "/"; absent: the folder is where they work.
  std::optional<std::string> workdir = {};
};

// What the way out of a place has decided, from a position in its log on.
struct EgressPage {
  std::vector<bj::object> entries = {};
  std::int64_t next_offset = 0;
};
BOOST_DESCRIBE_STRUCT(EgressPage, (), (entries, next_offset))

// One thing that a test of an environment tried.
struct ProbeStep {
  std::string name;  // "connect", "keeper", "workspace", "callback", ...
  bool ok = false;
  std::int64_t duration_ms = 0;
  std::string message = {};
  std::optional<std::string> code = {};
  std::optional<std::string> remedy = {};
};
BOOST_DESCRIBE_STRUCT(ProbeStep, (), (name, ok, duration_ms, message, code, remedy))

class RemoteFiles;

// All verbs may be repeated. References are to what the caller keeps until the answer.
class Execution {
 public:
  virtual ~Execution() = default;

  // The folder that a command works in: `wanted`, which must be there, or one made for the lease.
  virtual Task<Workspace> realize(const PlaceRef& lease,
                                  const std::optional<std::string>& wanted) = 0;

  // Returns when the command runs. The same exec id again gives the same answer and runs nothing.
  virtual Task<Started> start(const PlaceRef& lease, const Command& command) = 0;
  // What the command has said from an offset on, and how it ended: also long after the end, until
  // the lease is released. A connection that breaks is made again where that can help.
  // exec_not_found when the command was never started.
  virtual Task<Ended> follow(const PlaceRef& lease, const std::string& exec_id,
                             std::uint64_t offset, OutputTaker& taker) = 0;
  virtual Task<> send(const PlaceRef& lease, const std::string& exec_id, Input input) = 0;
  // Ends the command and everything it left behind; `follow` then returns. Nothing to end is fine.
  virtual Task<> cancel(const PlaceRef& lease, const std::string& exec_id,
                        std::int64_t grace_ms) = 0;
  // What the lease holds ends by itself unless this is repeated in time.
  // Nobody asks for the output of an ended command again, so what is kept of it may go.
  virtual Task<> forget_output(const PlaceRef& lease, const std::string& exec_id);
  virtual Task<> renew(const PlaceRef& lease, std::int64_t deadline_ms) = 0;
  // Refused with execution_unsupported where nobody counts.
  virtual Task<Usage> usage(const PlaceRef& lease);
  // Refused with execution_unsupported where the place is no folder of this machine.
  virtual Task<FileRoot> files(const PlaceRef& lease);
  // Who moves them there instead; nobody where that cannot be done either.
  virtual RemoteFiles* remote_files(const PlaceRef& /*lease*/) { return nullptr; }
  // A TCP connection to a port of the place's own loopback; port_unreachable when nobody listens
  // there. Refused with execution_unsupported where that loopback is also somebody else's: a lease
  // must not be a way to whatever listens on the machine.
  virtual Task<Fd> dial(const PlaceRef& lease, std::uint16_t port);
  // The ports of that loopback on which something listens, found without a command there. Refused
  // with execution_unsupported where only a command could tell.
  virtual Task<std::vector<std::uint16_t>> listening(const PlaceRef& lease);
  // What the place may reach from now on, and what was decided about it. Refused with
  // execution_unsupported where nobody stands at the way out.
  virtual Task<> set_egress(const PlaceRef& lease, core::LinuxEgress policy);
  virtual Task<EgressPage> egress_log(const PlaceRef& lease, std::uint64_t offset);
};

}  // namespace berth::execution
