#pragma once

#include "base/secret.hpp"
#include "sdk/wire.hpp"

#include <boost/describe/enum.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace berth::sdk {

enum class Level { debug, info, warn, error };
BOOST_DESCRIBE_ENUM(Level, debug, info, warn, error)

enum class Stream { stdout_, stderr_ };
BOOST_DESCRIBE_ENUM(Stream, stdout_, stderr_)

// Where a value that the host keeps for the plugin belongs.
struct StateKey {
  std::string scope_kind = "instance";  // instance, company, project, agent, issue, goal, run, ...
  std::optional<std::string> scope_id = {};
  std::optional<std::string> namespace_ = {};
  std::string state_key = {};
};
BOOST_DESCRIBE_STRUCT(StateKey, (), (scope_kind, scope_id, namespace_, state_key))

struct HttpRequest {
  std::string method = "GET";
  std::map<std::string, std::string> headers = {};
  std::optional<std::string> body = {};
};
BOOST_DESCRIBE_STRUCT(HttpRequest, (), (method, headers, body))

struct HttpAnswer {
  std::int64_t status = 0;
  std::map<std::string, std::string> headers = {};
  std::string body = {};
};
BOOST_DESCRIBE_STRUCT(HttpAnswer, (), (status, headers, body))

// One question of the host, while a hook answers it: the hook's way back to the host. What it asks
// waits for the answer, at most 30 seconds. Any thread, until the hook returns.
class Call {
 public:
  Call(HostLink& host, std::string invocation) : host_(host), invocation_(std::move(invocation)) {}

  void log(Level level, std::string_view message, bj::object meta = {});
  // Text of the running command, as soon as it is there. Whole UTF-8 characters; see LiveOutput.
  void output(Stream stream, std::string_view text);

  // The plugin's own config, of the company that is asking. Secrets in it are references.
  Result<bj::object> config();
  Result<bj::value> state(const StateKey& key);  // null when there is none
  Result<> set_state(const StateKey& key, bj::value value);
  Result<> remove_state(const StateKey& key);
  // The value behind a reference in the plugin's own config, at that path of it. Secrets of an
  // environment's config need none of this: they are in it already.
  Result<Secret> secret(bj::object reference, const std::string& config_path);
  Result<HttpAnswer> fetch(const std::string& url, const HttpRequest& request);

  // Any other question or remark of the protocol.
  Result<bj::value> ask(std::string_view method, bj::value params);
  void notify(std::string_view method, bj::value params);
  // For what outlives the hook: see LiveRoute.
  HostLink& host() { return host_; }

 private:
  HostLink& host_;
  std::string invocation_;
};

}  // namespace berth::sdk
