#pragma once

#include "base/async/event.hpp"
#include "base/async/task_group.hpp"
#include "core/config/linux_config.hpp"
#include "egress/proxy.hpp"
#include "execution/execution.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace berth::providers {

// Whether it is one of the ports on which this server listens inside of a sandbox.
bool is_own_door(std::uint16_t port);

// The one way out of each sandbox that has no network: a proxy of this server that listens inside
// it, and a door to this server's own API beside it.
class EgressGateway {
 public:
  // The clock and the pool outlive it.
  EgressGateway(asio::io_context& loop, asio::thread_pool& pool, const Clock& clock);

  // Where this server's own API is, from now on. Without it there is no door to it.
  void reachable_at(egress::Callback callback) { callback_ = std::move(callback); }
  // The port of this server's API, from now on. No rule of a sandbox opens it on this machine.
  void listens_on(std::uint16_t port) { own_ports_ = {port}; }

  // The one resolver of this server; other parts that connect for a company use it too.
  egress::Resolver& resolver() { return resolver_; }

  struct Request {
    std::string id;
    std::string keeper_folder;
    std::string log_path;
    core::LinuxConfig config;
  };
  // Begins to open it, unless it is open: for a new sandbox, and for one that a former server made.
  // Fails when its rules cannot be read.
  Result<> begin(Request request);
  // Until it is open: before that no command may start inside. What went wrong is told once, and
  // may then be begun again. Nothing to wait for is fine.
  Task<> wait(std::string id);
  // Whether it is open, or is being opened.
  bool has(const std::string& id) const { return ways_.contains(id); }
  // What a sandbox may reach from now on; what is open and no longer allowed is cut. Nothing to
  // change is fine: whoever opens it later brings the policy.
  Result<> change(const std::string& id, const core::LinuxConfig& config);
  // Brings what was decided so far into the log of a sandbox, for who reads its file.
  void flush(const std::string& id);
  // Nothing to close is fine.
  Task<> close(std::string id);
  Task<> close_all();

  // How the commands of such a sandbox are told of it: http_proxy and the like.
  static std::vector<std::string> environment();
  // Under which address they reach this server; nothing when it is not known.
  std::optional<std::string> api_url(const core::LinuxConfig& config) const;

 private:
  struct Listeners {
    Fd proxy;
    Fd callback;
  };
  struct Way {
    explicit Way(const asio::any_io_executor& executor) : opened(executor) {}

    std::shared_ptr<egress::Proxy> proxy = {};
    bool opening = true;
    Result<> outcome = {};
    Event opened;
  };
  static Result<Listeners> listeners_in(const std::string& keeper_folder);
  Task<> open(std::shared_ptr<Way> way, Request request, egress::Policy policy);
  Task<> listen(Way& way, Request request, egress::Policy policy);

  asio::io_context& loop_;
  asio::thread_pool& pool_;
  const Clock& clock_;
  asio::thread_pool lookups_{2};
  egress::SystemResolver resolver_;
  std::optional<egress::Callback> callback_;
  std::vector<std::uint16_t> own_ports_;
  std::map<std::string, std::shared_ptr<Way>> ways_;
  TaskGroup tasks_;
};

// The rules of a config; validation_failed names the rule that cannot be read.
Result<egress::Policy> policy_of(const core::LinuxConfig& config);
// What stands in a file of decisions from an offset on, in whole lines. No file is an empty one.
// Blocks.
Result<execution::EgressPage> read_log(const std::string& file, std::uint64_t offset);

}  // namespace berth::providers
