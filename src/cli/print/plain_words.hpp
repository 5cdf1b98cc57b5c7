#pragma once

#include <string>
#include <string_view>

// The API has inherited names; users see others.
namespace berth::cli {

// "heartbeat.invoked" becomes "run started", "environment.lease_exec" becomes "lease exec".
std::string plain_action(std::string_view action);
// "heartbeat_run" becomes "run".
std::string plain_kind(std::string_view kind);
// "local-board" becomes "local operator".
std::string plain_actor(std::string_view actor);
// A value of a field, where the value is an inherited name: "managedMode" has "paperclip_managed".
std::string plain_value(std::string_view key, std::string value);
// A sentence of the server in the words of this program.
std::string plain_sentence(std::string text);

}  // namespace berth::cli
