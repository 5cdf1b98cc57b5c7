#include "keeper/holder/warden.hpp"

#include "base/files.hpp"
#include "keeper/holder/process_tree.hpp"
#include "keeper/protocol/descriptors.hpp"
#include "keeper/protocol/exec_journal.hpp"
#include "keeper/protocol/protocol.hpp"
#include "keeper/protocol/state_folder.hpp"
#include "keeper/sandbox/cell.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace berth::keeper {
namespace {

// What a warden has open between commands; its stdin, stdout and stderr are /dev/null.
constexpr int warden_channel_fd = 3;
constexpr int children_fd = 4;  // readable when a child has ended
constexpr int warden_first_free_fd = 5;
constexpr std::int64_t kill_limit_ms = 10'000;
constexpr int kill_pause_ms = 10;

std::int64_t monotonic_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
}

std::uint64_t as_us(const timeval& time) {
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000 +
         static_cast<std::uint64_t>(time.tv_usec);
}

std::uint64_t cpu_us_so_far() {
  std::uint64_t sum = 0;
  for (const auto who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    ::getrusage(who, &usage);
    sum += as_us(usage.ru_utime) + as_us(usage.ru_stime);
  }
  return sum;
}

enum class Place : std::uint8_t { outside, inside };

class Watch {
 public:
  Watch(const Exec& exec, Place place) : exec_(exec), place_(place) {}

  // Returns when nothing of the tree is left.
  void run(ChildEnds ends, rlimit open_files) {
    if (!start(std::move(ends), open_files)) return;
    while (true) {
      reap();
      if (!has_children_) return send(Report::Kind::gone);
      say_main_ended();
      std::array<pollfd, 2> wanted{pollfd{warden_channel_fd, POLLIN, 0},
                                   pollfd{children_fd, POLLIN, 0}};
      ::poll(wanted.data(), wanted.size(), -1);
      if (wanted[1].revents != 0) forget_signal();
      if (wanted[0].revents != 0) take_order();
    }
  }

 private:
  bool start(ChildEnds ends, rlimit open_files) {
    const Launch launch{exec_, open_files};
    StartFailure failure;
    report_.pid = launch.run(ends, failure);
    // From here on only the tree holds the pipes, so they end when the tree does.
    ends = {};
    if (failure.step != Step::none) {
      report_.failed_step = failure.step;
      report_.failed_errno = failure.error_number;
      report_.command_exists = exists_somewhere(exec_) ? 1 : 0;
      send(Report::Kind::failed);
      return false;
    }
    report_.cpu_us_before = cpu_us_so_far();
    send(Report::Kind::started);
    return true;
  }

  void send(Report::Kind kind) {
    report_.kind = kind;
    ::send(warden_channel_fd, &report_, sizeof report_, MSG_NOSIGNAL);
  }

  // The signal is not queued: however many children have ended, it is pending once.
  void forget_signal() {
    signalfd_siginfo ignored{};
    const ssize_t got = ::read(children_fd, &ignored, sizeof ignored);
    static_cast<void>(got);
  }

  void reap() {
    int status = 0;
    pid_t pid = 0;
    rusage usage{};
    while ((pid = ::wait4(-1, &status, WNOHANG, &usage)) > 0) {
      add(usage);
      if (pid != report_.pid) continue;
      report_.status = status;
      report_.ended_us = wall_clock_us();
      main_ended_ = true;
    }
    has_children_ = pid == 0;
  }

  void say_main_ended() {
    if (main_ended_ && !std::exchange(main_ended_said_, true)) send(Report::Kind::main_ended);
  }

  // The kernel's totals for this process include every command that it has ever watched.
  void add(const rusage& usage) {
    TreeUsage& sum = report_.usage;
    sum.user_us += as_us(usage.ru_utime);
    sum.system_us += as_us(usage.ru_stime);
    sum.resident_bytes_max =
        std::max(sum.resident_bytes_max, static_cast<std::uint64_t>(usage.ru_maxrss) * 1024);
    sum.major_faults += static_cast<std::uint64_t>(usage.ru_majflt);
    sum.blocks_in += static_cast<std::uint64_t>(usage.ru_inblock);
    sum.blocks_out += static_cast<std::uint64_t>(usage.ru_oublock);
  }

