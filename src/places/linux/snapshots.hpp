#pragma once

#include "places/snapshots.hpp"
#include "places/linux/images.hpp"

// A sandbox's files as a whole. Everything here blocks.
namespace berth::providers {

// A running sandbox, and what it was made with.
struct LiveSandbox {
  std::string name;           // for errors: "sandbox 7f3a"
  std::string keeper_folder;  // where its keeper listens
  core::LinuxConfig config;
};

// Copies what the sandbox has written. Its processes are frozen meanwhile if this machine can do
// that; the metadata records whether it could.
Result<execution::CapturedTemplate> capture_sandbox(const LiveSandbox& sandbox,
                                                    const HeldImages& images,
                                                    const execution::CaptureTemplate& request);
Result<bool> delete_captured(const HeldImages& images, const execution::DeleteTemplate& request);
Result<execution::Changes> changes_of(const LiveSandbox& sandbox, const HeldImages& images);

}  // namespace berth::providers
