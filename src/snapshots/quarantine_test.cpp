#include "snapshots/quarantine.hpp"

#include "snapshots/bundle_header.hpp"
#include "snapshots/checkout.hpp"
#include "snapshots/git/pack_writer.hpp"
#include "snapshots/snapshots_fixture.hpp"

namespace berth::snapshots {
namespace {

class QuarantineTest : public SnapshotsTest {
 protected:
  void SetUp() override {
    SnapshotsTest::SetUp();
    write("file", "base\n");
    base_ = take().commit;
    ASSERT_TRUE(repository().set_refs({{*Repository::ref_of("r", RunRef::base), base_}}));
    place_ = home() + "/place";
    git(home(), "init -q place");
    git(place_, "fetch -q " + repository().folder() + " refs/berth/runs/r/base");
    git(place_, "checkout -q -b work FETCH_HEAD");
  }
  void commit(const std::string& path, std::string_view text) const {
    write_in(place_, path, text);
    git(place_, "add -A");
    git(place_, "commit -qm change");
  }
  std::string bundle(const std::string& what = "work") const {
    git(place_, "bundle create -q ../bundle " + what + " ^" + base_.hex());
    return read_file(home() + "/bundle", 64 << 20).value_or("");
  }
  Result<BundleCommits> accept(const std::string& bytes, const BundleLimits& limits = {}) const {
    return accept_bundle(repository(), "r", "refs/heads/work", source_of(bytes), limits);
  }
  void expect_refused(const std::string& bytes, Errc code, const BundleLimits& limits = {}) const {
    const auto before = repository().refs("refs/");
    const auto objects = repository().output(
        {.arguments = {"cat-file", "--batch-all-objects", "--batch-check=%(objectname)"}});
    const auto accepted = accept(bytes, limits);
    ASSERT_FALSE(accepted);
    EXPECT_EQ(accepted.error().code, code) << accepted.error().message;
    EXPECT_EQ(*repository().refs("refs/"), *before);
    EXPECT_EQ(*repository().output({.arguments = {"cat-file", "--batch-all-objects",
                                                  "--batch-check=%(objectname)"}}),
              *objects);
    EXPECT_FALSE(std::filesystem::exists(repository().folder() + "/berth/quarantine-r"));
  }

