#include "http/routes/attachment.hpp"
#include "http/routes/inputs.hpp"
#include "http/routes/routes.hpp"

#include <charconv>

namespace berth::http {
namespace {

constexpr std::size_t start_bytes_max = std::size_t{8} << 20;  // a command with its stdin
constexpr Bounds event_count{.usual = 200, .least = 1, .most = 1000};
constexpr Bounds log_bytes{.usual = 256 << 10, .least = core::log_page_bytes_min, .most = 16 << 20};
// A page of lines is split and escaped on the loop, where all clients wait for it. A caller that
// requests more gets this much, and continues at the next offset.
constexpr std::size_t lines_page_bytes_max = 256 << 10;

struct RunPath {
  core::RunId run;
};
BOOST_DESCRIBE_STRUCT(RunPath, (), (run))

struct InvokedPath {
  core::AgentId agent;
};
BOOST_DESCRIBE_STRUCT(InvokedPath, (), (agent))

struct RunQuery {
  std::optional<core::RunState> status;
  std::optional<core::AgentId> agent_id;
  std::optional<core::EnvironmentId> environment_id;
  std::optional<std::string> name;
  std::optional<std::string> search;
  std::optional<Time> changed_since;
  std::optional<std::int64_t> limit;
  std::optional<std::string> after;
};
BOOST_DESCRIBE_STRUCT(RunQuery, (),
                      (status, agent_id, environment_id, name, search, changed_since, limit, after))

struct WaitQuery {
  std::optional<std::int64_t> wait;  // seconds
  std::optional<engine::RunMoment> until;
};
BOOST_DESCRIBE_STRUCT(WaitQuery, (), (wait, until))

struct EventQuery {
  std::optional<std::int64_t> after_seq;
  std::optional<std::int64_t> limit;
};
BOOST_DESCRIBE_STRUCT(EventQuery, (), (after_seq, limit))

struct TranscriptQuery {
  std::optional<std::int64_t> after_seq;
  std::optional<std::int64_t> limit;
  std::optional<std::int64_t> wait;  // seconds
};
BOOST_DESCRIBE_STRUCT(TranscriptQuery, (), (after_seq, limit, wait))

struct LogQuery {
  std::optional<std::int64_t> offset;
  std::optional<std::int64_t> limit_bytes;
  std::optional<engine::LogFormat> format;
  std::optional<core::OutputStream> stream;
};
BOOST_DESCRIBE_STRUCT(LogQuery, (), (offset, limit_bytes, format, stream))

struct OffsetQuery {
  std::optional<std::int64_t> offset;
};
BOOST_DESCRIBE_STRUCT(OffsetQuery, (), (offset))

// Checks first that the agent exists: a foreign agent is reported as missing, also to an agent.
Task<core::Run> invoke(engine::Engine& work, core::Call call, core::AgentId agent,
                       engine::InvokeAgent wanted) {
  if (!core::may_invoke(call.who, agent)) BERTH_CO_DO(co_await work.agents.get(call, agent));
  BERTH_CO_DO(core::may_invoke(call.who, agent));
  co_return co_await work.runs.invoke(call, agent, std::move(wanted));
}

Task<engine::RunView> run_view(engine::Runs& runs, core::Call call, core::RunId id,
                               WaitQuery query) {
  BERTH_CO_TRY(const std::int64_t seconds, bounded("wait", query.wait, wait_seconds));
  co_return co_await runs.get(call, id, std::chrono::seconds{seconds},
                              query.until.value_or(engine::RunMoment::change));
}

Task<std::vector<core::RunEventRecord>> list_events(engine::Runs& runs, core::Call call,
                                                    core::RunId id, EventQuery query) {
  BERTH_CO_TRY(const std::int64_t after, bounded("afterSeq", query.after_seq, any_offset));
  BERTH_CO_TRY(const std::int64_t limit, bounded("limit", query.limit, event_count));
  co_return co_await runs.events(call, id, after, limit);
}

Task<core::Transcript> read_transcript(engine::Runs& runs, core::Call call, core::RunId id,
                                       TranscriptQuery query) {
  engine::TranscriptRead read;
  BERTH_CO_TRY(read.after_seq, bounded("afterSeq", query.after_seq, any_offset));
  BERTH_CO_TRY(read.limit, bounded("limit", query.limit, event_count));
  BERTH_CO_TRY(const std::int64_t seconds, bounded("wait", query.wait, wait_seconds));
  read.wait = std::chrono::seconds{seconds};
  co_return co_await runs.transcript(std::move(call), std::move(id), read);
}

Result<std::int64_t> seq_of(const std::optional<std::string>& last_event_id) {
  if (!last_event_id) return 0;
  std::int64_t seq = 0;
  const char* end = last_event_id->data() + last_event_id->size();
  const auto [stop, error] = std::from_chars(last_event_id->data(), end, seq);
  if (error == std::errc{} && stop == end && seq >= 0) return seq;
  return std::unexpected(Error{Errc::validation_failed,
                               "header 'Last-Event-ID': is not an event number",
                               "send the id of the last event that was received",
                               {{"/Last-Event-ID", "is not an event number"}}});
}

// Every event after the last one the client saw, until the run is over and all events were sent.
Task<> stream_events(engine::Runs& runs, core::Call call, core::RunId id,
                     std::optional<std::string> last_event_id, EventSink& sink) {
  BERTH_CO_TRY(std::int64_t last, seq_of(last_event_id));
  while (sink.open()) {
    BERTH_CO_TRY(const auto news, co_await runs.next_events(call, id, last));
    for (const core::RunEventRecord& record : news.events) {
      Event event{
          .id = std::to_string(record.seq), .name = record.event_type, .data = encode_text(record)};
      BERTH_CO_DO(co_await sink.send(std::move(event)));
      last = record.seq;
    }
    if (news.complete) break;
  }
  co_return Result<>{};
}

Result<engine::LogRead> log_read_of(const LogQuery& query) {
  engine::LogRead read;
  BERTH_TRY(read.offset, bounded("offset", query.offset, any_offset));
  BERTH_TRY(const std::int64_t bytes, bounded("limitBytes", query.limit_bytes, log_bytes));
  read.bytes_max = static_cast<std::size_t>(bytes);
  read.format = query.format.value_or(engine::LogFormat::lines);
  if (read.format == engine::LogFormat::lines) {
    read.bytes_max = std::min(read.bytes_max, lines_page_bytes_max);
  }
  read.stream = query.stream;
  if (read.stream && read.format != engine::LogFormat::raw) {
    return std::unexpected(Error{Errc::validation_failed,
                                 "query parameter 'stream' goes with format=raw",
                                 "leave it out, or ask for format=raw",
                                 {{"/stream", "goes with format=raw"}}});
  }
  return read;
}

Task<Rendered<engine::LogText>> read_log(engine::Runs& runs, core::Call call, core::RunId id,
                                         LogQuery query) {
  BERTH_CO_TRY(const engine::LogRead read, log_read_of(query));
  BERTH_CO_TRY(engine::LogText text, co_await runs.log(call, id, read));
  if (read.format == engine::LogFormat::lines) {
    co_return Rendered<engine::LogText>{json_response(200, text)};
  }
  Response bytes{.content_type = "application/octet-stream",
                 .body = std::move(text.content),
                 .headers = {{"X-Next-Offset", std::to_string(text.next_offset)},
                             {"X-Eof", text.eof ? "true" : "false"}}};
  co_return Rendered<engine::LogText>{std::move(bytes)};
}

Task<> attach_at(engine::Runs& runs, core::Call call, core::RunId id, OffsetQuery query,
                 Socket& socket) {
  BERTH_CO_TRY(const std::int64_t offset, bounded("offset", query.offset, any_offset));
  co_return co_await attach(runs, std::move(call), std::move(id), offset, socket);
}

std::vector<Route> starting_routes(engine::Engine& work) {
  using core::Permission;
  using Invoke = Endpoint<InvokedPath, None, engine::InvokeAgent, core::Run>;
  const auto invoked = [&work](core::Call call, auto in) {
    return invoke(work, std::move(call), in.path.agent, std::move(in.body));
  };
  return {
      Endpoint<CompanyPath, None, engine::StartRun, core::Run>{
          .verb = Verb::post,
          .path = "/api/companies/{company}/runs",
          .needs = Permission::company_operate,
          .tag = "runs",
          .says = "Start a command in an environment; the answer is the queued run",
          .status = 202,
          .body_bytes_max = start_bytes_max,
          .call =
              [&work](core::Call call, auto in) {
                return work.runs.start(call, in.path.company, std::move(in.body));
              }},
      Invoke{.verb = Verb::post,
             .path = "/api/agents/{agent}/heartbeat/invoke",
             .needs = Permission::agent_invoke,
             .tag = "runs",
             .says = "Start a turn of an agent; an agent may start only itself",
             .status = 202,
             .call = invoked},
      Invoke{.verb = Verb::post,
             .path = "/api/agents/{agent}/wakeup",
             .needs = Permission::agent_invoke,
             .tag = "runs",
             .says = "Start a turn of an agent and say what woke it",
             .status = 202,
             .call = invoked},
  };
}

Task<core::Listing<core::RunSummary>> list_runs(engine::Runs& runs, core::Call call,
                                                core::CompanyId company, RunQuery query) {
  BERTH_CO_TRY(core::PageRequest page, core::parse_page(query.limit, query.after));
  const engine::RunFilter filter{.status = query.status,
                                 .agent_id = query.agent_id,
                                 .environment_id = query.environment_id,
                                 .name = query.name.value_or(""),
                                 .search = query.search.value_or("")};
  if (!query.changed_since) co_return co_await runs.list(call, company, filter, std::move(page));
  if (query.after || query.status) {
    co_return fail(Errc::unprocessable,
                   "changedSince does not go with " +
                       std::string{query.after ? "after" : "status"} +
                       ": a run that left the list could not be told",
                   "leave it out, and read the list again when more than `limit` runs changed");
  }
  co_return co_await runs.changes(call, company, filter, *query.changed_since, page.limit);
}

std::vector<Route> single_run_routes(engine::Runs& runs) {
  using core::Permission;
  using core::Run;
  return {
      Endpoint<CompanyPath, RunQuery, None, core::Listing<core::RunSummary>>{
          .verb = Verb::get,
          .path = "/api/companies/{company}/heartbeat-runs",
          .needs = Permission::company_read,
          .tag = "runs",
          .says = "List the runs of a company, newest first, without what they printed; with "
                  "changedSince=TIME those that began, ended or changed since then",
          .call = [&runs](core::Call call,
                          auto in) { return list_runs(runs, call, in.path.company, in.query); }},
      Endpoint<RunPath, WaitQuery, None, engine::RunView>{
          .verb = Verb::get,
          .path = "/api/heartbeat-runs/{run}",
          .needs = Permission::company_read,
          .tag = "runs",
          .says = "Read a run; with wait=SECONDS, as soon as it changes its state, or until=end it "
                  "is over, or until=release its place was given back too",
          .ends_with_client = true,
          .call = [&runs](core::Call call,
                          auto in) { return run_view(runs, call, in.path.run, in.query); }},
      Endpoint<RunPath, None, None, Run>{
          .verb = Verb::post,
          .path = "/api/heartbeat-runs/{run}/cancel",
          .needs = Permission::company_operate,
          .tag = "runs",
          .says = "Cancel a run: its whole process tree is ended; one that is over stays as it is",
          .call = [&runs](core::Call call, auto in) { return runs.cancel(call, in.path.run); }},
      Endpoint<RunPath, None, None, Run>{
          .verb = Verb::post,
          .path = "/api/heartbeat-runs/{run}/retry",
          .needs = Permission::company_operate,
          .tag = "runs",
          .says = "Start a run that is over once more, as it was asked for",
          .status = 202,
          .call = [&runs](core::Call call, auto in) { return runs.retry(call, in.path.run); }},
      Endpoint<RunPath, None, None, Run>{
          .verb = Verb::delete_,
          .path = "/api/heartbeat-runs/{run}",
          .needs = Permission::company_operate,
          .tag = "runs",
          .says = "Delete a run that is over, with its log and its events",
          .call = [&runs](core::Call call, auto in) { return runs.remove(call, in.path.run); }},
  };
}

std::vector<Route> following_routes(engine::Runs& runs) {
  using core::Permission;
  return {
      Endpoint<RunPath, EventQuery, None, std::vector<core::RunEventRecord>>{
          .verb = Verb::get,
          .path = "/api/heartbeat-runs/{run}/events",
          .needs = Permission::company_read,
          .tag = "runs",
          .says = "List what happened to a run, in order",
          .call = [&runs](core::Call call,
                          auto in) { return list_events(runs, call, in.path.run, in.query); }},
      EventStream<RunPath, None>{
          .path = "/api/heartbeat-runs/{run}/events/stream",
          .needs = Permission::company_read,
          .tag = "runs",
          .says = "Follow what happens to a run until it is over; Last-Event-ID resumes",
          .call =
              [&runs](core::Call call, auto in, std::optional<std::string> last_event_id,
                      EventSink& sink) {
                return stream_events(runs, std::move(call), in.path.run, std::move(last_event_id),
                                     sink);
              }},
      Endpoint<RunPath, TranscriptQuery, None, core::Transcript>{
          .verb = Verb::get,
          .path = "/api/heartbeat-runs/{run}/transcript",
          .needs = Permission::company_read,
          .tag = "runs",
          .says = "Read the work of an agent in a run: prompt, messages, tool calls, tokens and "
                  "cost; afterSeq pages, wait=SECONDS waits for more",
          .ends_with_client = true,
          .call = [&runs](core::Call call,
                          auto in) { return read_transcript(runs, call, in.path.run, in.query); }},
      Endpoint<RunPath, LogQuery, None, Rendered<engine::LogText>>{
          .verb = Verb::get,
          .path = "/api/heartbeat-runs/{run}/log",
          .needs = Permission::company_read,
          .tag = "runs",
          .says = "Read the output of a run from an offset on; format=raw gives the bytes, with "
                  "X-Next-Offset and X-Eof",
          .call = [&runs](core::Call call,
                          auto in) { return read_log(runs, call, in.path.run, in.query); }},
      SocketEndpoint<RunPath, OffsetQuery>{
          .path = "/api/heartbeat-runs/{run}/attach",
          .needs = Permission::company_read,
          .tag = "runs",
          .says = "Output of a run as it comes, and its stdin, terminal and signals",
          .call =
              [&runs](core::Call call, auto in, Socket& socket) {
                return attach_at(runs, std::move(call), in.path.run, in.query, socket);
              }},
  };
}

}  // namespace

std::vector<Route> run_routes(engine::Engine& work) {
  std::vector<Route> all = starting_routes(work);
  for (Route& route : single_run_routes(work.runs)) all.push_back(std::move(route));
  for (Route& route : following_routes(work.runs)) all.push_back(std::move(route));
  return all;
}

}  // namespace berth::http
