#pragma once

#include "base/result.hpp"

#include <string_view>

namespace berth::store {

// The error as callers of every company may see it. `name` is the address of the database or the
// path of its file: an error that contains it is logged in full, and its text is replaced.
Error shown_error(Error error, std::string_view name);
Result<> shown_result(Result<> result, std::string_view name);

}  // namespace berth::store
