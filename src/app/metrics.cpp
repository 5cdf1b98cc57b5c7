#include "app/metrics.hpp"

#include "base/files.hpp"

#include <prometheus/text_serializer.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>

namespace berth::app {
namespace {

const prometheus::Histogram::BucketBoundaries seconds_buckets{
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5};

double resident_bytes() {
  const auto text = read_file("/proc/self/statm", 256);
  if (!text) return 0;
  const std::size_t space = text->find(' ');
  const double pages = std::strtod(text->c_str() + space + 1, nullptr);
  return pages * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

Metrics::Metrics(const std::string& version, const std::string& database)
    : requests_(prometheus::BuildCounter()
                    .Name("berth_http_requests_total")
                    .Help("Requests answered")
                    .Register(registry_)),
      seconds_(prometheus::BuildHistogram()
                   .Name("berth_http_request_seconds")
                   .Help("Time from the whole request to the whole answer")
                   .Register(registry_)),
      runs_ended_(prometheus::BuildCounter()
                      .Name("berth_runs_ended_total")
                      .Help("Runs that this server brought to their end, by status")
                      .Register(registry_)),
      runs_active_(prometheus::BuildGauge()
                       .Name("berth_runs_active")
                       .Help("Runs that this server works on")
                       .Register(registry_)
                       .Add({})),
      connections_(prometheus::BuildGauge()
                       .Name("berth_http_connections")
                       .Help("Open connections")
                       .Register(registry_)
                       .Add({})),
      streams_(prometheus::BuildGauge()
                   .Name("berth_http_streams")
                   .Help("Open event streams, WebSockets and requests passed on into sandboxes")
                   .Register(registry_)
                   .Add({})),
      streams_evicted_(prometheus::BuildCounter()
                           .Name("berth_http_streams_evicted_total")
                           .Help("Streams that were closed to make room for other clients")
                           .Register(registry_)
                           .Add({})),
      uptime_(prometheus::BuildGauge()
                  .Name("berth_uptime_seconds")
                  .Help("Time since the server started")
                  .Register(registry_)
                  .Add({})),
      memory_(prometheus::BuildGauge()
                  .Name("process_resident_memory_bytes")
                  .Help("Resident memory")
                  .Register(registry_)
                  .Add({})),
      home_free_(prometheus::BuildGauge()
                     .Name("berth_home_free_bytes")
                     .Help("Free on the disk of the home folder")
                     .Register(registry_)
                     .Add({})),
      home_reserve_(prometheus::BuildGauge()
                        .Name("berth_home_reserve_bytes")
                        .Help("With less than this free, output of commands is lost")
                        .Register(registry_)
                        .Add({})),
      output_is_kept_(prometheus::BuildGauge()
                          .Name("berth_output_is_kept")
                          .Help("1 while the disk of the home folder takes output of commands")
                          .Register(registry_)
                          .Add({})) {
  prometheus::BuildGauge()
      .Name("berth_info")
      .Help("Always 1; the labels say what runs")
      .Register(registry_)
      .Add({{"version", version}, {"database", database}})
      .Set(1);
}

std::size_t Metrics::KeyHash::operator()(const Key& key) const {
  const std::size_t route = std::hash<const void*>{}(key.route);
  return route ^ (std::hash<const void*>{}(key.verb) << 1) ^ (std::size_t{key.status} << 17);
}

Metrics::Series& Metrics::series(const Key& key, std::string_view route, std::string_view verb) {
  const auto found = known_.find(key);
  if (found != known_.end()) return found->second;
  const std::map<std::string, std::string> labels{
      {"route", route.empty() ? "none" : std::string{route}},
      {"verb", std::string{verb}},
      {"status", std::to_string(key.status)}};
  const Series made{&requests_.Add(labels), &seconds_.Add(labels, seconds_buckets)};
  return known_.emplace(key, made).first->second;
}

void Metrics::request_finished(std::string_view route, std::string_view verb, unsigned status,
                               std::chrono::nanoseconds took) {
  const Key key{route.empty() ? nullptr : route.data(), verb.data(), status};
  const Series& counted = series(key, route, verb);
  counted.count->Increment();
  counted.seconds->Observe(std::chrono::duration<double>(took).count());
}

void Metrics::connections_changed(std::size_t open) {
  connections_.Set(static_cast<double>(open));
}

void Metrics::streams_changed(std::size_t open) {
  streams_.Set(static_cast<double>(open));
}

void Metrics::stream_evicted() {
  streams_evicted_.Increment();
}

std::string Metrics::text(const engine::RunCounts& runs, const DiskRoom& home) {
  runs_active_.Set(static_cast<double>(runs.active));
  for (const auto& [status, count] : runs.ended) {
    prometheus::Counter& counter = runs_ended_.Add({{"status", std::string{name_of(status)}}});
    counter.Increment(static_cast<double>(count) - counter.Value());
  }
  const auto up = std::chrono::steady_clock::now() - started_;
  uptime_.Set(std::chrono::duration<double>(up).count());
  memory_.Set(resident_bytes());
  home_free_.Set(static_cast<double>(home.free_bytes));
  home_reserve_.Set(static_cast<double>(home.reserve_bytes));
  output_is_kept_.Set(home.keeps_output() ? 1 : 0);
  return prometheus::TextSerializer{}.Serialize(registry_.Collect());
}

}  // namespace berth::app
