#include "places/linux/listening.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::places {
namespace {

TEST(ListeningPorts, AreThoseOfSocketsThatListen) {
  const std::string tables =
      "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt\n"
      "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000\n"
      "   1: 0100007F:1F91 0100007F:9C40 01 00000000:00000000 00:00000000 00000000\n"
      "  sl  local_address                         remote_address                        st\n"
      "   0: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A 0\n"
      "   1: 00000000000000000000000001000000:0016 00000000000000000000000000000000:0000 0A 0\n";
  EXPECT_THAT(ports_in(tables), testing::ElementsAre(22, 8080));
}

TEST(ListeningPorts, OfATableThatIsNoneAreNone) {
  EXPECT_THAT(ports_in(""), testing::IsEmpty());
  EXPECT_THAT(ports_in("x\n\n0: 1:ZZZZ 0:0 0A\n0: 1:99999 0:0 0A\n0: 1:0000 0:0 0A"),
              testing::IsEmpty());
}

}  // namespace
}  // namespace berth::places
