#include "places/ssh/target.hpp"

#include "base/clock.hpp"

#include <gtest/gtest.h>

namespace berth::places::ssh {
namespace {

constexpr const char* key =
    "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n";

PlaceRef lease() {
  SystemRandom random;
  const Time now = SystemClock{}.now();
  PlaceRef facts{.key = core::LeaseId::make(random, now),
                 .company_id = core::CompanyId::make(random, now),
                 .config = {{"host", "build-7"},
                            {"username", "deploy"},
                            {"remoteWorkspacePath", "/srv/work"},
                            {"privateKeySecretRef",
                             bj::object{{"type", "secret_ref"},
                                        {"secretId", "3f2504e0-4f89-41d3-9a0c-0305e82c3301"},
                                        {"version", "latest"}}},
                            {"knownHosts", "build-7 ssh-ed25519 AAAA"}}};
  facts.secrets.emplace("privateKeySecretRef", Secret{key});
  return facts;
}

TEST(Target, AConfigWithItsKeyIsWhomToConnectTo) {
  const auto target = target_of(lease(), {});
  ASSERT_TRUE(target) << target.error().message;
  EXPECT_EQ(target->name(), "deploy@build-7:22");
  EXPECT_EQ(target->identity, IdentityKind::key);
  EXPECT_EQ(target->key.reveal(), key);
  EXPECT_TRUE(target->strict_host_key);
}

TEST(Target, AKeyThatADraftBringsNeedsNoReference) {
  PlaceRef draft = lease();
  draft.config["privateKeySecretRef"] = nullptr;
  const auto target = target_of(draft, {});
  ASSERT_TRUE(target) << target.error().message;
  EXPECT_EQ(target->identity, IdentityKind::key);
  EXPECT_EQ(target->key.reveal(), key);
}

TEST(Target, OnlyEqualTargetsHaveTheSameFingerprint) {
  const std::string usual = target_of(lease(), {})->fingerprint();
  EXPECT_EQ(usual, target_of(lease(), {})->fingerprint());
  PlaceRef other = lease();
  other.config["knownHosts"] = "build-7 ssh-ed25519 BBBB";
  EXPECT_NE(usual, target_of(other, {})->fingerprint());
  other = lease();
  other.secrets.insert_or_assign("privateKeySecretRef", Secret{std::string{key} + "\n"});
  EXPECT_NE(usual, target_of(other, {})->fingerprint());
  other = lease();
  other.config["port"] = 2222;
  EXPECT_NE(usual, target_of(other, {})->fingerprint());
  other = lease();
  other.config["strictHostKeyChecking"] = false;
  EXPECT_NE(usual, target_of(other, {})->fingerprint());
  other = lease();
  other.private_addresses = PrivateAddresses::reachable;
  EXPECT_NE(usual, target_of(other, {})->fingerprint()) << "what is checked is not shared";
  other = lease();
  other.config["remoteWorkspacePath"] = "/elsewhere";
  EXPECT_EQ(usual, target_of(other, {})->fingerprint()) << "workspaces share a connection";
}

TEST(Target, WhatTheServersUserHasIsUsedOnlyWhereThatIsAllowed) {
  PlaceRef bare = lease();
  bare.config["privateKeySecretRef"] = nullptr;
  bare.secrets.clear();
  bare.config["knownHosts"] = nullptr;
  EXPECT_EQ(target_of(bare, {}).error().code, Errc::ssh_auth_failed);
  const auto ambient = target_of(bare, {.ambient_identity = AmbientIdentity::allowed});
  ASSERT_TRUE(ambient) << ambient.error().message;
  EXPECT_EQ(ambient->identity, IdentityKind::ambient);
  // An agent provides a key but no known hosts.
  const Options with_agent{.agent_socket = "/run/agent"};
  EXPECT_EQ(target_of(bare, with_agent).error().code, Errc::ssh_host_key_unknown);
  bare.config["knownHosts"] = "build-7 ssh-ed25519 AAAA";
  EXPECT_EQ(target_of(bare, with_agent)->identity, IdentityKind::agent);
}

TEST(Target, AKeyThatIsNoneOrMissingIsSaidSo) {
  PlaceRef wrong = lease();
  wrong.secrets.insert_or_assign("privateKeySecretRef", Secret{"ssh-ed25519 AAAA public"});
  EXPECT_EQ(target_of(wrong, {}).error().code, Errc::ssh_key_invalid);
  wrong.secrets.clear();
  EXPECT_EQ(target_of(wrong, {}).error().code, Errc::secret_missing);
}

TEST(Target, BlanksAreNoKnownHosts) {
  PlaceRef blank = lease();
  blank.config["knownHosts"] = " \n\t\n";
  EXPECT_EQ(target_of(blank, {}).error().code, Errc::ssh_host_key_unknown);
}

}  // namespace
}  // namespace berth::places::ssh
