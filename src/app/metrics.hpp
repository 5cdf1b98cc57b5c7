#pragma once

#include "cli/doctor/check.hpp"
#include "engine/runs/run_dispatcher.hpp"
#include "http/gate.hpp"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <chrono>
#include <string>
#include <unordered_map>

namespace berth::app {

// Counts server activity for Prometheus. One thread: the server's.
class Metrics final : public http::Observer {
 public:
  Metrics(const std::string& version, const std::string& database);

  void request_finished(std::string_view route, std::string_view verb, unsigned status,
                        std::chrono::nanoseconds took) override;
  void connections_changed(std::size_t open) override;
  void streams_changed(std::size_t open) override;
  void stream_evicted() override;
  // The Prometheus text format.
  std::string text(const engine::RunCounts& runs, const DiskRoom& home);

 private:
  // Routes and verbs are strings in the route table, so their addresses identify them.
  struct Key {
    const char* route;
    const char* verb;
    unsigned status;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };
  struct Series {
    prometheus::Counter* count;
    prometheus::Histogram* seconds;
  };
  Series& series(const Key& key, std::string_view route, std::string_view verb);

  prometheus::Registry registry_;
  prometheus::Family<prometheus::Counter>& requests_;
  prometheus::Family<prometheus::Histogram>& seconds_;
  prometheus::Family<prometheus::Counter>& runs_ended_;
  prometheus::Gauge& runs_active_;
  prometheus::Gauge& connections_;
  prometheus::Gauge& streams_;
  prometheus::Counter& streams_evicted_;
  prometheus::Gauge& uptime_;
  prometheus::Gauge& memory_;
  prometheus::Gauge& home_free_;
  prometheus::Gauge& home_reserve_;
  prometheus::Gauge& output_is_kept_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  std::unordered_map<Key, Series, KeyHash> known_;
};

}  // namespace berth::app
