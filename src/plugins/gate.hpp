#pragma once

#include "base/json/json.hpp"
#include "plugins/manifest/manifest.hpp"
#include "plugins/message.hpp"

#include <expected>
#include <optional>
#include <set>
#include <string>
#include <string_view>

// What a worker may request from the host, and for which company. Pure.
namespace berth::plugins {

// The call of ours under which a worker sends a request.
struct InvocationContext {
  std::optional<std::string> company = {};
  bool valid = true;  // false: it named an invocation that is not open, or none while some are
};

// The open invocations of one worker.
struct OpenInvocations {
  std::map<std::string, std::string> companies = {};  // by invocation id
  std::set<std::string> configured = {};              // companies that have a config of the plugin
};

InvocationContext context_of(const Request& request, const OpenInvocations& open);

// The company for which the request is served, if any. Fails with -32601 for an unknown method,
// -32001 without the capability, and -32005 for a request outside the context.
std::expected<std::optional<std::string>, RpcError> admit(const Request& request,
                                                          const Manifest& manifest,
                                                          const InvocationContext& context);

}  // namespace berth::plugins
