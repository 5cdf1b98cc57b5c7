#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace berth::egress {

// What one sandbox may cost the server.
struct Limits {
  std::size_t connections_max = 256;
  std::size_t header_bytes_max = 32UL * 1024;
  std::uint64_t request_body_bytes_max = 4UL * 1024 * 1024 * 1024;  // for plain requests
  std::size_t lookups_max = 16;                                     // at the same time
  std::uint64_t bytes_per_second = 0;  // both directions together; 0: unlimited

  std::chrono::milliseconds header_timeout{10'000};      // for a whole head, even if it trickles in
  std::chrono::milliseconds keep_alive_timeout{60'000};  // between two requests
  std::chrono::milliseconds connect_timeout{10'000};     // for all addresses of a target
  std::chrono::milliseconds idle_timeout{300'000};       // without a byte in either direction
  std::chrono::milliseconds linger_timeout{2'000};       // for a client to read a refusal
  std::chrono::milliseconds sweep_interval{250};         // how late a deadline may be noticed
};

}  // namespace berth::egress
