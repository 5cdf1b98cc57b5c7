#pragma once

#include "core/access.hpp"
#include "http/limits.hpp"

#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>

namespace berth::http {

// Where a connection was admitted. In the reserve only health checks and instance administrators
// are served.
enum class Place { usual, reserve };

// What a caller may hold: a running request, an event stream or WebSocket, or a request relayed
// into a sandbox.
BOOST_DEFINE_ENUM_CLASS(ShareKind, request, stream, relay)

// How much of the server each key and each company holds, so that none can exhaust it. The last
// part of each total is for instance administrators only. One thread.
class Shares {
 public:
  class Share;

  explicit Shares(const Limits& limits) : limits_(limits) {}
  Shares(const Shares&) = delete;
  Shares& operator=(const Shares&) = delete;

  // Fails with overloaded and names the exhausted share. A caller without a key is identified by
  // its address.
  Result<Share> take(ShareKind kind, const core::Caller& caller, std::string_view address);

 private:
  struct Count {
    std::size_t held = 0;
    std::size_t reported = 0;  // held when exhaustion was reported; 0 once half is free again
  };
  using Counts = std::map<std::string, Count>;
  struct Pool {
    std::size_t held = 0;
    Counts callers;
    Counts companies;
  };
  struct Bounds {
    std::size_t all;
    std::size_t caller;
    std::size_t company;
  };

  Bounds bounds_of(ShareKind kind, const core::Caller& caller) const;
  static void give_back(Counts& counts, Counts::iterator count);

  const Limits& limits_;
  std::array<Pool, 3> pools_;
};

// A part that is held until this is destroyed.
class [[nodiscard]] Shares::Share {
 public:
  Share(Share&& other) noexcept;
  Share& operator=(Share&&) = delete;
  ~Share();

  // How much of this kind the same company or the same caller holds.
  std::size_t held_by_company() const { return company_->second.held; }
  std::size_t held_by_caller() const { return caller_->second.held; }
  const std::string& holder() const { return caller_->first; }

 private:
  friend class Shares;
  Share(Pool& pool, Counts::iterator caller, Counts::iterator company);

  Pool* pool_;  // none once moved from
  Counts::iterator caller_;
  Counts::iterator company_;
};

}  // namespace berth::http
