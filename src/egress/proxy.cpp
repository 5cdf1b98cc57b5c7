#include "egress/proxy.hpp"

#include "base/async/task_group.hpp"
#include "base/files.hpp"
#include "base/log.hpp"
#include "egress/session.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <sys/socket.h>

#include <cerrno>

namespace berth::egress {
namespace {

using boost::system::error_code;
using Acceptor = asio::basic_socket_acceptor<StreamProtocol, Executor>;

constexpr std::chrono::milliseconds accept_pause{100};
constexpr std::size_t turned_away_max = 64;  // excess clients that get a response at the same time

Task<> serve(Socket client, Door door, Shared& shared) {
  Session session{std::move(client), door, shared};
  co_return co_await session.run();
}

Task<> turn_away(Socket client, Door door, Shared& shared) {
  Session session{std::move(client), door, shared};
  co_return co_await session.turn_away();
}

// The address family of a listening stream socket.
Result<int> family_of(int fd) {
  int listens = 0;
  int family = 0;
  int type = 0;
  socklen_t size = sizeof listens;
  if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 ||
      ::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size) != 0 ||
      ::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0) {
    return io_failure("look at", "the egress listener", errno);
  }
  if (listens == 0 || type != SOCK_STREAM) return io_failure("use", "the egress listener", EINVAL);
  return family;
}

}  // namespace

struct Proxy::Parts {
  Parts(asio::io_context& io, Resolver& resolver, const Clock& clock, ProxyOptions options)
      : loop(io),
        lease(std::move(options.lease)),
        shared{.limits = options.limits,
               .callback = std::move(options.callback),
               .own_ports = std::move(options.own_ports),
               .names = options.names,
               .resolver = resolver,
               .clock = clock,
               .policy = std::move(options.policy),
               .log = DecisionLog{std::move(options.log_path), options.log_limits},
               .meter = Meter{options.limits.bytes_per_second}},
        sessions(loop.get_executor()),
        background(loop.get_executor()) {
    background.start("egress.sweep", sweep());
  }

  Task<> accept(Acceptor& acceptor, Door door);
  Task<> sweep();
  void welcome(Socket client, Door door);

  asio::io_context& loop;
  std::string lease;
  Shared shared;
  std::list<Acceptor> acceptors;
  TaskGroup sessions;
  TaskGroup background;
};

Proxy::Proxy(asio::io_context& loop, Resolver& resolver, const Clock& clock, ProxyOptions options)
    : parts_(std::make_unique<Parts>(loop, resolver, clock, std::move(options))) {}

Proxy::~Proxy() {
  parts_->shared.log.flush();
}

Result<> Proxy::listen(Fd listener, Door door) {
  BERTH_TRY(const int family, family_of(listener.get()));
  Acceptor& acceptor = parts_->acceptors.emplace_back(parts_->loop);
  error_code error;
  acceptor.assign(StreamProtocol{family, 0}, listener.get(), error);
  if (error) {
    parts_->acceptors.pop_back();
    return io_failure("serve", "the egress listener", error.value());
  }
  std::ignore = listener.release();  // the acceptor closes it
  parts_->background.start("egress.accept", parts_->accept(acceptor, door));
  return {};
}

Task<> Proxy::Parts::accept(Acceptor& acceptor, Door door) {
  asio::steady_timer retry{loop};
  while (acceptor.is_open()) {
    auto [error, client] = co_await acceptor.async_accept(tuple_awaitable);
    if (error == asio::error::operation_aborted) break;
    if (!error) {
      welcome(std::move(client), door);
      continue;
    }
    if (error == asio::error::connection_aborted) continue;
    // If descriptors are exhausted, the kernel would report the same connection again at once.
    log::warn("egress.accept_failed", {{"lease", lease}, {"error", error.message()}});
    retry.expires_after(accept_pause);
    co_await retry.async_wait(tuple_awaitable);
  }
  co_return Result<>{};
}

void Proxy::Parts::welcome(Socket client, Door door) {
  const std::size_t open = shared.sessions.size();
  if (open >= shared.limits.connections_max + turned_away_max) return;  // closes it
  if (open >= shared.limits.connections_max) {
    sessions.start("egress.turn_away", turn_away(std::move(client), door, shared));
    return;
  }
  sessions.start("egress.session", serve(std::move(client), door, shared));
}

// Deadlines cost one check per sweep instead of a timer per wait.
Task<> Proxy::Parts::sweep() {
  asio::steady_timer tick{loop};
  while (true) {
    tick.expires_after(shared.limits.sweep_interval);
    const auto [stopped] = co_await tick.async_wait(tuple_awaitable);
    if (stopped) co_return Result<>{};
    const Moment now = std::chrono::steady_clock::now();
    for (Session* session : shared.sessions) session->sweep(now);
    shared.log.flush();
  }
}

void Proxy::set_policy(Policy policy) {
  parts_->shared.policy = std::move(policy);
  for (Session* session : parts_->shared.sessions) session->reconsider();
}

const Policy& Proxy::policy() const {
  return parts_->shared.policy;
}

void Proxy::note(LogEntry entry) {
  parts_->shared.log.add(std::move(entry), parts_->shared.policy.log());
}

void Proxy::flush() {
  parts_->shared.log.flush();
}

std::vector<LogEntry> Proxy::decisions(std::size_t count) const {
  return parts_->shared.log.newest(count);
}

Traffic Proxy::traffic() const {
  Traffic traffic = parts_->shared.traffic;
  traffic.connections = parts_->shared.sessions.size();
  return traffic;
}

Task<> Proxy::stop() {
  error_code ignored;
  for (Acceptor& acceptor : parts_->acceptors) acceptor.close(ignored);
  BERTH_CO_DO(co_await parts_->background.stop());
  for (Session* session : parts_->shared.sessions) session->abort();
  BERTH_CO_DO(co_await parts_->sessions.stop());
  parts_->acceptors.clear();
  parts_->shared.log.flush();
  co_return Result<>{};
}

}  // namespace berth::egress