  ObjectId base_;
  std::string place_;
};

TEST_F(QuarantineTest, CommitsOfAPlaceJoinWithTheirHistory) {
  commit("file", "changed\n");
  commit("new", "new\n");
  const auto accepted = accept(bundle());
  SNAPSHOT_OK(accepted);
  EXPECT_EQ(accepted->commits, 2U);
  EXPECT_EQ(accepted->tip.hex() + "\n", git(place_, "rev-parse work"));
  EXPECT_EQ(repository().ref("refs/berth/runs/r/commits")->value(), accepted->tip);
  SNAPSHOT_OK(repository().verify());
  SNAPSHOT_OK(repository().collect_garbage());
  SNAPSHOT_OK(check_out(repository(), accepted->tip, home() + "/out"));
  EXPECT_EQ(*read_file(home() + "/out/new", 100), "new\n");
}

TEST_F(QuarantineTest, BundleThatLiesIsRefused) {
  commit("file", "changed\n");
  const std::string good = bundle();
  ASSERT_FALSE(good.empty());
  const std::size_t pack = good.find("PACK");
  expect_refused("", Errc::bundle_invalid);
  expect_refused("not a bundle", Errc::bundle_invalid);
  expect_refused(good.substr(0, pack), Errc::bundle_invalid);
  expect_refused(good.substr(0, good.size() - 30), Errc::bundle_invalid);
  std::string damaged = good;
  damaged[pack + 20] ^= 0x55;
  expect_refused(damaged, Errc::bundle_invalid);
  // A tip that the pack does not have.
  std::string lie = good;
  const std::size_t tip = lie.find(" refs/heads/work") - 40;
  lie.replace(tip, 40, std::string(40, 'a'));
  expect_refused(lie, Errc::bundle_invalid);
  // A prerequisite that this workspace does not have.
  std::string needs = good;
  needs.replace(needs.find("-" + base_.hex()), 41, "-" + std::string(40, 'b'));
  expect_refused(needs, Errc::bundle_invalid);
}

TEST_F(QuarantineTest, OtherRefsAreRefused) {
  commit("file", "changed\n");
  git(place_, "branch other");
  expect_refused(bundle("work other"), Errc::bundle_invalid);
  expect_refused(bundle("other"), Errc::bundle_invalid);
}

TEST_F(QuarantineTest, LimitsAreHeldBeforeAnythingJoins) {
  commit("large", std::string(3 << 20, 'x'));
  const std::string bytes = bundle();
  expect_refused(bytes, Errc::bundle_too_large, {.bytes_max = 500});
  expect_refused(bytes, Errc::bundle_too_large, {.objects_max = 1});
  expect_refused(bytes, Errc::bundle_too_large, {.object_bytes_max = 1 << 20});
  expect_refused(bytes, Errc::bundle_too_large, {.inflated_bytes_max = 1 << 20});
}

TEST_F(QuarantineTest, TreesThatAttackGitAreRefused) {
  // Made with plumbing that checks nothing.
  const std::string blob = git(place_, "hash-object -w file").substr(0, 40);
  for (const char* name : {".git", ".GIT", "..", "git~1"}) {
    write_in(home(), "tree", "");
    std::string content = "100644 " + std::string{name};
    content += '\0';
    content += ObjectId::from_hex(blob)->raw();
    std::ofstream{home() + "/tree", std::ios::binary} << content;
    const std::string tree =
        git(place_, "hash-object -t tree --literally -w ../tree").substr(0, 40);
    const std::string made =
        git(place_, "commit-tree -p " + base_.hex() + " -m evil " + tree).substr(0, 40);
    git(place_, "update-ref refs/heads/work " + made);
    const std::string bytes = bundle();
    ASSERT_FALSE(bytes.empty()) << name;
    expect_refused(bytes, Errc::bundle_invalid);
  }
}

TEST_F(QuarantineTest, MissingObjectsAreRefused) {
  // A pack with a commit whose tree is nowhere.
  auto elsewhere = Repository::create(GitProgram{}, home() + "/elsewhere");
  SNAPSHOT_OK(elsewhere);
  auto pack = PackWriter::in(*elsewhere);
  SNAPSHOT_OK(pack);
  const std::string text = "tree " + std::string(40, 'c') + "\nparent " + base_.hex() +
                           "\nauthor a <a@b> 1 +0000\ncommitter a <a@b> 1 +0000\n\nx\n";
  const ObjectId tip = *pack->add(ObjectType::commit, text);
  SNAPSHOT_OK(pack->finish());
  std::string bytes =
      "# v2 git bundle\n-" + base_.hex() + "\n" + tip.hex() + " refs/heads/work\n\n";
  for (const std::string& name : *names_in(home() + "/elsewhere/objects/pack")) {
    if (name.ends_with(".pack")) {
      bytes += *read_file(home() + "/elsewhere/objects/pack/" + name, 1 << 20);
    }
  }
  expect_refused(bytes, Errc::bundle_invalid);
}

class QuarantineCrashTest : public QuarantineTest,
                            public testing::WithParamInterface<const char*> {};

TEST_P(QuarantineCrashTest, KilledProcessLeavesARepositoryThatTakesTheBundleAgain) {
  commit("file", "changed\n");
  const std::string bytes = bundle();
  ASSERT_TRUE(dies_at(GetParam(), {"accept", repository().folder(), home() + "/bundle"}));
  EXPECT_FALSE(repository().ref("refs/berth/runs/r/commits")->has_value());
  SNAPSHOT_OK(accept(bytes));
  SNAPSHOT_OK(repository().verify());
}

INSTANTIATE_TEST_SUITE_P(EveryPoint, QuarantineCrashTest,
                         testing::Values("quarantine.checked", "quarantine.joined"));

TEST(BundleHeaderTest, CapabilitiesThatNobodyAskedForAreRefused) {
  const std::string id(40, 'a');
  EXPECT_TRUE(BundleHeader::parse("# v2 git bundle\n" + id + " HEAD\n\nPACK"));
  EXPECT_TRUE(BundleHeader::parse("# v3 git bundle\n@object-format=sha1\n" + id + " HEAD\n\n"));
  EXPECT_FALSE(BundleHeader::parse("# v3 git bundle\n@filter=blob:none\n" + id + " HEAD\n\n"));
  EXPECT_FALSE(BundleHeader::parse("# v2 git bundle\n@object-format=sha1\n" + id + " HEAD\n\n"));
  EXPECT_FALSE(BundleHeader::parse("# v2 git bundle\n" + id + "\n\n"));
  EXPECT_FALSE(BundleHeader::parse("# v2 git bundle\n" + id + " HEAD\n"));
}

}  // namespace
}  // namespace berth::snapshots
