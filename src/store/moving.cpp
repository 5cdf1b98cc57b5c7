#include "store/moving.hpp"

namespace berth::store::moving_detail {

std::unexpected<Error> outrun(std::string_view noun, const std::string& id) {
  return fail(Errc::conflict, std::string{noun} + " " + id + " changed since it was read",
              "read it again and decide anew");
}

}  // namespace berth::store::moving_detail
