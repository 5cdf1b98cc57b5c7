#pragma once

#include "base/result.hpp"

#include <string>
#include <string_view>

// What ssh and the shell on the other side say, in our words. Both speak only to people, so their
// texts are all there is to tell causes apart; LC_ALL=C keeps them in one language.
namespace berth::drivers::ssh {

// Why ssh could not connect or log in. `name` is the target's, host and port are for the remedy.
struct Whom {
  std::string name;
  std::string host;
  std::int64_t port = 22;
};
Error why_not_connected(const Whom& whom, std::string_view said);

// Why a session over a connection that stands could not begin or broke.
Error why_no_session(const Whom& whom, std::string_view said);
// The connection takes no further session; another connection may.
bool is_out_of_sessions(std::string_view said);

bool is_disk_full(std::string_view said);
// `code`, or remote_disk_full where that was the cause.
Error why_not_done(Errc code, std::string_view what, std::string_view said,
                   std::string remedy = {});

// The last line that says something, short enough for a sentence.
std::string last_words(std::string_view said);

}  // namespace berth::drivers::ssh
