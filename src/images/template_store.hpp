#pragma once

#include "base/json/json.hpp"
#include "images/copy_tree.hpp"
#include "images/image_store.hpp"
#include "images/store_folder.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::images {

// The upper layer of a sandbox at one moment, from which others start: its own layer lies on that
// of its parent, and so on down to the image.
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
  std::optional<std::string> id = {};  // absent: one is made. Capturing it again finds it
  std::string name;
  std::string base_image;                  // digest, or "host"
  std::optional<std::string> parent = {};  // the template that the sandbox was started from
  IdRange ids = {};                        // of the sandbox
  OverlayMarks marks = OverlayMarks::trusted;
  Limits limits = {};
};

// More layers than this make every look-up in the sandbox slower; and overlayfs has its own limit.
inline constexpr std::uint32_t template_depth_max = 16;

// by-id/ID/{upper/, template.json, holds/}. A template holds its image and its parent, so neither
// can be removed below it. The image store must outlive it. Calls block.
class TemplateStore {
 public:
  static Result<TemplateStore> open(const std::string& folder, const ImageStore& images);

  // Copies the upper layer: whiteouts, opaque folders, holes and hard links stay; sockets and pipes
  // are left out. The sandbox should be frozen. `conflict` for a name that is taken and for a chain
  // that would be too deep.
  Result<Template> capture(int upper, const CaptureRequest& request,
                           const ProgressSink& progress = {}) const;
  Result<Template> find(std::string_view named) const;  // by id or name
  Result<std::vector<Template>> list() const;
  // image_in_use while sandboxes or other templates stand on it.
  Result<> remove(std::string_view named) const;

  // Drafts of the dead, and holds of templates that are not there: what crashes leave. Says how
  // many drafts there were.
  Result<std::uint64_t> gc() const;

  Result<> hold(const std::string& id, const std::string& holder) const;
  Result<> release(const std::string& id, const std::string& holder) const;
  // For a process: the template stays until the descriptor is closed, however that comes.
  Result<Fd> pin(const std::string& id) const;

  // The layers of a template as overlayfs wants them, the uppermost first, without the image.
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
