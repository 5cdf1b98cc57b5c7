#pragma once

#include "base/async/task.hpp"
#include "base/random.hpp"
#include "core/rows/agent_home.hpp"

#include <boost/asio/thread_pool.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace berth::engine {

// The contents of a home. Counting stops at the requested maximum.
struct HomeSize {
  std::int64_t bytes = 0;
  std::int64_t files = 0;
  bool is_all = true;
  // What could not be read, and why: it may contain anything.
  std::optional<std::string> hidden = {};
};

// Human-readable.
std::string size_text(std::int64_t bytes);

// For a session file that is copied from one place to the next.
inline constexpr std::size_t session_bytes_max = std::size_t{16} << 20;

// Agent homes on this server's disk. An agent fills its home freely, even during a scan: every scan
// is bounded and follows no links.
class HomeDisk {
 public:
  // Creates the folder, and this disk's id in it, because a server's own id changes at each start.
  static Result<HomeDisk> open(std::string folder, Random& random, Time now);

  const std::string& folder() const { return folder_; }
  // "disk:UUID", the location that homes on this disk record.
  const std::string& place() const { return place_; }

  // Counts at most this many files. A home that was never used has none.
  Task<HomeSize> measure(core::AgentHomeId id, std::int64_t files_max) const;
  // Whether the adapter's program has stored this session in the home.
  Task<bool> holds_session(core::AgentHomeId id, core::AdapterType adapter,
                           std::string session) const;
  // A session file kept here between runs in places that keep nothing themselves.
  struct KeptSession {
    std::string path;  // below the home that it came from
    std::string bytes;
  };
  Task<> keep_session(core::AgentHomeId id, std::string session, KeptSession kept) const;
  Task<std::optional<KeptSession>> kept_session(core::AgentHomeId id, std::string session) const;
  // The homes that have something on the disk.
  Task<std::vector<core::AgentHomeId>> list() const;
  Task<> remove(core::AgentHomeId id) const;

 private:
  // Several, so that a home that is slow to scan or remove does not delay the others.
  static constexpr std::size_t threads = 4;

  HomeDisk(std::string folder, std::string place)
      : folder_(std::move(folder)),
        place_(std::move(place)),
        pool_(std::make_unique<asio::thread_pool>(threads)) {}

  std::string home_of(const core::AgentHomeId& id) const;

  std::string folder_;
  std::string place_;
  std::unique_ptr<asio::thread_pool> pool_;
};

}  // namespace berth::engine
