#include "engine/upkeep/disk_reserve.hpp"

#include "base/disk_room.hpp"

#include <algorithm>

namespace berth::engine {
namespace {

// A write needs space twice: first in the write-ahead log, which is emptied at 4 MiB, and then in
// the database. On a small disk it is capped at half of the reserve.
constexpr std::uint64_t write_bytes = std::uint64_t{4} << 20;

}  // namespace

bool DiskReserve::has_room() const {
  if (folder_.empty()) return true;
  // A disk that cannot be queried is not known to be full.
  const DiskRoom room = room_on_disk(folder_).value_or(DiskRoom{});
  const std::uint64_t slack = std::min(write_bytes, room.reserve_bytes / 2);
  return room.takes_files && room.free_bytes >= room.reserve_bytes + slack;
}

Result<> DiskReserve::expect_room(const core::Caller& who) const {
  return who.kind == core::CallerKind::agent_key ? expect_room_for_agents() : Result<>{};
}

Result<> DiskReserve::expect_room_for_agents() const {
  if (has_room()) return {};
  return fail(Errc::store_full,
              "The disk of the server is down to its reserve, which agents do not write to",
              "let an operator make room on the disk of the home folder, or delete runs with "
              "'berth run delete'");
}

}  // namespace berth::engine
