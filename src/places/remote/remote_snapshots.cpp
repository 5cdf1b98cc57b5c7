// Sandboxes that a user prepares by hand, and templates captured from sandboxes.
#include "base/json/peek.hpp"
#include "places/lacks.hpp"
#include "places/remote/remote_config.hpp"
#include "places/remote/site.hpp"

namespace berth::places::remote {
namespace {

constexpr int connection_minutes = 15;

struct Ability {
  bool declared = false;
  const char* method = "";
  const char* says = "";  // what is impossible without it
};

// A plugin supports only what it both declares and advertises.
Result<> expect_able(const Supervisor& plugin, const DriverPlace& driver, const Ability& ability) {
  if (ability.declared && plugin.advertises(ability.method)) return {};
  return fail(Errc::execution_unsupported,
              "Sandbox provider \"" + driver.driver->driver_key + "\" of plugin " +
                  driver.plugin_key + " does not support " + ability.says + ": " +
                  (ability.declared ? "its worker does not answer " : "it does not declare ") +
                  ability.method,
              "choose an environment whose provider does, for example linux");
}

std::unexpected<Error> wrong_template_answer(const std::string& method, const std::string& why) {
  return fail(Errc::plugin_protocol, method + ": " + why, "report it to the author of the plugin");
}

std::optional<Time> time_at(const bj::object& object, std::string_view key) {
  const std::optional<std::string> text = text_in(object, key);
  if (!text) return std::nullopt;
  const Result<Time> at = parse_iso8601(*text);
  return at ? std::optional{*at} : std::nullopt;
}

bj::object setup_request(const PlaceRef& lease) {
  return {{"providerLeaseId", lease.provider_lease_id.value_or("")},
          {"setupMetadata", provider_metadata_of(lease.metadata)}};
}

}  // namespace

Task<RemoteLease> RemotePlace::open_setup(const PlaceRef& lease, SetupStart start) {
  const std::string method = "environmentStartInteractiveSetup";
  BERTH_CO_TRY(const Site place, co_await place_of(lease));
  const DriverDeclaration& declared = *place.driver.driver;
  for (const Ability& ability :
       {Ability{declared.supports_interactive_setup, "environmentStartInteractiveSetup",
                "interactive setup"},
        Ability{declared.supports_interactive_setup, "environmentCancelInteractiveSetup",
                "the end of an interactive setup"}}) {
    BERTH_CO_DO(expect_able(*place.plugin, place.driver, ability));
  }
  bj::object more{{"sessionId", start.session_id},
                  {"connectionExpiresInMinutes", connection_minutes},
                  {"expiresAt", to_iso8601(start.expires_at)}};
  if (start.source_ref) more["sourceTemplateRef"] = *start.source_ref;
  if (start.source_kind) more["sourceTemplateKind"] = *start.source_kind;
  BERTH_CO_TRY(const bj::value answer, co_await ask(place, method, std::move(more)));
  const bj::object* object = answer.if_object();
  const std::string status = object == nullptr ? "" : text_in(*object, "status").value_or("");
  BERTH_CO_TRY(RemoteLease opened, co_await lease_from(place, lease, answer));
  mark_setup(opened.metadata);
  if (status == "starting" || status == "waiting_for_user") co_return opened;
  PlaceRef unwanted = lease.clone();
  unwanted.provider_lease_id = opened.provider_lease_id;
  unwanted.metadata = opened.metadata;
  const Result<> cancelled = co_await cancel_setup(unwanted, "it did not start");
  co_return wrong_template_answer(
      method, "the sandbox is " + in_quotes(status) + " and cannot be used" +
                  (cancelled ? "" : "; its end failed too: " + cancelled.error().message));
}

Task<SetupAccess> RemotePlace::setup_access(const PlaceRef& lease) {
  const std::string method = "environmentGetInteractiveSetup";
  BERTH_CO_TRY(const Site place, co_await place_of(lease));
  BERTH_CO_DO(expect_able(*place.plugin, place.driver,
                          {place.driver.driver->supports_interactive_setup,
                           "environmentGetInteractiveSetup", "a look at an interactive setup"}));
  bj::object more = setup_request(lease);
  more["includeConnectionPayload"] = true;
  more["connectionExpiresInMinutes"] = connection_minutes;
  BERTH_CO_TRY(const bj::value answer, co_await ask(place, method, std::move(more)));
  const bj::object* object = answer.if_object();
  if (object == nullptr) co_return wrong_template_answer(method, "the answer is not an object");
  SetupAccess door;
  if (const bj::object* payload = object_in(*object, "connectionPayload")) {
    door.type = parse_name<core::SetupConnection>(text_in(*payload, "type").value_or(""))
                    .value_or(core::SetupConnection::unknown);
    door.command = text_in(*payload, "command");
    door.token = text_in(*payload, "token");
    door.expires_at = time_at(*payload, "expiresAt");
  }
  co_return door;
}

Task<> RemotePlace::cancel_setup(const PlaceRef& lease, std::string reason) {
  const std::string method = "environmentCancelInteractiveSetup";
  bj::object request = setup_request(lease);
  request["reason"] = reason;
  BERTH_CO_TRY(const bj::object answer, co_await ask_object(lease, method, std::move(request)));
  const std::string status = text_in(answer, "status").value_or("");
  if (status != "cancelled" && status != "timed_out" && status != "missing") {
    co_return wrong_template_answer(method,
                                    "the sandbox is " + in_quotes(status) + " and not over");
  }
  co_return forget(lease);
}

Task<CapturedTemplate> RemotePlace::capture_template(const PlaceRef& lease,
                                                     const CaptureTemplate& request) {
  const std::string method = "environmentCaptureTemplate";
  BERTH_CO_TRY(const Site place, co_await place_of(lease));
  const DriverDeclaration& declared = *place.driver.driver;
  BERTH_CO_DO(
      expect_able(*place.plugin, place.driver,
                  {declared.supports_template_capture, "environmentCaptureTemplate", "templates"}));
  if (!declared.template_config_binding) {
    co_return fail(Errc::execution_unsupported,
                   "Sandbox provider \"" + declared.driver_key + "\" of plugin " +
                       place.driver.plugin_key +
                       " has no templateConfigBinding: no sandbox could start from the template",
                   "report it to the author of the plugin");
  }
  bj::object more{{"providerLeaseId", lease.provider_lease_id.value_or("")},
                  {"templateLabel", request.label}};
  if (is_setup(lease.metadata)) more["setupMetadata"] = provider_metadata_of(lease.metadata);
  if (request.source_ref) more["sourceTemplateRef"] = *request.source_ref;
  if (request.previous_ref) more["previousTemplateRef"] = *request.previous_ref;
  if (const auto time = milliseconds_at(place.config, "timeoutMs")) {
    more["timeoutMs"] = request.timeout_ms.value_or(time->count());
  }
  BERTH_CO_TRY(bj::value answer, co_await ask(place, method, std::move(more)));
  answer = without_secrets(std::move(answer), lease.secrets);
  const bj::object* object = answer.if_object();
  const std::string ref = object == nullptr ? "" : text_in(*object, "templateRef").value_or("");
  if (ref.empty()) co_return wrong_template_answer(method, "the answer has no templateRef");
  const bj::object* own = object_in(*object, "metadata");
  CapturedTemplate made{
      .ref = ref,
      .kind = parse_name<core::TemplateKind>(text_in(*object, "templateKind").value_or(""))
                  .value_or(core::TemplateKind::unknown),
      .binding = {.field = declared.template_config_binding->field,
                  .unset_fields = declared.template_config_binding->unset_fields}};
  // Only the plugin that made it is asked to delete it.
  made.metadata["pluginId"] = place.driver.plugin_id.str();
  made.metadata["pluginKey"] = place.driver.plugin_key;
  made.metadata["provider"] = declared.driver_key;
  made.metadata["providerMetadata"] = own == nullptr ? bj::object{} : *own;
  co_return made;
}

Task<bool> RemotePlace::delete_template(const PlaceRef& place, const DeleteTemplate& request) {
  if (!request.ref) co_return false;
  const std::string method = "environmentDeleteTemplate";
  BERTH_CO_TRY(const Site where, co_await place_of(place));
  BERTH_CO_DO(expect_able(*where.plugin, where.driver,
                          {where.driver.driver->supports_template_delete,
                           "environmentDeleteTemplate", "the deletion of templates"}));
  bj::object more{{"templateRef", *request.ref},
                  {"templateKind", name_of(request.kind)},
                  {"metadata", provider_metadata_of(request.metadata)},
                  {"reason", "it is no longer needed"}};
  BERTH_CO_TRY(const bj::value answer, co_await ask(where, method, std::move(more)));
  const bj::object* object = answer.if_object();
  if (object == nullptr) co_return wrong_template_answer(method, "the answer is not an object");
  co_return is_true_in(*object, "deleted");
}

Task<Changes> RemotePlace::changes(const PlaceRef& lease) {
  co_return lacks(Lack::changes, lease);
}

Task<std::vector<core::TemplateId>> RemotePlace::held_templates() {
  co_return std::vector<core::TemplateId>{};
}

}  // namespace berth::places::remote
