#pragma once

#include <string>
#include <string_view>

namespace berth::places::ssh {

// A shell word for exactly this text, which must not contain NUL. A newline is written as
// "$berth_newline", so that the word fits on one line: RemoteShell reads scripts by line and sets
// that variable.
std::string shell_word(std::string_view text);

}  // namespace berth::places::ssh
