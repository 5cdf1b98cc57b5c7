#pragma once

#include "execution/templates.hpp"
#include "providers/linux/images.hpp"

// The files of a sandbox as a whole. Everything here blocks.
namespace berth::providers {

// A sandbox that lives, and what it was made with.
struct LiveSandbox {
  std::string name;           // for errors: "sandbox 7f3a"
  std::string keeper_folder;  // where its keeper listens
  core::LinuxConfig config;
};

// Copies what the sandbox has written, while its processes stand still where this machine can
// freeze them; the metadata say whether it could.
Result<execution::CapturedTemplate> capture_sandbox(const LiveSandbox& sandbox,
                                                    const HeldImages& images,
                                                    const execution::CaptureTemplate& request);
Result<bool> delete_captured(const HeldImages& images, const execution::DeleteTemplate& request);
Result<execution::Changes> changes_of(const LiveSandbox& sandbox, const HeldImages& images);

}  // namespace berth::providers
