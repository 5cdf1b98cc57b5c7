#include "places/ssh/diagnosis.hpp"

#include <gtest/gtest.h>

namespace berth::places::ssh {
namespace {

const Whom whom{.name = "deploy@build-7:2222", .host = "build-7", .port = 2222};

TEST(Diagnosis, EveryCauseHasItsCodeASentenceAndARemedy) {
  const std::pair<std::string, Errc> cases[] = {
      {"ssh: connect to host build-7 port 2222: Connection refused\r\n", Errc::ssh_unreachable},
      {"ssh: connect to host build-7 port 2222: No route to host", Errc::ssh_unreachable},
      {"ssh: connect to host build-7 port 2222: Connection timed out", Errc::ssh_unreachable},
      {"ssh: Could not resolve hostname build-7: Name or service not known", Errc::ssh_unreachable},
      {"Connection timed out during banner exchange\nConnection to 10.0.0.1 port 2222 timed out",
       Errc::ssh_unreachable},
      {"kex_exchange_identification: read: Connection reset by peer", Errc::ssh_unreachable},
      {"No ED25519 host key is known for [build-7]:2222 and you have requested strict checking.\n"
       "Host key verification failed.",
       Errc::ssh_host_key_unknown},
      {"@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n"
       "Host key verification failed.",
       Errc::ssh_host_key_changed},
      {"deploy@build-7: Permission denied (publickey).", Errc::ssh_auth_failed},
      {"Load key \"/x\": error in libcrypto\ndeploy@build-7: Permission denied (publickey).",
       Errc::ssh_key_invalid},
      {"Unable to negotiate with 10.0.0.1 port 22: no matching key exchange method found.",
       Errc::ssh_failed},
      {"\n", Errc::ssh_unreachable},
  };
  for (const auto& [said, code] : cases) {
    const Error error = why_not_connected(whom, said);
    EXPECT_EQ(error.code, code) << said;
    EXPECT_TRUE(error.message.starts_with("deploy@build-7:2222: ")) << error.message;
    EXPECT_FALSE(error.remedy.empty()) << said;
  }
}

TEST(Diagnosis, ARemedyForAnUnknownHostKeyCanBePasted) {
  const Error error = why_not_connected(whom, "Host key verification failed.");
  EXPECT_TRUE(error.remedy.contains("'ssh-keyscan -p 2222 build-7'")) << error.remedy;
}

TEST(Diagnosis, AFullDiskIsToldFromOtherFailures) {
  const Error full = why_not_done(Errc::lease_release_failed, "lease x",
                                  "mkdir: cannot create directory 'a': No space left on device\n");
  EXPECT_EQ(full.code, Errc::remote_disk_full);
  const Error other = why_not_done(Errc::lease_release_failed, "lease x",
                                   "rm: cannot remove 'a': Permission denied\n");
  EXPECT_EQ(other.code, Errc::lease_release_failed);
  EXPECT_EQ(other.message, "lease x: rm: cannot remove 'a': Permission denied");
}

TEST(Diagnosis, TheLastWordsAreShortAndClean) {
  EXPECT_EQ(last_words("first\n  last \r\n\n \n"), "last");
  EXPECT_EQ(last_words(""), "");
  EXPECT_EQ(last_words("a\xff"
                       "b"),
            "a?b");
  EXPECT_LE(last_words(std::string(100'000, 'x')).size(), 300U);
}

TEST(Diagnosis, AConnectionWithoutRoomIsToldFromABrokenOne) {
  const std::string full =
      "mux_client_request_session: session request failed: Session open "
      "refused by peer";
  EXPECT_TRUE(is_out_of_sessions(full));
  EXPECT_EQ(why_no_session(whom, full).code, Errc::ssh_failed);
  EXPECT_EQ(why_no_session(whom, "mux_client_request_session: read from master failed").code,
            Errc::ssh_unreachable);
}

}  // namespace
}  // namespace berth::places::ssh
