#include "providers/linux/ways_out.hpp"

#include "base/offload.hpp"
#include "keeper/client.hpp"

namespace berth::providers {
namespace {

constexpr std::uint16_t proxy_port = 3128;
constexpr std::uint16_t callback_port = 3129;

std::string url_of(std::uint16_t port) {
  return "http://127.0.0.1:" + std::to_string(port);
}

}  // namespace

Result<egress::Policy> policy_of(const core::LinuxConfig& config) {
  std::vector<egress::SpecialRange> special = egress::special_ranges();
  for (egress::SpecialRange& own : egress::addresses_of_this_machine()) {
    special.push_back(std::move(own));
  }
  return egress::Policy::decode(encode(config.egress), std::move(special));
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
