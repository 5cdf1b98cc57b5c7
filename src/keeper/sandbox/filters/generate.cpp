#include "keeper/sandbox/seccomp.hpp"

#include <seccomp.h>

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

// Writes the sandbox's system-call filters as a C++ source. The build runs it, so that the keeper
// installs a finished program with one call and needs no library for it.
namespace {

using berth::keeper::sandbox::Debugging;
using berth::keeper::sandbox::Nesting;

struct Release {
  void operator()(void* context) const { ::seccomp_release(context); }
};
using Context = std::unique_ptr<void, Release>;

// Calls that no program inside needs, or that reach parts of the kernel that no namespace divides.
constexpr std::array denied_calls{"acct",
                                  "add_key",
                                  "adjtimex",
                                  "bpf",
                                  "chroot",
                                  "clock_adjtime",
                                  "clock_settime",
                                  "delete_module",
                                  "fanotify_init",
                                  "finit_module",
                                  "fsconfig",
                                  "fsmount",
                                  "fsopen",
                                  "fspick",
                                  "init_module",
                                  "io_uring_enter",
                                  "io_uring_register",
                                  "io_uring_setup",
                                  "ioperm",
                                  "iopl",
                                  "kexec_file_load",
                                  "kexec_load",
                                  "keyctl",
                                  "lookup_dcookie",
                                  "mount",
                                  "lsm_set_self_attr",
                                  "mount_setattr",
                                  "move_mount",
                                  "move_pages",
                                  "migrate_pages",
                                  "name_to_handle_at",
                                  "nfsservctl",
                                  "open_by_handle_at",
                                  "open_tree",
                                  "open_tree_attr",
                                  "perf_event_open",
                                  "pidfd_getfd",
                                  "pivot_root",
                                  "quotactl",
                                  "quotactl_fd",
                                  "reboot",
                                  "request_key",
                                  "setdomainname",
                                  "sethostname",
                                  "setns",
                                  "settimeofday",
                                  "stime",
                                  "swapoff",
                                  "swapon",
                                  "syslog",
                                  "umount",
                                  "umount2",
                                  "userfaultfd",
                                  "uselib",
                                  "ustat",
                                  "sysfs",
                                  "_sysctl",
                                  "vhangup",
                                  "vm86",
                                  "vm86old"};
// Also denied, but as if the kernel lacked them, because programs have a fallback: calls that
// reveal the host's mounts and security modules, memory that the kernel can neither swap nor move,
// the segment table, and file attributes that an ioctl can set too.
constexpr std::array absent_calls{"file_setattr",     "listmount",    "lsm_get_self_attr",
                                  "lsm_list_modules", "memfd_secret", "modify_ldt",
                                  "statmount"};
// What a debugger needs.
constexpr std::array debugging_calls{"ptrace", "process_vm_readv", "process_vm_writev", "kcmp",
                                     "process_madvise"};
// What a sandbox inside the sandbox needs.
constexpr std::array nesting_calls{"chroot",     "mount",      "umount",        "umount2",
                                   "pivot_root", "setns",      "sethostname",   "setdomainname",
                                   "fsopen",     "fsconfig",   "fsmount",       "fspick",
                                   "open_tree",  "move_mount", "mount_setattr", "open_tree_attr"};

// Calls newer than the library. From 424 on a call has the same number on all architectures.
struct NumberedCall {
  std::string_view name;
  std::uint32_t number;
};
constexpr std::array numbered_calls{
    NumberedCall{"statmount", 457},         NumberedCall{"listmount", 458},
    NumberedCall{"lsm_get_self_attr", 459}, NumberedCall{"lsm_set_self_attr", 460},
    NumberedCall{"lsm_list_modules", 461},  NumberedCall{"open_tree_attr", 467},
    NumberedCall{"file_setattr", 469}};

// The last reviewed call, of Linux 6.18: to raise this, decide about each call after it. Calls
// above it, and those in the gap that architectures have below the common numbers, fail as on a
// kernel without them.
constexpr std::uint32_t last_reviewed = 469;
constexpr std::uint32_t first_common = 424;
#if defined(__x86_64__)
constexpr std::uint32_t last_own = 336;
#else
constexpr std::uint32_t last_own = 294;
#endif

constexpr std::uint32_t namespace_flags = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS |
                                          CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |
                                          CLONE_NEWNET;

// The header with the ioprio_set constants is internal to the kernel.
constexpr std::uint32_t a_process_by_ioprio = 1;
constexpr std::uint32_t a_user_by_ioprio = 3;

// In a sandbox's pid namespace.
constexpr std::uint32_t first_process = 1;

[[noreturn]] void give_up(const char* what, int code) {
  std::fprintf(stderr, "seccomp filter: %s: %d\n", what, code);
  std::exit(1);
}

void must(const char* what, int code) {
  if (code != 0) give_up(what, code);
}

bool is_in(const char* name, std::span<const char* const> list) {
  for (const char* entry : list) {
    if (std::string_view{entry} == name) return true;
  }
  return false;
}

// Empty for a call that this architecture lacks. An unknown name is an error: a misspelt denied
// call would be allowed.
std::optional<std::uint32_t> number_of(const char* name) {
  const int number = ::seccomp_syscall_resolve_name(name);
  if (number >= 0) return static_cast<std::uint32_t>(number);
  if (number != __NR_SCMP_ERROR) return std::nullopt;
  const auto* const known = std::ranges::find(numbered_calls, name, &NumberedCall::name);
  if (known == numbered_calls.end()) give_up(name, number);
  return known->number;
}

void deny(void* filter, const char* name, std::uint16_t error_number = EPERM) {
  const std::optional<std::uint32_t> number = number_of(name);
  if (!number) return;
  if (*number > last_reviewed) give_up(name, static_cast<int>(*number));
  must(name,
       ::seccomp_rule_add(filter, SCMP_ACT_ERRNO(error_number), static_cast<int>(*number), 0));
}

// The kernel uses only 32 bits of these arguments, so only those are checked: a rule over all 64
// would miss a forbidden value with higher bits set.
constexpr std::uint32_t low_word_of(std::uint32_t argument) {
  static_assert(std::endian::native == std::endian::little);
  return offsetof(seccomp_data, args) + argument * sizeof(std::uint64_t);
}

sock_filter load(std::uint32_t offset) {
  return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset);
}
sock_filter leave(std::uint32_t action) {
  return BPF_STMT(BPF_RET | BPF_K, action);
}
sock_filter refuse(std::uint32_t error_number) {
  return leave(SECCOMP_RET_ERRNO | error_number);
}

