#pragma once

#include "base/json/json.hpp"
#include "base/owned.hpp"

#include <string>

// What the main of every worker does.
namespace berth::sdk {

bool asks_for_manifest(int argc, char** argv);
// "./NAME": the program as its manifest names it.
std::string worker_path(int argc, char** argv);
int print_manifest(const bj::object& manifest);

struct HostPipes {
  Fd in;
  Fd out;
};
// Takes stdin and stdout for the protocol. What a library prints to stdout goes to stderr from now
// on, and reads of stdin find nothing, so that neither can spoil a message.
HostPipes take_host_pipes();

// The folder that the program is in, where it finds what came with it.
std::string program_folder();

}  // namespace berth::sdk
