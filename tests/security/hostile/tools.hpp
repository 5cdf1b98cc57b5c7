#pragma once

#include "security/hostile/attempt.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

// Shared by several attempts.
namespace berth::hostile {

// A descriptor that is closed at the end of its scope.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor();
  int get() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }

 private:
  int number_;
};

// A folder for the attempt, in the first writable place; empty when there is none.
class Scratch {
 public:
  Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch();
  const std::string& path() const { return path_; }
  std::string file(std::string_view name) const { return path_ + "/" + std::string{name}; }

 private:
  std::string path_;
};

// At most a megabyte. Empty, with errno set, when it cannot be read.
std::string contents_of(const std::string& path);
// Denied, unless the file can be opened and contains the marker.
Verdict reading(const std::string& path, const std::string& marker);
// Opens for writing and writes nothing.
bool opens_for_writing(const std::string& path);

// The pids in /proc, except this process.
std::vector<pid_t> visible_processes();

// Runs it in a child, which may change its namespaces or die, and returns its verdict.
Verdict in_child(const std::function<Verdict()>& attempt);

// The identity of a namespace: stat of /proc/self/ns/KIND.
std::uint64_t namespace_of(std::string_view kind);

}  // namespace berth::hostile
