#pragma once

#include "files/beneath.hpp"

namespace berth::workspaces {

using files::Owner;

// During its lifetime this thread accesses files as that user, with that user's rights and none of
// root's: the files that it makes belong to the user from the start. In an id-mapped tree no other
// user can make anything, not even root. Must end on the thread that began it. Without a user
// nothing changes.
class [[nodiscard]] Acting {
 public:
  static Result<Acting> as(const std::optional<Owner>& user);
  Acting(Acting&& other) noexcept : before_(std::exchange(other.before_, std::nullopt)) {}
  Acting& operator=(Acting&&) = delete;
  ~Acting();

 private:
  Acting() = default;
  std::optional<Owner> before_;
};

}  // namespace berth::workspaces
