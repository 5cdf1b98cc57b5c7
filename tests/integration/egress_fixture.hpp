#pragma once

#include "base/async/task_group.hpp"
#include "base/owned.hpp"
#include "egress/proxy.hpp"

#include <gtest/gtest.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <atomic>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

// A real proxy in its own thread, real upstreams on real sockets, and clients that send exactly the
// given bytes.
namespace berth::egress_test {

using namespace std::chrono_literals;

struct Answer {
  int status = 0;  // 0: the connection ended before a whole head
  std::string head = {};
  std::string body = {};

  std::string header(const std::string& name) const;
};

// A blocking stream over a socket. Any wait fails the test after thirty seconds.
class Wire {
 public:
  explicit Wire(Fd fd);
  static Wire connect_to(unsigned short port);

  int fd() const { return fd_.get(); }
  bool send(std::string_view bytes) const;
  void end_of_sending() const;
  void close() { fd_ = {}; }
  // Ends the connection with a reset instead of an orderly end.
  void reset();

  // Everything up to and including `end`, or what came before the connection ended.
  std::string read_until(std::string_view end);
  std::string read_bytes(std::size_t size);
  std::string read_all();
  // One response with a length, in chunks, or to the end of the connection.
  Answer read_answer();
  Answer ask(std::string_view request);

 private:
  bool more();
  std::string take(std::size_t size);
  std::string read_chunks();

  Fd fd_;
  std::string buffer_;
};

// A listening socket on its own port.
struct Listener {
  Fd fd;
  unsigned short port = 0;
};
Listener listen_on(const std::string& address, unsigned short port = 0);

// Serves each connection in a thread, until the object is destroyed.
class Upstream {
 public:
  using Serve = std::function<void(Wire&)>;
  explicit Upstream(Serve serve) : Upstream(std::move(serve), listen_on("127.0.0.1")) {}
  Upstream(Serve serve, Listener listener);
  Upstream(const Upstream&) = delete;
  Upstream& operator=(const Upstream&) = delete;
  ~Upstream();

  unsigned short port() const { return port_; }
  std::string authority(const std::string& host) const {
    return host + ":" + std::to_string(port_);
  }
  int connections() const { return connections_; }

 private:
  void accept_all();

  Serve serve_;
  Listener listener_;
  unsigned short port_;
  std::atomic<int> connections_ = 0;
  std::mutex mutex_;
  std::vector<int> open_;
  std::vector<std::jthread> threads_;
  std::jthread accepting_;
};

// Answers one request with the head and the body it received.
void mirror(Wire& wire);

// Returns the given answers one after the other; the last one is repeated.
class ScriptedResolver final : public egress::Resolver {
 public:
  Task<std::vector<egress::Address>> resolve(std::string name) override;

  // Set this before the proxy is used.
  std::map<std::string, std::vector<std::vector<std::string>>> answers;
  std::map<std::string, std::size_t> asked;
  // From now on answers wait for release().
  void hold(const asio::any_io_executor& executor);
  void release() { held_->cancel(); }

 private:
  std::optional<asio::steady_timer> held_;
};

struct LabPlan {
  std::vector<std::string> allow = {};
  std::vector<std::string> deny = {};
  egress::Limits limits = {};
  std::optional<egress::Callback> callback = {};
  std::vector<std::uint16_t> own_ports = {};
  std::string log_path = {};
  // Loopback is not special, so that upstreams on it represent the internet.
  std::vector<egress::SpecialRange> special = special_but_loopback();
  // Runs first in the proxy's thread.
  std::function<void()> prepare = {};
  // Replaces the lab's own resolver.
  std::function<std::unique_ptr<egress::Resolver>(const asio::any_io_executor&)> resolver = {};

  static std::vector<egress::SpecialRange> special_but_loopback();
};

class Lab {
 public:
  explicit Lab(LabPlan setup);
  Lab(const Lab&) = delete;
  Lab& operator=(const Lab&) = delete;
  ~Lab();

  unsigned short port() const { return port_; }
  Wire client() const { return Wire::connect_to(port_); }
  Answer ask(std::string_view request) const { return client().ask(request); }
  // A client with a tunnel to this authority.
  Wire tunnel(const std::string& authority) const;

  // Runs the function in the proxy's thread.
  template <class F>
  auto on_loop(F function) -> std::invoke_result_t<F> {
    std::promise<std::invoke_result_t<F>> promise;
    auto future = promise.get_future();
    boost::asio::post(loop_, [&] { promise.set_value(function()); });
    return future.get();
  }
  asio::any_io_executor executor() { return loop_.get_executor(); }
  void listen(Fd fd, egress::Door door = egress::Door::proxy);
  void set_rules(std::vector<std::string> allow, std::vector<std::string> deny = {});
  std::vector<egress::LogEntry> decisions();
  // Waits until this many requests are over and returns the last one's entry.
  egress::LogEntry entry_after(std::uint64_t requests);
  egress::Traffic traffic();
  // Waits until the traffic is as wanted.
  bool until(const std::function<bool(const egress::Traffic&)>& wanted);
  void stop();

 private:
  boost::asio::io_context loop_{1};

 public:
  ScriptedResolver resolver;  // has a timer of the loop

 private:
  SystemClock clock_;
  std::vector<egress::SpecialRange> special_;
  std::unique_ptr<egress::Resolver> other_resolver_;
  std::optional<egress::Proxy> proxy_;
  std::optional<TaskGroup> tasks_;
  unsigned short port_ = 0;
  std::thread thread_;
};

// "GET http://authority/path" as a client of a proxy sends it.
std::string get(const std::string& authority, const std::string& path = "/",
                const std::string& fields = {});
std::string connect(const std::string& authority);

}  // namespace berth::egress_test
