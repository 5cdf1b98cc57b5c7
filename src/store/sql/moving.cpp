#include "store/sql/moving.hpp"

namespace berth::store::moving_detail {

std::unexpected<Error> outrun(std::string_view noun, const std::string& id) {
  return fail(Errc::conflict, std::string{noun} + " " + id + " changed since it was read",
              "read it again and decide anew");
}

std::unexpected<Error> was_fixed(std::string_view noun, const std::string& id,
                                 std::string_view column) {
  return fail(Errc::bug, std::string{noun} + " " + id + ": " + std::string{column} +
                             " is declared as fixed, and a verb has changed it");
}

}  // namespace berth::store::moving_detail
