#include "engine/runs/run_output.hpp"

#include "base/async/offload.hpp"
#include "base/id.hpp"
#include "base/json/peek.hpp"
#include "base/text.hpp"
#include "engine/upkeep/node_life.hpp"
#include "store/run_events.hpp"
#include "store/runs.hpp"

namespace berth::engine {
namespace {

constexpr std::size_t excerpt_bytes = std::size_t{8} << 10;
constexpr std::chrono::seconds tell_every{2};
constexpr std::size_t room_looked_at_bytes = std::size_t{1} << 20;
// A keeper writes a note when it loses output. One on a hostile host may write any number of them.
constexpr std::int64_t notes_max = 100;
constexpr std::size_t note_bytes_max = 1024;
// Warnings and errors of one run that may be stored in the reserve of the disk.
constexpr std::int64_t events_in_reserve_max = 100;

void append_excerpt(std::string& excerpt, std::string_view bytes) {
  if (bytes.size() > excerpt_bytes) bytes.remove_prefix(bytes.size() - excerpt_bytes);
  excerpt += bytes;
  // Trimmed rarely: until the end, the text may be twice as long.
  if (excerpt.size() > 2 * excerpt_bytes) excerpt.erase(0, excerpt.size() - excerpt_bytes);
}

std::string last_of(const std::string& excerpt) {
  const std::size_t from = excerpt.size() > excerpt_bytes ? excerpt.size() - excerpt_bytes : 0;
  return core::storable(std::string_view{excerpt}.substr(from));
}

std::size_t index_of(core::OutputStream stream) {
  return stream == core::OutputStream::stdout_ ? 0 : 1;
}

}  // namespace

RunOutput::RunOutput(Services& services, const RunLogs& logs, core::Run run, core::NodeId node,
                     core::AgentOutput agent, std::int64_t events_known)
    : services_(services),
      logs_(logs),
      run_(std::move(run)),
      node_(std::move(node)),
      agent_(std::move(agent)),
      waits_(agent_.adapter()),
      events_known_(events_known),
      told_at_(services.clock.steady()) {}

void RunOutput::hide(const Secret& value) {
  if (!hidden_.add(value)) return;
  auto wider = std::make_unique<core::RedactionSet>(hidden_.all());
  ++sets_made_;
  for (Stream& stream : streams_) {
    if (stream.redactor) {
      stream.redactor->widen(*wider);
    } else {
      stream.redactor = std::make_unique<core::Redactor>(*wider);
    }
  }
  set_ = std::move(wider);  // nothing refers to the old one
}

Result<> RunOutput::expect_room(std::size_t bytes) {
  if (!leaves_reserve_) return {};
  if (bytes > room_bytes_) {
    if (!logs_.reserve().has_room()) {
      return fail(Errc::disk_full,
                  "The output of run " + run_.id.str() +
                      " cannot be kept: the disk of the server is down to its reserve",
                  "make room on the disk of the home folder, or delete runs with 'berth run "
                  "delete'");
    }
    room_bytes_ = room_looked_at_bytes;
  }
  room_bytes_ -= std::min(room_bytes_, bytes);
  return {};
}

Task<> RunOutput::keep(core::OutputStream stream, Time at, std::string_view bytes) {
  if (bytes.empty()) co_return Result<>{};
  BERTH_CO_DO(expect_room(bytes.size()));
  if (!log_) {
    BERTH_CO_TRY(log_, logs_.writer(run_.id));
  }
  BERTH_CO_DO(log_->append(stream, at, bytes));
  const bool is_out = stream == core::OutputStream::stdout_;
  append_excerpt(is_out ? facts_.stdout_excerpt : facts_.stderr_excerpt, bytes);
  facts_.last_output_at = at;
  if (is_out) {
    waits_.push(bytes, at);
    note_events(co_await read_agent(bytes), at);
  }
  co_return Result<>{};
}

// A line of several megabytes would block the loop, and an agent can print them endlessly. Other
// tasks may read the current state meanwhile, so a copy does the parsing.
asio::awaitable<std::vector<core::AgentEvent>> RunOutput::read_agent(std::string_view bytes) {
  if (!agent_.would_take_long(bytes)) co_return agent_.push(bytes);
  core::AgentOutput reader = agent_;
  std::vector<core::AgentEvent> events =
      co_await offload(logs_.pool(), [&] { return reader.push(bytes); });
  agent_ = std::move(reader);
  co_return events;
}

void RunOutput::note_events(std::vector<core::AgentEvent> events, Time at) {
  for (core::AgentEvent& event : events) {
    if (event.kind == core::AgentEventKind::session && !session_) {
      auto id = peek<std::string>(event.payload, "sessionId");
      if (id && is_uuid(*id)) session_ = *std::move(id);
    }
    // After a restart the output is read from the beginning; its first events are already stored.
    if (events_known_ > 0) {
      --events_known_;
      continue;
    }
    events_.push_back({.company_id = run_.company_id,
                       .run_id = run_.id,
                       .agent_id = run_.agent_id,
                       .event_type = "agent." + std::string{name_of(event.kind)},
                       .stream = core::EventStream::stdout_,
                       .level = event.level,
                       .message = core::storable(event.message),
                       .payload = std::move(event.payload),
                       // The clock of a host may be ahead; what is old is found in this order.
                       .created_at = std::min(at, services_.clock.now())});
  }
}

void RunOutput::begin_again(const std::string& why) {
  agent_.begin_again();
  waits_ = core::AgentWaits{agent_.adapter()};
  session_.reset();
  facts_.stderr_excerpt.clear();
  warn(why, services_.clock.now());
}

void RunOutput::warn(const std::optional<std::string>& message, Time at) {
  if (!message) return;
  note_events(
      {{.kind = core::AgentEventKind::error, .level = core::EventLevel::warn, .message = *message}},
      at);
}

void RunOutput::take_note(const places::OutputPiece& piece) {
  if (++notes_ > notes_max) return;
  std::string text{piece.bytes};
  if (set_) {
    core::Redactor redactor{*set_};
    text = redactor.push(piece.bytes);
    text += redactor.flush();
  }
  warn(losses_.take(clipped(text, note_bytes_max)), piece.at);
}

Task<> RunOutput::take(std::span<const places::OutputPiece> pieces) {
  for (const places::OutputPiece& piece : pieces) {
    if (piece.kind == places::OutputKind::note) {
      take_note(piece);
      continue;
    }
    const auto stream = piece.kind == places::OutputKind::out ? core::OutputStream::stdout_
                                                              : core::OutputStream::stderr_;
    Stream& part = streams_[index_of(stream)];
    part.at = piece.at;
    std::string redacted;
    if (part.redactor) redacted = part.redactor->push(piece.bytes);
    const std::string_view shown = part.redactor ? redacted : piece.bytes;
    BERTH_CO_DO(co_await keep(stream, piece.at, part.cutter.push(shown)));
  }
  co_return co_await publish();
}

// Not an agent's event: those are counted, to pass over what an earlier server has stored.
Task<> RunOutput::warned(std::string message) {
  events_.push_back({.company_id = run_.company_id,
                     .run_id = run_.id,
                     .agent_id = run_.agent_id,
                     .event_type = "lifecycle",
                     .level = core::EventLevel::warn,
                     .message = core::storable(message),
                     .payload = bj::object{{"status", name_of(run_.status)}},
                     .created_at = services_.clock.now()});
  co_return co_await save_events();
}

Task<> RunOutput::publish() {
  services_.feed.said(run_.id);
  BERTH_CO_DO(co_await save_events());
  if (services_.clock.steady() - told_at_ < tell_every) co_return Result<>{};
  co_return co_await tell();
}

Task<> RunOutput::tell() {
  if (!log_ || log_->size() == told_bytes_) co_return Result<>{};
  told_at_ = services_.clock.steady();
  told_bytes_ = log_->size();
  const store::RunOutput output{.log_bytes = log_->size(),
                                .last_output_seq = log_->last_seq(),
                                .last_output_at = facts_.last_output_at.value_or(Time{})};
  const Result<> recorded = co_await services_.store.write([&](store::Session& s) {
    return store::record_output(s, run_.id, node_, output, services_.clock.now());
  });
  // The current size is informational; the end of the run does not depend on it.
  if (!recorded && recorded.error().code == Errc::conflict) {
    co_return std::unexpected(recorded.error());
  }
  co_return Result<>{};
}

// An agent's events are also in its log. The disk reserve is for what the server must record.
void RunOutput::leave_reserve() {
  if (events_.empty() || logs_.reserve().has_room()) return;
  const auto is_left_out = [this](const core::RunEventRecord& event) {
    return event.level == core::EventLevel::info || ++events_in_reserve_ > events_in_reserve_max;
  };
  events_left_out_ += static_cast<std::int64_t>(std::erase_if(events_, is_left_out));
}

Task<> RunOutput::save_events() {
  leave_reserve();
  if (events_.empty()) co_return Result<>{};
  const auto save = [&](store::Session& s) -> Result<> {
    BERTH_DO(expect_alive(s, node_));
    for (const core::RunEventRecord& event : events_) BERTH_DO(store::append_run_event(s, event));
    return {};
  };
  BERTH_CO_DO(co_await services_.store.write(save));
  events_.clear();
  services_.feed.changed(run_.id);
  co_return Result<>{};
}

Task<> RunOutput::finish() {
  for (const core::OutputStream stream :
       {core::OutputStream::stdout_, core::OutputStream::stderr_}) {
    Stream& part = streams_[index_of(stream)];
    std::string rest;
    if (part.redactor) rest = part.cutter.push(part.redactor->flush());
    rest += part.cutter.flush();
    BERTH_CO_DO(co_await keep(stream, part.at, rest));
  }
  note_events(agent_.finish(), services_.clock.now());
  warn(losses_.sum(), services_.clock.now());
  if (events_left_out_ > 0) {
    warn(std::to_string(events_left_out_) + " events were not stored: the disk is nearly full",
         services_.clock.now());
  }
  BERTH_CO_DO(co_await save_events());
  if (log_) {
    facts_.log_bytes = log_->size();
    facts_.last_seq = log_->last_seq();
    BERTH_CO_DO(co_await logs_.flush(*log_));
    BERTH_CO_TRY(facts_.sha256, log_->finish());
  }
  facts_.stdout_excerpt = last_of(facts_.stdout_excerpt);
  facts_.stderr_excerpt = last_of(facts_.stderr_excerpt);
  services_.feed.changed(run_.id);
  co_return Result<>{};
}

}  // namespace berth::engine
