#pragma once

#include "base/json/json.hpp"
#include "base/owned.hpp"

#include <string>

// The main function of every worker.
namespace berth::sdk {

bool asks_for_manifest(int argc, char** argv);
// "./NAME": the program's path for its manifest.
std::string worker_path(int argc, char** argv);
int print_manifest(const bj::object& manifest);

struct HostPipes {
  Fd in;
  Fd out;
};
// Takes stdin and stdout for the protocol. From now on, a library's output to stdout goes to
// stderr, and reads of stdin find nothing, so that neither can corrupt a message.
HostPipes take_host_pipes();

// The program's folder, which contains the files that came with it.
std::string program_folder();

}  // namespace berth::sdk
