#pragma once

#include "cli/context.hpp"

#include <chrono>
#include <string>

namespace berth::cli {

// The id of the lease behind what a person named: a run, a lease or a sandbox, each by its id or
// an end of it, or `last` for the newest run. What is something else, or is not held by a lease,
// is an error that says what it is.
Result<std::string> find_place(Context& context, const std::string& named);

// The same for who works in the place: a sandbox that is kept for the next run is taken with a
// lease, which is released when the command ends, and by the server at the latest after `longest`.
Result<std::string> enter_place(Context& context, const std::string& named,
                                std::chrono::seconds longest = std::chrono::minutes{15});

// What the help says of such a word.
inline constexpr auto place_words =
    "a run, a lease or a sandbox: its id or an end of it, or 'last'";

}  // namespace berth::cli
