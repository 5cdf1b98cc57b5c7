#pragma once

#include "workspaces/disk.hpp"

namespace berth::workspaces {

// While it lives, this thread meets files as that user, with that user's rights and none of root's:
// what it makes is the user's from the first moment. In a tree whose ids are mapped nobody else can
// make anything, not even root. Ends on the thread that began it; nobody given: nothing changes.
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
