#pragma once

#include "base/owned.hpp"

#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace berth::cli {

// A request as the tests' server saw it.
struct SeenRequest {
  std::string line;  // "GET /api/health HTTP/1.1"
  std::string head;
  std::string body;

  std::string header(const std::string& name) const;
};

// A real server on a real port of the loopback, as small as can be: one connection at a time, one
// raw answer for each request.
class LoopbackServer {
 public:
  using Answer = std::function<std::string(const SeenRequest&)>;
  explicit LoopbackServer(Answer answer);
  LoopbackServer(const LoopbackServer&) = delete;
  LoopbackServer& operator=(const LoopbackServer&) = delete;
  ~LoopbackServer();

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  std::vector<SeenRequest> seen() const;

 private:
  void serve();
  void serve_one(int connection);

  Answer answer_;
  Fd listener_;
  int port_ = 0;
  mutable std::mutex mutex_;
  std::vector<SeenRequest> seen_;
  std::jthread thread_;
};

std::string http_answer(int status, const std::string& body, const std::string& headers = {});

}  // namespace berth::cli
