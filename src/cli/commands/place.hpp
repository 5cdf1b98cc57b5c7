#pragma once

#include "cli/session.hpp"

#include <string>

namespace berth::cli {

// The id of the lease behind what a person named: a run, a lease or a sandbox, each by its id or
// an end of it, or `last` for the newest run. What is something else, or is not held by a lease,
// is an error that says what it is.
Result<std::string> find_place(Session& session, const std::string& named);

// What the help says of such a word.
inline constexpr auto place_words =
    "a run, a lease or a sandbox: its id or an end of it, or 'last'";

}  // namespace berth::cli
