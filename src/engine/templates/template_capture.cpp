#include "engine/templates/template_capture.hpp"

#include "base/digest.hpp"
#include "base/fault_point.hpp"
#include "base/log.hpp"
#include "core/fingerprint.hpp"
#include "engine/journal.hpp"
#include "engine/leases/abilities.hpp"
#include "engine/leases/held_lease.hpp"
#include "engine/upkeep/node_life.hpp"
#include "store/places/environments.hpp"
#include "store/places/leases.hpp"
#include "store/places/templates.hpp"

namespace berth::engine {
namespace {

using places::Lack;

using core::LeaseState;
using core::Template;
using core::TemplateEvent;
using core::TemplateState;

constexpr std::int64_t template_claim_ms = 10LL * 60 * 1000;  // longer than one attempt takes
constexpr std::int64_t template_again_ms = 60'000;

core::Call call_of(const Template& row) {
  return {.who = {.kind = core::CallerKind::system, .company_id = row.company_id}};
}

Entry entry_of(const Template& row, std::string_view action) {
  bj::object details{{"name", row.name}, {"provider", row.provider}};
  if (row.failure_reason) details["failureReason"] = *row.failure_reason;
  return {row.company_id, action, "template", row.id.str(), std::move(details)};
}

places::DeleteTemplate deletion_of(const Template& row) {
  return {.key = row.id, .ref = row.template_ref, .kind = row.kind, .metadata = row.metadata};
}

std::optional<std::string> ref_of(store::Session& session,
                                  const std::optional<core::TemplateId>& id) {
  if (!id) return std::nullopt;
  const auto found = store::find_template(session, core::Reach::everything(), *id);
  return found ? found->value.template_ref : std::nullopt;
}

bool is_held(const core::LeaseRecord& lease) {
  return lease.status == LeaseState::active || lease.status == LeaseState::retained;
}

constexpr std::string_view unanswered = "capture_unanswered: ";

Result<> expect_unanswered(const Template& row) {
  if (is_unanswered(row)) return {};
  return fail(Errc::conflict, "Template \"" + row.name + "\" does not wait for its reference",
              "delete it: berth template delete " + row.id.str());
}

}  // namespace

bool is_unanswered(const Template& row) {
  return row.status == TemplateState::deleting && !row.template_ref && !row.next_attempt_at &&
         row.failure_reason.value_or("").starts_with(unanswered);
}

void link(Template& row, const bj::object& config) {
  row.source_config_fingerprint = sha256_hex(core::canonical_json(config));
  row.source_config = config;
}

Result<TemplateCapture::Row> TemplateCapture::intend(store::Session& session,
                                                     const core::LeaseRecord& lease,
                                                     Request wanted) {
  BERTH_DO(expect_alive(session, leases_.node()));
  if (!lease.sandbox_id) {
    return fail(Errc::conflict, "Lease " + lease.id.str() + " holds no sandbox: its driver is " +
                                    std::string{name_of(lease.driver)});
  }
  const Time now = services_.clock.now();
  Template row{.id = core::TemplateId::make(services_.random, now),
               .company_id = lease.company_id,
               .name = std::move(wanted.name),
               .environment_id = lease.environment_id,
               .provider = lease.provider.value_or(""),
               .source_template_id = lease.teardown.template_id,
               .source_lease_id = lease.id,
               .node_id = leases_.node(),
               .expendable = wanted.stays == Request::Stays::while_used,
               .config = lease.teardown.config,
               .next_attempt_at = now + template_claim_ms,
               .created_at = now,
               .updated_at = now};
  // The plugin that captures it must also delete it, even if its response is lost.
  if (lease.teardown.plugin_id) row.metadata["pluginId"] = lease.teardown.plugin_id->str();
  if (lease.environment_id) {
    const auto environment =
        store::find_environment(session, core::Reach::everything(), *lease.environment_id);
    if (environment) {
      link(row, environment->value.config);
    }
  }
  BERTH_DO(store::insert_template(session, row));
  return store::find_template(session, core::Reach::everything(), row.id);
}

Task<TemplateCapture::Row> TemplateCapture::record_captured(Row intended,
                                                            places::CapturedTemplate captured,
                                                            Also also) {
  const auto save = [&](store::Session& s) -> Result<Row> {
    BERTH_DO(expect_alive(s, leases_.node()));
    const Time now = services_.clock.now();
    BERTH_TRY(Row row, store::find_template(s, core::Reach::everything(), intended.value.id));
    row.value.template_ref = captured.ref;
    row.value.kind = captured.kind;
    row.value.binding = captured.binding;
    row.value.metadata = captured.metadata;
    row.value.captured_at = now;
    if (also) BERTH_DO(also(s, row.value));
    BERTH_TRY(row, store::move_template(s, std::move(row), TemplateEvent::captured, now));
    BERTH_DO(record(s, services_, call_of(row.value), entry_of(row.value, "template.captured")));
    return row;
  };
  co_return co_await services_.store.write(save);
}

Task<TemplateCapture::Row> TemplateCapture::capture(Row intended, core::LeaseRecord lease,
                                                    Also also) {
  fault_point("capture.intended");
  BERTH_CO_TRY(places::Place* const place, leases_.place_of(lease));
  BERTH_CO_TRY(const places::PlaceRef facts, co_await leases_.facts(lease));
  places::CaptureTemplate request{.key = intended.value.id, .label = intended.value.name};
  if (is_frozen(lease)) request.afterwards = places::Afterwards::stays_frozen;
  BERTH_CO_TRY(
      request.source_ref,
      co_await services_.store.read([&](store::Session& s) -> Result<std::optional<std::string>> {
        return ref_of(s, lease.teardown.template_id);
      }));
  const auto snapshots = need<Lack::capture>(*place, facts);
  Result<places::CapturedTemplate> captured =
      snapshots ? co_await (*snapshots)->capture_template(facts, request)
                : std::unexpected(snapshots.error());
  fault_point("capture.acted");
  Error why;
  if (captured) {
    // Not every provider can look it up by our key, so its reference is recorded.
    intended.value.template_ref = captured->ref;
    intended.value.kind = captured->kind;
    intended.value.metadata = captured->metadata;
    Result<Row> row = co_await record_captured(intended, *std::move(captured), std::move(also));
    fault_point("capture.recorded");
    if (row) {
      services_.feed.changed(row->value.company_id);
      services_.feed.environments_changed();
      co_return row;
    }
    why = row.error();
  } else {
    why = captured.error();
  }
  if (why.code == Errc::cancelled) co_return std::unexpected(why);
  // An incomplete capture is deleted now, or by the sweeper.
  const bool is_refused = !captured && LeaseLifecycle::made_none(why.code);
  const Result<Row> gone =
      co_await settle(std::move(intended), is_refused ? Left::nothing : Left::something);
  if (!gone && gone.error().code != Errc::cancelled) {
    log::warn("template.not_settled", {{"error", gone.error().message}});
  }
  co_return std::unexpected(why);
}

Result<TemplateCapture::Row> TemplateCapture::begin_delete(store::Session& session, Row row) {
  BERTH_DO(expect_alive(session, leases_.node()));
  const Template& value = row.value;
  if (value.role == core::TemplateRole::active && value.environment_id) {
    return fail(Errc::image_in_use,
                "Template \"" + value.name + "\" is the active one of its environment",
                "go back to the one before, or revoke it: berth env image ENVIRONMENT --revoke");
  }
  BERTH_TRY(std::vector<std::string> users, store::users_of_template(session, value));
  if (!users.empty()) {
    Error error{.code = Errc::image_in_use,
                .message = "Template \"" + value.name + "\" is in use by " + users.front(),
                .remedy = "release the leases, and change or delete what stands on it"};
    error.facts["users"] = users;
    return std::unexpected(std::move(error));
  }
  row.value.node_id = leases_.node();
  return store::move_template(session, std::move(row), TemplateEvent::delete_begun,
                              services_.clock.now());
}

// A server that was killed while it copied has left the sandbox frozen.
Task<> TemplateCapture::let_go_on(Template row) {
  if (!row.source_lease_id) co_return Result<>{};
  const auto lease = co_await services_.store.read([&](store::Session& s) {
    return store::find_lease_record(s, core::Reach::everything(), *row.source_lease_id);
  });
  if (!lease || !is_held(lease->value) || is_frozen(lease->value)) co_return Result<>{};
  BERTH_CO_TRY(places::Place* const place, leases_.place_of(lease->value));
  places::Freezer* const freezer = place->abilities().freezer;
  if (freezer == nullptr) co_return Result<>{};
  BERTH_CO_TRY(const places::PlaceRef facts, co_await leases_.facts(lease->value));
  co_return co_await freezer->thaw(facts);
}

Task<TemplateCapture::Row> TemplateCapture::park(Row row) {
  const auto save = [&](store::Session& s) -> Result<Row> {
    BERTH_DO(expect_alive(s, leases_.node()));
    Template& value = row.value;
    if (!value.failure_reason || !value.failure_reason->starts_with(unanswered)) {
      const Time now = services_.clock.now();
      const std::string id = value.id.str();
      value.failure_reason =
          std::string{unanswered} + "provider \"" + value.provider + "\" was asked at " +
          to_iso8601(value.created_at) + " to capture template \"" + value.name + "\"" +
          (value.source_lease_id ? " of lease " + value.source_lease_id->str() : std::string{}) +
          ", and its answer was lost. Look in its console for a template that was made between "
          "then "
          "and " +
          to_iso8601(now) + ". If it is there, name it: berth template adopt " + id +
          " --ref REFERENCE. If it is not: berth template force-resolve " + id +
          " --reason 'not there'.";
      value.name += " (unanswered " + id + ")";  // frees the name for a new capture
      log::warn("template.capture_unanswered", {{"template", id}, {"provider", value.provider}});
    }
    value.next_attempt_at.reset();
    return store::update_template(s, row, services_.clock.now());
  };
  BERTH_CO_TRY(row, co_await services_.store.write(save));
  services_.feed.changed(row.value.company_id);
  co_return row;
}

Result<TemplateCapture::Row> TemplateCapture::adopt(store::Session& session, Row row,
                                                    std::string template_ref) {
  BERTH_DO(expect_alive(session, leases_.node()));
  BERTH_DO(expect_unanswered(row.value));
  BERTH_TRY(const auto other, store::template_with_ref(session, row.value, template_ref));
  if (other) {
    const bool is_shown = other->value.company_id == row.value.company_id;
    return fail(Errc::conflict,
                "\"" + template_ref + "\" is " +
                    (is_shown ? "template \"" + other->value.name + "\"" : "another template") +
                    " of Berth",
                "name the one that no template of Berth is, or delete that template");
  }
  row.value.template_ref = std::move(template_ref);
  return store::update_template(session, std::move(row), services_.clock.now());
}

Result<TemplateCapture::Row> TemplateCapture::force_end(store::Session& session, Row row,
                                                        const std::string& reason) {
  BERTH_DO(expect_alive(session, leases_.node()));
  BERTH_DO(expect_unanswered(row.value));
  row.value.failure_reason = reason;
  return store::move_template(session, std::move(row), TemplateEvent::deleted,
                              services_.clock.now());
}

Task<TemplateCapture::Row> TemplateCapture::settle(Row row, Left left) {
  const bool was_unfinished = row.value.status == TemplateState::capturing;
  const auto begin = [&](store::Session& s) -> Result<Row> {
    BERTH_DO(expect_alive(s, leases_.node()));
    const Time now = services_.clock.now();
    Row current = row;
    if (current.value.status != TemplateState::deleting) {
      BERTH_TRY(current,
                store::move_template(s, std::move(current), TemplateEvent::delete_begun, now));
    }
    current.value.node_id = leases_.node();
    current.value.next_attempt_at = now + template_claim_ms;
    ++current.value.attempts;
    return store::update_template(s, std::move(current), now);
  };
  BERTH_CO_TRY(row, co_await services_.store.write(begin));
  fault_point("template.delete_intended");
  if (was_unfinished) {
    const Result<> goes_on = co_await let_go_on(row.value);
    if (!goes_on) log::warn("template.not_thawed", {{"error", goes_on.error().message}});
  }
  BERTH_CO_TRY(places::Place* const place, leases_.place_of(row.value));
  const bool has_name = row.value.template_ref || place->abilities().found_by_key;
  if (!has_name && left == Left::something) co_return co_await park(std::move(row));
  BERTH_CO_TRY(const places::PlaceRef facts, co_await leases_.facts(row.value));
  const auto snapshots = need<Lack::template_deletion>(*place, facts);
  const places::DeleteTemplate deletion = deletion_of(row.value);
  const Result<bool> deleted = snapshots ? co_await (*snapshots)->delete_template(facts, deletion)
                                         : std::unexpected(snapshots.error());
  fault_point("template.delete_acted");
  if (!deleted && deleted.error().code == Errc::cancelled) {
    co_return std::unexpected(deleted.error());
  }
  const auto save = [&](store::Session& s) -> Result<Row> {
    BERTH_DO(expect_alive(s, leases_.node()));
    const Time now = services_.clock.now();
    Row current = row;
    if (!deleted) {
      current.value.failure_reason =
          std::string{name_of(deleted.error().code)} + ": " + deleted.error().message;
      current.value.next_attempt_at = now + teardown_pause_ms(current.value.attempts);
      return store::update_template(s, std::move(current), now);
    }
    BERTH_DO(
        record(s, services_, call_of(current.value), entry_of(current.value, "template.deleted")));
    return store::move_template(s, std::move(current), TemplateEvent::deleted, now);
  };
  BERTH_CO_TRY(row, co_await services_.store.write(save));
  services_.feed.changed(row.value.company_id);
  co_return row;
}

Task<> TemplateCapture::look_at(Row row) {
  if (row.value.status == TemplateState::ready) {
    const auto begin = [&](store::Session& s) -> Result<Row> {
      Result<Row> going = begin_delete(s, row);
      if (going || going.error().code != Errc::image_in_use) return going;
      const Time now = services_.clock.now();
      Row later = row;
      later.value.next_attempt_at = now + template_again_ms;
      return store::update_template(s, std::move(later), now);
    };
    BERTH_CO_TRY(row, co_await services_.store.write(begin));
    if (row.value.status == TemplateState::ready) co_return Result<>{};
  }
  BERTH_CO_DO(co_await settle(std::move(row)));
  co_return Result<>{};
}

}  // namespace berth::engine
