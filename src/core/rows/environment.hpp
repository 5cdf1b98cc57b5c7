#pragma once

#include "base/json/json.hpp"
#include "core/enums.hpp"
#include "core/ids.hpp"

namespace berth::core {

// A named place where work may run: a driver and its config. config and env_vars hold secret ids,
// never values.
struct Environment {
  EnvironmentId id;
  CompanyId company_id;
  std::string name;
  std::optional<std::string> description;
  DriverKind driver = DriverKind::local;
  EnvironmentStatus status = EnvironmentStatus::active;
  bj::object config;
  bj::object env_vars;
  std::optional<bj::object> metadata;
  Time created_at;
  Time updated_at;
};
BOOST_DESCRIBE_STRUCT(Environment, (),
                      (id, company_id, name, description, driver, status, config, env_vars,
                       metadata, created_at, updated_at))

inline constexpr std::string_view local_environment_name = "Local";
inline constexpr std::string_view sandbox_environment_name = "Sandbox";

}  // namespace berth::core
