#include "store/postgres.hpp"

namespace berth::store {

Result<std::unique_ptr<Database>> open_postgres(const std::string& /*url*/,
                                                unsigned /*connections*/) {
  return fail(Errc::store_unreachable, "PostgreSQL is not built in yet");
}

}  // namespace berth::store
