#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

// What a hostile program tries, and the result. Every attempt really tries, checks whether it had
// the effect, and undoes it; none does harm if nothing stops it.
namespace berth::hostile {

enum class Outcome : std::uint8_t { denied, limited, open };

struct Verdict {
  Outcome outcome = Outcome::open;
  std::string text;  // an errno's name, how much, or what could be done
};

// From errno, or from the given number.
Verdict denied();
Verdict denied(int error);
Verdict limited(std::string how_much);
Verdict open_to(std::string deed);

// What the host has prepared to be found, given as key=value arguments, and the limits of the
// sandbox. A number that was not given is 0.
struct Bait {
  std::string marker;           // in the file, in the environment and in the process's name
  std::string file;             // a file of the host
  std::string handle;           // its file handle: TYPE:HEX, from name_to_handle_at
  std::string device;           // MAJOR:MINOR of the disk below it
  std::string abstract_socket;  // listening
  std::string socket_path;      // listening
  std::string terminal;         // a pseudo terminal of the host
  pid_t pid = 0;                // a process of the host: this program, as `bait`
  std::uint16_t port = 0;       // listening on the host's loopback
  std::uint64_t network_namespace = 0;
  std::uint64_t hostname_namespace = 0;
  std::uint64_t files_max = 0;
  std::uint64_t processes_max = 0;
  std::uint64_t memory_bytes_max = 0;
  std::uint64_t disk_bytes_max = 0;
  std::uint64_t inodes_max = 0;
};

struct Attempt {
  std::string_view name;
  Verdict (*run)(const Bait& bait);
};

std::span<const Attempt> device_attempts();
std::span<const Attempt> file_attempts();
std::span<const Attempt> information_attempts();
std::span<const Attempt> init_attempts();
std::span<const Attempt> mount_attempts();
std::span<const Attempt> namespace_attempts();
std::span<const Attempt> network_attempts();
std::span<const Attempt> process_attempts();
std::span<const Attempt> resource_attempts();
std::span<const Attempt> system_call_attempts();

}  // namespace berth::hostile
