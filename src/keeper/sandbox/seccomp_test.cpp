#include "keeper/sandbox/seccomp.hpp"

#include <gtest/gtest.h>

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace berth::keeper::sandbox {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t own_architecture = AUDIT_ARCH_X86_64;
#else
constexpr std::uint32_t own_architecture = AUDIT_ARCH_AARCH64;
#endif

using Arguments = std::array<std::uint64_t, 6>;

std::uint32_t stepped(const sock_filter& step, std::uint32_t value) {
  return BPF_OP(step.code) == BPF_AND ? value & step.k : value;
}

bool holds(const sock_filter& step, std::uint32_t value) {
  switch (BPF_OP(step.code)) {
    case BPF_JEQ: return value == step.k;
    case BPF_JGT: return value > step.k;
    case BPF_JGE: return value >= step.k;
    default: return (value & step.k) != 0;
  }
}

// Runs the program as the kernel would, and returns its result.
std::uint32_t verdict(std::span<const sock_filter> program, std::uint32_t number,
                      const Arguments& arguments = {}) {
  seccomp_data data{};
  data.nr = static_cast<int>(number);
  data.arch = own_architecture;
  std::memcpy(data.args, arguments.data(), sizeof data.args);
  std::uint32_t value = 0;
  for (std::size_t at = 0; at < program.size(); ++at) {
    const sock_filter& step = program[at];
    switch (BPF_CLASS(step.code)) {
      case BPF_LD: std::memcpy(&value, reinterpret_cast<char*>(&data) + step.k, 4); break;
      case BPF_ALU: value = stepped(step, value); break;
      case BPF_RET: return step.k;
      case BPF_JMP:
        at += BPF_OP(step.code) == BPF_JA ? step.k : (holds(step, value) ? step.jt : step.jf);
        break;
      default: ADD_FAILURE() << "step " << at << " is of no known class"; return 0;
    }
  }
  ADD_FAILURE() << "the program has no end";
  return 0;
}

constexpr std::uint32_t allowed = SECCOMP_RET_ALLOW;
constexpr std::uint32_t denied(std::uint32_t error_number) {
  return SECCOMP_RET_ERRNO | error_number;
}

std::span<const sock_filter> usual() {
  return filter_program(Debugging::denied, Nesting::denied);
}

TEST(Filter, KnowsCallsThatAreNewerThanTheLibraryItIsMadeWith) {
  constexpr std::uint32_t open_tree_attr = 467;
  EXPECT_EQ(verdict(usual(), open_tree_attr), denied(EPERM));
  EXPECT_EQ(verdict(filter_program(Debugging::denied, Nesting::allowed), open_tree_attr), allowed);
  constexpr std::uint32_t lsm_set_self_attr = 460;
  EXPECT_EQ(verdict(usual(), lsm_set_self_attr), denied(EPERM));
  // statmount, listmount, lsm_get_self_attr, lsm_list_modules, file_setattr, memfd_secret.
  for (const std::uint32_t number : {457U, 458U, 459U, 461U, 469U, 447U}) {
    EXPECT_EQ(verdict(usual(), number), denied(ENOSYS)) << number;
  }
  // cachestat, fchmodat2, map_shadow_stack, futex_wait, mseal, getxattrat, file_getattr.
  for (const std::uint32_t number : {451U, 452U, 453U, 455U, 462U, 464U, 468U}) {
    EXPECT_EQ(verdict(usual(), number), allowed) << number;
  }
}

TEST(Filter, AnswersWhatNobodyHasLookedAtAsAKernelWithoutIt) {
  constexpr std::uint32_t x32 = 0x40000000;
  for (const auto& program : {usual(), filter_program(Debugging::allowed, Nesting::allowed),
                              set_id_program(), same_user_program()}) {
    for (const std::uint32_t number : {470U, 471U, 600U, 1024U, x32 | SYS_read, 423U, 337U}) {
      EXPECT_EQ(verdict(program, number), denied(ENOSYS)) << number;
    }
    EXPECT_EQ(verdict(program, SYS_read), allowed);
    // A call that a debugger has answered itself.
    EXPECT_EQ(verdict(program, 0xffffffff), allowed);
  }
}

TEST(Filter, OpensSocketsOfTheInternetForItsCommonProtocolsOnly) {
  const auto made = [](std::uint64_t family, std::uint64_t kind, std::uint64_t protocol) {
    return verdict(usual(), SYS_socket, {family, kind | SOCK_CLOEXEC, protocol});
  };
  for (const std::uint64_t family : {AF_INET, AF_INET6}) {
    EXPECT_EQ(made(family, SOCK_STREAM, 0), allowed);
    EXPECT_EQ(made(family, SOCK_STREAM, IPPROTO_TCP), allowed);
    EXPECT_EQ(made(family, SOCK_DGRAM, IPPROTO_UDP), allowed);
    EXPECT_EQ(made(family, SOCK_DGRAM, IPPROTO_ICMP), allowed);
    EXPECT_EQ(made(family, SOCK_DGRAM, IPPROTO_ICMPV6), allowed);
    // MPTCP, UDPLITE, SCTP, DCCP, SMC, L2TP.
    for (const std::uint64_t protocol : {262U, 136U, 132U, 33U, 256U, 115U, 255U}) {
      EXPECT_EQ(made(family, SOCK_STREAM, protocol), denied(EPROTONOSUPPORT)) << protocol;
    }
    EXPECT_EQ(made(family, SOCK_SEQPACKET, 0), denied(ESOCKTNOSUPPORT));
    EXPECT_EQ(made(family, SOCK_DCCP, 0), denied(ESOCKTNOSUPPORT));
  }
  EXPECT_EQ(made(AF_UNIX, SOCK_SEQPACKET, 0), allowed);
  EXPECT_EQ(made(AF_NETLINK, SOCK_RAW, 0), allowed);
  EXPECT_EQ(made(AF_NETLINK, SOCK_RAW, 4), allowed);
  EXPECT_EQ(made(AF_NETLINK, SOCK_RAW, 15), denied(EPROTONOSUPPORT));
  EXPECT_EQ(made(AF_VSOCK, SOCK_STREAM, 0), denied(EAFNOSUPPORT));
}

TEST(Filter, RefusesRequestsToTerminalsWhateverIsAboveTheirNumber) {
  for (const std::uint64_t request : {TIOCSTI, TIOCLINUX, TIOCSETD}) {
    EXPECT_EQ(verdict(usual(), SYS_ioctl, {0, request}), denied(EPERM)) << request;
    EXPECT_EQ(verdict(usual(), SYS_ioctl, {0, request | (1ULL << 32)}), denied(EPERM)) << request;
  }
  EXPECT_EQ(verdict(usual(), SYS_ioctl, {0, TIOCGWINSZ}), allowed);
}

}  // namespace
}  // namespace berth::keeper::sandbox