// The program before the tree, for rules that need more than the call number. The call number is
// loaded at the start and end of every block.
class Prologue {
 public:
  Prologue() {
#if defined(__x86_64__)
    constexpr std::uint32_t arch = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
    constexpr std::uint32_t arch = AUDIT_ARCH_AARCH64;
#else
#error "the sandbox knows no system calls of this architecture"
#endif
    // A debugger skips a call by setting its number to -1 and supplies the result. The x32
    // numbering of x86 is also above the last call.
    constexpr std::uint32_t skipped = 0xffffffff;
    steps_ = {load(offsetof(seccomp_data, arch)),
              BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, arch, 1, 0),
              leave(SECCOMP_RET_KILL_PROCESS),
              load(offsetof(seccomp_data, nr)),
              BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, last_own, 0, 4),
              BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, skipped, 3, 0),
              BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, last_reviewed, 1, 0),
              BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, first_common, 1, 0),
              refuse(ENOSYS)};
  }

  // Allows only these values of the argument.
  void permit(std::uint32_t call, std::uint32_t argument,
              std::initializer_list<std::uint32_t> values, std::uint32_t error_number) {
    permit_masked(call, argument, 0xffffffff, values, error_number);
  }
  // The same for the argument after a mask.
  void permit_masked(std::uint32_t call, std::uint32_t argument, std::uint32_t mask,
                     std::initializer_list<std::uint32_t> values, std::uint32_t error_number) {
    std::vector<sock_filter> block{load(low_word_of(argument)),
                                   BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask)};
    auto left = static_cast<std::uint8_t>(values.size());
    for (const std::uint32_t value : values) {
      block.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, left--, 0));
    }
    block.push_back(refuse(error_number));
    block.push_back(leave(SECCOMP_RET_ALLOW));
    add(call, block);
  }
  // Allows the call only if the first argument selects one process, and that is the caller.
  void permit_for_itself(std::uint32_t call, std::uint32_t one_process) {
    add(call, {load(low_word_of(0)), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, one_process, 0, 2),
               load(low_word_of(1)), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0), refuse(EPERM),
               leave(SECCOMP_RET_ALLOW)});
  }
  // Denies the call if it concerns pid 1 or its group, or all processes of a user, which include
  // pid 1. The first argument selects the kind.
  void forbid_for_first_process(std::uint32_t call, std::uint32_t all_of_user) {
    add(call, {load(low_word_of(0)), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, all_of_user, 3, 0),
               load(low_word_of(1)), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, first_process, 1, 0),
               leave(SECCOMP_RET_ALLOW), refuse(EPERM)});
  }
  // Allows only address families that a network namespace isolates. Netlink is limited to network
  // information: the rest concerns the machine's devices, modules, audit and ciphers. Internet
  // sockets are limited to protocols that every kernel has: for others the host loads a module.
  // ICMP echo is what ping uses where it is permitted.
  void permit_sockets() {
    constexpr std::uint32_t kind_bits = 0xf;  // the rest are flags
    const auto is = [](std::uint32_t value, std::uint8_t then, std::uint8_t otherwise) {
      return sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, then, otherwise);
    };
    add(SYS_socket, {load(low_word_of(0)), is(AF_UNIX, 18, 0), is(AF_INET, 6, 0),
                     is(AF_INET6, 5, 0), is(AF_NETLINK, 1, 0), refuse(EAFNOSUPPORT),
                     // netlink
                     load(low_word_of(2)), is(NETLINK_ROUTE, 12, 0), is(NETLINK_SOCK_DIAG, 11, 9),
                     // internet
                     load(low_word_of(1)), BPF_STMT(BPF_ALU | BPF_AND | BPF_K, kind_bits),
                     BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, SOCK_RAW, 7, 0), load(low_word_of(2)),
                     is(IPPROTO_IP, 6, 0), is(IPPROTO_TCP, 5, 0), is(IPPROTO_UDP, 4, 0),
                     is(IPPROTO_ICMP, 3, 0), is(IPPROTO_ICMPV6, 2, 0),
                     // results
                     refuse(EPROTONOSUPPORT), refuse(ESOCKTNOSUPPORT), leave(SECCOMP_RET_ALLOW)});
  }
  // Denies these values, after a mask.
  void forbid(std::uint32_t call, std::uint32_t argument, std::uint32_t mask,
              std::initializer_list<std::uint32_t> values) {
    std::vector<sock_filter> block{load(low_word_of(argument)),
                                   BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask)};
    auto left = static_cast<std::uint8_t>(values.size());
    for (const std::uint32_t value : values) {
      block.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, left--, 0));
    }
    block.push_back(leave(SECCOMP_RET_ALLOW));
    block.push_back(refuse(EPERM));
    add(call, block);
  }
  // Denies these bits.
  void forbid_bits(std::uint32_t call, std::uint32_t argument, std::uint32_t bits) {
    add(call, {load(low_word_of(argument)), BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1),
               refuse(EPERM), leave(SECCOMP_RET_ALLOW)});
  }

  // Denies these bits in the mode argument, which is used only if the call may create a file.
  void forbid_mode_of_new(std::uint32_t call, std::uint32_t flags, std::uint32_t bits) {
    constexpr std::uint32_t makes = O_CREAT | (O_TMPFILE & ~O_DIRECTORY);
    add(call, {load(low_word_of(flags)), BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, makes, 0, 3),
               load(low_word_of(flags + 1)), BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1),
               refuse(EPERM), leave(SECCOMP_RET_ALLOW)});
  }
  void answer(std::uint32_t call, std::uint32_t error_number) { add(call, {refuse(error_number)}); }

  const std::vector<sock_filter>& steps() const { return steps_; }

 private:
  void add(std::uint32_t call, const std::vector<sock_filter>& block) {
    const auto past = static_cast<std::uint8_t>(block.size());
    steps_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, past));
    steps_.insert(steps_.end(), block.begin(), block.end());
  }

  std::vector<sock_filter> steps_;
};

