#pragma once

#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

namespace berth {

// A value that must not be printed. It has no str() and no stream operator, so logging one does not
// compile, and its bytes are wiped on destruction.
class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string_view value) : bytes_(value.begin(), value.end()) {}
  Secret(Secret&&) noexcept = default;
  Secret& operator=(Secret&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  Secret(const Secret&) = delete;
  Secret& operator=(const Secret&) = delete;
  ~Secret() {
    if (!bytes_.empty()) ::explicit_bzero(bytes_.data(), bytes_.size());
  }

  // The word to grep for in review: each call exposes a secret.
  std::string_view reveal() const { return {bytes_.data(), bytes_.size()}; }
  bool empty() const { return bytes_.empty(); }
  // A copy must be explicit: it is a second value to wipe.
  Secret clone() const { return Secret{reveal()}; }

 private:
  std::vector<char> bytes_;
};

}  // namespace berth
