#pragma once

#include "base/json/json.hpp"
#include "core/ids.hpp"
#include "core/rows/template.hpp"

#include <optional>
#include <string>
#include <vector>

// A sandbox's files as a whole: captured, compared, deleted.
namespace berth::execution {

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

// A template stored on this machine, and its provider.
struct HeldTemplate {
  core::TemplateId id;
  std::string provider;
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

}  // namespace berth::execution
