#include "providers/linux/ways_out.hpp"

#include "base/files.hpp"
#include "base/offload.hpp"
#include "keeper/client.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace berth::providers {
namespace {

constexpr std::uint16_t proxy_port = 3128;
constexpr std::uint16_t callback_port = 3129;
constexpr std::size_t page_bytes = std::size_t{256} << 10;

std::string url_of(std::uint16_t port) {
  return "http://127.0.0.1:" + std::to_string(port);
}

}  // namespace

Result<egress::Policy> policy_of(const core::LinuxConfig& config) {
  // Where nothing is allowed, it does not matter whose address something is.
  if (!config.egress) return egress::Policy::decode(nullptr);
  std::vector<egress::SpecialRange> special = egress::special_ranges();
  for (egress::SpecialRange& own : egress::addresses_of_this_machine()) {
    special.push_back(std::move(own));
  }
  return egress::Policy::decode(encode(config.egress), std::move(special));
}

Result<execution::EgressPage> read_log(const std::string& file, std::uint64_t offset) {
  execution::EgressPage page{.next_offset = static_cast<std::int64_t>(offset)};
  const Fd log{::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)};
  if (!log && errno == ENOENT) return page;
  if (!log) return io_failure("open", file, errno);
  std::string bytes(page_bytes, '\0');
  const ssize_t got = ::pread(log.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
  if (got < 0) return io_failure("read", file, errno);
  std::string_view rest{bytes.data(), static_cast<std::size_t>(got)};
  for (std::size_t end = rest.find('\n'); end != rest.npos; end = rest.find('\n')) {
    // An offset in the middle of a line shows the rest of it, which is none.
    auto entry = decode_text<bj::object>(rest.substr(0, end));
    if (entry) page.entries.push_back(*std::move(entry));
    page.next_offset += static_cast<std::int64_t>(end) + 1;
    rest.remove_prefix(end + 1);
  }
  return page;
}

WaysOut::WaysOut(asio::io_context& loop, asio::thread_pool& pool, const Clock& clock)
    : loop_(loop), pool_(pool), clock_(clock), resolver_(loop.get_executor(), lookups_) {}

Result<WaysOut::Listeners> WaysOut::listeners_in(const std::string& keeper_folder) {
  BERTH_TRY(Fd socket, keeper::connect_keeper(keeper_folder));
  keeper::KeeperClient client{std::move(socket)};
  Listeners listeners;
  BERTH_TRY(listeners.proxy, client.listener(proxy_port));
  BERTH_TRY(listeners.callback, client.listener(callback_port));
  return listeners;
}

Task<> WaysOut::open(Wish wish) {
  if (wish.config.network == core::LinuxNetwork::host || open_.contains(wish.id)) {
    co_return Result<>{};
  }
  open_.emplace(wish.id, nullptr);
  Result<egress::Policy> policy = policy_of(wish.config);
  Result<Listeners> listeners =
      co_await offload(pool_, [folder = wish.keeper_folder] { return listeners_in(folder); });
  if (!policy || !listeners) {
    open_.erase(wish.id);
    co_return std::unexpected(policy ? listeners.error() : policy.error());
  }
  const auto proxy =
      std::make_shared<egress::Proxy>(loop_, resolver_, clock_,
                                      egress::ProxyOptions{.lease = wish.id,
                                                           .policy = *std::move(policy),
                                                           .callback = callback_,
                                                           .log_path = std::move(wish.log_path)});
  open_[wish.id] = proxy;
  Result<> listening = proxy->listen(std::move(listeners->proxy), egress::Door::proxy);
  if (listening) {
    listening = proxy->listen(std::move(listeners->callback), egress::Door::callback);
  }
  if (!listening) co_await close(wish.id);
  co_return listening;
}

Result<> WaysOut::change(const std::string& id, const core::LinuxConfig& config) {
  BERTH_TRY(egress::Policy policy, policy_of(config));
  const auto found = open_.find(id);
  if (found != open_.end() && found->second) found->second->set_policy(std::move(policy));
  return {};
}

Task<> WaysOut::close(std::string id) {
  const auto found = open_.find(id);
  if (found == open_.end()) co_return Result<>{};
  const std::shared_ptr<egress::Proxy> proxy = found->second;
  open_.erase(found);
  if (!proxy) co_return Result<>{};
  co_return co_await proxy->stop();
}

Task<> WaysOut::close_all() {
  while (!open_.empty()) BERTH_CO_DO(co_await close(open_.begin()->first));
  co_return co_await resolver_.stop();
}

std::vector<std::string> WaysOut::environment() {
  std::vector<std::string> out;
  for (const char* name : {"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"}) {
    out.push_back(std::string{name} + "=" + url_of(proxy_port));
  }
  for (const char* name : {"no_proxy", "NO_PROXY"}) {
    out.push_back(std::string{name} + "=localhost,127.0.0.1,::1");
  }
  return out;
}

std::optional<std::string> WaysOut::api_url(const core::LinuxConfig& config) const {
  if (!callback_) return std::nullopt;
  if (config.network == core::LinuxNetwork::host) return "http://" + callback_->host;
  return url_of(callback_port);
}

}  // namespace berth::providers
