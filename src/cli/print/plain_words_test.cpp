#include "cli/print/plain_words.hpp"

#include <gtest/gtest.h>

namespace berth::cli {
namespace {

TEST(PlainWords, ReplaceTheInheritedNames) {
  EXPECT_EQ(plain_action("heartbeat.invoked"), "run started");
  EXPECT_EQ(plain_action("heartbeat.cancelled"), "run cancelled");
  EXPECT_EQ(plain_action("environment.created"), "environment created");
  EXPECT_EQ(plain_action("environment.lease_exec"), "lease exec");
  EXPECT_EQ(plain_action("environment.custom_image_setup.started"), "custom image setup started");
  EXPECT_EQ(plain_kind("heartbeat_run"), "run");
  EXPECT_EQ(plain_kind("agent"), "agent");
  EXPECT_EQ(plain_actor("local-board"), "local operator");
  EXPECT_EQ(plain_value("createdByUserId", "local-board"), "local operator");
  EXPECT_EQ(plain_value("startedBy", "local-board"), "local operator");
  EXPECT_EQ(plain_value("managedMode", "paperclip_managed"), "kept by this server");
  EXPECT_EQ(plain_value("name", "local-board"), "local-board");
  EXPECT_EQ(plain_actor("0190"), "0190");
  EXPECT_EQ(plain_sentence("Cancelled by a board operator"), "Cancelled by an operator");
  EXPECT_EQ(plain_sentence("archive it: PATCH its status to archived"),
            "archive it: berth env update ENVIRONMENT --status archived");
}

}  // namespace
}  // namespace berth::cli
