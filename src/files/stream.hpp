#pragma once

#include "base/result.hpp"

#include <functional>
#include <string_view>
#include <utility>

// Bytes on their way in or out, a piece at a time. Sources and sinks may block, and an error from
// one ends the whole transfer.
namespace berth::files {

using ByteSink = std::function<Result<>(std::string_view)>;
// The next bytes, valid until the next call; empty at the end.
using ByteSource = std::function<Result<std::string_view>()>;

// Bytes that are all there, in one piece.
inline ByteSource source_of(std::string_view bytes) {
  return [bytes]() mutable -> Result<std::string_view> { return std::exchange(bytes, {}); };
}

}  // namespace berth::files