  void take_order() {
    Order order;
    const ssize_t got = ::recv(warden_channel_fd, &order, sizeof order, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got != sizeof order) return keeper_died();
    switch (order.kind) {
      case Order::Kind::signal:
        if (!main_ended_) ::kill(-report_.pid, order.number);
        return;
      case Order::Kind::terminate:
        for (const pid_t pid : descendants_of(::getpid())) {
          ::kill(pid, SIGTERM);
          ::kill(pid, SIGCONT);  // a stopped process handles its signals when it continues
        }
        return;
      case Order::Kind::kill:
        report_.left_behind = kill_everything();
        if (report_.left_behind == 0) return;
        // Processes that cannot be killed become the keeper's, and this warden takes no other
        // command.
        send(Report::Kind::gone);
        ::_exit(0);
    }
  }

  // The output has no reader any more, and no process would ever end this tree. So the warden ends
  // it here, and writes the exit record once that is done.
  [[noreturn]] void keeper_died() {
    Ended ended{.exec_id = exec_.exec_id,
                .fingerprint = fingerprint(exec_),
                .outcome = Outcome::lost,
                .pid = report_.pid};
    ended.left_behind = kill_everything();
    // The outcome may be recorded already: a lingering tree outlives its command.
    if (place_ == Place::inside || read_exit(".", exec_.exec_id)) ::_exit(0);
    ended.message = "the keeper was killed; its process tree was killed then";
    ended.ended_us = wall_clock_us();
    struct stat output{};
    if (::stat(output_file(exec_.exec_id).c_str(), &output) == 0) {
      ended.output_end = static_cast<std::uint64_t>(output.st_size);
    }
    ::_exit(ExecJournal{"."}.append(ended) ? 0 : 1);
  }

  // Returns how many processes are left after all attempts: processes of other users, and those
  // that the kernel cannot end now.
  std::uint32_t kill_everything() {
    if (!exec_.cgroup_dir.empty()) {
      const Fd file{::open((exec_.cgroup_dir + "/cgroup.kill").c_str(), O_WRONLY | O_CLOEXEC)};
      // A version 1 cgroup has no such file; the rest of this function works without it.
      if (file && ::write(file.get(), "1", 1) != 1) ::kill(-report_.pid, SIGKILL);
    }
    // To the kernel this is one step, which no fork in the group can escape.
    if (!main_ended_) ::kill(-report_.pid, SIGKILL);
    stop_descendants_of(::getpid());
    const std::int64_t give_up_at = monotonic_ms() + kill_limit_ms;
    while (true) {
      const std::vector<pid_t> tree = descendants_of(::getpid());
      for (const pid_t pid : tree) ::kill(pid, SIGKILL);
      reap();
      if (!has_children_) return 0;
      // Seeing no process does not mean that there is none.
      if (monotonic_ms() >= give_up_at) {
        return static_cast<std::uint32_t>(std::max<std::size_t>(tree.size(), 1));
      }
      pollfd child{children_fd, POLLIN, 0};
      ::poll(&child, 1, kill_pause_ms);
      forget_signal();
    }
  }

  const Exec& exec_;
  Place place_;
  Report report_;
  bool has_children_ = true;
  bool main_ended_ = false;
  bool main_ended_said_ = false;
};

// Moves every descriptor to its place without overwriting one that is still to be moved: first all
// of them above the places, then down.
void arrange(const std::array<int, warden_first_free_fd>& wanted) {
  std::array<int, warden_first_free_fd> high{};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    high[i] = ::fcntl(wanted[i], F_DUPFD_CLOEXEC, warden_first_free_fd);
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) ::dup2(high[i], static_cast<int>(i));
  // The rest includes the keeper's ends of other execs' pipes, which would then never close.
  ::close_range(warden_first_free_fd, ~0U, 0);
}