std::vector<sock_filter> argument_rules(Debugging debugging, Nesting nesting) {
  Prologue rules;
  rules.permit_sockets();
  rules.permit(SYS_socketpair, 0, {AF_UNIX}, EAFNOSUPPORT);
  // Injecting input into a watching user's terminal, and line disciplines, for which the host loads
  // modules.
  rules.forbid(SYS_ioctl, 1, 0xffffffff, {TIOCSTI, TIOCLINUX, TIOCSETD});
#ifdef SYS_mknod
  rules.forbid(SYS_mknod, 1, S_IFMT, {S_IFCHR, S_IFBLK});
#endif
  rules.forbid(SYS_mknodat, 2, S_IFMT, {S_IFCHR, S_IFBLK});
  // Pid 1 has the ids of the processes that it watches, so they could starve it of files or CPU
  // time.
  for (const std::uint32_t call : {SYS_prlimit64, SYS_sched_setparam, SYS_sched_setscheduler,
                                   SYS_sched_setaffinity, SYS_sched_setattr}) {
    rules.forbid(call, 0, 0xffffffff, {first_process});
  }
  rules.forbid_for_first_process(SYS_setpriority, PRIO_USER);
  rules.forbid_for_first_process(SYS_ioprio_set, a_user_by_ioprio);
  if (nesting == Nesting::denied) rules.forbid_bits(SYS_clone, 0, namespace_flags);
  if (debugging == Debugging::denied) {
    // Other values disable address randomization or enable old calls. Queries remain allowed, as do
    // the two values that build tools use.
    constexpr std::uint32_t linux32 = 8;
    constexpr std::uint32_t uname26 = 0x20000;
    rules.permit(SYS_personality, 0, {0, linux32, uname26, linux32 | uname26, 0xffffffff}, EPERM);
  }
  return rules.steps();
}

