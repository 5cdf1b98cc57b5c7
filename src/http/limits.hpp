#pragma once

#include <chrono>
#include <cstddef>

namespace berth::http {

// What one client may cost. Every limit protects all the other clients.
struct Limits {
  std::size_t header_bytes_max = 16UL * 1024;
  std::size_t body_bytes_max = 1024UL * 1024;  // a Route may set its own
  // Bodies and responses of all connections together. Smaller ones are bounded by the connection
  // limit.
  std::size_t buffered_bytes_max = 256UL * 1024 * 1024;
  std::size_t small_body_bytes = 16UL * 1024;
  std::size_t socket_message_bytes_max = 1024UL * 1024;
  std::size_t connections_max = 16384;
  std::size_t connections_reserved = 32;      // in addition: instance administrators and health
                                              // checks
  std::size_t requests_in_flight_max = 1024;  // requests whose handler is running
  std::size_t requests_reserved = 64;         // of these, for instance administrators only
  std::size_t requests_of_caller_max = 256;   // of these, per key
  std::size_t requests_of_company_max = 512;  // of these, for all keys of one company

  // Event streams and WebSockets. Instance administrators together may have half the connections.
  std::size_t streams_of_caller_max = 128;
  std::size_t streams_of_company_max = 512;

  // Requests relayed into a sandbox.
  std::size_t relays_max = 512;
  std::size_t relays_reserved = 32;  // of these, for instance administrators only
  std::size_t relays_of_caller_max = 64;
  std::size_t relays_of_company_max = 256;
  std::size_t relay_header_bytes_max = 64UL * 1024;
  std::chrono::milliseconds relay_answer_timeout{60'000};  // from the request to the response head
  std::chrono::milliseconds relay_idle_timeout{300'000};   // without a byte in either direction
  std::chrono::milliseconds tunnel_idle_timeout{3'600'000};

  std::chrono::milliseconds header_timeout{10'000};  // for the whole header, however it trickles
  std::chrono::milliseconds body_timeout{30'000};    // for the whole body
  std::chrono::milliseconds write_timeout{30'000};   // for one answer or one event
  std::chrono::milliseconds idle_timeout{75'000};    // between two requests
  std::chrono::milliseconds linger_timeout{2'000};   // for a client to read a refusal
  std::chrono::milliseconds sweep_interval{250};     // how late a deadline may be noticed
  // Of reads that wait: is their client still there?
  std::chrono::milliseconds departure_interval{1'000};
  std::chrono::milliseconds rights_interval{2'000};  // of open streams: may their client still?
  std::chrono::milliseconds keep_alive_interval{15'000};  // of silent event streams
};

}  // namespace berth::http
