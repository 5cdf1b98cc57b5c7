#include "engine/environments/checks.hpp"

#include "engine/environments/allowed_places.hpp"
#include "store/places/environments.hpp"

namespace berth::engine {
namespace {

constexpr std::size_t name_length_max = 200;

std::unexpected<Error> wrong_field(std::string_view at, const std::string& what) {
  return std::unexpected(Error{Errc::validation_failed,
                               std::string{at} + " " + what,
                               "correct the named field and send it again",
                               {{std::string{at}, what}}});
}

}  // namespace

Result<std::string> checked_name(std::string_view name, std::string_view at) {
  while (!name.empty() && name.front() == ' ') name.remove_prefix(1);
  while (!name.empty() && name.back() == ' ') name.remove_suffix(1);
  if (name.empty()) return wrong_field(at, "must not be empty");
  if (name.size() > name_length_max) {
    return wrong_field(at, "is longer than " + std::to_string(name_length_max) + " bytes");
  }
  const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (std::ranges::any_of(name, control)) return wrong_field(at, "holds a control character");
  return std::string{name};
}

std::unexpected<Error> null_refused(std::string_view at) {
  return wrong_field(at, "must not be null");
}

Result<> expect_version(const core::Call& call, std::int64_t version) {
  if (!call.if_version || *call.if_version == version) return {};
  return fail(Errc::precondition_failed,
              "the object is at version " + std::to_string(version) + ", not at version " +
                  std::to_string(*call.if_version) + " as If-Match says",
              "read it again, apply your change to what you find, and send the new ETag");
}

Result<> check_default_environment(store::Session& session, const Services& services,
                                   const core::CompanyId& company, const core::EnvironmentId& id,
                                   const std::vector<core::DriverKind>& allowed,
                                   const std::vector<core::ProviderFacts>& providers) {
  const auto found = store::find_environment(session, core::Reach::only(company), id);
  if (!found && found.error().code == Errc::environment_not_found) {
    return std::unexpected(
        Error{Errc::unprocessable,
              "Selected environment was not found.",
              "list the company's environments and take an id from there",
              {{"/defaultEnvironmentId", "names no environment of this company"}}});
  }
  if (!found) return std::unexpected(found.error());
  BERTH_DO(core::check_selection(found->value, allowed, providers));
  return expect_allowed(session, services, found->value);
}

}  // namespace berth::engine
