// bare_sandbox WAYS SECONDS: sandboxes per second that the kernel creates and ends, by WAYS threads
// of one program that does nothing else. Each runs `true` as the child of a pid 1 that borrows the
// program's memory, in namespaces and behind mounts like ours. Control groups, network and user
// namespaces are created once. Nothing is limited, recorded, kept for another process or proven
// clean, so no real sandbox can be as fast; it is the floor, not a competitor. Needs root.

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr std::array controllers{"memory", "cpu", "pids", "blkio"};
constexpr std::array masked{"cmdline", "config.gz",  "interrupts", "iomem",     "ioports",
                            "kcore",   "kallsyms",   "key-users",  "keys",      "kmsg",
                            "modules", "partitions", "diskstats",  "timer_list"};
constexpr std::size_t stack_bytes = 65536;

[[noreturn]] void give_up(const char* what) {
  std::fprintf(stderr, "bare_sandbox: %s: %s\n", what, std::strerror(errno));
  ::_exit(1);
}

template <class T>
T must(T result, const char* what) {
  if (result < 0) give_up(what);
  return result;
}

std::string group_of(const char* controller, int slot) {
  return "/sys/fs/cgroup/" + std::string{controller} + "/berth-bare-" + std::to_string(slot);
}

// What can be reused, one for each thread.
struct Slot {
  int network = -1;
  int user = -1;
  std::vector<int> doors = {};
  std::vector<char> stack = std::vector<char>(stack_bytes);
};

int new_namespace(int flag, const char* name, const std::string& map) {
  const auto maker = static_cast<pid_t>(
      must(::syscall(SYS_clone, flag | SIGCHLD, nullptr, nullptr, nullptr, nullptr), "clone"));
  if (maker == 0) {
    while (true) ::pause();
  }
  const std::string process = "/proc/" + std::to_string(maker);
  for (const char* file : {"/uid_map", "/gid_map"}) {
    if (map.empty()) continue;
    const int opened = must(::open((process + file).c_str(), O_WRONLY | O_CLOEXEC), file);
    must(::write(opened, map.data(), map.size()), file);
    ::close(opened);
  }
  const int made = must(::open((process + "/ns/" + name).c_str(), O_RDONLY | O_CLOEXEC), name);
  ::kill(maker, SIGKILL);
  ::waitpid(maker, nullptr, 0);
  return made;
}

Slot make_slot(int number) {
  constexpr int first_id = 0x20000000;
  constexpr int ids = 65536;
  Slot slot;
  slot.network = new_namespace(CLONE_NEWNET, "net", "");
  slot.user = new_namespace(CLONE_NEWUSER, "user",
                            "0 " + std::to_string(first_id + number * ids) + " 65536");
  for (const char* controller : controllers) {
    const std::string folder = group_of(controller, number);
    if (::mkdir(folder.c_str(), 0755) != 0) continue;  // this machine has other ones
    slot.doors.push_back(must(::open((folder + "/tasks").c_str(), O_WRONLY | O_CLOEXEC), "tasks"));
  }
  return slot;
}

int new_filesystem(const char* kind) {
  const int context = must(::fsopen(kind, FSOPEN_CLOEXEC), kind);
  must(::fsconfig(context, FSCONFIG_SET_STRING, "mode", "0755", 0), kind);
  must(::fsconfig(context, FSCONFIG_CMD_CREATE, nullptr, nullptr, 0), kind);
  const int made = must(::fsmount(context, FSMOUNT_CLOEXEC, 0), kind);
  ::close(context);
  return made;
}

void put(int tree, const char* path) {
  must(::move_mount(tree, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH), path);
  ::close(tree);
}

