// What is watched while an agent's command runs, and what was denied to it.
#include "base/disk_room.hpp"
#include "base/json/peek.hpp"
#include "base/log.hpp"
#include "core/config/adapter_schema.hpp"
#include "engine/retry.hpp"
#include "engine/runs/run_job.hpp"

#include <ranges>

namespace berth::engine {
namespace {

constexpr std::chrono::milliseconds watch_look_every{200};
constexpr std::chrono::seconds home_look_every{5};
// How many disk checks ahead of the reserve a home that fills the disk is stopped. Finding that
// home takes a while, and so does ending a command.
constexpr std::uint64_t disk_looks_ahead = 4;
constexpr std::uint64_t disk_margin_bytes = std::uint64_t{16} << 20;
// A home that grew by less is not the one that fills the disk.
constexpr std::int64_t home_growth_bytes_min = std::int64_t{1} << 20;
constexpr std::size_t denied_max = 50;  // events per run
constexpr std::size_t denied_pages_max = 64;

// 0: it may retry forever.
std::int64_t unreachable_ms(const core::Agent& agent) {
  const double seconds = read_loosely<core::AgentSettings>(agent.adapter_config).unreachable_sec;
  return static_cast<std::int64_t>(std::clamp(seconds, 0.0, 1e6) * 1000);
}

std::string entry_text(const bj::object& entry, std::string_view key) {
  const auto value = peek<bj::value>(entry, key);
  if (!value) return {};
  return value->is_string() ? std::string{value->get_string()} : encode_text(*value);
}

bool is_same_target(const bj::object& one, const bj::object& other) {
  return entry_text(one, "host") == entry_text(other, "host") &&
         entry_text(one, "port") == entry_text(other, "port");
}

}  // namespace

std::string RunJob::denied_text(const bj::object& entry) {
  const std::string rule = entry_text(entry, "rule");
  return "The egress policy denied " + entry_text(entry, "host") + ":" + entry_text(entry, "port") +
         (rule.empty() ? "" : " (" + rule + ")");
}

Error RunJob::with_denials(Error error) const {
  constexpr std::size_t named_max = 5;
  if (denied_.empty()) return error;
  for (const bj::object& entry : denied_ | std::views::take(named_max)) {
    error.message += ". " + denied_text(entry);
  }
  if (denied_.size() > named_max) {
    error.message += ", and " + std::to_string(denied_.size() - named_max) + " more";
  }
  if (error.remedy.empty()) {
    error.remedy = "add the hosts to egress.allow in the config of the environment";
  }
  return error;
}

Task<> RunJob::watch() {
  // This server has not yet looked at a run that another server started.
  if (!home_limits_) BERTH_CO_DO(co_await find_home());
  while (executes_) {
    BERTH_CO_DO(co_await pause_for(tools_.executor, watch_look_every));
    if (!executes_ || cancelled_ || stopped_for_) continue;
    Result<std::optional<Error>> why = co_await reason_to_stop();
    if (!why && why.error().code == Errc::cancelled) co_return std::unexpected(why.error());
    if (why && *why) stop_for(**why);
  }
  co_return Result<>{};
}

Task<std::optional<Error>> RunJob::reason_to_stop() {
  const std::shared_ptr<RunOutput> output = output_;
  const std::int64_t bound_ms = unreachable_ms(*agent_);
  if (output && output->waits_since() && bound_ms > 0 &&
      tools_.services.clock.now() - *output->waits_since() >= bound_ms) {
    co_return Error{Errc::agent_model_unreachable,
                    "The model could not be reached for " + std::to_string(bound_ms / 1000) +
                        " s: the program only tried again",
                    "check the model's address, its key and the egress policy of the "
                    "environment, or set unreachableSec in the agent's config"};
  }
  if (!home_limits_) co_return std::nullopt;
  const Clock::Steady before = tools_.services.clock.steady();
  const bool is_disk_full = nears_reserve() && before >= disk_looked_at_;
  if (before - home_looked_at_ < home_look_every && !is_disk_full) co_return std::nullopt;
  BERTH_CO_TRY(const HomeSize size, co_await tools_.homes->measure(*lease_.value.teardown.home_id,
                                                                   home_limits_->files_counted()));
  // A home with very many files is checked less often.
  const Clock::Steady after = tools_.services.clock.steady();
  home_looked_at_ = after + 20 * (after - before);
  disk_looked_at_ = after + 4 * (after - before);
  const std::int64_t grown = size.bytes - home_bytes_before_;
  if (is_disk_full && grown >= home_growth_bytes_min) {
    co_return Error{
        Errc::store_full,
        "The disk of the server is nearly down to its reserve, and this run has added " +
            size_text(grown) + " to the home of agent " + in_quotes(agent_->name),
        "make room on the disk of the home folder; 'berth agent reset " + agent_->name +
            "' empties what the agent keeps"};
  }
  co_return too_full(size, *home_limits_);
}

bool RunJob::nears_reserve() {
  // A disk that cannot be queried is not known to be full.
  const Result<DiskRoom> room = room_on_disk(tools_.homes->folder());
  if (!room) return false;
  const std::uint64_t before = std::exchange(disk_free_, room->free_bytes);
  const std::uint64_t lost = before > room->free_bytes ? before - room->free_bytes : 0;
  const std::uint64_t margin = std::min(disk_margin_bytes, room->reserve_bytes);
  return !room->takes_files ||
         room->free_bytes < room->reserve_bytes + margin + disk_looks_ahead * lost;
}

void RunJob::stop_for(Error why) {
  stopped_for_ = std::move(why);
  if (!executes_ || cancelling_) return;
  cancelling_ = true;
  side_.start("stop run " + id_.str(), cancel_command());
}

RunJob::End RunJob::outcome_of_stopped(End end) const {
  if (!stopped_for_ || cancelled_ || end.event == core::RunEvent::exited_zero) return end;
  end.event = core::RunEvent::exited_nonzero;
  end.error = stopped_for_;
  if (stopped_for_->code != Errc::agent_model_unreachable || denied_.empty()) return end;
  end.error->code = Errc::agent_egress_denied;
  for (const bj::object& entry : denied_) end.error->message += ". " + denied_text(entry);
  return end;
}

Task<> RunJob::note_denied(const places::Ended& ended) {
  denied_.clear();
  const bool has_succeeded = ended.outcome == places::Outcome::exited && ended.exit_code == 0;
  // An agent may have found a way around a denial; a plain command that succeeded did not need the
  // host.
  if (!agent_ && has_succeeded) co_return Result<>{};
  // Without an egress gateway there is nothing to report.
  places::EgressRules* const rules = where_->abilities().egress;
  if (rules == nullptr) co_return Result<>{};
  const std::optional<Time> since =
      start_ ? std::optional{start_->command.started_at} : run_.value.started_at;
  std::uint64_t offset = 0;
  for (std::size_t pages = 0; pages < denied_pages_max; ++pages) {
    const Result<places::EgressPage> page = co_await rules->egress_log(*place_, offset);
    if (!page) {
      if (page.error().code == Errc::cancelled) co_return std::unexpected(page.error());
      co_return Result<>{};
    }
    for (const bj::object& entry : page->entries) {
      const Result<Time> at = decode<Time>(entry.contains("at") ? entry.at("at") : bj::value{});
      // A reused sandbox also has the decisions of earlier runs.
      if (entry_text(entry, "decision") != "denied" || !at || (since && *at < *since)) continue;
      const bool is_known = std::ranges::any_of(
          denied_, [&](const bj::object& known) { return is_same_target(known, entry); });
      if (!is_known && denied_.size() < denied_max) denied_.push_back(entry);
    }
    const auto next = static_cast<std::uint64_t>(page->next_offset);
    if (page->entries.empty() || next <= offset) break;
    offset = next;
  }
  co_return Result<>{};
}

Error RunJob::explain_start(Error error) const {
  if (!agent_ || error.code != Errc::command_not_found) return error;
  error.remedy =
      "put the program into the image or template of environment " + in_quotes(environment_->name) +
      " ('berth env setup " + environment_->name +
      "'), or into ~/.local/bin of the agent's home ('berth cp' into a lease of the agent); or "
      "name its folder in `path`, or the program in `command`, of the agent's config";
  return error;
}

}  // namespace berth::engine
