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

// The key of a value that the host stores for the plugin.
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

// One call from the host, while a hook handles it: the hook's connection back to the host. Requests
// wait for the response, at most 30 seconds. Any thread, until the hook returns.
class Call {
 public:
  Call(HostLink& host, std::string invocation) : host_(host), invocation_(std::move(invocation)) {}

  void log(Level level, std::string_view message, bj::object meta = {});
  // Sends text of the running command as soon as it is available. Whole UTF-8 characters; see
  // LiveOutput.
  void output(Stream stream, std::string_view text);

  // The plugin's own config, for the calling company. Secrets in it are references.
  Result<bj::object> config();
  Result<bj::value> state(const StateKey& key);  // null when there is none
  Result<> set_state(const StateKey& key, bj::value value);
  Result<> remove_state(const StateKey& key);
  // The value behind a reference at that path of the plugin's own config. Secrets in an
  // environment's config do not need this: they are already in it.
  Result<Secret> secret(bj::object reference, const std::string& config_path);
  Result<HttpAnswer> fetch(const std::string& url, const HttpRequest& request);

  // Any other request or notification of the protocol.
  Result<bj::value> ask(std::string_view method, bj::value params);
  void notify(std::string_view method, bj::value params);
  // For objects that outlive the hook: see LiveRoute.
  HostLink& host() { return host_; }

 private:
  HostLink& host_;
  std::string invocation_;
};

}  // namespace berth::sdk
