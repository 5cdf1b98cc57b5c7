#pragma once

#include "core/call.hpp"
#include "http/server/message/message.hpp"

namespace berth::http {

// Reads the header fields Idempotency-Key, If-Match and X-Berth-Run-Id (or X-Paperclip-Run-Id).
// Fails with validation_failed, naming the field. The run is only the caller's claim:
// engine/journal.hpp defines which part of it is recorded.
Result<core::Call> make_call(core::Caller who, const Request& request);

// Whether a client's X-Request-Id may appear in our logs and responses.
bool is_request_id(std::string_view text);

}  // namespace berth::http
