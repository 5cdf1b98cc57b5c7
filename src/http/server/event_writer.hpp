#pragma once

#include "base/async/async_mutex.hpp"
#include "http/server/serve.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

namespace berth::http {

// An event stream over one connection. Its body ends with the connection, so an event is written
// without framing that a cancelled write could leave incomplete.
template <class Stream>
class EventWriter final : public EventSink {
 public:
  EventWriter(Stream& stream, Connection& connection, Traffic& traffic, const Delivery& delivery)
      : stream_(stream),
        connection_(connection),
        traffic_(traffic),
        writing_(stream.get_executor()) {
    append_event_head(head_, delivery);
  }

  Task<> send(Event event) override {
    BERTH_CO_TRY(const AsyncMutex::Lock lock, co_await writing_.lock());
    std::string text = std::exchange(head_, {});
    append_event(text, event);
    co_return co_await write(std::move(text));
  }
  bool open() const override { return open_; }
  bool started() const { return head_.empty(); }

  // Shows the client that the stream is alive: first after a short while, so that it knows it is
  // connected, then in the pauses between events. Returns when the stream must end.
  Task<> pulse(DrainSignal& drained) {
    auto pause = traffic_.limits().sweep_interval;
    while (open_ && !drained.has_rung()) {
      drained.expires_after(pause);
      co_await drained.async_wait(asio::as_tuple(asio::use_awaitable));
      pause = traffic_.limits().keep_alive_interval;
      // The holder of the lock is writing, which shows the same.
      if (!open_ || drained.has_rung() || writing_.locked()) continue;
      BERTH_CO_TRY(const AsyncMutex::Lock lock, co_await writing_.lock());
      const Result<> written = co_await write(std::exchange(head_, {}) + ": keep-alive\n\n");
      if (!written) co_return written;
    }
    co_return Result<>{};
  }

  // Reads and drops what the client sends, which should be nothing, until it disconnects.
  Task<> watch() {
    std::array<char, 256> scratch{};
    while (open_) {
      const auto [error, size] = co_await stream_.async_read_some(
          asio::buffer(scratch), asio::as_tuple(asio::use_awaitable));
      if (!error) continue;
      // A read that was only cancelled, because the handler has ended, leaves the stream open.
      open_ = error == asio::error::operation_aborted && stream_.lowest_layer().is_open();
      break;
    }
    co_return Result<>{};
  }

 private:
  // The caller holds the lock.
  Task<> write(std::string text) {
    if (!open_) co_return fail(Errc::cancelled, "the client of the event stream is gone");
    connection_.set_deadline_in(traffic_.limits().write_timeout);
    const auto [error, size] = co_await asio::async_write(stream_, asio::buffer(text),
                                                          asio::as_tuple(asio::use_awaitable));
    connection_.clear_deadline();
    if (!error) co_return Result<>{};
    open_ = false;
    co_return fail(Errc::cancelled, "the client of the event stream is gone");
  }

  Stream& stream_;
  Connection& connection_;
  Traffic& traffic_;
  AsyncMutex writing_;
  std::string head_;  // until the first byte has been sent
  bool open_ = true;
};

}  // namespace berth::http
