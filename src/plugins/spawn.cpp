#include "plugins/spawn.hpp"

#include "base/files.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

namespace berth::plugins {
namespace {

struct Pipe {
  Fd read;
  Fd write;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return io_failure("make", "a pipe", errno);
  return Pipe{Fd{ends[0]}, Fd{ends[1]}};
}

// Both ends of the channel on which the keeper reports. It preserves packet boundaries.
Result<Pipe> make_report_channel() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return io_failure("make", "a socket pair", errno);
  }
  return Pipe{Fd{ends[0]}, Fd{ends[1]}};
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

class FileActions {
 public:
  FileActions() { ::posix_spawn_file_actions_init(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  ~FileActions() { ::posix_spawn_file_actions_destroy(&actions_); }

  void put(const Fd& file, int as) {
    ::posix_spawn_file_actions_adddup2(&actions_, file.get(), as);
  }
  void start_in(const std::string& folder) {
    ::posix_spawn_file_actions_addchdir_np(&actions_, folder.c_str());
  }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

}  // namespace

Result<Spawned> spawn_program(const WorkerCommand& command, const Launching& launching) {
  const uid_t uid = launching.user ? launching.user->uid : ::geteuid();
  const gid_t gid = launching.user ? launching.user->gid : ::getegid();
  std::vector<std::string> words{launching.keeper_program, "plugin", std::to_string(uid),
                                 std::to_string(gid), std::to_string(launching.memory_bytes_max)};
  if (launching.box) {
    std::vector<std::string> box = keeper::words_of(*launching.box);
    words.insert(words.end(), std::make_move_iterator(box.begin()),
                 std::make_move_iterator(box.end()));
  }
  words.emplace_back("--");
  words.insert(words.end(), command.argv.begin(), command.argv.end());
  std::vector<std::string> variables;
  for (const auto& [name, value] : command.environment) variables.push_back(name + "=" + value);

  BERTH_TRY(Pipe in, make_pipe());
  BERTH_TRY(Pipe out, make_pipe());
  BERTH_TRY(Pipe err, make_pipe());
  FileActions files;
  files.put(in.read, STDIN_FILENO);
  files.put(out.write, STDOUT_FILENO);
  files.put(err.write, STDERR_FILENO);
  Pipe report;
  if (launching.box) {
    BERTH_TRY(report, make_report_channel());
    files.put(report.write, keeper::box_report_descriptor);
  }
  files.start_in(command.folder);
  std::vector<char*> argv = pointers_to(words);
  std::vector<char*> environment = pointers_to(variables);
  Spawned spawned;
  const int error = ::posix_spawn(&spawned.pid, launching.keeper_program.c_str(), files.get(),
                                  nullptr, argv.data(), environment.data());
  if (error != 0) {
    return io_failure("start " + launching.keeper_program + " in", command.folder, error);
  }
  spawned.in = std::move(in.write);
  spawned.out = std::move(out.read);
  spawned.err = std::move(err.read);
  spawned.report = std::move(report.read);
  return spawned;
}

}  // namespace berth::plugins
