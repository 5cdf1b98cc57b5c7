#include "workspaces/walk.hpp"

#include "workspaces/path.hpp"

namespace berth::workspaces {

Result<Walk> Walk::from(int folder, std::string_view shown, Mounts mounts, Limits limits) {
  Walk walk{shown, mounts, limits};
  BERTH_TRY(Names names, Names::of(folder, shown));
  walk.frames_.push_back({.names = std::move(names), .path_bytes = 0});
  return walk;
}

Result<std::optional<Walk::Item>> Walk::next() {
  while (!frames_.empty()) {
    Frame& frame = frames_.back();
    BERTH_TRY(std::optional<std::string> name, frame.names.next());
    if (!name) {
      frames_.pop_back();
      continue;
    }
    if (++entries_ > limits_.entries_max) {
      return refuse(shown_ + path_,
                    "holds more than " + std::to_string(limits_.entries_max) + " entries");
    }
    BERTH_TRY(std::optional<Item> item, examine(frame, *std::move(name)));
    if (!item) continue;
    // The folder is entered at once: its descriptor is available, and its content comes next.
    if (!item->refusal && item->found.is_directory()) BERTH_DO(enter(*item));
    return item;
  }
  return std::nullopt;
}

Result<std::optional<Walk::Item>> Walk::examine(const Frame& frame, std::string name) {
  path_.resize(frame.path_bytes);
  Item item{.path = path_ + (path_.empty() ? "" : "/") + name,
            .name = std::move(name),
            .folder = frame.names.folder()};
  const std::string shown = shown_ + item.path;
  if (item.path.size() > limits_.path_bytes_max) {
    const std::string most = std::to_string(limits_.path_bytes_max);
    item.refusal = refuse(shown, "is longer than " + most + " bytes").error();
    return item;
  }
  if (frames_.size() > limits_.depth_max) {
    const std::string most = std::to_string(limits_.depth_max);
    item.refusal = refuse(shown, "is deeper than " + most + " folders").error();
    return item;
  }
  Result<Found> found = find(item.folder, item.name, mounts_, shown);
  if (found) {
    item.found = *std::move(found);
    return item;
  }
  if (found.error().code == Errc::file_not_found) return std::nullopt;
  if (found.error().code != Errc::path_refused) return std::unexpected(std::move(found).error());
  item.refusal = std::move(found).error();
  return item;
}

Result<> Walk::enter(Item& item) {
  Result<Names> names = Names::of(item.found.at.get(), shown_ + item.path);
  if (!names && names.error().code != Errc::path_refused) {
    return std::unexpected(std::move(names).error());
  }
  if (!names) {
    item.refusal = std::move(names).error();
    return {};
  }
  path_ = item.path;
  frames_.push_back({.names = *std::move(names), .path_bytes = path_.size()});
  return {};
}

}  // namespace berth::workspaces
