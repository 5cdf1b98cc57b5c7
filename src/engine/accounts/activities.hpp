#pragma once

#include "core/call.hpp"
#include "core/page.hpp"
#include "core/rows/activity.hpp"
#include "engine/services.hpp"
#include "store/activity.hpp"

namespace berth::engine {

using store::ActivityFilter;

// What a follower of a company receives: entries of the trail, and how often anything of the
// company has changed, also what leaves no entry, such as the state of a run.
struct CompanyNews {
  std::vector<core::Activity> entries;
  std::uint64_t changes = 0;
};

// The audit trail of a company, as pages and as a stream.
class Activities {
 public:
  explicit Activities(Services& services) : services_(services) {}

  Task<core::Listing<core::Activity>> list(core::Call call, core::CompanyId company,
                                           ActivityFilter filter, core::PageRequest page);
  // The newest entry's id, as the place where a stream without a past begins; nothing in an empty
  // trail.
  Task<std::optional<core::EventId>> newest(core::Call call, core::CompanyId company);
  // Whether this entry is in the company's trail.
  Task<bool> has(core::Call call, core::CompanyId company, core::EventId entry);
  // What came after this entry, oldest first. Waits a while when there is nothing yet.
  Task<std::vector<core::Activity>> after(core::Call call, core::CompanyId company,
                                          std::optional<core::EventId> last);

  // How often the company has changed so far; the initial count for `news`.
  std::uint64_t changes(const core::CompanyId& company) const {
    return services_.feed.changes(company);
  }
  // What came after this entry and this count. Waits a while if there is nothing yet.
  Task<CompanyNews> news(core::Call call, core::CompanyId company,
                         std::optional<core::EventId> last, std::uint64_t seen);

 private:
  Result<std::vector<core::Activity>> look_after(store::Session& session, const core::Call& call,
                                                 const core::CompanyId& company,
                                                 const std::optional<core::EventId>& last) const;

  Services& services_;
};

}  // namespace berth::engine
