#pragma once

#include "core/access.hpp"

#include <string>
#include <utility>

namespace berth::engine {

// The part of the home's disk that agents' data must leave free, so that operators and the server
// itself can always act: cancel, delete, record how a run ended.
class DiskReserve {
 public:
  // Without a folder there is always room.
  DiskReserve() = default;
  explicit DiskReserve(std::string folder) : folder_(std::move(folder)) {}

  bool has_room() const;
  // store_full for an agent when the disk is down to its reserve.
  Result<> expect_room(const core::Caller& who) const;
  Result<> expect_room_for_agents() const;

 private:
  std::string folder_;
};

}  // namespace berth::engine
