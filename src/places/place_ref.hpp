#pragma once

#include "base/json/json.hpp"
#include "base/secret.hpp"
#include "core/enums.hpp"
#include "core/ids.hpp"
#include "core/rows/agent_home.hpp"

#include <compare>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace berth::places {

// What a place is held for, and the name under which it keeps what it has on this machine: a lease,
// or a sandbox or template that no lease holds any more.
class PlaceKey {
 public:
  PlaceKey(core::LeaseId id) : id_(std::move(id)) {}
  PlaceKey(core::SandboxId id) : id_(std::move(id)) {}
  PlaceKey(core::TemplateId id) : id_(std::move(id)) {}

  const std::string& str() const {
    return std::visit([](const auto& id) -> const std::string& { return id.str(); }, id_);
  }
  std::string name() const;  // "lease 7f3a", for messages
  // Empty if the place is held for something else.
  std::optional<core::LeaseId> lease() const { return as<core::LeaseId>(); }
  std::optional<core::SandboxId> sandbox() const { return as<core::SandboxId>(); }

  friend auto operator<=>(const PlaceKey&, const PlaceKey&) = default;

 private:
  template <class Kind>
  std::optional<Kind> as() const {
    const Kind* const found = std::get_if<Kind>(&id_);
    return found == nullptr ? std::nullopt : std::optional{*found};
  }

  std::variant<core::LeaseId, core::SandboxId, core::TemplateId> id_;
};

// Whether the server itself may connect to a private address, for an SSH environment.
enum class PrivateAddresses { refused, reachable };

// How a place is addressed: everything that an operation needs to find what an earlier one started,
// as recorded before the first request to the place.
struct PlaceRef {
  PlaceKey key;
  core::DriverKind driver = core::DriverKind::local;
  // Absent: no row is left that would know it.
  std::optional<core::CompanyId> company_id = {};
  std::optional<core::EnvironmentId> environment_id = {};
  std::optional<core::RunId> run_id = {};  // absent: an ad-hoc lease for a test
  std::optional<core::SandboxId> sandbox_id = {};
  // The agent's home folder, if it is on this server's disk.
  std::optional<core::AgentHomeId> home_id = {};
  bj::object config = {};                      // as stored: secret ids, never values
  std::map<std::string, Secret> secrets = {};  // values by config path
  std::optional<std::string> provider_lease_id = {};
  bj::object metadata = {};  // what acquire returned
  PrivateAddresses private_addresses = PrivateAddresses::refused;

  PlaceRef clone() const;
};

}  // namespace berth::places
