#include "places/linux/egress_gateway.hpp"

#include "base/async/offload.hpp"
#include "base/files.hpp"
#include "keeper/protocol/client.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace berth::places {
namespace {

constexpr std::uint16_t proxy_port = 3128;
constexpr std::uint16_t callback_port = 3129;
constexpr std::size_t page_bytes = std::size_t{256} << 10;

std::string url_of(std::uint16_t port) {
  return "http://127.0.0.1:" + std::to_string(port);
}

}  // namespace

bool is_own_door(std::uint16_t port) {
  return port == proxy_port || port == callback_port;
}

Result<egress::Policy> policy_of(const core::LinuxConfig& config) {
  // If nothing is allowed, it does not matter which addresses are private.
  if (!config.egress) return egress::Policy::decode(nullptr);
  return egress::Policy::decode(encode(config.egress), egress::addresses_that_are_not_public());
}

Result<EgressPage> read_log(const std::string& file, std::uint64_t offset) {
  EgressPage page{.next_offset = static_cast<std::int64_t>(offset)};
  const Fd log{::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)};
  if (!log && errno == ENOENT) return page;
  if (!log) return io_failure("open", file, errno);
  std::string bytes(page_bytes, '\0');
  const ssize_t got = ::pread(log.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
  if (got < 0) return io_failure("read", file, errno);
  std::string_view rest{bytes.data(), static_cast<std::size_t>(got)};
  for (std::size_t end = rest.find('\n'); end != rest.npos; end = rest.find('\n')) {
    // An offset in the middle of a line yields the rest of that line, which does not parse and is
    // skipped.
    auto entry = decode_text<bj::object>(rest.substr(0, end));
    if (entry) page.entries.push_back(*std::move(entry));
    page.next_offset += static_cast<std::int64_t>(end) + 1;
    rest.remove_prefix(end + 1);
  }
  return page;
}

EgressGateway::EgressGateway(asio::io_context& loop, asio::thread_pool& pool, const Clock& clock)
    : loop_(loop),
      pool_(pool),
      clock_(clock),
      resolver_(loop.get_executor(), lookups_),
      tasks_(loop.get_executor()) {}

Result<EgressGateway::Listeners> EgressGateway::listeners_in(const std::string& keeper_folder) {
  BERTH_TRY(Fd socket, keeper::connect_keeper(keeper_folder));
  keeper::KeeperClient client{std::move(socket)};
  Listeners listeners;
  BERTH_TRY(listeners.proxy, client.listener(proxy_port));
  BERTH_TRY(listeners.callback, client.listener(callback_port));
  return listeners;
}

Result<> EgressGateway::begin(Request request) {
  if (request.config.network == core::LinuxNetwork::host || has(request.id)) return {};
  BERTH_TRY(egress::Policy policy, policy_of(request.config));
  const auto way = std::make_shared<Way>(loop_.get_executor());
  ways_.emplace(request.id, way);
  tasks_.start("way out of sandbox " + request.id,
               open(way, std::move(request), std::move(policy)));
  return {};
}

Task<> EgressGateway::open(std::shared_ptr<Way> way, Request request, egress::Policy policy) {
  way->outcome = co_await listen(*way, std::move(request), std::move(policy));
  way->opening = false;
  way->opened.notify();
  co_return Result<>{};
}

Task<> EgressGateway::listen(Way& way, Request request, egress::Policy policy) {
  BERTH_CO_TRY(Listeners listeners, co_await offload(pool_, [folder = request.keeper_folder] {
                 return listeners_in(folder);
               }));
  way.proxy = std::make_shared<egress::Proxy>(
      loop_, resolver_, clock_,
      egress::ProxyOptions{.lease = request.id,
                           .policy = std::move(policy),
                           .callback = callback_,
                           .own_ports = own_ports_,
                           .log_path = std::move(request.log_path)});
  BERTH_CO_DO(way.proxy->listen(std::move(listeners.proxy), egress::Door::proxy));
  co_return way.proxy->listen(std::move(listeners.callback), egress::Door::callback);
}

Task<> EgressGateway::wait(std::string id) {
  const auto found = ways_.find(id);
  if (found == ways_.end()) co_return Result<>{};
  const std::shared_ptr<Way> way = found->second;
  while (way->opening) BERTH_CO_DO(co_await way->opened.wait());
  if (!way->outcome) BERTH_CO_DO(co_await close(std::move(id)));
  co_return way->outcome;
}

Result<> EgressGateway::change(const std::string& id, const core::LinuxConfig& config) {
  BERTH_TRY(egress::Policy policy, policy_of(config));
  const auto found = ways_.find(id);
  if (found != ways_.end() && found->second->proxy) {
    found->second->proxy->set_policy(std::move(policy));
  }
  return {};
}

void EgressGateway::flush(const std::string& id) {
  const auto found = ways_.find(id);
  if (found != ways_.end() && found->second->proxy) found->second->proxy->flush();
}

Task<> EgressGateway::close(std::string id) {
  const auto found = ways_.find(id);
  if (found == ways_.end()) co_return Result<>{};
  const std::shared_ptr<Way> way = found->second;
  while (way->opening) BERTH_CO_DO(co_await way->opened.wait());
  // Other tasks may have waited for the same one, and a new one may have been started since.
  if (const auto now = ways_.find(id); now != ways_.end() && now->second == way) ways_.erase(now);
  const std::shared_ptr<egress::Proxy> proxy = std::exchange(way->proxy, nullptr);
  if (!proxy) co_return Result<>{};
  co_return co_await proxy->stop();
}

Task<> EgressGateway::close_all() {
  while (!ways_.empty()) BERTH_CO_DO(co_await close(ways_.begin()->first));
  BERTH_CO_DO(co_await tasks_.stop());
  co_return co_await resolver_.stop();
}

std::vector<std::string> EgressGateway::environment() {
  std::vector<std::string> out;
  for (const char* name : {"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"}) {
    out.push_back(std::string{name} + "=" + url_of(proxy_port));
  }
  for (const char* name : {"no_proxy", "NO_PROXY"}) {
    out.push_back(std::string{name} + "=localhost,127.0.0.1,::1");
  }
  return out;
}

std::optional<std::string> EgressGateway::api_url(const core::LinuxConfig& config) const {
  if (!callback_) return std::nullopt;
  if (config.network == core::LinuxNetwork::host) return "http://" + callback_->host;
  return url_of(callback_port);
}

}  // namespace berth::places
