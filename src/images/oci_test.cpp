#include "images/oci.hpp"

#include <gmock/gmock.h>

namespace berth::images {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string digest_of(char digit) {
  return "sha256:" + std::string(64, digit);
}

std::string manifest_for(char digit, const std::string& architecture,
                         const std::string& more = "") {
  return R"({"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":")" +
         digest_of(digit) + R"(","size":7,"platform":{"os":"linux","architecture":")" +
         architecture + "\"}" + more + "}";
}

std::string named(const std::string& name) {
  return R"(,"annotations":{"org.opencontainers.image.ref.name":")" + name + "\"}";
}

std::string index_of(const std::string& manifests) {
  return R"({"schemaVersion":2,"manifests":[)" + manifests + "]}";
}

TEST(OciIndex, TheManifestOfThisArchitectureIsChosen) {
  const auto chosen =
      choose_manifest(index_of(manifest_for('a', "s390x") + "," + manifest_for('b', "amd64") + "," +
                               manifest_for('c', "unknown")),
                      {.architecture = "amd64"});
  ASSERT_TRUE(chosen) << chosen.error().message;
  EXPECT_EQ(chosen->digest, digest_of('b'));
}

TEST(OciIndex, WithoutOneForThisArchitectureTheErrorSaysSo) {
  const auto chosen =
      choose_manifest(index_of(manifest_for('a', "s390x")), {.architecture = "amd64"});
  ASSERT_FALSE(chosen);
  EXPECT_EQ(chosen.error().code, Errc::image_invalid);
  EXPECT_THAT(chosen.error().message, HasSubstr("amd64"));
}

TEST(OciIndex, AmongSeveralImagesTheReferenceDecides) {
  const std::string two = index_of(manifest_for('a', "amd64", named("one")) + "," +
                                   manifest_for('b', "amd64", named("two")));
  const auto open = choose_manifest(two, {.architecture = "amd64"});
  ASSERT_FALSE(open);
  EXPECT_THAT(open.error().remedy, HasSubstr("'one', 'two'"));
  const auto second = choose_manifest(two, {.architecture = "amd64", .reference = "two"});
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(second->digest, digest_of('b'));
  EXPECT_FALSE(choose_manifest(two, {.architecture = "amd64", .reference = "three"}));
}

TEST(OciIndex, ADigestThatIsAPathIsRefused) {
  for (const char* digest : {"sha256:../../etc/passwd", "sha512:00", "", "sha256:ABC"}) {
    const auto chosen =
        choose_manifest(index_of(R"({"digest":")" + std::string{digest} + R"(","size":1})"), {});
    ASSERT_FALSE(chosen) << digest;
    EXPECT_THAT(chosen.error().message, HasSubstr("is not a digest")) << digest;
  }
}

TEST(OciManifest, OnlyLayersOfFilesAreTaken) {
  const auto with_layer = [](const std::string& type) {
    return R"({"config":{"digest":")" + digest_of('c') + R"(","size":1},"layers":[{"digest":")" +
           digest_of('d') + R"(","size":1,"mediaType":")" + type + "\"}]}";
  };
  EXPECT_TRUE(parse_manifest(with_layer("application/vnd.oci.image.layer.v1.tar+zstd")));
  EXPECT_TRUE(parse_manifest(with_layer("application/vnd.docker.image.rootfs.diff.tar.gzip")));
  EXPECT_FALSE(parse_manifest(with_layer("application/vnd.oci.image.layer.v1.tar+encrypted")));
  const auto chart = parse_manifest(with_layer("application/vnd.cncf.helm.chart.content.v1.tar"));
  ASSERT_FALSE(chart);
  EXPECT_THAT(chart.error().message, HasSubstr("not a layer of files"));
}

TEST(OciConfig, WhatItSaysAboutProcessesIsRead) {
  const auto parsed = parse_config(
      R"({"architecture":"amd64","os":"linux","created":"2024-01-01T00:00:00Z",
          "config":{"Env":["PATH=/bin","EMPTY=","A=b=c"],"User":"1000:33","WorkingDir":"/work",
                    "Entrypoint":["/bin/sh","-c"],"Cmd":null,"Labels":{"Some_Key":"x"},
                    "ExposedPorts":{"80/tcp":{}}},
          "rootfs":{"type":"layers","diff_ids":["sha256:1"]},"history":[]})",
      "amd64");
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->config.env.at("A"), "b=c");
  EXPECT_EQ(parsed->config.env.at("EMPTY"), "");
  EXPECT_EQ(parsed->config.user, "1000:33");
  EXPECT_EQ(parsed->config.workdir, "/work");
  EXPECT_THAT(parsed->config.entrypoint, ElementsAre("/bin/sh", "-c"));
  EXPECT_THAT(parsed->config.cmd, IsEmpty());
  EXPECT_EQ(parsed->config.labels.at("Some_Key"), "x") << "keys of labels are not ours to respell";
  EXPECT_THAT(parsed->diff_ids, ElementsAre("sha256:1"));

  const auto again = decode_text<ImageConfig>(encode_text(parsed->config));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, parsed->config);
}

TEST(OciConfig, AnotherSystemOrArchitectureIsRefused) {
  for (const char* text : {R"({"architecture":"arm64","os":"linux","rootfs":{"diff_ids":[]}})",
                           R"({"architecture":"amd64","os":"windows","rootfs":{"diff_ids":[]}})"}) {
    const auto parsed = parse_config(text, "amd64");
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, Errc::image_invalid);
    EXPECT_THAT(parsed.error().message, HasSubstr("this machine"));
  }
}

TEST(OciConfig, VariablesThatTheKernelWouldNotTakeAreRefused) {
  for (const char* variable : {"NOEQUALS", "=x", "A=b\\u0000c"}) {
    const std::string text = R"({"architecture":"amd64","os":"linux","rootfs":{"diff_ids":[]},)"
                             R"("config":{"Env":[")" +
                             std::string{variable} + "\"]}}";
    EXPECT_FALSE(parse_config(text, "amd64")) << variable;
  }
}

TEST(DockerManifest, PathsAndTagsAreRead) {
  const auto chosen = choose_docker_manifest(
      R"([{"Config":"c.json","RepoTags":["a:1"],"Layers":["l/layer.tar"]},
          {"Config":"d.json","RepoTags":null,"Layers":[]}])",
      {.architecture = "amd64", .reference = "a:1"});
  ASSERT_TRUE(chosen) << chosen.error().message;
  EXPECT_EQ(chosen->config, "c.json");
  EXPECT_THAT(chosen->layers, ElementsAre("l/layer.tar"));
}

}  // namespace
}  // namespace berth::images
