#pragma once

#include "base/result.hpp"

#include <string>

namespace berth::keeper {

// Speaks the protocol on stdin and stdout for a keeper below the root: the first frame, `open`,
// names it, and starts it where asked; everything after goes to it and comes from it unread. When
// either side ends, the relay does, and the keeper lives on.
Result<> serve_stdio(const std::string& root);

}  // namespace berth::keeper
