#pragma once

#include "base/result.hpp"

#include <string>

namespace berth::keeper {

// Serves the protocol on stdin and stdout for a keeper below the root. The first frame, `open`,
// names the keeper, and starts it if requested. Everything after it is passed through unread. When
// either side ends, the relay ends and the keeper lives on.
Result<> serve_stdio(const std::string& root);

}  // namespace berth::keeper
