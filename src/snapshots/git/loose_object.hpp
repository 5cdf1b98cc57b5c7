#pragma once

#include "snapshots/git/object_id.hpp"
#include "snapshots/git/repository.hpp"

#include <string_view>

namespace berth::snapshots {

// Writes one small object as a file of its own, at once visible. For objects that are needed for
// the next moments only: it is not synced, and replaces what a power cut may have left.
Result<ObjectId> write_loose(const Repository& repository, ObjectType type,
                             std::string_view content);

}  // namespace berth::snapshots
