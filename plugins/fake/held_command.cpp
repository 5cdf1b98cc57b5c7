#include "fake/held_command.hpp"

#include "base/clock.hpp"
#include "base/files.hpp"
#include "base/random.hpp"
#include "base/remove_tree.hpp"
#include "keeper/protocol/output.hpp"
#include "sdk/live_output.hpp"
#include "sdk/program.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <thread>

namespace berth::fake {
namespace {

using namespace std::chrono_literals;

constexpr auto grace = 250ms;
constexpr auto renew_every = 10s;
constexpr auto lapse_after = 30s;
constexpr std::string_view exec_id = "command";

// A folder for one keeper's state, removed with it.
class KeeperFolder {
 public:
  static Result<KeeperFolder> make(const std::string& keepers_folder) {
    SystemRandom random;
    const std::string name = make_uuid(random, SystemClock{}.now());
    if (keepers_folder.empty()) return KeeperFolder{"/tmp/paperclip-fake-keeper-" + name};
    if (::mkdir(keepers_folder.c_str(), 0700) != 0 && errno != EEXIST) {
      return io_failure("mkdir", keepers_folder, errno);
    }
    return KeeperFolder{keepers_folder + "/" + name};
  }
  KeeperFolder(KeeperFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  KeeperFolder& operator=(KeeperFolder&&) = delete;
  KeeperFolder(const KeeperFolder&) = delete;
  KeeperFolder& operator=(const KeeperFolder&) = delete;
  // What could not be removed is removed with the sandbox.
  ~KeeperFolder() {
    if (!path_.empty()) (void)remove_tree(path_);
  }
  const std::string& path() const { return path_; }

 private:
  explicit KeeperFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// Renews the keeper while its command runs, on another connection than the output.
class Renewal {
 public:
  explicit Renewal(std::string folder) : folder_(std::move(folder)) {}

  void when_due() {
    const auto now = std::chrono::steady_clock::now();
    if (now < next_) return;
    next_ = now + renew_every;
    if (!client_) {
      auto socket = keeper::connect_keeper(folder_);
      if (!socket) return;  // it has ended: the other connection reports how
      client_.emplace(*std::move(socket));
    }
    (void)client_->renew(lapse_after);
  }

 private:
  std::string folder_;
  std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now() + renew_every;
  std::optional<keeper::KeeperClient> client_;
};

// An output record has its stream in its header; pieces arrive as the file has them.
class Records {
 public:
  explicit Records(sdk::LiveOutput& output) : output_(output) {}

  void add(std::string_view bytes) {
    pending_ += bytes;
    std::size_t used = 0;
    while (pending_.size() - used >= keeper::record_header_bytes) {
      const std::string_view rest = std::string_view{pending_}.substr(used);
      const auto header = keeper::decode_header(rest);
      if (!header || rest.size() < keeper::record_header_bytes + header->size) break;
      say(header->stream, rest.substr(keeper::record_header_bytes, header->size));
      used += keeper::record_header_bytes + header->size;
    }
    pending_.erase(0, used);
  }

 private:
  void say(keeper::Stream stream, std::string_view bytes) {
    if (stream == keeper::Stream::out) output_.add(sdk::Stream::stdout_, bytes);
    if (stream == keeper::Stream::err) output_.add(sdk::Stream::stderr_, bytes);
  }

  sdk::LiveOutput& output_;
  std::string pending_;
};

// Follows the output to the end, however long that takes: a silent period is only the time to
// renew.
Result<keeper::Ended> follow(keeper::KeeperClient& client, const std::string& folder,
                             sdk::LiveOutput& output) {
  Renewal renewal{folder};
  Records records{output};
  const std::uint64_t request = client.send(keeper::Attach{.exec_id = std::string{exec_id}});
  while (true) {
    const Result<keeper::Frame> frame = client.frame_for(request, renew_every);
    renewal.when_due();
    if (!frame && frame.error().code == Errc::timed_out) continue;
    if (!frame) return std::unexpected(frame.error());
    if (frame->verb == keeper::Verb::ended) return keeper::decode<keeper::Ended>(*frame);
    BERTH_TRY(const keeper::Output piece, keeper::decode<keeper::Output>(*frame));
    records.add(piece.bytes);
  }
}

// Sends input that is too large for the request, as fast as the command reads, on its own thread
// and connection. It ends with the input or with the command.
class Feeder {
 public:
  Feeder(const std::string& folder, const std::optional<std::string>& input) {
    if (!input || !is_fed(*input)) return;
    thread_ = std::jthread{[folder, &input = *input] { feed(folder, input); }};
  }
  static bool is_fed(const std::string& input) { return input.size() > small_input_bytes; }

 private:
  static void feed(const std::string& folder, const std::string& input) {
    auto socket = keeper::connect_keeper(folder);
    if (!socket) return;
    keeper::KeeperClient client{*std::move(socket)};
    for (std::size_t at = 0; at < input.size(); at += piece_bytes) {
      const keeper::Write piece{.exec_id = std::string{exec_id},
                                .bytes = input.substr(at, piece_bytes)};
      const auto limit = std::chrono::milliseconds{keeper::limits::deadline_ms};
      if (!client.answer_to<keeper::Done>(client.send(piece), limit)) return;
    }
    (void)client.close_stdin(std::string{exec_id});
  }

  static constexpr std::size_t small_input_bytes = std::size_t{512} << 10;
  static constexpr std::size_t piece_bytes = std::size_t{256} << 10;
  std::jthread thread_;
};

keeper::Exec exec_of(const HeldCommand& command) {
  return {.exec_id = std::string{exec_id},
          .argv = command.argv,
          .environment = command.environment,
          .cwd = command.cwd,
          .stdin_kind = !command.stdin_bytes                   ? keeper::Stdin::none
                        : Feeder::is_fed(*command.stdin_bytes) ? keeper::Stdin::pipe
                                                               : keeper::Stdin::bytes,
          .stdin_bytes = command.stdin_bytes && !Feeder::is_fed(*command.stdin_bytes)
                             ? *command.stdin_bytes
                             : std::string{},
          .deadline_ms = command.timeout_ms > 0
                             ? std::min(static_cast<std::uint64_t>(command.timeout_ms) + 1,
                                        keeper::limits::deadline_ms)
                             : 0,
          .grace_ms = grace.count()};
}

sdk::Executed executed_of(const keeper::Ended& ended) {
  sdk::Executed executed;
  executed.timed_out = ended.outcome == keeper::Outcome::timed_out;
  if (executed.timed_out || ended.signal != 0) {
    const char* name = ::sigabbrev_np(ended.signal);
    if (ended.signal != 0 && name != nullptr) executed.signal = std::string{"SIG"} + name;
  } else {
    executed.exit_code = ended.code;
  }
  return executed;
}

}  // namespace

Result<sdk::Executed> HeldCommands::run(const HeldCommand& command, sdk::Call& call) {
  BERTH_TRY(const KeeperFolder folder, KeeperFolder::make(command.keepers_folder));
  {
    const std::lock_guard lock{lock_};
    folders_.insert(folder.path());
  }
  Result<sdk::Executed> executed = run_in(folder.path(), command, call);
  const std::lock_guard lock{lock_};
  folders_.erase(folder.path());
  return executed;
}

Result<sdk::Executed> HeldCommands::run_in(const std::string& folder, const HeldCommand& command,
                                           sdk::Call& call) {
  BERTH_TRY(
      keeper::SpawnedKeeper spawned,
      keeper::spawn_keeper({.program = sdk::program_folder() + "/berth-keeper", .folder = folder}));
  keeper::KeeperClient client{std::move(spawned.control)};
  BERTH_DO(client.renew(lapse_after));
  sdk::LiveOutput output{call};
  Result<keeper::Ended> ended = fail(Errc::bug, "the command was not followed");
  const Result<keeper::Started> started = client.exec(exec_of(command));
  if (started) {
    const Feeder feeder{folder, command.stdin_bytes};
    ended = follow(client, folder, output);
    (void)client.stop(grace);
  } else {
    (void)client.stop(grace);
  }
  if (!started) return std::unexpected(started.error());
  if (!ended) return std::unexpected(std::move(ended).error());
  sdk::Executed executed = executed_of(*ended);
  output.finish(executed);
  return executed;
}

void HeldCommands::stop_all() {
  const std::lock_guard lock{lock_};
  for (const std::string& folder : folders_) {
    auto socket = keeper::connect_keeper(folder);
    if (socket) (void)keeper::KeeperClient{*std::move(socket)}.stop(grace);
  }
}

Result<> stop_keepers(const std::string& keepers_folder) {
  const auto names = names_in(keepers_folder);
  if (!names) return {};  // no command ever ran there
  for (const std::string& name : *names) {
    auto socket = keeper::connect_keeper(keepers_folder + "/" + name);
    if (!socket) continue;  // it has ended by itself
    BERTH_DO(keeper::KeeperClient{*std::move(socket)}.stop(grace));
  }
  return {};
}

}  // namespace berth::fake
