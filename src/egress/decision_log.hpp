#pragma once

#include "base/json/json.hpp"
#include "base/owned.hpp"
#include "egress/policy.hpp"

#include <deque>

namespace berth::egress {

// How one request ended.
BOOST_DEFINE_ENUM_CLASS(Outcome, allowed, denied, cut, failed)

// One request from a sandbox. Never a query, header or body: those may contain secrets.
struct LogEntry {
  Time at = {};
  std::string method = {};  // CONNECT, GET, ...
  std::string host = {};
  std::uint16_t port = 0;
  std::string path = {};     // of a plain request, without its query
  std::string address = {};  // connected to, or refused
  Outcome decision = Outcome::failed;
  std::string rule = {};    // that decided
  std::string reason = {};  // why the request was refused or cut
  unsigned status = 0;      // sent to the client
  std::uint64_t bytes_up = 0;
  std::uint64_t bytes_down = 0;
  std::int64_t duration_ms = 0;
};
BOOST_DESCRIBE_STRUCT(LogEntry, (),
                      (at, method, host, port, path, address, decision, rule, reason, status,
                       bytes_up, bytes_down, duration_ms))

struct DecisionLogLimits {
  std::size_t entries_max = 1000;                    // in memory, the newest
  std::uint64_t file_bytes_max = 8UL * 1024 * 1024;  // in the file, the oldest
};

// What a sandbox requested and the results: the newest entries in memory, and all of them as JSON
// lines in a file until that is full. A sandbox can flood both, so both are limited: memory keeps
// the newest entries, the file the oldest.
class DecisionLog {
 public:
  // Without a path there is no file. It is created with the first entry.
  explicit DecisionLog(std::string path = {}, DecisionLogLimits limits = {});

  void add(LogEntry entry, LogLevel level);
  // Writes the entries since the last call. A file that cannot be written is reported once.
  void flush();
  // The newest entries, oldest first.
  std::vector<LogEntry> newest(std::size_t count) const;
  std::uint64_t not_written() const { return not_written_; }

 private:
  void open_file();
  void give_up(std::string_view action, int error_number);

  std::string path_;
  DecisionLogLimits limits_;
  std::deque<LogEntry> ring_;
  Fd file_;
  std::uint64_t file_bytes_ = 0;
  std::string pending_;
  bool closed_ = false;  // the file is full or broken
  std::uint64_t not_written_ = 0;
};

}  // namespace berth::egress
