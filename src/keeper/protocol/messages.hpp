#pragma once

#include "keeper/protocol/fields.hpp"
#include "keeper/sandbox/plan.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

// The messages between a client and a keeper. docs/keeper.md has the table of verbs.
namespace berth::keeper {

inline constexpr std::uint32_t protocol_version = 1;

namespace limits {

inline constexpr std::size_t frame_bytes = std::size_t{1} << 20;
inline constexpr std::size_t exec_frame_bytes = std::size_t{4} << 20;
// argv and environment with their pointers: what Linux allows with a stack of 8 MB.
inline constexpr std::size_t command_bytes = std::size_t{2} << 20;
inline constexpr std::size_t command_string_bytes = (std::size_t{128} << 10) - 1;  // Linux's
inline constexpr std::size_t stdin_bytes = std::size_t{1} << 20;  // not yet read by one exec
inline constexpr std::size_t exec_id_bytes = 64;
inline constexpr std::size_t live_execs = 256;
inline constexpr std::size_t clients = 64;
inline constexpr std::size_t waiting = 1024;  // requests that wait for one event of one exec
inline constexpr std::size_t client_backlog_bytes = std::size_t{1} << 20;
inline constexpr std::uint64_t grace_ms = 10ULL * 60 * 1000;
inline constexpr std::uint64_t deadline_ms = 30ULL * 24 * 60 * 60 * 1000;
// How long a keeper lives before its first renewal.
inline constexpr std::uint64_t first_deadline_ms = 60'000;

}  // namespace limits

enum class Verb : std::uint8_t {
  none,
  // requests
  hello,
  exec,
  write,
  close_stdin,
  signal,
  resize,
  attach,
  wait,
  stats,
  renew,
  cancel,
  stop,
  list,
  open,  // only for serve-stdio, as the first frame
  // answers
  welcome,
  done,
  refused,
  started,
  output,
  ended,
  usage,
  listing,
  // requests for the sandbox
  confine,
  root,
  listener,
  freeze,
  thaw,
  // and their answers
  confined,
  descriptor,
  // more requests for the sandbox: wire numbers never change
  dial,
  empty,
  remake,
  count_,
};

// Why an exec or a keeper is over. Files and wire use the name.
enum class Outcome : std::uint8_t {
  running,
  exited,
  signaled,
  timed_out,
  lapsed,
  stopped,
  failed_to_start,
  lost,  // its warden was killed; so was the tree
  count_,
};
std::string_view name_of(Outcome outcome);

// What a new process does between fork and exec, in this order.
enum class Step : std::uint8_t {
  none,
  session,
  terminal,
  cgroup,
  stdio,
  chdir,
  exec,
  fork,
  count_
};
std::string_view name_of(Step step);

enum class Stdin : std::uint8_t { none, bytes, pipe, count_ };
enum class Leftovers : std::uint8_t { kill, linger, count_ };

struct Hello {
  static constexpr Verb verb = Verb::hello;
  std::uint32_t version = protocol_version;
  static constexpr auto fields() { return std::tuple{field("version", &Hello::version)}; }
};

struct Welcome {
  static constexpr Verb verb = Verb::welcome;
  std::uint32_t version = protocol_version;
  std::int32_t pid = 0;
  std::string program_version = {};
  static constexpr auto fields() {
    return std::tuple{field("version", &Welcome::version), field("pid", &Welcome::pid),
                      field("program_version", &Welcome::program_version)};
  }
};

// A command to run. Repeating it with the same id and content returns the same answer and runs
// nothing.
struct Exec {
  static constexpr Verb verb = Verb::exec;
  std::string exec_id = {};
  std::vector<std::string> argv = {};
  std::vector<std::string> environment = {};  // NAME=value; nothing is inherited
  std::string cwd = {};
  Stdin stdin_kind = Stdin::none;
  std::string stdin_bytes = {};
  std::uint16_t rows = 0;  // a terminal if rows and columns are given
  std::uint16_t columns = 0;
  std::uint64_t deadline_ms = 0;  // 0: only the keeper's own deadline applies
  std::uint64_t grace_ms = 5000;  // between SIGTERM and SIGKILL
  std::uint64_t output_bytes_max = std::uint64_t{1} << 30;
  Leftovers leftovers = Leftovers::kill;
  std::string cgroup_dir = {};  // joined before exec, killed as a whole; empty: none

