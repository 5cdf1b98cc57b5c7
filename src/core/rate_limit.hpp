#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <string>

namespace berth::core {

// A bucket of tokens for each key: `burst` at once, and one more every `every`.
struct Rate {
  double burst = 1;
  std::chrono::milliseconds every{1000};
};

// `first_refusal` is the first of a row of refusals, which ends when half of the bucket is full
// again: what is to be reported once is reported then.
enum class RateVerdict { granted, first_refusal, refused };

class RateLimit {
 public:
  using Moment = std::chrono::steady_clock::time_point;

  RateVerdict take(const std::string& key, const Rate& rate, Moment now);
  // Keys that are remembered. A full bucket is forgotten from time to time: it is as good as none.
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
