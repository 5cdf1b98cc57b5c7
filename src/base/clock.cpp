#include "base/clock.hpp"

namespace berth {

Time SystemClock::now() const {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return Time{std::chrono::duration_cast<std::chrono::milliseconds>(since).count()};
}

}  // namespace berth
