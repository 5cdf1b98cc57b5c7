#pragma once

#include "cli/context.hpp"

#include <chrono>
#include <string>

namespace berth::cli {

// The id of the lease behind the user's argument: a run, a lease or a sandbox, each by its id or an
// end of it, or `last` for the newest run. Anything else, or a sandbox without a lease, is an error
// that reports what it is.
Result<std::string> find_place(Context& context, const std::string& named);

// The same for commands that work in the place. A sandbox that is kept for the next run is leased;
// the lease is released when the command ends, and by the server at the latest after `longest`.
Result<std::string> enter_place(Context& context, const std::string& named,
                                std::chrono::seconds longest = std::chrono::minutes{15});

// The help text for such an argument.
inline constexpr auto place_words =
    "a run, a lease or a sandbox: its id or an end of it, or 'last'";

}  // namespace berth::cli
