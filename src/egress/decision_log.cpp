#include "egress/decision_log.hpp"

#include "base/files.hpp"
#include "base/log.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

namespace berth::egress {
namespace {

constexpr std::string_view last_line = "{\"full\":true}\n";
constexpr std::size_t pending_bytes_max = 256UL * 1024;

bool is_wanted(const LogEntry& entry, LogLevel level) {
  if (level == LogLevel::none) return false;
  return level == LogLevel::all || entry.decision == Outcome::denied ||
         entry.decision == Outcome::cut;
}

}  // namespace

DecisionLog::DecisionLog(std::string path, DecisionLogLimits limits)
    : path_(std::move(path)), limits_(limits), closed_(path_.empty()) {}

void DecisionLog::open_file() {
  // An existing file belongs to the same lease, from before a server restart.
  file_ = Fd{::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)};
  struct stat found{};
  if (!file_ || ::fstat(file_.get(), &found) != 0) return give_up("open", errno);
  file_bytes_ = static_cast<std::uint64_t>(found.st_size);
  if (file_bytes_ >= limits_.file_bytes_max) closed_ = true;
}

void DecisionLog::give_up(std::string_view action, int error_number) {
  closed_ = true;
  not_written_ += static_cast<std::uint64_t>(std::ranges::count(pending_, '\n'));
  pending_.clear();
  log::warn("egress.log_failed",
            {{"error", io_failure(action, path_, error_number).error().message}});
}

void DecisionLog::add(LogEntry entry, LogLevel level) {
  if (!is_wanted(entry, level)) return;
  // Most sandboxes never use the network, so their file is never created.
  if (!closed_ && !file_) open_file();
  if (!closed_) {
    const std::string line = encode_text(entry) + "\n";
    const std::uint64_t after = file_bytes_ + pending_.size() + line.size() + last_line.size();
    if (after > limits_.file_bytes_max) {
      pending_ += last_line;
      flush();
      closed_ = true;
      ++not_written_;
    } else {
      pending_ += line;
      if (pending_.size() > pending_bytes_max) flush();
    }
  } else if (!path_.empty()) {
    ++not_written_;
  }
  if (limits_.entries_max == 0) return;
  if (ring_.size() >= limits_.entries_max) ring_.pop_front();
  ring_.push_back(std::move(entry));
}

void DecisionLog::flush() {
  std::string_view rest = pending_;
  while (!rest.empty() && !closed_) {
    const ssize_t written = ::write(file_.get(), rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return give_up("write", errno);
    rest.remove_prefix(static_cast<std::size_t>(written));
    file_bytes_ += static_cast<std::uint64_t>(written);
  }
  pending_.clear();
}

std::vector<LogEntry> DecisionLog::newest(std::size_t count) const {
  const std::size_t size = std::min(count, ring_.size());
  return {ring_.end() - static_cast<std::ptrdiff_t>(size), ring_.end()};
}

}  // namespace berth::egress
