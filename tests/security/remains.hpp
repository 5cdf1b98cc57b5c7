#pragma once

#include "base/owned.hpp"

#include <sys/types.h>

#include <string>
#include <vector>

namespace berth::security_test {

// What exists because of one sandbox: recorded while it lives, checked when it is over.
class Remains {
 public:
  // The first process of the sandbox, as the host sees it.
  explicit Remains(pid_t init);

  // A line for each remaining cgroup and for each process in one of its namespaces.
  std::string still_there() const;
  bool knows_namespaces() const { return !namespaces_.empty(); }

 private:
  std::vector<std::string> namespaces_;  // as the links of /proc/PID/ns read
  std::vector<Fd> held_;                 // so that no new namespace gets one of their numbers
  std::vector<std::string> cgroups_;     // folders
};

// All host processes whose arguments contain the text, except this one.
std::vector<pid_t> processes_with(const std::string& text);
// The mounts of this process's namespace.
std::string mounts();

}  // namespace berth::security_test
