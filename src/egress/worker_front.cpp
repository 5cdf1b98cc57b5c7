#include "egress/worker_front.hpp"

namespace berth::egress {

WorkerFront::WorkerFront(asio::io_context& loop, Resolver& resolver, const Clock& clock,
                         WorkerFrontOptions options)
    : proxy_(loop, resolver, clock,
             ProxyOptions{.lease = std::move(options.worker),
                          .policy = std::move(options.policy),
                          .limits = options.limits,
                          .own_ports = std::move(options.own_ports),
                          .names = &names_,
                          .log_path = std::move(options.log_path),
                          .log_limits = options.log_limits}),
      answers_(
          names_, clock,
          {.decide = [this](const std::string& name) { return proxy_.policy().decide_name(name); },
           .note = [this](LogEntry entry) { proxy_.note(std::move(entry)); }}),
      name_server_(loop, answers_) {}

Result<> WorkerFront::listen(WorkerSockets sockets) {
  for (Fd& listener : sockets.transparent) {
    BERTH_DO(proxy_.listen(std::move(listener), Door::transparent));
  }
  if (sockets.proxy) BERTH_DO(proxy_.listen(std::move(sockets.proxy), Door::proxy));
  if (sockets.names) BERTH_DO(name_server_.listen(std::move(sockets.names)));
  return {};
}

Task<> WorkerFront::stop() {
  BERTH_CO_DO(co_await name_server_.stop());
  co_return co_await proxy_.stop();
}

Result<Policy> worker_policy(std::span<const std::uint16_t> ports, Rules rules) {
  std::vector<SpecialRange> special = special_ranges();
  for (SpecialRange& own : addresses_of_this_machine()) special.push_back(std::move(own));
  // After the given rules, whose numbers appear in refusals.
  std::vector<std::string> allow = std::move(rules.allow).value_or(std::vector<std::string>{});
  for (const std::uint16_t port : ports) {
    for (const char* everything : {"*", "0.0.0.0/0", "[::/0]"}) {
      allow.push_back(everything + (":" + std::to_string(port)));
    }
  }
  rules.allow = std::move(allow);
  return Policy::parse(rules, std::move(special));
}

}  // namespace berth::egress