void build_root(const Slot& slot) {
  must(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), "private mounts");
  const int programs = must(
      ::open_tree(AT_FDCWD, "/usr", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE), "usr");
  mount_attr shown{};
  shown.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_IDMAP;
  shown.userns_fd = static_cast<std::uint64_t>(slot.user);
  must(::mount_setattr(programs, "", AT_EMPTY_PATH | AT_RECURSIVE, &shown, sizeof shown), "usr");
  put(new_filesystem("tmpfs"), "/tmp");
  must(::chdir("/tmp"), "tmp");
  for (const char* folder : {"usr", "proc", "dev", "tmp", "home", "etc", "root", "run", "var"}) {
    ::mkdir(folder, 0755);
  }
  for (const char* link : {"bin", "lib", "lib64"}) {
    must(::symlink((std::string{"usr/"} + link).c_str(), link), link);
  }
  must(::syscall(SYS_pivot_root, ".", "."), "pivot_root");
  must(::mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr), "proc");
  must(::umount2(".", MNT_DETACH), "umount");
  must(::chdir("/"), "chdir");
  put(programs, "/usr");
  const int devices = new_filesystem("tmpfs");
  for (const unsigned minor : {3U, 5U, 7U, 8U, 9U}) {
    const std::string name = minor == 3 ? "null" : std::to_string(minor);
    ::mknodat(devices, name.c_str(), S_IFCHR | 0666, makedev(1, minor));
  }
  for (const char* folder : {"pts", "shm"}) ::mkdirat(devices, folder, 0755);
  put(devices, "/dev");
  must(::mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance"), "devpts");
  for (const char* name : masked) {
    ::mount("/dev/null", (std::string{"/proc/"} + name).c_str(), nullptr, MS_BIND, nullptr);
  }
}

void take_identity() {
  constexpr uid_t user = 1000;
  must(::syscall(SYS_setgroups, 0, nullptr), "setgroups");
  must(::syscall(SYS_setresgid, user, user, user), "setresgid");
  must(::syscall(SYS_setresuid, user, user, user), "setresuid");
  must(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs");
  // As long as ours, and allows everything.
  std::array<sock_filter, 100> program{};
  program.fill(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0));
  program.back() = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  const sock_fprog filter{.len = program.size(), .filter = program.data()};
  must(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter), "seccomp");
}

int be_init(void* given) {
  const Slot& slot = *static_cast<const Slot*>(given);
  for (const int door : slot.doors) must(::write(door, "0", 1), "tasks");
  must(::setns(slot.network, CLONE_NEWNET), "network");
  build_root(slot);
  must(::unshare(CLONE_NEWCGROUP), "cgroup namespace");
  must(::setns(slot.user, CLONE_NEWUSER), "user namespace");
  take_identity();
  std::array<char*, 1> nothing{nullptr};
  std::string name = "true";
  std::array<char*, 2> argv{name.data(), nullptr};
  const pid_t pid = ::vfork();  // NOLINT(clang-analyzer-security.insecureAPI.vfork): as a keeper
  if (pid == 0) {
    ::execve("/bin/true", argv.data(), nothing.data());
    ::_exit(127);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  ::_exit(status == 0 ? 0 : 1);
}

void make_and_end(Slot& slot) {
  constexpr int namespaces = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS;
  const pid_t pid = must(::clone(be_init, slot.stack.data() + slot.stack.size(),
                                 CLONE_VM | namespaces | SIGCHLD, &slot),
                         "clone");
  int status = 0;
  if (::waitpid(pid, &status, 0) != pid || status != 0) give_up("a sandbox did not succeed");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: bare_sandbox WAYS SECONDS\n", stderr);
    return 2;
  }
  const int ways = std::atoi(argv[1]);
  const std::chrono::seconds length{std::atoi(argv[2])};
  must(::unshare(CLONE_NEWNS), "mount namespace");
  std::vector<Slot> slots;
  for (int i = 0; i < ways; ++i) slots.push_back(make_slot(i));
  std::atomic<int> done{0};
  const auto began = std::chrono::steady_clock::now();
  std::vector<std::jthread> threads;
  for (Slot& slot : slots) {
    threads.emplace_back([&] {
      while (std::chrono::steady_clock::now() - began < length) {
        make_and_end(slot);
        ++done;
      }
    });
  }
  threads.clear();  // waits for each
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  for (int i = 0; i < ways; ++i) {
    for (const char* controller : controllers) ::rmdir(group_of(controller, i).c_str());
  }
  std::printf("%.1f\n", done / took.count());
}
