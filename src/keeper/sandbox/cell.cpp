#include "keeper/sandbox/cell.hpp"

#include "base/files.hpp"
#include "keeper/holder/process_tree.hpp"
#include "keeper/protocol/descriptors.hpp"
#include "keeper/sandbox/enter.hpp"
#include "keeper/sandbox/init.hpp"
#include "keeper/sandbox/isolation.hpp"
#include "keeper/sandbox/kept_folder.hpp"
#include "keeper/sandbox/orders.hpp"
#include "keeper/sandbox/user_namespaces.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace berth::keeper::sandbox {
namespace {

constexpr int setup_limit_ms = 30'000;
constexpr int reply_limit_ms = 5'000;
constexpr int death_limit_ms = 10'000;
constexpr std::string_view init_name = "berth-init";
constexpr std::size_t listeners_max = 64;

// The mount namespace comes last: it copies the host's mounts at the moment when the plan is known.
constexpr std::uint64_t usual_namespaces = CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS;

// Keepers that run at the same time have different ranges, unless their pids are a multiple of the
// count apart.
std::uint32_t own_range() {
  return id_ranges::first +
         static_cast<std::uint32_t>(::getpid()) % id_ranges::count * plan_limits::ids;
}

// In the sandbox, a bound directory's owner and group appear as the sandbox's user and group. Stops
// at a missing source, which pid 1 then reports.
Result<std::vector<UserNamespace>> maps_for_binds(const Plan& plan, std::uint32_t first_id) {
  std::vector<UserNamespace> maps;
  for (const Bind& bind : plan.binds) {
    struct stat source{};
    if (::stat(bind.source.c_str(), &source) != 0) break;
    const IdMap users{.inside = source.st_uid, .outside = first_id + plan.user.uid};
    const IdMap groups{.inside = source.st_gid, .outside = first_id + plan.user.gid};
    BERTH_TRY(UserNamespace map, UserNamespace::make(users, groups));
    maps.push_back(std::move(map));
  }
  return maps;
}

std::unexpected<Error> without_ids(const Error& why) {
  return fail(Errc::sandbox_unavailable, "the sandbox could not be made: " + why.message,
              "run as root with CAP_SYS_ADMIN, CAP_SETUID and CAP_SETGID, or as another user");
}

std::unexpected<Error> refuse_lone_root() {
  return fail(
      Errc::sandbox_unavailable,
      "the sandbox could not be made: the server is this machine's root in a user namespace "
      "that has no other ids, so every command would be this machine's root too",
      "run the server outside of that user namespace, or as an ordinary user");
}

bool await(int fd, int limit_ms) {
  pollfd wanted{fd, POLLIN, 0};
  int ready = 0;
  do {
    ready = ::poll(&wanted, 1, limit_ms);
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

template <class Packet>
std::string_view bytes_of(const Packet& packet) {
  return {reinterpret_cast<const char*>(&packet), sizeof packet};
}

template <class Packet>
std::span<char> room_of(Packet& packet) {
  return {reinterpret_cast<char*>(&packet), sizeof packet};
}

// Teardown continues; a later sweep removes what is left.
void regardless_of(const Result<>& /*result*/) {}

// The host accepts from this socket or writes to it, so its kind must be verified.
bool is_what_was_asked_for(int socket, InitRequest::Kind kind) {
  int listens = 0;
  int family = 0;
  int protocol = 0;
  socklen_t size = sizeof listens;
  if (::getsockopt(socket, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0) return false;
  if (::getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &family, &size) != 0) return false;
  if (::getsockopt(socket, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) != 0) return false;
  const int wanted_family = kind == InitRequest::Kind::dial_v6 ? AF_INET6 : AF_INET;
  const int wanted_listens = kind == InitRequest::Kind::listener ? 1 : 0;
  return protocol == IPPROTO_TCP && family == wanted_family && listens == wanted_listens;
}

[[noreturn]] void become_init(const Setup& setup, const Surroundings& surroundings) {
  const SetupReport report = enter(setup);
  const bool good = report.failed == Phase::none;
  const std::array passed{root_descriptor, upper_descriptor, tray_descriptor};
  const bool has_tray = good && ::fcntl(tray_descriptor, F_GETFD) >= 0;
  send_with(good ? control_descriptor : setup.control, bytes_of(report),
            std::span{passed}.first(good ? (has_tray ? 3 : 2) : 0), MSG_NOSIGNAL);
  if (!good) ::_exit(1);
  for (const int descriptor : passed) ::close(descriptor);
  // Every process inside can read it, and it contains host paths.
  std::ranges::fill(surroundings.command_line, '\0');
  init_name.copy(surroundings.command_line.data(), surroundings.command_line.size());
  run_init(control_descriptor, preference_descriptor,
           report.files_of_commands(surroundings.open_files));
}

}  // namespace

Kind kind_of(const Plan& plan) {
  return {.network = plan.allows<AllowHostNetwork>() ? Network::host : Network::own,
          .first_id = plan.uid_base};
}

Result<std::unique_ptr<Cell>> Cell::make(const Plan& plan, const Surroundings& surroundings) {
  BERTH_DO(check(plan));
  BERTH_TRY(std::unique_ptr<Cell> cell, conceive(kind_of(plan), surroundings));
  BERTH_DO(cell->become(plan));
  return cell;
}

Result<std::unique_ptr<Cell>> Cell::conceive(const Kind& kind, const Surroundings& surroundings) {
  const CgroupLayout layout =
      surroundings.layout != nullptr ? *surroundings.layout : detect_layout();
  BERTH_TRY(Cgroup cgroup, Cgroup::make(layout, surroundings.id, Limits{}));
  std::unique_ptr<Cell> cell{new Cell{kind, std::move(cgroup)}};
  BERTH_DO(cell->start(surroundings));
  return cell;
}

Result<std::unique_ptr<Cell>> Cell::remake(std::unique_ptr<Cell> former, const Plan& plan,
                                           const Surroundings& surroundings) {
  Fd tray = std::move(former->tray_);
  former->kill();
  if (!former->is_empty()) {
    return fail(Errc::timed_out, "the sandbox: some of its processes cannot be killed",
                "make another one");
  }
  former.reset();
  if (tray) BERTH_DO(keep_only_folder(tray.get(), plan));
  BERTH_TRY(std::unique_ptr<Cell> cell, conceive(kind_of(plan), surroundings));
  BERTH_DO(cell->become(plan, std::move(tray)));
  return cell;
}

bool Cell::suits(const Plan& plan) const {
  const bool is_alive = init_ && !await(init_.get(), 0);
  return is_alive && kind_ == kind_of(plan);
}

Result<> Cell::start(const Surroundings& surroundings) {
  const Standing standing = standing_here();
  if (standing == Standing::lone_root) return refuse_lone_root();
  const bool is_root = standing == Standing::root;
  if (is_root) {
    first_id_ = kind_.first_id != 0 ? kind_.first_id : own_range();
    const IdMap range{.inside = 0, .outside = first_id_, .count = plan_limits::ids};
    auto ids = UserNamespace::make(range, range);
    // If user namespaces are not available, the ids of the range are used directly.
    const bool is_forbidden = !ids && ids.error().code == Errc::sandbox_unavailable;
    if (!ids && !is_forbidden) return without_ids(ids.error());
    if (ids) ids_ = *std::move(ids);
  }
  std::array<int, 2> pair{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair.data()) != 0) {
    return io_failure("socketpair", "a sandbox", errno);
  }
  control_ = Fd{pair[0]};
  Fd theirs{pair[1]};
  const bool makes_network = kind_.network == Network::own && surroundings.network_namespace < 0;
  std::uint64_t namespaces = usual_namespaces;
  if (!is_root) namespaces |= CLONE_NEWUSER;
  if (makes_network) namespaces |= CLONE_NEWNET;
  const uid_t maker = ::geteuid();
  const gid_t maker_group = ::getegid();
  NewProcess child = fork_into(namespaces, cgroup_.directory());
  if (child.pid == 0) {
    control_ = Fd{};  // so that the keeper's end is noticed
    become_init({.cgroup = cgroup_,
                 .born = cgroup_.directory() >= 0 ? Cgroup::Born::inside : Cgroup::Born::outside,
                 .network = kind_.network,
                 .network_namespace = surroundings.network_namespace,
                 .first_id = first_id_,
                 .user_namespace = ids_.get(),
                 .maker = maker,
                 .maker_group = maker_group,
                 .control = theirs.get()},
                surroundings);
  }
  if (child.pid < 0) {
    return std::unexpected(explain({}, {.failed = Phase::process, .error_number = -child.pid}));
  }
  init_ = std::move(child.handle);
  confined_.init_pid = child.pid;
  return {};
}

Result<> Cell::become(const Plan& plan, Fd tray) {
  BERTH_DO(check(plan));
  std::vector<UserNamespace> bind_maps;
  if (ids_.get() >= 0) {
    auto maps = maps_for_binds(plan, first_id_);
    if (!maps) return without_ids(maps.error());
    bind_maps = *std::move(maps);
  }
  std::vector<int> passed_maps;
  for (const UserNamespace& map : bind_maps) passed_maps.push_back(map.get());
  // A process that does not accept the plan has already reported why.
  send_orders(control_.get(), plan, {.bind_maps = passed_maps, .tray = tray.get()});
  // Set while our own code builds the root; no other code runs inside yet.
  BERTH_DO(cgroup_.limit(plan.limits));
  counts_oom_ = plan.limits.memory_bytes != 0;

  SetupReport report;
  std::vector<Fd> passed;
  const bool answered = await(control_.get(), setup_limit_ms) &&
                        receive_with(control_.get(), room_of(report), passed, MSG_DONTWAIT) ==
                            static_cast<ssize_t>(sizeof report);
  if (!answered) report = {.failed = Phase::init, .error_number = ETIMEDOUT};
  const std::size_t wanted = plan.kept_folder.empty() ? 2 : 3;
  if (report.failed != Phase::none || passed.size() != wanted) {
    return std::unexpected(explain(plan, report));
  }
  root_ = std::move(passed[0]);
  upper_ = std::move(passed[1]);
  if (wanted == 3) tray_ = std::move(passed[2]);
  ids_ = {};
  const pid_t pid = confined_.init_pid;
  confined_ = describe(plan, report.features, cgroup_.unenforced());
  confined_.init_pid = pid;
  return demand(plan, confined_);
}

Cell::~Cell() {
  kill();
}

void Cell::kill() {
  if (!init_) return;
  listeners_.clear();
  root_ = Fd{};
  upper_ = Fd{};
  tray_ = Fd{};
  // Without namespaces, processes that escaped their warden have to be killed one by one.
  const bool all_ended =
      has_namespaces_ || kill_descendants_of(confined_.init_pid, death_limit_ms) == 0;
  ::syscall(SYS_pidfd_send_signal, init_.get(), SIGKILL, nullptr, 0);
  regardless_of(thaw());  // with cgroup v1 a frozen process cannot die
  await(init_.get(), death_limit_ms);
  siginfo_t ended{};
  // The first process of a pid namespace can be reaped only after all the others have ended.
  empty_ = ::waitid(P_PIDFD, static_cast<id_t>(init_.get()), &ended, WEXITED | WNOHANG) == 0 &&
           ended.si_pid != 0 && all_ended;
  init_ = Fd{};
  control_ = Fd{};
  // A process that left the pid namespace before it ended has left the group too, but the kernel
  // accounts by group.
  regardless_of(cgroup_.kill());
  regardless_of(cgroup_.remove());
}

std::uint64_t Cell::new_oom_kills() {
  if (!counts_oom_) return 0;
  const std::uint64_t before = std::exchange(oom_kills_, cgroup_.oom_kills());
  return oom_kills_ - std::min(before, oom_kills_);
}

Result<> Cell::start_warden(int channel) const {
  const InitRequest request{.kind = InitRequest::Kind::warden};
  if (send_with(control_.get(), bytes_of(request), std::span{&channel, 1},
                MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    return fail(Errc::process_lost, "the sandbox is gone", "make another one");
  }
  return {};
}

Result<Fd> Cell::open_terminal() const {
  if (!has_namespaces_) {
    Fd master{::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)};
    if (!master) return io_failure("open", "a terminal", errno);
    return master;
  }
  open_how how{};
  how.flags = O_RDWR | O_NOCTTY | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  Fd master{
      static_cast<int>(::syscall(SYS_openat2, root_.get(), "dev/pts/ptmx", &how, sizeof how))};
  if (!master && errno == ENOSPC) {
    return fail(Errc::io_failed, "open a terminal of the sandbox: all that it may have are in use",
                "end some of what has one inside");
  }
  if (!master) return io_failure("open", "a terminal of the sandbox", errno);
  return master;
}

Result<> Cell::freeze() {
  frozen_ = true;
  Result<> frozen = cgroup_.freeze();
  if (!frozen) regardless_of(thaw());  // it may have failed halfway
  return frozen;
}

Result<> Cell::thaw() {
  if (!std::exchange(frozen_, false)) return {};
  return cgroup_.thaw();
}

Result<Cell::Answer> Cell::ask(const InitRequest& request, int limit_ms) const {
  if (send_with(control_.get(), bytes_of(request), {}, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    return fail(Errc::process_lost, "the sandbox is gone", "make another one");
  }
  while (await(control_.get(), limit_ms)) {
    Answer answer;
    const ssize_t got =
        receive_with(control_.get(), room_of(answer.reply), answer.passed, MSG_DONTWAIT);
    if (got != static_cast<ssize_t>(sizeof answer.reply)) break;
    // All others answer abandoned requests.
    if (answer.reply.kind == request.kind && answer.reply.port == request.port) return answer;
  }
  return fail(Errc::process_lost, "the sandbox does not answer", "make another one");
}

Result<> Cell::empty() {
  if (!has_namespaces_) {
    return fail(Errc::execution_unsupported, "a sandbox without namespaces is used once");
  }
  BERTH_TRY(const Answer answer, ask({.kind = InitRequest::Kind::empty}, death_limit_ms));
  // Pid 1 is our code, but it runs inside, so its answer is checked from here.
  const bool is_alone = answer.reply.error_number == 0 && descendants_of(init_pid()).empty();
  if (is_alone) return {};
  return fail(Errc::timed_out, "the sandbox: some of its processes cannot be killed",
              "make another one");
}

Result<Fd> Cell::ask_socket(const InitRequest& request) const {
  if (!has_namespaces_) {
    return fail(Errc::execution_unsupported,
                "a sandbox without namespaces has no network, and no ports",
                why_no_user_namespaces().remedy);
  }
  const std::string name = "port " + std::to_string(request.port) + " of the sandbox: ";
  if (request.port == 0) return fail(Errc::port_unreachable, name + "is not a port");
  if (frozen_) return fail(Errc::conflict, name + "the sandbox is frozen", "thaw it first");
  BERTH_TRY(Answer answer, ask(request, reply_limit_ms));
  std::vector<Fd>& passed = answer.passed;
  if (passed.size() == 1 && is_what_was_asked_for(passed[0].get(), request.kind)) {
    return std::move(passed[0]);
  }
  const bool listens = request.kind == InitRequest::Kind::listener;
  const char* const verb = listens ? "listen" : "connect";
  return fail(Errc::port_unreachable,
              name + io_failure(verb, "loopback", answer.reply.error_number).error().message,
              listens ? "choose a port above 1023 that no process inside listens on"
                      : "start what listens there first");
}

Result<Fd> Cell::dial(std::uint16_t port, LoopbackFamily family) const {
  if (kind_.network == Network::host) {
    return fail(Errc::execution_unsupported,
                "the sandbox shares the network of its host, so its ports are the host's",
                "reach the port from the host, or give the sandbox a network of its own");
  }
  const bool is_v6 = family == LoopbackFamily::v6;
  return ask_socket(
      {.kind = is_v6 ? InitRequest::Kind::dial_v6 : InitRequest::Kind::dial_v4, .port = port});
}

Result<int> Cell::listener(std::uint16_t port) {
  if (const auto known = listeners_.find(port); known != listeners_.end()) {
    return known->second.get();
  }
  if (listeners_.size() >= listeners_max) {
    return fail(Errc::port_unreachable,
                "port " + std::to_string(port) + " of the sandbox: too many are open");
  }
  BERTH_TRY(Fd socket, ask_socket({.kind = InitRequest::Kind::listener, .port = port}));
  return listeners_.emplace(port, std::move(socket)).first->second.get();
}

}  // namespace berth::keeper::sandbox
