#pragma once

#include "base/result.hpp"

#include <string>
#include <string_view>

// Turns messages of ssh and the remote shell into our errors. Both print only for people, so their
// text is the only way to distinguish causes; LC_ALL=C keeps it in one language.
namespace berth::places::ssh {

// Why ssh could not connect or log in. `name` is the target's name; host and port are for the
// remedy.
struct Whom {
  std::string name;
  std::string host;
  std::int64_t port = 22;
};
Error why_not_connected(const Whom& whom, std::string_view said);

// Why a session over an open connection could not begin or broke.
Error why_no_session(const Whom& whom, std::string_view said);
// The connection accepts no further session; another connection may.
bool is_out_of_sessions(std::string_view said);

bool is_disk_full(std::string_view said);
// `code`, or remote_disk_full if that was the cause.
Error why_not_done(Errc code, std::string_view what, std::string_view said,
                   std::string remedy = {});

// The last meaningful line, short enough for a sentence.
std::string last_words(std::string_view said);

}  // namespace berth::places::ssh
