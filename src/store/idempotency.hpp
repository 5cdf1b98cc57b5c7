#pragma once

#include "base/time.hpp"
#include "store/sql/mapping.hpp"

namespace berth::store {

// The response to a request with an Idempotency-Key, kept so that a retry gets the same one.
struct KeptAnswer {
  std::string caller;  // keys of different callers never collide
  std::string key;
  std::string
      fingerprint;     // of method, path and body: the same key with another request is an error
  std::string answer;  // sealed
  Time created_at;
};
BOOST_DESCRIBE_STRUCT(KeptAnswer, (), (caller, key, fingerprint, answer, created_at))

template <>
inline constexpr std::string_view table_of<KeptAnswer> = "idempotency_answers";

Result<std::optional<KeptAnswer>> find_answer(Session& session, const std::string& caller,
                                              const std::string& key);
// `conflict` when a concurrent request with the same key was faster.
Result<> keep_answer(Session& session, const KeptAnswer& answer);
// Deletes exactly this response; `conflict` when there is a different one by now.
Result<> forget_answer(Session& session, const KeptAnswer& answer);
// Removes up to `limit` older rows; returns how many it removed.
Result<std::int64_t> forget_answers(Session& session, Time older_than, std::int64_t limit);

}  // namespace berth::store
