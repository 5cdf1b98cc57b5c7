#include "engine/settings.hpp"

#include "base/log.hpp"
#include "engine/checks.hpp"
#include "store/settings.hpp"

namespace berth::engine {
namespace {

const std::string setting_name = "instance";
constexpr std::int64_t retention_hours_max = 24 * 30;

// A field that the stored document lacks has its default: documents of older versions stay
// readable.
Result<core::Stored<InstanceSettings>> read_stored(store::Session& session) {
  BERTH_TRY(const auto found, store::find_setting(session, setting_name));
  core::Stored<InstanceSettings> out{{}, 0};
  if (!found) return out;
  BERTH_TRY(const auto given, decode<UpdateSettings>(found->value, UnknownKeys::ignore));
  out.value.strict_secrets = given.strict_secrets.or_else(out.value.strict_secrets);
  out.value.answer_retention_hours =
      given.answer_retention_hours.or_else(out.value.answer_retention_hours);
  out.value.enable_sandbox_duplex_bridge =
      given.enable_sandbox_duplex_bridge.or_else(out.value.enable_sandbox_duplex_bridge);
  out.version = found->version;
  return out;
}

}  // namespace

Result<InstanceSettings> read_settings(store::Session& session) {
  BERTH_TRY(const auto stored, read_stored(session));
  return stored.value;
}

Task<core::Stored<InstanceSettings>> Settings::get(core::Call /*call*/) {
  co_return co_await means_.store.read(read_stored);
}

Task<core::Stored<InstanceSettings>> Settings::update(core::Call call, UpdateSettings change) {
  BERTH_CO_DO(not_null(change.strict_secrets, "/strictSecrets"));
  BERTH_CO_DO(not_null(change.answer_retention_hours, "/answerRetentionHours"));
  BERTH_CO_DO(not_null(change.enable_sandbox_duplex_bridge, "/enableSandboxDuplexBridge"));
  const auto& hours = change.answer_retention_hours.value;
  if (hours && (*hours < 1 || *hours > retention_hours_max)) {
    co_return std::unexpected(Error{Errc::validation_failed,
                                    "/answerRetentionHours must be from 1 to 720",
                                    "send a number of hours from 1 to 720",
                                    {{"/answerRetentionHours", "is out of range"}}});
  }
  const auto work = [&](store::Session& s) -> Result<core::Stored<InstanceSettings>> {
    BERTH_TRY(auto row, read_stored(s));
    BERTH_DO(expect_version(call, row.version));
    row.value.strict_secrets = change.strict_secrets.or_else(row.value.strict_secrets);
    row.value.answer_retention_hours =
        change.answer_retention_hours.or_else(row.value.answer_retention_hours);
    row.value.enable_sandbox_duplex_bridge =
        change.enable_sandbox_duplex_bridge.or_else(row.value.enable_sandbox_duplex_bridge);
    const bj::value document = encode(row.value);
    BERTH_DO(store::save_setting(s, setting_name, document.get_object(), row.version,
                                 means_.clock.now()));
    ++row.version;
    return row;
  };
  BERTH_CO_TRY(auto row, co_await means_.store.write(work));
  log::info("settings.updated", {{"by", call.who.actor_id()}});
  co_return row;
}

}  // namespace berth::engine
