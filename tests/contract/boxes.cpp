#include "contract/boxes.hpp"

namespace berth::engine {

using namespace places;

void Boxes::note(std::string_view verb, const PlaceRef& lease) {
  verbs.push_back(std::string{verb} + " " + lease.provider_lease_id.value_or("nothing"));
  secrets.clear();
  for (const auto& [path, value] : lease.secrets) secrets.emplace(path, value.reveal());
}

Result<> Boxes::expect_willing(const PlaceRef& lease) const {
  if (!refused.contains("") && !refused.contains(lease.provider_lease_id.value_or("nothing"))) {
    return {};
  }
  return fail(Errc::provider_unavailable, "the box is stuck");
}

Task<ProbeReport> Boxes::probe(const AcquireRequest& /*request*/) {
  co_return ProbeReport{.ok = true, .driver = core::DriverKind::sandbox, .details = bj::object{}};
}

Task<Acquired> Boxes::acquire(const AcquireRequest& request) {
  if (refuses_to_acquire) co_return fail(Errc::provider_unavailable, "there are no boxes");
  if (refuses_in_words) co_return fail(Errc::plugin_call_failed, "the quota is used up");
  configs.push_back(request.lease.config);
  const bool resumes = request.reusable_id && there.contains(*request.reusable_id);
  std::string id = request.reusable_id.value_or("");
  const bj::value* reuse = request.lease.config.if_contains("reuseLease");
  if (!resumes && names_by_environment && reuse != nullptr && *reuse == true) {
    id = "box-of-" + request.lease.environment_id->str();
  } else if (!resumes) {
    id = "box-" + (names_by_run ? request.lease.run_id->str() : std::to_string(++last_));
  }
  if (has_one_box) id = "box-only";
  const bool is_new = there.insert(id).second;
  note(resumes ? "resume" : "acquire", request.lease);
  verbs.back() = (resumes ? "resume " : "acquire ") + id;
  // An existing box has its processes, which belong to another lease.
  if (is_new || !has_one_box) BERTH_CO_DO(co_await homes_.acquire(request));
  if (const auto happens = std::exchange(meanwhile, nullptr)) BERTH_CO_DO(co_await happens());
  if (answers_to_lose > 0) {
    --answers_to_lose;
    co_return fail(Errc::plugin_unavailable, "the worker was killed");
  }
  co_return Acquired{.provider = "boxes",
                     .provider_lease_id = id,
                     .expires_at = std::exchange(expires_at, std::nullopt),
                     .resumed = resumes};
}

Task<Workspace> Boxes::realize(const PlaceRef& lease, const std::optional<std::string>& wanted) {
  co_return co_await processes_.realize(lease, wanted);
}

Task<Started> Boxes::start(const PlaceRef& lease, const Command& command) {
  co_return co_await processes_.start(lease, command);
}

Task<Ended> Boxes::follow(const PlaceRef& lease, const std::string& exec_id, std::uint64_t offset,
                          OutputTaker& taker) {
  BERTH_CO_TRY(Ended ended, co_await processes_.follow(lease, exec_id, offset, taker));
  if (signal_told) ended.signal = signal_told;
  co_return ended;
}

Task<> Boxes::send(const PlaceRef& lease, const std::string& exec_id, Input input) {
  co_return co_await processes_.send(lease, exec_id, std::move(input));
}

Task<> Boxes::cancel(const PlaceRef& lease, const std::string& exec_id, std::int64_t grace_ms) {
  co_return co_await processes_.cancel(lease, exec_id, grace_ms);
}

Task<> Boxes::forget_output(const PlaceRef& lease, const std::string& exec_id) {
  co_return co_await processes_.forget_output(lease, exec_id);
}

Task<std::vector<PlaceKey>> Boxes::held() {
  co_return std::vector<PlaceKey>{};
}

Task<> Boxes::close() {
  co_return Result<>{};
}

Task<std::vector<core::TemplateId>> Boxes::held_templates() {
  co_return std::vector<core::TemplateId>{};
}

Task<> Boxes::check_config(const bj::object& config) {
  const bj::value* image = config.if_contains("image");
  const bool is_there = image == nullptr || !image->is_string() ||
                        !missing_images.contains(std::string{image->get_string()});
  if (is_there) co_return Result<>{};
  Error why{Errc::unprocessable, "there is no such image"};
  why.issues.push_back({"/config/image", why.message});
  co_return std::unexpected(std::move(why));
}

Task<> Boxes::renew(const PlaceRef& lease, std::int64_t deadline_ms) {
  co_return co_await processes_.renew(lease, deadline_ms);
}

Task<> Boxes::release(const PlaceRef& lease, core::LeaseEvent how) {
  note("release", lease);
  BERTH_CO_DO(expect_willing(lease));
  const bj::value* reuse = lease.config.if_contains("reuseLease");
  const bool stays = reuse != nullptr && *reuse == true;
  if (lease.provider_lease_id && !stays) there.erase(*lease.provider_lease_id);
  co_return co_await homes_.release(lease, how);
}

Task<> Boxes::destroy(const PlaceRef& lease) {
  note("destroy", lease);
  BERTH_CO_DO(expect_willing(lease));
  if (lease.provider_lease_id) there.erase(*lease.provider_lease_id);
  co_return co_await homes_.destroy(lease);
}

Task<places::CapturedTemplate> Boxes::capture_template(const PlaceRef& lease,
                                                       const places::CaptureTemplate& request) {
  note("capture", lease);
  if (refuses_in_words) co_return fail(Errc::plugin_call_failed, "the shelf is full");
  if (refuses_to_capture) co_return fail(Errc::store_full, "there is no room");
  const std::string ref = "tpl-" + request.key.str();
  templates.insert(ref);
  if (captures_to_lose > 0) {
    --captures_to_lose;
    co_return fail(Errc::timed_out, "the shelf does not answer");
  }
  co_return places::CapturedTemplate{.ref = ref,
                                     .kind = core::TemplateKind::snapshot,
                                     .binding = {.field = "startFrom", .unset_fields = {"image"}},
                                     .metadata = {{"sourceRef", request.source_ref.value_or("")}}};
}

Task<bool> Boxes::delete_template(const PlaceRef& /*place*/,
                                  const places::DeleteTemplate& request) {
  verbs.push_back("delete " + request.ref.value_or("nothing"));
  if (refuses_to_delete) co_return fail(Errc::provider_unavailable, "the shelf is locked");
  const std::string by_key = "tpl-" + request.key.str();
  co_return templates.erase(finds_by_answer ? request.ref.value_or("") : by_key) == 1;
}

Task<places::Changes> Boxes::changes(const PlaceRef& lease) {
  note("changes", lease);
  co_return places::Changes{.changes = {{.path = "/etc/motd", .bytes = 3}}};
}

Task<> Boxes::freeze(const PlaceRef& lease) {
  note("freeze", lease);
  BERTH_CO_DO(expect_willing(lease));
  frozen.insert(lease.provider_lease_id.value_or(""));
  co_return Result<>{};
}

Task<> Boxes::thaw(const PlaceRef& lease) {
  note("thaw", lease);
  frozen.erase(lease.provider_lease_id.value_or(""));
  co_return Result<>{};
}

}  // namespace berth::engine
