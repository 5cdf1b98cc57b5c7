#pragma once

#include "core/access.hpp"

#include <cstddef>
#include <map>
#include <string>

namespace berth::http {

// For whom the server keeps the bytes of a request or a response. Until the caller is identified,
// this is a caller without a key.
struct BytesHolder {
  enum class Rank { stranger, company, administrator };

  Rank rank = Rank::stranger;
  std::string name = {};

  static BytesHolder of(const core::Caller& caller);
};

// Bodies and responses in memory, of all connections together. All callers without a key may hold
// an eighth, a company a quarter, and the last eighth is for instance administrators. One thread.
class HeldBytes {
 public:
  explicit HeldBytes(std::size_t most) : most_(most) {}

  // False, without counting anything, when there is no room.
  bool add(const BytesHolder& holder, std::size_t bytes);
  void remove(const BytesHolder& holder, std::size_t bytes);

 private:
  std::size_t most_;
  std::size_t all_ = 0;
  std::map<std::string, std::size_t> by_name_;
};

// What one message holds while it arrives.
class [[nodiscard]] Holding {
 public:
  Holding(HeldBytes& all, const BytesHolder& holder) : all_(all), holder_(holder) {}
  Holding(const Holding&) = delete;
  Holding& operator=(const Holding&) = delete;
  ~Holding() { all_.remove(holder_, bytes_); }

  // False where there is no room.
  bool grow_to(std::size_t bytes) {
    if (bytes <= bytes_) return true;
    if (!all_.add(holder_, bytes - bytes_)) return false;
    bytes_ = bytes;
    return true;
  }

 private:
  HeldBytes& all_;
  const BytesHolder& holder_;
  std::size_t bytes_ = 0;
};

}  // namespace berth::http
