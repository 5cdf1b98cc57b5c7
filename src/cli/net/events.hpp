#pragma once

#include "base/result.hpp"

#include <functional>
#include <string>
#include <string_view>

namespace berth::cli {

// One server-sent event.
struct Event {
  std::string id;
  std::string name;
  std::string data;
};

// Splits a text/event-stream into events, wherever the network split it.
class EventReader {
 public:
  // Calls `take` for each complete event; false means that it wants no more.
  Result<bool> feed(std::string_view text, const std::function<bool(const Event&)>& take);

 private:
  void line(std::string_view text);

  std::string rest_;
  Event event_;
  bool has_data_ = false;
};

}  // namespace berth::cli