std::vector<sock_filter> without_set_ids() {
  constexpr std::uint32_t bits = S_ISUID | S_ISGID;
  constexpr std::uint32_t fchmodat2 = 452;
  Prologue rules;
#ifdef SYS_chmod
  rules.forbid_bits(SYS_chmod, 1, bits);
  rules.forbid_bits(SYS_creat, 1, bits);
  rules.forbid_bits(SYS_mknod, 1, bits);
  rules.forbid_mode_of_new(SYS_open, 1, bits);
#endif
  rules.forbid_bits(SYS_fchmod, 1, bits);
  rules.forbid_bits(SYS_fchmodat, 2, bits);
  rules.forbid_bits(fchmodat2, 2, bits);
  rules.forbid_bits(SYS_mknodat, 2, bits);
  rules.forbid_mode_of_new(SYS_openat, 2, bits);
  // Its mode is in memory, which a filter cannot read; all programs have a fallback.
  rules.answer(SYS_openat2, ENOSYS);
  std::vector<sock_filter> program = rules.steps();
  program.push_back(leave(SECCOMP_RET_ALLOW));
  return program;
}

// What only ids protect is open to processes with the same id. Landlock protects files, signals and
// memory; this filter covers the rest.
constexpr std::array shared_calls{
    "shmget", "shmat",  "shmctl", "semget",  "semop",     "semtimedop",       "semctl",  "msgget",
    "msgsnd", "msgrcv", "msgctl", "mq_open", "mq_unlink", "process_mrelease", "truncate"};

enum class Internet : std::uint8_t { denied, allowed };

std::vector<sock_filter> without_others(Internet internet) {
  Prologue rules;
  // Landlock does not check socket paths: behind one a service may start programs for this user. A
  // connected pair leads nowhere else, unless it is a datagram pair.
  if (internet == Internet::denied) {
    rules.answer(SYS_socket, EACCES);
  } else {
    rules.permit(SYS_socket, 0, {AF_INET, AF_INET6}, EACCES);
  }
  rules.permit_masked(SYS_socketpair, 1, 0xf, {SOCK_STREAM, SOCK_SEQPACKET}, EACCES);
  // 0 is the calling process; any other pid may belong to another program.
  rules.permit(SYS_prlimit64, 0, {0}, EPERM);
  rules.permit_for_itself(SYS_setpriority, PRIO_PROCESS);
  rules.permit_for_itself(SYS_ioprio_set, a_process_by_ioprio);
  for (const std::uint32_t call :
       {SYS_sched_setparam, SYS_sched_setscheduler, SYS_sched_setaffinity, SYS_sched_setattr}) {
    rules.permit(call, 0, {0}, EPERM);
  }
  for (const char* name : shared_calls) {
    if (const std::optional<std::uint32_t> number = number_of(name)) rules.answer(*number, EPERM);
  }
  std::vector<sock_filter> program = rules.steps();
  program.push_back(leave(SECCOMP_RET_ALLOW));
  return program;
}