void become_warden(int channel) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::prctl(PR_SET_NAME, "berth-warden");
  sigset_t child;
  ::sigemptyset(&child);
  ::sigaddset(&child, SIGCHLD);
  const int children = ::signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  arrange({null, null, null, channel, children});
}

// A command on its way to a warden: the request as a frame, and the descriptors for its stdout,
// stderr and, unless it has no input, stdin. A frame that is too long for a packet is sent as a
// file, which is the last descriptor.
constexpr std::size_t warden_packet_bytes_max = std::size_t{64} << 10;
constexpr std::string_view in_file = "f";

Fd file_of(std::string_view bytes) {
  Fd file{::memfd_create("command", MFD_CLOEXEC)};
  while (file && !bytes.empty()) {
    const ssize_t wrote = ::write(file.get(), bytes.data(), bytes.size());
    if (wrote <= 0) return {};
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return file;
}

Result<> hand_over(const Warden& waiting, const Exec& exec, const ChildEnds& ends) {
  std::string packet;
  append_frame(packet, 0, exec);
  std::vector<int> passed{ends.out.get(), ends.err.get()};
  if (ends.in) passed.push_back(ends.in.get());
  Fd file;
  if (packet.size() > warden_packet_bytes_max) {
    file = file_of(packet);
    if (!file) return io_failure("write", "a command in memory", errno);
    passed.push_back(file.get());
    packet = in_file;
  }
  if (send_with(waiting.channel.get(), packet, passed, MSG_NOSIGNAL) < 0) {
    return io_failure("send", "a warden", errno);
  }
  return {};
}

// A process with the warden's uid can change its scheduling, and the next command, perhaps of
// another run, would inherit it. Such a warden is not reused.
bool is_scheduled_like_us(pid_t pid) {
  constexpr int one_process = 1;
  cpu_set_t ours;
  cpu_set_t its;
  CPU_ZERO(&ours);
  CPU_ZERO(&its);
  ::sched_getaffinity(0, sizeof ours, &ours);
  ::sched_getaffinity(pid, sizeof its, &its);
  const auto id = static_cast<id_t>(pid);
  return CPU_EQUAL(&ours, &its) && ::sched_getscheduler(pid) == ::sched_getscheduler(0) &&
         ::getpriority(PRIO_PROCESS, id) == ::getpriority(PRIO_PROCESS, 0) &&
         ::syscall(SYS_ioprio_get, one_process, pid) == ::syscall(SYS_ioprio_get, one_process, 0);
}

struct Command {
  Exec exec;
  ChildEnds ends;
};

// The next command. An order that came too late for the previous one is skipped.
Result<Command> take_command() {
  // Pages that no packet reaches are never allocated.
  static std::array<char, warden_packet_bytes_max> packet;
  pollfd wanted{warden_channel_fd, POLLIN, 0};
  std::vector<Fd> passed;
  ssize_t got = 0;
  do {
    while (::poll(&wanted, 1, -1) < 0) {
    }
    got = receive_with(warden_channel_fd, packet, passed, 0);
    if (got <= 0) ::_exit(0);  // the keeper no longer needs it
  } while (passed.size() < 2);
  FrameReader reader;
  const std::string_view received{packet.data(), static_cast<std::size_t>(got)};
  if (received == in_file) {
    const Fd file = std::move(passed.back());
    passed.pop_back();
    ::lseek(file.get(), 0, SEEK_SET);
    BERTH_TRY(const std::string frame,
              read_fd(file.get(), limits::exec_frame_bytes + 16, "a command"));
    reader.feed(frame);
  } else {
    reader.feed(received);
  }
  BERTH_TRY(const std::optional<Frame> frame, reader.next());
  if (!frame) return fail(Errc::keeper_protocol, "a command came without its end");
  Command command;
  BERTH_TRY(command.exec, decode<Exec>(*frame));
  command.ends.out = std::move(passed[0]);
  command.ends.err = std::move(passed[1]);
  if (passed.size() > 2) command.ends.in = std::move(passed[2]);
  return command;
}

[[noreturn]] void serve_commands(rlimit open_files, Place place) {
  while (true) {
    Result<Command> next = take_command();
    if (!next) ::_exit(1);
    Watch{next->exec, place}.run(std::move(next->ends), open_files);
  }
}

}  // namespace

