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

// What is in a home. Where there is more than was asked for, it is not counted to its end.
struct HomeSize {
  std::int64_t bytes = 0;
  std::int64_t files = 0;
  bool is_all = true;
  // What could not be looked into, and why: it may hold anything.
  std::optional<std::string> hidden = {};
};

// As people read it.
std::string size_text(std::int64_t bytes);

// Of a session file that is carried from one place to the next.
inline constexpr std::size_t session_bytes_max = std::size_t{16} << 20;

// The homes of agents on this server's disk. An agent fills its home as it likes, also while it is
// looked at: every look is bounded and follows no link.
class HomeDisk {
 public:
  // Makes the folder, and the name of this disk in it: a server has another id after each start.
  static Result<HomeDisk> open(std::string folder, Random& random, Time now);

  const std::string& folder() const { return folder_; }
  // "disk:UUID", as homes on it say where they are.
  const std::string& place() const { return place_; }

  // Looks at this many files at most. A home that was never used has none.
  Task<HomeSize> measure(core::AgentHomeId id, std::int64_t files_max) const;
  // Whether the program of the adapter has kept this session in the home.
  Task<bool> holds_session(core::AgentHomeId id, core::AdapterType adapter,
                           std::string session) const;
  // The file of a session that is kept here between runs in places which keep nothing themselves.
  struct KeptSession {
    std::string path;  // below the home that it came from
    std::string bytes;
  };
  Task<> keep_session(core::AgentHomeId id, std::string session, KeptSession kept) const;
  Task<std::optional<KeptSession>> kept_session(core::AgentHomeId id, std::string session) const;
  // Those of which something is on the disk.
  Task<std::vector<core::AgentHomeId>> list() const;
  Task<> remove(core::AgentHomeId id) const;

 private:
  // A home that takes long to look at or to remove does not hold up the others.
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
