#pragma once

#include "base/json/json.hpp"
#include "base/owned.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

// The two pipes between a worker and its host: JSON-RPC 2.0, one object per line.
namespace berth::sdk {

namespace limits {

inline constexpr std::size_t line_bytes = std::size_t{128} << 20;
inline constexpr std::size_t asked = 1024;  // unanswered requests to the host
inline constexpr std::chrono::milliseconds ask_limit{30'000};

}  // namespace limits

// JSON-RPC error codes, as the protocol numbers them.
namespace rpc {

inline constexpr int parse_error = -32700;
inline constexpr int unknown_method = -32601;
inline constexpr int wrong_params = -32602;
inline constexpr int worker_unavailable = -32000;
inline constexpr int worker_error = -32002;
inline constexpr int not_implemented = -32004;

}  // namespace rpc

// The line of a message. U+2028 and U+2029 are escaped, because some readers end a line there.
std::string line_of(const bj::object& message);

// Splits the host's data into lines. Blocks; one thread.
class LineReader {
 public:
  explicit LineReader(int fd) : fd_(fd) {}

  struct Line {
    std::string text;
    bool is_too_long = false;  // and was skipped
  };
  // Nothing at the end of the input. An incomplete last line is dropped.
  std::optional<Line> next();

 private:
  int fd_;
  std::string buffer_;
  std::size_t scanned_ = 0;
};

// Sends a worker's messages to its host. Any thread.
class HostLink {
 public:
  explicit HostLink(Fd out) : out_(std::move(out)) {}

  void send(const bj::object& message);
  void answer(const bj::value& id, bj::value result);
  void refuse(const bj::value& id, int code, std::string_view message, bj::object facts = {});

  // Sends a request to the host and waits. `invocation` is the host's id for the call on whose
  // behalf it is sent; empty: none.
  Result<bj::value> ask(std::string_view method, bj::value params, const std::string& invocation,
                        std::chrono::milliseconds limit);
  void notify(std::string_view method, bj::value params, const std::string& invocation);
  // Handles the host's response. One without a waiting caller is dropped.
  void answered(bj::object message);

 private:
  struct Asked {
    std::condition_variable came;
    std::optional<Result<bj::value>> answer;
  };

  Fd out_;
  std::mutex writing_;
  std::mutex asking_;
  std::int64_t last_id_ = 0;
  std::map<std::int64_t, std::shared_ptr<Asked>> asked_;
};

}  // namespace berth::sdk
