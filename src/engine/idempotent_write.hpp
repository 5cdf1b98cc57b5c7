#pragma once

#include "core/call.hpp"
#include "engine/services.hpp"
#include "store/idempotency.hpp"

namespace berth::engine {

namespace idempotent_write_detail {

// The sealed response given before for this key, if any; idempotency_key_reused when the request
// differs.
Result<std::optional<Secret>> find(store::Session& session, Services& services,
                                   const core::Call& call);
Result<> forget(store::Session& session, const core::Call& call);
Result<> keep(store::Session& session, Services& services, const core::Call& call,
              const std::string& answer);

template <class T>
inline constexpr bool is_stored = false;
template <class T>
inline constexpr bool is_stored<core::Stored<T>> = true;

template <class Answer>
std::string to_text(const Answer& answer) {
  if constexpr (is_stored<Answer>) {
    return encode_text(bj::object{{"value", encode(answer.value)}, {"version", answer.version}});
  } else {
    return encode_text(answer);
  }
}

template <class Answer>
Result<Answer> from_text(std::string_view text) {
  if constexpr (is_stored<Answer>) {
    BERTH_TRY(const bj::value kept, parse_json(text));
    BERTH_TRY(auto value, decode<decltype(Answer::value)>(kept.at("value"), UnknownKeys::ignore));
    return Answer{std::move(value), kept.at("version").to_number<std::int64_t>()};
  } else {
    return decode_text<Answer>(text, UnknownKeys::ignore);
  }
}

}  // namespace idempotent_write_detail

// Runs a use case in one transaction. With an Idempotency-Key, the response is stored in that same
// transaction. A retry then gets the same response and nothing happens twice, even if the server
// died before it could reply.
//
// If the response names work that continues after the transaction, `was_given_up` reports, in a
// transaction, whether that work came to nothing. The request is then repeated under the same key.
template <class Work, class GivenUp>
auto idempotent_write(Services& services, const core::Call& call, Work work, GivenUp was_given_up)
    -> asio::awaitable<std::invoke_result_t<Work&, store::Session&>> {
  using Outcome = std::invoke_result_t<Work&, store::Session&>;
  using Answer = typename Outcome::value_type;
  const auto attempt = [&](store::Session& session) -> Outcome {
    if (!call.once) return work(session);
    BERTH_TRY(const std::optional<Secret> kept,
              idempotent_write_detail::find(session, services, call));
    if (kept) {
      BERTH_TRY(Answer before, idempotent_write_detail::from_text<Answer>(kept->reveal()));
      BERTH_TRY(const bool is_nothing, was_given_up(session, before));
      if (!is_nothing) return before;
      BERTH_DO(idempotent_write_detail::forget(session, call));
    }
    BERTH_TRY(Answer answer, work(session));
    BERTH_DO(idempotent_write_detail::keep(session, services, call,
                                           idempotent_write_detail::to_text(answer)));
    return answer;
  };
  Outcome outcome = co_await services.store.write(attempt);
  // A concurrent request with the same key was faster and has committed: the second attempt finds
  // its response.
  if (!outcome && call.once && outcome.error().code == Errc::conflict) {
    outcome = co_await services.store.write(attempt);
  }
  co_return outcome;
}

template <class Work>
auto idempotent_write(Services& services, const core::Call& call, Work work)
    -> asio::awaitable<std::invoke_result_t<Work&, store::Session&>> {
  const auto never = [](store::Session& /*session*/, const auto& /*answer*/) -> Result<bool> {
    return false;
  };
  co_return co_await idempotent_write(services, call, std::move(work), never);
}

}  // namespace berth::engine
