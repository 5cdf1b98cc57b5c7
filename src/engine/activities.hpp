#pragma once

#include "core/activity.hpp"
#include "core/call.hpp"
#include "core/page.hpp"
#include "engine/means.hpp"
#include "store/activity.hpp"

namespace berth::engine {

// The audit trail of a company, as pages and as a stream.
class Activities {
 public:
  explicit Activities(Means& means) : means_(means) {}

  Task<core::Listing<core::Activity>> list(core::Call call, core::CompanyId company,
                                           store::ActivityFilter filter, core::PageRequest page);
  // The newest entry's id, as the place where a stream without a past begins; nothing in an empty
  // trail.
  Task<std::optional<core::EventId>> newest(core::Call call, core::CompanyId company);
  // What came after this entry, oldest first. Waits a while when there is nothing yet.
  Task<std::vector<core::Activity>> after(core::Call call, core::CompanyId company,
                                          std::optional<core::EventId> last);

 private:
  Means& means_;
};

}  // namespace berth::engine
