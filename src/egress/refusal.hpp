#pragma once

#include "base/result.hpp"
#include "egress/request.hpp"

namespace berth::egress {

// The HTTP status for a failure, as the proxy's client gets it.
unsigned status_of(Errc code);

// Why a request was refused, as the client reads it: JSON with `error`, `code`, `rule` and
// `remedy`, and the same sentence in the Proxy-Status field, because clients hide the body of a
// refused CONNECT.
struct Refusal {
  Error error;
  std::string rule = {};  // that decided, if any
};
enum class AnswerBody { present, absent };
std::string refusal_text(const Refusal& refusal, Persistence persistence, AnswerBody body);

}  // namespace berth::egress
