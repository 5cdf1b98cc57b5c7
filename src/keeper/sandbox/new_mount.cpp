#include "keeper/sandbox/new_mount.hpp"

#include <sys/mount.h>

namespace berth::keeper::sandbox {

Fd new_mount(const char* type, std::initializer_list<MountOption> options,
             std::uint64_t attributes) {
  const Fd context{::fsopen(type, FSOPEN_CLOEXEC)};
  if (!context) return {};
  for (const MountOption& option : options) {
    if (::fsconfig(context.get(), FSCONFIG_SET_STRING, option.name, option.value, 0) != 0) {
      return {};
    }
  }
  if (::fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) return {};
  return Fd{::fsmount(context.get(), FSMOUNT_CLOEXEC, static_cast<unsigned int>(attributes))};
}

}  // namespace berth::keeper::sandbox
