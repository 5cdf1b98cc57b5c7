#pragma once

#include "base/json/json.hpp"
#include "plugins/manifest/manifest.hpp"
#include "plugins/message.hpp"

#include <expected>
#include <optional>
#include <set>
#include <string>
#include <string_view>

// What a worker may ask of the host, and for which company. Pure.
namespace berth::plugins {

// Under which call of ours a worker asks.
struct InvocationContext {
  std::optional<std::string> company = {};
  bool valid = true;  // false: it named an invocation that is not open, or none while some are
};

// What is known about the invocations of one worker.
struct OpenInvocations {
  std::map<std::string, std::string> companies = {};  // by invocation id
  std::set<std::string> configured = {};              // companies that have a config of the plugin
};

InvocationContext context_of(const Request& request, const OpenInvocations& open);

// The company for which the request is served, if any; -32601 for a name that nobody knows, -32001
// without the capability, -32005 when it asks for what is not the context's.
std::expected<std::optional<std::string>, RpcError> admit(const Request& request,
                                                          const Manifest& manifest,
                                                          const InvocationContext& context);

}  // namespace berth::plugins
