#pragma once

#include "base/async/task.hpp"
#include "egress/resolver.hpp"

#include <map>

namespace berth::engine {

struct FetchRequest {
  std::string url;
  std::string method = "GET";
  std::map<std::string, std::string> headers = {};
  std::string body = {};
};

struct FetchAnswer {
  unsigned status = 0;
  std::string status_text = {};
  std::map<std::string, std::string> headers = {};  // names in lower case
  std::string body = {};
};

struct FetchLimits {
  std::size_t request_bytes_max = std::size_t{4} << 20;
  std::size_t answer_bytes_max = std::size_t{8} << 20;
  std::uint32_t header_bytes_max = 64 * 1024;
  std::chrono::milliseconds timeout{30'000};
  std::size_t in_flight_max = 32;
};

// One HTTP request to the public internet on behalf of a plugin. The name is resolved once, and the
// connection goes to one of those addresses. If any of them is not public, the request is rejected.
// So neither a name that points inside nor a name whose address changes can lead there. Redirects
// are returned, not followed.
class OutboundFetch {
 public:
  // `allowed`: non-public addresses that may be reached anyway.
  OutboundFetch(asio::any_io_executor executor, egress::Resolver& resolver,
                std::vector<egress::Range> allowed = {}, FetchLimits limits = {});

  // forbidden, validation_failed, server_unreachable, timed_out, body_too_large, overloaded.
  Task<FetchAnswer> fetch(FetchRequest request);

 private:
  struct Target;
  static Result<Target> parse(const FetchRequest& request);
  Result<> check(const std::string& host, const std::vector<egress::Address>& addresses) const;
  Task<std::vector<egress::Address>> addresses_of(std::string host);
  Task<FetchAnswer> send(const Target& target, const egress::Address& address) const;

  asio::any_io_executor executor_;
  egress::Resolver& resolver_;
  std::vector<egress::SpecialRange> special_;
  std::vector<egress::Range> allowed_;
  FetchLimits limits_;
  std::size_t in_flight_ = 0;
};

}  // namespace berth::engine
