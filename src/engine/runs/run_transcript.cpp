// The transcript of a run, page by page.
#include "engine/runs/runs.hpp"
#include "store/agents.hpp"
#include "store/run_events.hpp"

namespace berth::engine {
namespace {

constexpr std::size_t page_bytes_max = 512UL << 10;
constexpr std::chrono::milliseconds transcript_look_every{1000};

std::size_t bytes_of(const core::TranscriptEntry& entry) {
  constexpr std::size_t around = 256;
  std::size_t bytes = entry.text.size() + entry.command.value_or("").size() + around;
  if (entry.input) bytes += encode_text(*entry.input).size();
  return bytes;
}

// Events until the page is full; at least one.
Result<> add_entries(store::Session& session, core::Transcript& page, std::int64_t limit) {
  BERTH_TRY(const auto events, store::run_events_after(session, page.run_id, page.next_seq, limit));
  std::size_t bytes = 0;
  for (const core::RunEventRecord& event : events) {
    if (auto entry = core::transcript_entry(event)) {
      bytes += bytes_of(*entry);
      page.entries.push_back(*std::move(entry));
    }
    page.next_seq = event.seq;
    if (bytes >= page_bytes_max) return {};
  }
  page.complete = core::is_final(page.status) && events.size() < static_cast<std::size_t>(limit);
  return {};
}

}  // namespace

Task<core::Transcript> Runs::transcript(core::Call call, core::RunId id, TranscriptRead read) {
  const auto look = [&](store::Session& s) -> Result<core::Transcript> {
    // The status is read first, so that all events before a final status are seen.
    BERTH_TRY(const auto run, store::find_run(s, core::Reach::of(call.who), id));
    core::Transcript page = core::transcript_of(run.value);
    page.next_seq = read.after_seq;
    if (run.value.agent_id) {
      const auto agent = store::find_agent(s, core::Reach::of(call.who), *run.value.agent_id);
      if (agent) {
        page.agent_name = agent->value.name;
        page.adapter_type = agent->value.adapter_type;
      }
    }
    BERTH_DO(add_entries(s, page, read.limit));
    return page;
  };
  const Clock::Steady until = services_.clock.steady() + read.wait;
  while (true) {
    BERTH_CO_TRY(core::Transcript page, co_await services_.store.read(look));
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until - services_.clock.steady());
    if (!page.entries.empty() || page.complete || left.count() <= 0) co_return page;
    // Events that are not about the work need not be read again.
    read.after_seq = page.next_seq;
    BERTH_CO_DO(co_await services_.feed.wait(id, std::min(left, transcript_look_every)));
  }
}

}  // namespace berth::engine