ssize_t receive_report(Warden& from, Report& report) {
  iovec part{.iov_base = &report, .iov_len = sizeof report};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(ucred))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t got = ::recvmsg(from.channel.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  const cmsghdr* header = got > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
  if (header == nullptr || header->cmsg_type != SCM_CREDENTIALS || from.pid != 0) return got;
  // The kernel reports the sender, in the reader's pid namespace.
  ucred sender{};
  std::memcpy(&sender, CMSG_DATA(header), sizeof sender);
  from.pid = sender.pid;
  return got;
}

void run_waiting_warden(Fd channel, rlimit open_files) {
  become_warden(channel.get());
  const Report here{.kind = Report::Kind::waiting};
  ::send(warden_channel_fd, &here, sizeof here, MSG_NOSIGNAL);
  serve_commands(open_files, Place::inside);
}

void Wardens::confine(sandbox::Cell& cell) {
  idle_.clear();
  cell_ = &cell;
  // A sandbox is made to run something, so its first warden starts while the answer is being sent.
  if (Result<Warden> first = make()) idle_.push_back(*std::move(first));
}

Result<Warden> Wardens::make() const {
  std::array<int, 2> pair{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair.data()) != 0) {
    return io_failure("socketpair", "a warden", errno);
  }
  Warden made{.pid = 0, .channel = Fd{pair[0]}};
  const Fd theirs{pair[1]};
  if (cell_ != nullptr) {
    const int on = 1;
    ::setsockopt(made.channel.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
    BERTH_DO(cell_->start_warden(theirs.get()));
    return made;
  }
  made.pid = ::fork();
  if (made.pid < 0) return io_failure("fork", "a warden", errno);
  if (made.pid == 0) {
    become_warden(theirs.get());
    serve_commands(open_files_, Place::outside);
  }
  return made;
}

std::uint64_t Wardens::new_oom_kills() const {
  return cell_ != nullptr ? cell_->new_oom_kills() : 0;
}

Result<Fd> Wardens::open_terminal() const {
  if (cell_ != nullptr) return cell_->open_terminal();
  Fd master{::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)};
  if (!master) return io_failure("open", "terminal", errno);
  return master;
}

Result<Warden> Wardens::start(const Exec& exec, ChildEnds ends) {
  ++started_;
  while (!idle_.empty()) {
    Warden idle = std::move(idle_.back());
    idle_.pop_back();
    // A warden that has not sent its pid yet has not run a command yet.
    if (idle.pid != 0 && !is_scheduled_like_us(idle.pid)) continue;
    if (hand_over(idle, exec, ends)) return idle;
  }
  BERTH_TRY(Warden made, make());
  // The warden is still starting; the command waits for it in the channel.
  BERTH_DO(hand_over(made, exec, ends));
  return made;
}

void Wardens::take_back(Warden warden) {
  constexpr int reuse_from_command = 2;
  constexpr std::size_t idle_max = 2;
  if (retired_ || started_ < reuse_from_command || idle_.size() >= idle_max) return;
  idle_.push_back(std::move(warden));
}

void Wardens::retire() {
  retired_ = true;
  dismiss();
}

bool Wardens::has_idle(pid_t pid) const {
  return std::ranges::any_of(idle_, [pid](const Warden& idle) { return idle.pid == pid; });
}

}  // namespace berth::keeper
