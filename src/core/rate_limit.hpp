#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <string>

namespace berth::core {

// A token bucket per key: `burst` at once, and one more every `every`.
struct Rate {
  double burst = 1;
  std::chrono::milliseconds every{1000};
};

// `first_refusal` is the first of a series of refusals. A series ends when half of the bucket has
// refilled. Report a series once, on its first refusal.
enum class RateVerdict { granted, first_refusal, refused };

class RateLimit {
 public:
  using Moment = std::chrono::steady_clock::time_point;

  RateVerdict take(const std::string& key, const Rate& rate, Moment now);
  // The number of remembered keys. Full buckets are dropped from time to time, because they equal
  // an absent one.
  std::size_t size() const { return buckets_.size(); }

 private:
  struct Bucket {
    double tokens = 0;
    Moment at = {};
    Rate rate = {};
    bool is_refusing = false;
  };

  static void fill(Bucket& bucket, Moment now);
  void forget_full(Moment now);

  std::map<std::string, Bucket> buckets_;
  std::size_t forget_at_ = 1024;
};

}  // namespace berth::core
