#include "places/remote/remote_config.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <gtest/gtest.h>

namespace berth::places::remote {
namespace {

bj::object json(std::string_view text) {
  return bj::parse({text.data(), text.size()}).as_object();
}

TEST(RemoteConfig, PutsSecretsWhereTheirIdsAreAtAnyDepth) {
  std::map<std::string, Secret> secrets;
  secrets.emplace("apiKey", Secret{"one"});
  secrets.emplace("nested.list.1.token", Secret{"two"});
  secrets.emplace("not.there", Secret{"three"});
  const bj::object out = with_secrets(
      json(R"({"apiKey":"id","nested":{"list":[{"token":"a"},{"token":"b"}]},"x":1})"), secrets);
  EXPECT_EQ(
      bj::value(out),
      bj::parse(R"({"apiKey":"one","nested":{"list":[{"token":"a"},{"token":"two"}]},"x":1})"));
}

TEST(RemoteConfig, TakesEveryTextWithASecretOutOfAnAnswer) {
  std::map<std::string, Secret> secrets;
  secrets.emplace("apiKey", Secret{"s3cret"});
  const bj::value out = without_secrets(
      bj::parse(R"({"url":"https://x?key=s3cret","list":["s3cret","fine"],"n":7})"), secrets);
  EXPECT_EQ(out, bj::parse(R"({"url":"[secret]","list":["[secret]","fine"],"n":7})"));
}

TEST(RemoteConfig, KeepsWhatIsTheHostSFromTheWorker) {
  EXPECT_EQ(bj::value(config_for_worker(
                json(R"({"provider":"p","pluginId":"i","driver":"d","image":"x","timeoutMs":1})"))),
            bj::parse(R"({"image":"x","timeoutMs":1})"));
}

TEST(RemoteConfig, MetadataComeApartAgain) {
  const LeaseKeys keys{
      .driver = "sandbox", .driver_key = "boxes", .plugin_id = "id", .plugin_key = "acme"};
  const bj::object config = json(R"({"image":"ours","reuseLease":true})");
  const bj::object theirs = json(R"({"image":"theirs","pluginId":"forged","remoteCwd":"/w"})");
  const bj::object all = lease_metadata(keys, config, theirs);
  EXPECT_EQ(all.at("image"), "ours");
  EXPECT_EQ(all.at("pluginId"), "id");
  EXPECT_EQ(all.at("remoteCwd"), "/w");
  EXPECT_EQ(all.at("reuseLease"), true);
  EXPECT_EQ(provider_metadata_of(all), theirs);
  EXPECT_EQ(stored_config_of(all), config);
  EXPECT_EQ(provider_metadata_of(theirs), theirs);
  EXPECT_FALSE(stored_config_of(theirs));
}

TEST(RemoteConfig, ReadsTimesThatArePositiveAndNoOthers) {
  using std::chrono::milliseconds;
  EXPECT_EQ(milliseconds_at(json(R"({"t":1500})"), "t"), milliseconds{1500});
  EXPECT_EQ(milliseconds_at(json(R"({"t":1e300})"), "t"), milliseconds{86'400'000});
  for (const char* wrong : {R"({"t":0})", R"({"t":-5})", R"({"t":"5"})", "{}"}) {
    EXPECT_FALSE(milliseconds_at(json(wrong), "t")) << wrong;
  }
}

}  // namespace
}  // namespace berth::places::remote