std::vector<sock_filter> exported(void* filter, std::vector<sock_filter> program) {
  const int file = ::memfd_create("filter", 0);
  if (file < 0) give_up("memfd_create", errno);
  must("export", ::seccomp_export_bpf(filter, file));
  const off_t size = ::lseek(file, 0, SEEK_END);
  const std::size_t before = program.size();
  program.resize(before + static_cast<std::size_t>(size) / sizeof(sock_filter));
  const ssize_t got = ::pread(file, &program[before], static_cast<std::size_t>(size), 0);
  if (got != size) give_up("read", errno);
  ::close(file);
  return program;
}

std::vector<sock_filter> make(Debugging debugging, Nesting nesting) {
  const Context filter{::seccomp_init(SCMP_ACT_ALLOW)};
  must("architecture",
       ::seccomp_attr_set(filter.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS));
  // The keeper sets no_new_privs itself.
  must("no_new_privs", ::seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_NNP, 0));
  // A tree over the call numbers: allowed calls are found in a few steps.
  must("tree", ::seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2));
  for (const char* name : denied_calls) {
    if (nesting == Nesting::allowed && is_in(name, nesting_calls)) continue;
    deny(filter.get(), name);
  }
  for (const char* name : absent_calls) deny(filter.get(), name, ENOSYS);
  if (nesting == Nesting::denied) {
    // The flags of clone3 are in memory, which a filter cannot read; libraries fall back to clone.
    deny(filter.get(), "clone3", ENOSYS);
    deny(filter.get(), "unshare");
  }
  if (debugging == Debugging::denied) {
    for (const char* name : debugging_calls) deny(filter.get(), name);
  }
  return exported(filter.get(), argument_rules(debugging, nesting));
}

void write_array(std::ofstream& out, const char* name, const std::vector<sock_filter>& program) {
  out << "const sock_filter " << name << "[] = {\n";
  for (const sock_filter& step : program) {
    out << "    {" << step.code << ", " << unsigned{step.jt} << ", " << unsigned{step.jf} << ", "
        << step.k << "u},\n";
  }
  out << "};\n";
}

}  // namespace

int main(int argc, char** argv) {
  const std::span<char*> words{argv, static_cast<std::size_t>(argc)};
  if (words.size() != 2) give_up("usage: generate FILE", 2);
  std::ofstream out{words[1]};
  out << "#include \"keeper/sandbox/seccomp.hpp\"\n\n"
         "namespace berth::keeper::sandbox {\nnamespace {\n\n";
  write_array(out, "usual", make(Debugging::denied, Nesting::denied));
  write_array(out, "with_ptrace", make(Debugging::allowed, Nesting::denied));
  write_array(out, "with_namespaces", make(Debugging::denied, Nesting::allowed));
  write_array(out, "with_both", make(Debugging::allowed, Nesting::allowed));
  write_array(out, "set_ids", without_set_ids());
  write_array(out, "same_user", without_others(Internet::denied));
  write_array(out, "same_user_internet", without_others(Internet::allowed));
  out << "\n}  // namespace\n\n"
         "std::span<const sock_filter> filter_program(Debugging debugging, Nesting nesting) {\n"
         "  if (debugging == Debugging::allowed && nesting == Nesting::allowed) return with_both;\n"
         "  if (debugging == Debugging::allowed) return with_ptrace;\n"
         "  if (nesting == Nesting::allowed) return with_namespaces;\n"
         "  return usual;\n}\n\n"
         "std::span<const sock_filter> set_id_program() {\n  return set_ids;\n}\n\n"
         "std::span<const sock_filter> same_user_program() {\n  return same_user;\n}\n\n"
         "std::span<const sock_filter> same_user_internet_program() {\n"
         "  return same_user_internet;\n}\n\n"
         "}  // namespace berth::keeper::sandbox\n";
  out.close();
  if (!out) give_up("write", errno);
  return 0;
}
