#pragma once

#include <string>
#include <string_view>

namespace berth::drivers::ssh {

// A word of the shell that stands for exactly this text. The text has no NUL byte. A newline is
// written as "$berth_newline", so that the word stays on one line: RemoteShell reads scripts by
// line and sets that variable.
std::string shell_word(std::string_view text);

}  // namespace berth::drivers::ssh
