#pragma once

#include "base/json/json.hpp"
#include "core/ids.hpp"
#include "core/rows/template.hpp"

#include <optional>
#include <string>
#include <vector>

// The files of a sandbox as a whole: captured, compared, removed.
namespace berth::execution {

// Whether a sandbox that is held still while it is copied goes on afterwards.
enum class Afterwards { goes_on, stays_frozen };

struct CaptureTemplate {
  core::TemplateId key;  // ours, recorded before anybody is asked: asking twice captures once
  std::string label = {};
  std::optional<std::string> source_ref = {};    // what the sandbox had started from
  std::optional<std::string> previous_ref = {};  // what the new one takes the place of
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
  std::optional<std::string> ref = {};  // absent: whoever captured it has never answered
  core::TemplateKind kind = core::TemplateKind::unknown;
  bj::object metadata = {};
};

// A template that a machine itself keeps, and of which provider it is.
struct HeldTemplate {
  core::TemplateId id;
  std::string provider;
};

BOOST_DEFINE_ENUM_CLASS(ChangeKind, added, changed, removed)
BOOST_DEFINE_ENUM_CLASS(EntryKind, file, directory, symbolic_link, other)

// One path that is not as it was when the sandbox started.
struct Change {
  std::string path;  // as it is; in an answer it is escaped like the names of a listing
  ChangeKind change = ChangeKind::added;
  EntryKind kind = EntryKind::file;
  std::int64_t bytes = 0;  // of a file as it is now
};
BOOST_DESCRIBE_STRUCT(Change, (), (path, change, kind, bytes))

struct Changes {
  std::vector<Change> changes = {};
  bool is_truncated = false;  // there are more than were listed
};
BOOST_DESCRIBE_STRUCT(Changes, (), (changes, is_truncated))

}  // namespace berth::execution
