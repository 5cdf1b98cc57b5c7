#include "core/rate_limit.hpp"

#include <algorithm>

namespace berth::core {
namespace {

constexpr std::size_t forget_at_least = 1024;

}  // namespace

void RateLimit::fill(Bucket& bucket, Moment now) {
  const std::chrono::duration<double, std::milli> passed = now - bucket.at;
  const double more = passed.count() / static_cast<double>(bucket.rate.every.count());
  bucket.tokens = std::min(bucket.rate.burst, bucket.tokens + std::max(more, 0.0));
  bucket.at = now;
}

void RateLimit::forget_full(Moment now) {
  for (auto& [key, bucket] : buckets_) fill(bucket, now);
  std::erase_if(buckets_,
                [](const auto& entry) { return entry.second.tokens >= entry.second.rate.burst; });
  forget_at_ = std::max(forget_at_least, 2 * buckets_.size());
}

RateVerdict RateLimit::take(const std::string& key, const Rate& rate, Moment now) {
  if (buckets_.size() >= forget_at_) forget_full(now);
  const auto [found, is_new] = buckets_.try_emplace(key, Bucket{rate.burst, now, rate, false});
  Bucket& bucket = found->second;
  bucket.rate = rate;
  fill(bucket, now);
  if (bucket.tokens >= rate.burst / 2) bucket.is_refusing = false;
  if (bucket.tokens >= 1) {
    bucket.tokens -= 1;
    return RateVerdict::granted;
  }
  const bool is_first = !bucket.is_refusing;
  bucket.is_refusing = true;
  return is_first ? RateVerdict::first_refusal : RateVerdict::refused;
}

}  // namespace berth::core
