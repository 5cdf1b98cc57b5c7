#pragma once

#include "base/async/task.hpp"
#include "egress/inbox.hpp"
#include "egress/meter.hpp"
#include "egress/proxy.hpp"
#include "egress/refusal.hpp"

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>

#include <list>

// Internal to the proxy: only proxy.cpp and session*.cpp include it.
namespace berth::egress {

using Executor = asio::io_context::executor_type;
using StreamProtocol = asio::generic::stream_protocol;  // TCP, and unix for the callback
using Socket = asio::basic_stream_socket<StreamProtocol, Executor>;
using Endpoint = StreamProtocol::endpoint;
using Moment = std::chrono::steady_clock::time_point;

class Session;

// What all connections of one sandbox share.
struct Shared {
  const Limits limits;
  const std::optional<Callback> callback;
  const std::vector<std::uint16_t> own_ports;
  SyntheticNames* const names;
  Resolver& resolver;
  const Clock& clock;
  Policy policy;
  DecisionLog log;
  Meter meter;
  Traffic traffic = {};
  std::size_t lookups = 0;
  std::list<Session*> sessions = {};
};

// One client from its first byte to its last. Only its own coroutine uses the sockets. The sweep, a
// new policy or the end of the proxy wakes it by cancelling or closing them.
class Session {
 public:
  Session(Socket client, Door door, Shared& shared);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  Task<> run();
  // For a client over the limit: sends a refusal.
  Task<> turn_away();

  void sweep(Moment now);
  // The policy has changed.
  void reconsider();
  void abort();

 private:
  // What is being waited for, which determines what a passed deadline means.
  enum class Phase { idle, head, upstream, answer, streaming, lingering };
  enum class Next { request, close, linger };

  asio::awaitable<Next> exchange();
  asio::awaitable<Next> pass_through();
  Result<Target> dialled();
  Task<RequestHead> read_head();
  Error interrupted(const boost::system::error_code& error) const;

  Task<> reach();
  Task<std::vector<Address>> permitted_addresses();
  Task<std::vector<Address>> look_up();
  bool is_own_api(const Address& address) const;
  Decision decide(const Address& address) const;
  Task<> connect(Endpoint endpoint);
  Task<> connect_callback();
  std::unexpected<Error> denied(const Decision& decision);

  asio::awaitable<Next> tunnel();
  asio::awaitable<void> pump(Socket& from, Socket& to, std::uint64_t& count);
  asio::awaitable<void> pace(std::size_t bytes);

  asio::awaitable<Next> relay();
  asio::awaitable<void> send_body();
  asio::awaitable<void> receive_answer();
  Task<> send_content();
  Task<> read_answer_head();
  Task<> forward_answer();
  Task<> forward_content(Framing in, Framing out);
  Task<> write_content(Socket& to, std::string_view content, Framing framing, std::uint64_t& count);
  Task<> write_all(Socket& to, std::string_view text, std::uint64_t& count);

  asio::awaitable<Next> refuse(Error error);
  void reset_client();
  asio::awaitable<void> linger();

  void begin();
  void finish();
  void touch() { deadline_ = std::chrono::steady_clock::now() + shared_.limits.idle_timeout; }
  void set_deadline_in(std::chrono::milliseconds time) {
    deadline_ = std::chrono::steady_clock::now() + time;
  }

  Socket client_;
  Socket upstream_;
  const Door door_;
  Shared& shared_;
  std::list<Session*>::iterator place_;

  Inbox inbox_;         // from the client
  Inbox answer_inbox_;  // from the upstream
  ProxyRequest request_;
  ResponseHead answer_;
  LogEntry entry_;
  std::optional<Address> address_;                   // that this exchange is pinned to
  std::shared_ptr<const std::string> dialled_name_;  // keeps its address from being reused
  Moment started_ = {};  // when the head was complete; unset: no request yet

  Phase phase_ = Phase::idle;
  Moment deadline_ = Moment::max();
  bool first_ = true;        // no request yet on this connection
  bool timed_out_ = false;   // the deadline has passed
  bool aborted_ = false;     // both sockets are closed
  bool understood_ = false;  // request_ contains this request
  bool body_sent_ = false;   // the request's body was read completely
  bool answered_ = false;    // a response head was sent to the client
  bool keeps_alive_ = false;
  Result<> sent_ = {};
  Result<> received_ = {};
};

}  // namespace berth::egress
