#pragma once

#include "base/result.hpp"
#include "egress/request.hpp"

namespace berth::egress {

// The HTTP status by which a client of the proxy learns of a failure.
unsigned status_of(Errc code);

// Why a request went no further, as the client reads it: JSON with `error`, `code`, `rule` and
// `remedy`, and the same sentence in the field Proxy-Status, because clients hide the body of a
// refused CONNECT.
struct Refusal {
  Error error;
  std::string rule = {};  // that decided, where one did
};
enum class AnswerBody { present, absent };
std::string refusal_text(const Refusal& refusal, Persistence persistence, AnswerBody body);

}  // namespace berth::egress
