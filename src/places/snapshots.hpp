#pragma once

#include "base/async/task.hpp"
#include "base/json/json.hpp"
#include "core/ids.hpp"
#include "core/rows/template.hpp"
#include "places/place_ref.hpp"

#include <optional>
#include <string>
#include <vector>

// A sandbox's files as a whole: captured, compared, deleted.
namespace berth::places {

// Whether a sandbox that is frozen during the copy continues afterwards.
enum class Afterwards { goes_on, stays_frozen };

struct CaptureTemplate {
  core::TemplateId key;  // ours, recorded before the request: repeating it captures once
  std::string label = {};
  std::optional<std::string> source_ref = {};    // what the sandbox started from
  std::optional<std::string> previous_ref = {};  // what the new one replaces
  std::optional<std::int64_t> timeout_ms = {};
  Afterwards afterwards = Afterwards::goes_on;
};

struct CapturedTemplate {
  std::string ref;
  core::TemplateKind kind = core::TemplateKind::unknown;
  core::TemplateBinding binding = {};
  bj::object metadata = {};
};

struct DeleteTemplate {
  core::TemplateId key;
  std::optional<std::string> ref = {};  // absent: the capture was never answered
  core::TemplateKind kind = core::TemplateKind::unknown;
  bj::object metadata = {};
};

BOOST_DEFINE_ENUM_CLASS(ChangeKind, added, changed, removed)
BOOST_DEFINE_ENUM_CLASS(EntryKind, file, directory, symbolic_link, other)

// One path that has changed since the sandbox started.
struct Change {
  std::string path;  // raw; responses escape it like the names of a listing
  ChangeKind change = ChangeKind::added;
  EntryKind kind = EntryKind::file;
  std::int64_t bytes = 0;  // current size of a file
};
BOOST_DESCRIBE_STRUCT(Change, (), (path, change, kind, bytes))

struct Changes {
  std::vector<Change> changes = {};
  bool is_truncated = false;  // there are more than were listed
};
BOOST_DESCRIBE_STRUCT(Changes, (), (changes, is_truncated))

// execution_unsupported if one of them is beyond the provider.
class Snapshots {
 public:
  virtual ~Snapshots() = default;

  // Captures a sandbox at this moment, so that others can start from it. It keeps running.
  // Repeating the request captures once.
  virtual Task<CapturedTemplate> capture_template(const PlaceRef& lease,
                                                  const CaptureTemplate& request) = 0;
  // Returns whether there was something to delete. May be repeated. image_in_use while sandboxes or
  // other templates are based on it. `place` describes where it was captured; its lease need not
  // exist any more.
  virtual Task<bool> delete_template(const PlaceRef& place, const DeleteTemplate& request) = 0;
  // What differs from what the sandbox started from. Bounded.
  virtual Task<Changes> changes(const PlaceRef& lease) = 0;
  // The templates that are stored on this machine, whether or not the server knows them.
  virtual Task<std::vector<core::TemplateId>> held_templates() = 0;
};

}  // namespace berth::places
