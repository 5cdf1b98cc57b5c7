#pragma once

#include "places/linux/images.hpp"
#include "places/snapshots.hpp"

// A sandbox's files as a whole. Everything here blocks.
namespace berth::places {

// A running sandbox, and what it was made with.
struct LiveSandbox {
  std::string name;           // for errors: "sandbox 7f3a"
  std::string keeper_folder;  // where its keeper listens
  core::LinuxConfig config;
};

// Copies what the sandbox has written. Its processes are frozen meanwhile if this machine can do
// that; the metadata records whether it could.
Result<CapturedTemplate> capture_sandbox(const LiveSandbox& sandbox, const HeldImages& images,
                                         const CaptureTemplate& request);
Result<bool> delete_captured(const HeldImages& images, const DeleteTemplate& request);
Result<Changes> changes_of(const LiveSandbox& sandbox, const HeldImages& images);

}  // namespace berth::places
