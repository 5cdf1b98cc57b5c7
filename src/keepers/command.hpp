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

// Executing a command in a place: the values and the operations. The lease contains everything that
// an operation needs to find, follow and end what it started. So each works just as well after a
// server restart.
namespace berth::execution {

// Whether the server itself may connect to a private address, for an SSH environment.
enum class PrivateAddresses { refused, reachable };

// The lease on whose behalf something is done, as recorded before the first request to the place.
struct PlaceRef {
  core::LeaseId lease_id;
  core::CompanyId company_id;
  std::optional<core::EnvironmentId> environment_id = {};
  std::optional<core::RunId> run_id = {};  // absent: an ad-hoc lease for a test
  std::optional<core::SandboxId> sandbox_id = {};
  // The agent's home folder, if it is on this server's disk.
  std::optional<core::AgentHomeId> home_id = {};
  bj::object config = {};                      // as stored: secret ids, never values
  std::map<std::string, Secret> secrets = {};  // values by config path
  std::optional<std::string> provider_lease_id = {};
  bj::object metadata = {};  // what acquire returned
  PrivateAddresses private_addresses = PrivateAddresses::refused;

  PlaceRef clone() const;
};

// A sandbox that still has something on this machine, whether or not the server knows it.
struct HeldSandbox {
  core::SandboxId id;
  std::string provider;
};

// Where the command works; paths are in the place itself.
struct Workspace {
  std::string cwd;
  std::optional<std::string> home = {};
  std::optional<std::string> path = {};     // PATH of a login there; absent: the default
  std::optional<std::string> scratch = {};  // removed with the lease
  std::optional<std::string> api_url = {};  // this server's URL as seen from there
};

struct NoStdin {};
struct StdinBytes {
  Secret bytes;
};
struct StdinPipe {};  // fed by send()

struct Command {
  std::string exec_id;  // identifies one command of a lease; starting it twice runs it once
  std::vector<std::string> argv = {};
  std::map<std::string, Secret> environment = {};  // complete: nothing is inherited
  // The secret values in it, which every layer between here and the command hides.
  std::vector<Secret> secrets = {};
  std::string cwd = {};
  std::variant<NoStdin, StdinBytes, StdinPipe> input = NoStdin{};
  std::optional<core::TerminalSize> terminal = {};
  std::optional<std::int64_t> timeout_ms = {};
  std::int64_t grace_ms = 15'000;
  std::int64_t output_bytes_max = std::int64_t{4} << 30;
};

// What a place adds to every command in it.
struct PlaceRules {
  std::vector<std::string> environment = {};  // NAME=value, for names that the command does not set
  std::optional<std::int64_t> output_bytes_max = {};
};

struct Started {
  std::optional<std::int64_t> pid = {};
  Time started_at;
};

BOOST_DEFINE_ENUM_CLASS(OutputKind, out, err, note)

// A piece of output, in order of arrival. Reading continues at `next_offset`.
struct OutputPiece {
  std::uint64_t offset = 0;
  std::uint64_t next_offset = 0;
  OutputKind kind = OutputKind::out;
  Time at;
  std::string_view bytes;
};

// Receives output as it comes. It is awaited, so a slow taker slows the reading and nothing is
// lost. An error from it ends the following, not the command.
class OutputTaker {
 public:
  virtual ~OutputTaker() = default;
  virtual Task<> take(std::span<const OutputPiece> pieces) = 0;
};

// `lost`: the process that watched the command was killed, and the command with it. `lapsed`: the
// lease was not renewed, so the command was ended.
BOOST_DEFINE_ENUM_CLASS(Outcome, exited, signaled, timed_out, stopped, lapsed, lost)

struct Ended {
  Outcome outcome = Outcome::lost;
  std::optional<std::int64_t> exit_code = {};
  std::optional<std::string> signal = {};  // "SIGKILL"
  Time started_at = {};
  Time ended_at = {};
  bj::object usage = {};  // userMs, systemMs, residentBytesMax, ...
  std::int64_t bytes_over_limit = 0;
  std::int64_t bytes_lost = 0;   // not written because the disk was full
  std::int64_t left_behind = 0;  // processes that could not be killed
  std::int64_t oom_kills = 0;    // in its sandbox while it ran
};

struct EndOfInput {};
struct SignalNumber {
  int number = 0;
};
using Input = std::variant<std::string, EndOfInput, core::TerminalSize, SignalNumber>;

// What a place uses now, and has used. A value that is not counted there is 0, or absent if 0 could
// be mistaken for a real value.
struct Usage {
  std::int64_t cpu_ms = 0;
  std::int64_t memory_bytes = 0;  // current
  std::int64_t memory_bytes_peak = 0;
  std::int64_t processes = 0;
  std::int64_t processes_peak = 0;  // including threads
  std::optional<std::int64_t> read_bytes = {};
  std::optional<std::int64_t> written_bytes = {};
  std::int64_t oom_kills = 0;
};
BOOST_DESCRIBE_STRUCT(Usage, (),
                      (cpu_ms, memory_bytes, memory_bytes_peak, processes, processes_peak,
                       read_bytes, written_bytes, oom_kills))

// A place's files, for moving files in or out: a folder whose tree its commands may change at any
// time.
struct FileRoot {
  struct User {
    uid_t uid = 0;
    gid_t gid = 0;
  };
  // refused: the tree is one folder of one file system. entered: it consists of several mounts,
  // which all belong to the place.
  enum class Mounts { refused, entered };

