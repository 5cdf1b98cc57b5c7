#pragma once

#include "base/async/event.hpp"
#include "base/async/task_group.hpp"
#include "core/config/linux_config.hpp"
#include "egress/proxy.hpp"
#include "places/abilities.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace berth::places {

// Whether this server listens on that port in a sandbox.
bool is_own_door(std::uint16_t port);

// The only way out of each sandbox without a network: a proxy of this server that listens in the
// sandbox, and next to it a door to this server's own API.
class EgressGateway {
 public:
  // The clock and the pool must outlive it.
  EgressGateway(asio::io_context& loop, asio::thread_pool& pool, const Clock& clock);

  // Sets where this server's own API is. Without it there is no door to it.
  void reachable_at(egress::Callback callback) { callback_ = std::move(callback); }
  // Sets the port of this server's API. No sandbox rule opens it on this machine.
  void listens_on(std::uint16_t port) { own_ports_ = {port}; }

  // This server's only resolver; other parts that connect for a company use it too.
  egress::Resolver& resolver() { return resolver_; }

  struct Request {
    std::string id;
    std::string keeper_folder;
    std::string log_path;
    core::LinuxConfig config;
  };
  // Starts to open it, unless it is open: for a new sandbox, or for one that a previous server
  // made. Fails if its rules cannot be parsed.
  Result<> begin(Request request);
  // Waits until it is open: before that no command may start in the sandbox. A failure is reported
  // once; after that begin() may be called again. Succeeds if there is nothing to wait for.
  Task<> wait(std::string id);
  // Whether it is open or being opened.
  bool has(const std::string& id) const { return ways_.contains(id); }
  // Sets what a sandbox may reach from now on; open connections that are no longer allowed are cut.
  // Succeeds if it is not open: begin() passes the policy later.
  Result<> change(const std::string& id, const core::LinuxConfig& config);
  // Writes the decisions so far to the sandbox's log, for a reader of the file.
  void flush(const std::string& id);
  // Succeeds if there is nothing to close.
  Task<> close(std::string id);
  Task<> close_all();

  // The environment that points commands in such a sandbox to it: http_proxy and the like.
  static std::vector<std::string> environment();
  // The URL at which they reach this server; empty if it is not known.
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

// The rules of a config; validation_failed names the rule that cannot be parsed.
Result<egress::Policy> policy_of(const core::LinuxConfig& config);
// The entries of a decision log from an offset on, in complete lines. A missing file counts as
// empty. Blocks.
Result<EgressPage> read_log(const std::string& file, std::uint64_t offset);

}  // namespace berth::places
