#include "drivers/driver.hpp"

namespace berth::drivers {

Task<> Driver::close() {
  co_return Result<>{};
}

}  // namespace berth::drivers