  Fd folder;                      // O_PATH is enough
  std::optional<User> user = {};  // their owner; absent: the server's own user
  Mounts mounts = Mounts::refused;
  // The working directory, if the folder is the commands' "/"; absent: the folder is the working
  // directory.
  std::optional<std::string> workdir = {};
};

// The egress decisions for a place, from an offset in its log on.
struct EgressPage {
  std::vector<bj::object> entries = {};
  std::int64_t next_offset = 0;
};
BOOST_DESCRIBE_STRUCT(EgressPage, (), (entries, next_offset))

// One step of an environment test.
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

// All operations may be repeated. Arguments passed by reference must live until the answer.
class Execution {
 public:
  virtual ~Execution() = default;

  // The command's working directory: `wanted`, which must exist, or one made for the lease.
  virtual Task<Workspace> realize(const PlaceRef& lease,
                                  const std::optional<std::string>& wanted) = 0;

  // Returns when the command runs. Repeating an exec id returns the same answer and runs nothing.
  virtual Task<Started> start(const PlaceRef& lease, const Command& command) = 0;
  // The command's output from an offset on, and how it ended. Works long after the end, until the
  // lease is released. A broken connection is reopened if that can help. exec_not_found if the
  // command was never started.
  virtual Task<Ended> follow(const PlaceRef& lease, const std::string& exec_id,
                             std::uint64_t offset, OutputTaker& taker) = 0;
  virtual Task<> send(const PlaceRef& lease, const std::string& exec_id, Input input) = 0;
  // Ends the command and everything it left behind; `follow` then returns. Succeeds if there is
  // nothing to end.
  virtual Task<> cancel(const PlaceRef& lease, const std::string& exec_id,
                        std::int64_t grace_ms) = 0;
  // The output of an ended command is no longer needed and may be deleted.
  virtual Task<> forget_output(const PlaceRef& lease, const std::string& exec_id);
  // What the lease holds ends by itself unless this is repeated in time.
  virtual Task<> renew(const PlaceRef& lease, std::int64_t deadline_ms) = 0;
  // execution_unsupported if the place does not count usage.
  virtual Task<Usage> usage(const PlaceRef& lease);
  // execution_unsupported if the place is not a folder of this machine.
  virtual Task<FileRoot> files(const PlaceRef& lease);
  // The alternative to files() for a remote place; nullptr if there is none either.
  virtual RemoteFiles* remote_files(const PlaceRef& /*lease*/) { return nullptr; }
  // A TCP connection to a port of the place's own loopback; port_unreachable if no process listens
  // there. execution_unsupported if others share that loopback: a lease must not give access to the
  // machine's services.
  virtual Task<Fd> dial(const PlaceRef& lease, std::uint16_t port);
  // The ports of that loopback that have a listener, found without running a command there.
  // execution_unsupported if only a command could find them.
  virtual Task<std::vector<std::uint16_t>> listening(const PlaceRef& lease);
  // Sets what the place may reach from now on, and reads the decisions. execution_unsupported if
  // the place has no egress gateway.
  virtual Task<> set_egress(const PlaceRef& lease, core::LinuxEgress policy);
  virtual Task<EgressPage> egress_log(const PlaceRef& lease, std::uint64_t offset);
};

}  // namespace berth::execution
