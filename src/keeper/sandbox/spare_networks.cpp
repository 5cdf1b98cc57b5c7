#include "keeper/sandbox/spare_networks.hpp"

#include "base/assert.hpp"
#include "base/files.hpp"
#include "keeper/sandbox/namespaces.hpp"

#include <fcntl.h>
#include <sched.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

namespace berth::keeper::sandbox {
namespace {

constexpr std::size_t spare_max = 16;
constexpr std::size_t file_bytes_max = std::size_t{64} << 10;

// Packets per interface, counters of the IPv4 and IPv6 protocols, IPv6 sockets. All other kernel
// counters also count packets, and take as long to print as these together.
constexpr std::array counters{"/proc/self/net/dev", "/proc/self/net/snmp", "/proc/self/net/snmp6",
                              "/proc/self/net/sockstat6"};
// Its first line counts the sockets of all families in this namespace; the rest is for the whole
// machine.
constexpr const char* sockets = "/proc/self/net/sockstat";

Fd own_network() {
  return Fd{::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC)};
}

// Root in its own user namespace may leave for a new network, but cannot return to the machine's.
// So the way back is tested first, from where it leads.
bool can_come_back_to(const Fd& home) {
  return home && ::setns(home.get(), CLONE_NEWNET) == 0;
}

// Returns the calling process to its network. A process in the wrong network must not continue.
class Return {
 public:
  explicit Return(const Fd& home) : home_(home) {}
  Return(const Return&) = delete;
  Return& operator=(const Return&) = delete;
  ~Return() { BERTH_ASSERT(::setns(home_.get(), CLONE_NEWNET) == 0); }

 private:
  const Fd& home_;
};

Result<std::string> read_traces() {
  std::string traces;
  for (const char* path : counters) {
    const Result<std::string> text = read_file(path, file_bytes_max);
    // A machine without IPv6 never has these files.
    if (!text && std::string_view{path}.ends_with('6')) continue;
    if (!text) return std::unexpected(text.error());
    traces += *text;
  }
  BERTH_TRY(const std::string text, read_file(sockets, file_bytes_max));
  const std::size_t line = text.find('\n');
  if (!text.starts_with("sockets: used ") || line == std::string::npos) {
    return fail(Errc::io_failed, std::string{sockets} + ": is not as it is known");
  }
  return traces + text.substr(0, line);
}

Fd make_network() {
  const Fd home = own_network();
  if (!can_come_back_to(home) || ::unshare(CLONE_NEWNET) != 0) return {};
  const Return back{home};
  Fd made = own_network();
  return bring_up_loopback() == 0 ? std::move(made) : Fd{};
}

}  // namespace

Result<std::string> network_traces(int network_namespace) {
  const Fd home = own_network();
  if (!can_come_back_to(home)) return io_failure("enter", "the own network namespace", errno);
  if (::setns(network_namespace, CLONE_NEWNET) != 0) {
    return io_failure("enter", "a network namespace", errno);
  }
  const Return back{home};
  return read_traces();
}

Fd SpareNetworks::take() {
  if (!spare_.empty()) {
    Fd taken = std::move(spare_.back());
    spare_.pop_back();
    return taken;
  }
  Fd made = make_network();
  if (made && pristine_.empty()) pristine_ = network_traces(made.get()).value_or("");
  return made;
}

void SpareNetworks::give_back(Fd network) {
  if (!network || pristine_.empty() || spare_.size() >= spare_max) return;
  const Result<std::string> traces = network_traces(network.get());
  if (traces && *traces == pristine_) spare_.push_back(std::move(network));
}

}  // namespace berth::keeper::sandbox
