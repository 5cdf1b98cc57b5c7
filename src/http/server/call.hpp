#pragma once

#include "core/call.hpp"
#include "http/server/message/message.hpp"

namespace berth::http {

// What the header fields Idempotency-Key, If-Match and X-Berth-Run-Id (or X-Paperclip-Run-Id) ask
// for. Fails validation_failed, naming the field. The run is the caller's word: engine/journal.hpp
// says what of it is written down.
Result<core::Call> make_call(core::Caller who, const Request& request);

// Whether a client's X-Request-Id may stand in our logs and answers.
bool is_request_id(std::string_view text);

}  // namespace berth::http
