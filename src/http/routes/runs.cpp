#include "engine/runs/runs.hpp"
#include "http/binding.hpp"
#include "http/routes/attachment.hpp"
#include "http/routes/inputs.hpp"
#include "http/routes/routes.hpp"

#include <charconv>

namespace berth::http {
namespace {

constexpr std::size_t start_bytes_max = std::size_t{8} << 20;  // a command with its stdin
constexpr Bounds log_bytes{.usual = 256 << 10, .least = core::log_page_bytes_min, .most = 16 << 20};
// A page of lines is split and escaped on the loop, where all clients wait for it. A caller that
// requests more gets this much, and continues at the next offset.
constexpr std::size_t lines_page_bytes_max = 256 << 10;

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

std::vector<Route> bound_routes(const api::Table& operations) {
  using enum Verb;
  const std::string all = "/api/companies/{company}";
  const std::string path = "/api/heartbeat-runs/{run}";
  return bind_all(operations, "runs",
                  {{post, all + "/runs", "run.start", 202, start_bytes_max},
                   {post, "/api/agents/{agent}/heartbeat/invoke", "agent.invoke", 202},
                   {post, "/api/agents/{agent}/wakeup", "agent.wake", 202},
                   {get, all + "/heartbeat-runs", "run.list"},
                   {.path = path, .operation = "run.get", .ends_with_client = true},
                   {post, path + "/cancel", "run.cancel"},
                   {post, path + "/retry", "run.retry", 202},
                   {delete_, path, "run.delete"}});
}

std::vector<Route> following_routes(const api::Table& operations, engine::Runs& runs) {
  using core::Permission;
  return {
      bind(operations, "runs",
           {.path = "/api/heartbeat-runs/{run}/events", .operation = "run.events"}),
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
      bind(operations, "runs",
           {.path = "/api/heartbeat-runs/{run}/transcript",
            .operation = "run.transcript",
            .ends_with_client = true}),
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

std::vector<Route> run_routes(const api::Table& operations, engine::Runs& runs) {
  std::vector<Route> all = bound_routes(operations);
  append(all, following_routes(operations, runs));
  return all;
}

}  // namespace berth::http
