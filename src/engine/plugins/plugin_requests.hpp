#pragma once

#include "base/json/json.hpp"
#include "core/rows/plugin.hpp"

#include <map>
#include <optional>
#include <string>

namespace berth::engine {

// The parameters of the host's methods; a plugin may send fields that we do not know.
struct StateRequest {
  core::PluginScope scope_kind;
  std::optional<std::string> scope_id;
  std::string state_key;
};
BOOST_DESCRIBE_STRUCT(StateRequest, (), (scope_kind, scope_id, state_key))

struct EntityRequest {
  std::string entity_type;
  core::PluginScope scope_kind;
  std::optional<std::string> scope_id;
  std::optional<std::string> external_id;
  std::optional<std::string> title;
  std::optional<std::string> status;
  bj::object data;
};
BOOST_DESCRIBE_STRUCT(EntityRequest, (),
                      (entity_type, scope_kind, scope_id, external_id, title, status, data))

struct EntityQuery {
  std::optional<std::string> entity_type;
  std::optional<core::PluginScope> scope_kind;
  std::optional<std::string> scope_id;
  std::optional<std::string> external_id;
  std::optional<std::int64_t> limit;
  std::optional<std::int64_t> offset;
};
BOOST_DESCRIBE_STRUCT(EntityQuery, (),
                      (entity_type, scope_kind, scope_id, external_id, limit, offset))

struct ActivityRequest {
  std::string message;
  std::optional<std::string> entity_type;
  std::optional<std::string> entity_id;
  std::optional<bj::object> metadata;
};
BOOST_DESCRIBE_STRUCT(ActivityRequest, (), (message, entity_type, entity_id, metadata))

struct FetchInit {
  std::optional<std::string> method;
  std::optional<std::map<std::string, std::string>> headers;
  std::optional<std::string> body;
};
BOOST_DESCRIBE_STRUCT(FetchInit, (), (method, headers, body))

}  // namespace berth::engine