  bool has_terminal() const { return rows != 0 && columns != 0; }
  static constexpr auto fields() {
    return std::tuple{field("exec_id", &Exec::exec_id),
                      field("argv", &Exec::argv),
                      field("environment", &Exec::environment),
                      field("cwd", &Exec::cwd),
                      field("stdin_kind", &Exec::stdin_kind),
                      field("stdin_bytes", &Exec::stdin_bytes),
                      field("rows", &Exec::rows),
                      field("columns", &Exec::columns),
                      field("deadline_ms", &Exec::deadline_ms),
                      field("grace_ms", &Exec::grace_ms),
                      field("output_bytes_max", &Exec::output_bytes_max),
                      field("leftovers", &Exec::leftovers),
                      field("cgroup_dir", &Exec::cgroup_dir)};
  }
};

struct Started {
  static constexpr Verb verb = Verb::started;
  std::string exec_id = {};
  std::int32_t pid = 0;
  std::int64_t started_us = 0;
  static constexpr auto fields() {
    return std::tuple{field("exec_id", &Started::exec_id), field("pid", &Started::pid),
                      field("started_us", &Started::started_us)};
  }
};

// Answered when the command has received all of it. So a caller that waits for each answer never
// has more than one of these in flight.
struct Write {
  static constexpr Verb verb = Verb::write;
  std::string exec_id = {};
  std::string bytes = {};
  static constexpr auto fields() {
    return std::tuple{field("exec_id", &Write::exec_id), field("bytes", &Write::bytes)};
  }
};

struct CloseStdin {
  static constexpr Verb verb = Verb::close_stdin;
  std::string exec_id = {};
  static constexpr auto fields() { return std::tuple{field("exec_id", &CloseStdin::exec_id)}; }
};

// Sent to the command's process group.
struct Signal {
  static constexpr Verb verb = Verb::signal;
  std::string exec_id = {};
  std::int32_t number = 0;
  static constexpr auto fields() {
    return std::tuple{field("exec_id", &Signal::exec_id), field("number", &Signal::number)};
  }
};

struct Resize {
  static constexpr Verb verb = Verb::resize;
  std::string exec_id = {};
  std::uint16_t rows = 0;
  std::uint16_t columns = 0;
  static constexpr auto fields() {
    return std::tuple{field("exec_id", &Resize::exec_id), field("rows", &Resize::rows),
                      field("columns", &Resize::columns)};
  }
};

// Streams `output` answers from a record's offset on, then `ended`.
struct Attach {
  static constexpr Verb verb = Verb::attach;
  std::string exec_id = {};
  std::uint64_t offset = 0;
  static constexpr auto fields() {
    return std::tuple{field("exec_id", &Attach::exec_id), field("offset", &Attach::offset)};
  }
};

// Bytes of the output file from `offset` on: raw records, not cut at record boundaries.
struct Output {
  static constexpr Verb verb = Verb::output;
  std::uint64_t offset = 0;
  std::string bytes = {};
  static constexpr auto fields() {
    return std::tuple{field("offset", &Output::offset), field("bytes", &Output::bytes)};
  }
};

struct Wait {
  static constexpr Verb verb = Verb::wait;
  std::string exec_id = {};
  static constexpr auto fields() { return std::tuple{field("exec_id", &Wait::exec_id)}; }
};

struct Stats {
  static constexpr Verb verb = Verb::stats;
  std::string exec_id = {};  // empty: the whole keeper
  static constexpr auto fields() { return std::tuple{field("exec_id", &Stats::exec_id)}; }
};

struct Usage {
  static constexpr Verb verb = Verb::usage;
  std::uint64_t cpu_us = 0;          // of live processes and of children that they waited for
  std::uint64_t resident_bytes = 0;  // current
  std::uint32_t processes = 0;
  // For a whole sandbox, as counted by its cgroup. 0 if it has none; absent where 0 could be
  // mistaken for a real value.
  std::uint64_t memory_bytes_peak = 0;
  std::optional<std::uint64_t> read_bytes = {};
  std::optional<std::uint64_t> written_bytes = {};
  std::uint64_t oom_kills = 0;
  std::uint64_t processes_peak = 0;
  static constexpr auto fields() {
    return std::tuple{field("cpu_us", &Usage::cpu_us),
                      field("resident_bytes", &Usage::resident_bytes),
                      field("processes", &Usage::processes),
                      field("memory_bytes_peak", &Usage::memory_bytes_peak),
                      field("read_bytes", &Usage::read_bytes),
                      field("written_bytes", &Usage::written_bytes),
                      field("oom_kills", &Usage::oom_kills),
                      field("processes_peak", &Usage::processes_peak)};
  }
};

// The keeper expires this long from now unless it is renewed again.
struct Renew {
  static constexpr Verb verb = Verb::renew;
  std::uint64_t deadline_ms = 0;
  static constexpr auto fields() { return std::tuple{field("deadline_ms", &Renew::deadline_ms)}; }
};

// Ends one exec and everything that it left behind. Answered when it is over.
struct Cancel {
  static constexpr Verb verb = Verb::cancel;
  std::string exec_id = {};
  std::uint64_t grace_ms = 5000;
  static constexpr auto fields() {
    return std::tuple{field("exec_id", &Cancel::exec_id), field("grace_ms", &Cancel::grace_ms)};
  }
};

// Ends every exec and then the keeper. Answered when nothing is left.
struct Stop {
  static constexpr Verb verb = Verb::stop;
  std::uint64_t grace_ms = 5000;
  static constexpr auto fields() { return std::tuple{field("grace_ms", &Stop::grace_ms)}; }
};

struct List {
  static constexpr Verb verb = Verb::list;
  static constexpr auto fields() { return std::tuple{}; }
};

struct Listed {
  std::string exec_id = {};
  std::int32_t pid = 0;
  std::int64_t started_us = 0;
  std::uint64_t output_end = 0;
  static constexpr auto fields() {
    return std::tuple{field("exec_id", &Listed::exec_id), field("pid", &Listed::pid),
                      field("started_us", &Listed::started_us),
                      field("output_end", &Listed::output_end)};
  }
};

struct Listing {
  static constexpr Verb verb = Verb::listing;
  std::vector<Listed> live = {};
  static constexpr auto fields() { return std::tuple{field("live", &Listing::live)}; }
};

enum class OpenHow : std::uint8_t { attach, start, start_or_attach, count_ };

// The first frame to `serve-stdio`: selects the keeper for all later frames.
struct Open {
  static constexpr Verb verb = Verb::open;
  std::string keeper_id = {};
  OpenHow how = OpenHow::start_or_attach;
  static constexpr auto fields() {
    return std::tuple{field("keeper_id", &Open::keeper_id), field("how", &Open::how)};
  }
};

// Puts every later exec into a sandbox. Once per keeper, before its first exec.
struct Confine {
  static constexpr Verb verb = Verb::confine;
  sandbox::Plan plan = {};
  static constexpr auto fields() { return std::tuple{field("plan", &Confine::plan)}; }
};

// A feature that the plan requested or a newer kernel would provide, and this sandbox lacks.
struct Missing {
  std::string feature = {};
  std::string reason = {};
  std::string remedy = {};
  friend bool operator==(const Missing&, const Missing&) = default;
  static constexpr auto fields() {
    return std::tuple{field("feature", &Missing::feature), field("reason", &Missing::reason),
                      field("remedy", &Missing::remedy)};
  }
};

// The isolation that the sandbox actually has.
struct Confined {
  static constexpr Verb verb = Verb::confined;
  sandbox::Level level = sandbox::Level::weak;
  std::vector<std::string> features = {};
  std::vector<Missing> missing = {};
  std::int32_t init_pid = 0;  // as the host sees it
  static constexpr auto fields() {
    return std::tuple{field("level", &Confined::level), field("features", &Confined::features),
                      field("missing", &Confined::missing), field("init_pid", &Confined::init_pid)};
  }
};

enum class Part : std::uint8_t {
  root,   // the sandbox's /
  upper,  // what it has written to /
  count_,
};

// Answered with an O_PATH descriptor of a directory.
struct Root {
  static constexpr Verb verb = Verb::root;
  Part part = Part::root;
  static constexpr auto fields() { return std::tuple{field("part", &Root::part)}; }
};

// Answered with a socket that listens on 127.0.0.1 in the sandbox. Repeated requests for a port
// return the same socket.
struct Listener {
  static constexpr Verb verb = Verb::listener;
  std::uint16_t port = 0;
  static constexpr auto fields() { return std::tuple{field("port", &Listener::port)}; }
};

enum class LoopbackFamily : std::uint8_t { v4, v6, count_ };

// Answered with a socket that is connecting to a port of 127.0.0.1 or ::1 in the sandbox. The
// client waits for the connection: the service there may never accept it.
struct Dial {
  static constexpr Verb verb = Verb::dial;
  std::uint16_t port = 0;
  LoopbackFamily family = LoopbackFamily::v4;
  static constexpr auto fields() {
    return std::tuple{field("port", &Dial::port), field("family", &Dial::family)};
  }
};

// Stops all processes of the sandbox where they are.
struct Freeze {
  static constexpr Verb verb = Verb::freeze;
  static constexpr auto fields() { return std::tuple{}; }
};

struct Thaw {
  static constexpr Verb verb = Verb::thaw;
  static constexpr auto fields() { return std::tuple{}; }
};

// Ends everything in the sandbox but its first process, so that another run can use it. Answered
// once that has been verified. Refused if it was not, or if a command was lost, because the
// processes that it started are unknown.
struct Empty {
  static constexpr Verb verb = Verb::empty;
  static constexpr auto fields() { return std::tuple{}; }
};

// The same, and then a new sandbox with the same plan replaces this one. Only the plan's kept
// folder is carried over. Answered with Confined. After a refusal the sandbox must not be used any
// more.
struct Remake {
  static constexpr Verb verb = Verb::remake;
  static constexpr auto fields() { return std::tuple{}; }
};

// One open file accompanies the frame.
struct Descriptor {
  static constexpr Verb verb = Verb::descriptor;
  static constexpr auto fields() { return std::tuple{}; }
};

struct Done {
  static constexpr Verb verb = Verb::done;
  static constexpr auto fields() { return std::tuple{}; }
};

struct Refused {
  static constexpr Verb verb = Verb::refused;
  std::string code = {};  // the name of an Errc
  std::string message = {};
  std::string remedy = {};
  static constexpr auto fields() {
    return std::tuple{field("code", &Refused::code), field("message", &Refused::message),
                      field("remedy", &Refused::remedy)};
  }
};

// How an exec ended. Also its last record in the exec journal, which outlives the keeper.
struct Ended {
  static constexpr Verb verb = Verb::ended;
  std::string exec_id = {};
  std::uint64_t fingerprint = 0;  // of the request, to recognize a repetition
  Outcome outcome = Outcome::running;
  std::int32_t pid = 0;
  std::int32_t code = 0;    // exit status if the command exited, for whatever reason
  std::int32_t signal = 0;  // the signal that ended the command; 0 if it exited
  std::uint8_t dumped_core = 0;
  Step failed_step = Step::none;
  std::int32_t failed_errno = 0;
  std::string error_code = {};  // an Errc name if it failed to start or ran out of memory
  std::string message = {};
  std::string remedy = {};
  std::int64_t started_us = 0;
  std::int64_t ended_us = 0;
  std::uint64_t user_us = 0;
  std::uint64_t system_us = 0;
  std::uint64_t resident_bytes_max = 0;
  std::uint64_t major_faults = 0;
  std::uint64_t blocks_in = 0;
  std::uint64_t blocks_out = 0;
  std::uint64_t stdout_bytes = 0;  // written by the command, kept or not
  std::uint64_t stderr_bytes = 0;
  std::uint64_t bytes_over_limit = 0;  // of these, dropped because of the limit
  std::uint64_t bytes_lost = 0;        // of these, dropped because the disk refused them
  std::uint64_t output_end = 0;        // size of the output file
  std::uint32_t left_behind = 0;       // processes that could not be killed
  std::uint64_t oom_kills = 0;         // in its sandbox while it ran
  static constexpr auto fields() {
    return std::tuple{field("exec_id", &Ended::exec_id),
                      field("fingerprint", &Ended::fingerprint),
                      field("outcome", &Ended::outcome),
                      field("pid", &Ended::pid),
                      field("code", &Ended::code),
                      field("signal", &Ended::signal),
                      field("dumped_core", &Ended::dumped_core),
                      field("failed_step", &Ended::failed_step),
                      field("failed_errno", &Ended::failed_errno),
                      field("error_code", &Ended::error_code),
                      field("message", &Ended::message),
                      field("remedy", &Ended::remedy),
                      field("started_us", &Ended::started_us),
                      field("ended_us", &Ended::ended_us),
                      field("user_us", &Ended::user_us),
                      field("system_us", &Ended::system_us),
                      field("resident_bytes_max", &Ended::resident_bytes_max),
                      field("major_faults", &Ended::major_faults),
                      field("blocks_in", &Ended::blocks_in),
                      field("blocks_out", &Ended::blocks_out),
                      field("stdout_bytes", &Ended::stdout_bytes),
                      field("stderr_bytes", &Ended::stderr_bytes),
                      field("bytes_over_limit", &Ended::bytes_over_limit),
                      field("bytes_lost", &Ended::bytes_lost),
                      field("output_end", &Ended::output_end),
                      field("left_behind", &Ended::left_behind),
                      field("oom_kills", &Ended::oom_kills)};
  }
};

}  // namespace berth::keeper
