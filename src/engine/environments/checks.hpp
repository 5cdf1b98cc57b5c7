#pragma once

#include "core/call.hpp"
#include "core/placement.hpp"
#include "core/rows/environment.hpp"
#include "engine/services.hpp"
#include "store/sql/database.hpp"

#include <string>
#include <string_view>

// Small rules that several use cases share.
namespace berth::engine {

// A name as stored: trimmed, 1 to 200 characters, no control characters. The issue names the field.
Result<std::string> checked_name(std::string_view name, std::string_view at);

// For a PATCH field that may be absent but not null.
std::unexpected<Error> null_refused(std::string_view at);
template <class T>
Result<> not_null(const Patch<T>& field, std::string_view at) {
  if (field.given && !field.value) return null_refused(at);
  return {};
}

// If-Match: the caller wants to change exactly the version that it has read.
Result<> expect_version(const core::Call& call, std::int64_t version);

// Whether an environment can be a default: it exists in this company, the company may use it, and
// work can be sent to it.
Result<> check_default_environment(store::Session& session, const Services& services,
                                   const core::CompanyId& company, const core::EnvironmentId& id,
                                   const std::vector<core::DriverKind>& allowed,
                                   const std::vector<core::ProviderFacts>& providers);

// {"changedFields": ["description", "name"]}: what a PATCH changed, without the values.
template <class Change>
bj::object changed_fields(const Change& change) {
  bj::array names;
  boost::mp11::mp_for_each<MembersOf<Change>>([&](auto member) {
    if ((change.*member.pointer).given) names.emplace_back(wire_name<decltype(member)>());
  });
  std::ranges::sort(names, {},
                    [](const bj::value& name) { return std::string_view{name.get_string()}; });
  return {{"changedFields", std::move(names)}};
}

}  // namespace berth::engine
