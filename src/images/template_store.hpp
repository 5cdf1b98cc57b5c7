#pragma once

#include "base/json/json.hpp"
#include "files/tree_copy.hpp"
#include "images/image_store.hpp"
#include "images/store_folder.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::images {

using files::IdRange;
using files::OverlayMarks;

// A sandbox's upper layer at one moment, from which others start: its own layer lies on its
// parent's, and so on down to the image.
struct Template {
  std::string id;
  std::string name;
  std::string base_image;  // digest, or "host"
  std::optional<std::string> parent;
  std::uint32_t depth = 1;  // layers above the image
  std::uint64_t bytes = 0;
  std::uint64_t entries = 0;
  Time created_at;
};
BOOST_DESCRIBE_STRUCT(Template, (),
                      (id, name, base_image, parent, depth, bytes, entries, created_at))

struct CaptureRequest {
  std::optional<std::string> id = {};  // absent: a new one. Capturing an id again finds it
  std::string name;
  std::string base_image;                  // digest, or "host"
  std::optional<std::string> parent = {};  // the template that the sandbox was started from
  IdRange ids = {};                        // the sandbox's
  OverlayMarks marks = OverlayMarks::trusted;
  Limits limits = image_limits();
};

// More layers would slow down every look-up in the sandbox; and overlayfs has its own limit.
inline constexpr std::uint32_t template_depth_max = 16;

// by-id/ID/{upper/, template.json, holds/}. A template holds its image and its parent, so neither
// can be removed below it. The image store must outlive it. Calls block.
class TemplateStore {
 public:
  static Result<TemplateStore> open(const std::string& folder, const ImageStore& images);

  // Copies the upper layer: whiteouts, opaque folders, holes and hard links are preserved; sockets
  // and pipes are left out. The sandbox should be frozen. `conflict` if the name is taken or the
  // chain would be too deep.
  Result<Template> capture(int upper, const CaptureRequest& request,
                           const ProgressSink& progress = {}) const;
  Result<Template> find(std::string_view named) const;  // by id or name
  Result<std::vector<Template>> list() const;
  // image_in_use while sandboxes or other templates are based on it.
  Result<> remove(std::string_view named) const;

  // Removes what crashes leave: drafts of dead processes, and holds of missing templates. Returns
  // the number of drafts.
  Result<std::uint64_t> gc() const;

  Result<> hold(const std::string& id, const std::string& holder) const;
  Result<> release(const std::string& id, const std::string& holder) const;
  // For a process: keeps the template until the descriptor is closed, even by a crash.
  Result<Fd> pin(const std::string& id) const;

  // A template's layers in overlayfs order, uppermost first, without the image.
  Result<std::vector<std::string>> layers_of(const Template& top) const;

 private:
  TemplateStore(StoreFolder folder, const ImageStore& images)
      : folder_(std::move(folder)), images_(images) {}

  Result<Template> described(const CaptureRequest& request) const;
  Result<Template> read(const std::string& id) const;
  Result<> publish(Draft draft, const Template& made) const;

  StoreFolder folder_;
  const ImageStore& images_;
};

}  // namespace berth::images
