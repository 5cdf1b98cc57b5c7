#include "cli/net/events.hpp"

namespace berth::cli {
namespace {

constexpr std::size_t event_bytes_max = 1 << 20;

}  // namespace

void EventReader::line(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view field = text.substr(0, colon);
  std::string_view value = colon == std::string_view::npos ? "" : text.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (field == "data") {
    if (has_data_) event_.data += '\n';
    event_.data += value;
    has_data_ = true;
  } else if (field == "event") {
    event_.name = value;
  } else if (field == "id") {
    event_.id = value;
  }
}

Result<bool> EventReader::feed(std::string_view text,
                               const std::function<bool(const Event&)>& take) {
  rest_ += text;
  std::size_t start = 0;
  for (std::size_t end = rest_.find('\n'); end != std::string::npos;
       end = rest_.find('\n', start)) {
    std::string_view one{rest_.data() + start, end - start};
    if (one.ends_with('\r')) one.remove_suffix(1);
    start = end + 1;
    if (!one.empty()) {
      line(one);
      continue;
    }
    const bool complete = has_data_;
    const Event event = std::exchange(event_, {});
    has_data_ = false;
    if (complete && !take(event)) return false;
  }
  rest_.erase(0, start);
  if (rest_.size() + event_.data.size() > event_bytes_max) {
    return fail(Errc::io_failed, "the event stream sent an event of more than " +
                                     std::to_string(event_bytes_max) + " bytes");
  }
  return true;
}

}  // namespace berth::cli
